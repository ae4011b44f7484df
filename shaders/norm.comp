#version 450
// Norms of rows, or without a norm the rows themselves: from row rows[i] of `from` to row i of `to`, or onto it. A work
// group holds a row in registers, so that it waits for memory once.
#include "common.glsl"

const uint THREADS = 256;
layout(local_size_x = 256) in;
#include "reduce.glsl"

const uint NORM_RMS = 0, NORM_LAYER = 1, NORM_NONE = 2; // enum norm_kind, and none
layout(constant_id = 0) const uint KIND = NORM_RMS;
layout(constant_id = 1) const bool BIASED = false;
layout(constant_id = 2) const bool ADDS = false; // to[i] += scale × normed
layout(constant_id = 3) const uint VALUES = 1;   // of a thread: n / THREADS, rounded up

layout(push_constant, scalar) uniform Push {
    Floats from, to, weight, bias;
    Ints rows;
    uint n, from_stride, to_stride;
    float epsilon, scale;
};

void main() {
    const uint t = gl_LocalInvocationIndex, i = gl_WorkGroupID.x, source = uint(rows.v[i]) * from_stride;
    float x[VALUES], weights[VALUES], mean = 0, factor = 1;
    [[unroll]] for (uint k = 0; k < VALUES; k++) {
        const uint at = min(t + k * THREADS, n - 1);
        x[k] = from.v[source + at];
        if (KIND != NORM_NONE) weights[k] = weight.v[at];
    }
    if (KIND == NORM_LAYER) {
        float sum = 0;
        [[unroll]] for (uint k = 0; k < VALUES; k++) sum += t + k * THREADS < n ? x[k] : 0;
        mean = group_sum(sum) / float(n);
    }
    if (KIND != NORM_NONE) {
        float squares = 0;
        [[unroll]] for (uint k = 0; k < VALUES; k++)
            squares += t + k * THREADS < n ? (x[k] - mean) * (x[k] - mean) : 0;
        factor = 1 / sqrt(group_sum(squares) / float(n) + epsilon);
    }
    [[unroll]] for (uint k = 0; k < VALUES; k++) {
        const uint at = t + k * THREADS, target = i * to_stride + at;
        if (at >= n) break;
        if (KIND != NORM_NONE) x[k] = (x[k] - mean) * factor * weights[k];
        if (BIASED) x[k] += bias.v[at];
        to.v[target] = ADDS ? to.v[target] + scale * x[k] : x[k];
    }
}
