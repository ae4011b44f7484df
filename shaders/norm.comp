#version 450
// Norms of rows, or without a norm the rows themselves: from row rows[i] of `from` to row i of `to`, or onto it.
#include "common.glsl"

const uint THREADS = 128;
layout(local_size_x = 128) in;
#include "reduce.glsl"

const uint NORM_RMS = 0, NORM_LAYER = 1, NORM_NONE = 2; // enum norm_kind, and none
layout(constant_id = 0) const uint KIND = NORM_RMS;
layout(constant_id = 1) const bool BIASED = false;
layout(constant_id = 2) const bool ADDS = false; // to[i] += scale × normed

layout(push_constant, scalar) uniform Push {
    Floats from, to, weight, bias;
    Ints rows;
    uint n, from_stride, to_stride;
    float epsilon, scale;
};

void main() {
    const uint i = gl_WorkGroupID.x, source = uint(rows.v[i]) * from_stride, target = i * to_stride;
    float mean = 0, factor = 1;
    if (KIND == NORM_LAYER) {
        float sum = 0;
        for (uint k = gl_LocalInvocationIndex; k < n; k += THREADS) sum += from.v[source + k];
        mean = group_sum(sum) / float(n);
    }
    if (KIND != NORM_NONE) {
        float squares = 0;
        for (uint k = gl_LocalInvocationIndex; k < n; k += THREADS) {
            const float x = from.v[source + k] - mean;
            squares += x * x;
        }
        factor = 1 / sqrt(group_sum(squares) / float(n) + epsilon);
    }
    for (uint k = gl_LocalInvocationIndex; k < n; k += THREADS) {
        float x = from.v[source + k];
        if (KIND != NORM_NONE) x = (x - mean) * factor * weight.v[k];
        if (BIASED) x += bias.v[k];
        to.v[target + k] = ADDS ? to.v[target + k] + scale * x : x;
    }
}
