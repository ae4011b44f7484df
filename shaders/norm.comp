#version 450
// Norms of rows, or without a norm the rows themselves: from row rows[i] of `from`, or row i, to row i of `to`, or onto
// it. A work group holds a row in registers, so that it waits for memory once.
#define THREADS 256
#include "codes.glsl"

layout(local_size_x = THREADS) in;
#include "reduce.glsl"

const uint NORM_RMS = 0, NORM_LAYER = 1, NORM_NONE = 2; // enum norm_kind, and none
layout(constant_id = 0) const uint KIND = NORM_RMS;
layout(constant_id = 1) const bool BIASED = false;
layout(constant_id = 2) const bool ADDS = false;      // to[i] += scale × normed
layout(constant_id = 3) const bool QUANTIZES = false; // the result as well
layout(constant_id = 4) const uint VECTORS = 1;       // of a thread: those of the row's pieces / THREADS, rounded up

layout(push_constant, scalar) uniform Push {
    Vectors from;
    WritableVectors to;
    Pieces codes;
    Vectors weight, bias;
    Ints rows; // with has_list
    uint n, from_stride, to_stride, has_list;
    float epsilon, scale;
};

// Zero behind the row.
vec4 of_row(vec4 x, uint at) { return mix(vec4(0), x, lessThan(4 * at + uvec4(0, 1, 2, 3), uvec4(n))); }

void write(uint target, uint at, vec4 x) {
    if (4 * at + 4 <= n) to.v[target] = x;
    else
        for (uint i = 0; 4 * at + i < n; i++) to.v[target][i] = x[i];
}

void main() {
    const uint t = gl_LocalInvocationIndex, last = (n - 1) / 4;
    const uint source = listed(has_list, rows, gl_WorkGroupID.x) * (from_stride / 4);
    const uint target = gl_WorkGroupID.x * (to_stride / 4);
    vec4 x[VECTORS], weights[VECTORS], sum = vec4(0);
    float mean = 0, factor = 1;
    [[unroll]] for (uint k = 0; k < VECTORS; k++) {
        const uint at = min(t + k * THREADS, last);
        x[k] = of_row(from.v[source + at], t + k * THREADS);
        if (KIND != NORM_NONE) weights[k] = weight.v[at];
    }
    if (KIND == NORM_LAYER) {
        [[unroll]] for (uint k = 0; k < VECTORS; k++) sum += x[k];
        mean = group_sum(sum.x + sum.y + sum.z + sum.w) / float(n);
        [[unroll]] for (uint k = 0; k < VECTORS; k++) x[k] = of_row(x[k] - mean, t + k * THREADS);
    }
    if (KIND != NORM_NONE) {
        float squares = 0;
        [[unroll]] for (uint k = 0; k < VECTORS; k++) squares += dot(x[k], x[k]);
        factor = 1 / sqrt(group_sum(squares) / float(n) + epsilon);
    }
    [[unroll]] for (uint k = 0; k < VECTORS; k++) {
        const uint at = t + k * THREADS, whole = (n + 31) / 32 * 8;
        if (KIND != NORM_NONE) x[k] *= factor * weights[k];
        if (BIASED) x[k] += bias.v[min(at, last)];
        if (at <= last) write(target + at, at, ADDS ? to.v[target + at] + scale * x[k] : x[k]);
        if (QUANTIZES) write_codes(codes, gl_WorkGroupID.x, to_stride / 32, at, of_row(x[k], at), at < whole);
    }
}
