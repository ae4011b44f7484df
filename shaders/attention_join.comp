#version 450
// Joins the parts that attention leaves of a row and head, where several work groups shared the keys. Threads read the
// maxima and sums of a part each, then a dimension each, of every SLICES-th part.
#define THREADS 256
#include "codes.glsl"

layout(local_size_x = THREADS) in;
#include "reduce.glsl"

layout(constant_id = 0) const uint HEAD_SIZE = 64;
layout(constant_id = 1) const bool SINKS = false;
layout(constant_id = 2) const bool QUANTIZES = false; // the result as well; of whole pieces

layout(push_constant, scalar) uniform Push {
    Floats parts, to; // parts as in attention
    Pieces codes;
    Floats sinks;
    uint to_stride, n_parts; // at most MOST_PARTS
};

const uint MOST_PARTS = 512, SLICES = HEAD_SIZE < THREADS ? THREADS / HEAD_SIZE : 1, AT_ONCE = 8;
shared float factors[MOST_PARTS], sums[SLICES * HEAD_SIZE];

void main() {
    const uint t = gl_LocalInvocationIndex, head = gl_WorkGroupID.x, n_head = gl_NumWorkGroups.x;
    const uint row = gl_WorkGroupID.y, size = HEAD_SIZE + 2, first = (row * n_head + head) * n_parts * size;
    float top = parts.v[first], total = 0;
    const float sink = SINKS ? sinks.v[head] : top;
    for (uint i = t; i < n_parts; i += THREADS) top = max(top, factors[i] = parts.v[first + i * size]);
    top = max(sink, group_max(top));
    for (uint i = t; i < n_parts; i += THREADS)
        total += parts.v[first + i * size + 1] * (factors[i] = exp(factors[i] - top));
    total = group_sum(total) + (SINKS ? exp(sink - top) : 0);
    for (uint j = t; j < SLICES * HEAD_SIZE; j += THREADS) {
        float sum = 0;
        for (uint i = j / HEAD_SIZE; i < n_parts; i += AT_ONCE * SLICES)
            [[unroll]] for (uint k = i; k < i + AT_ONCE * SLICES; k += SLICES) {
                const uint part = min(k, n_parts - 1);
                const float factor = k < n_parts ? factors[part] : 0;
                sum += factor * parts.v[first + part * size + 2 + j % HEAD_SIZE];
            }
        sums[j] = sum;
    }
    barrier();
    const uint start = row * to_stride + head * HEAD_SIZE;
    for (uint first_d = 0; first_d < HEAD_SIZE; first_d += 4 * THREADS) {
        const uint d = first_d + 4 * t;
        vec4 x = vec4(0);
        for (uint i = 0; i < 4 && d + i < HEAD_SIZE; i++) {
            for (uint slice = 0; slice < SLICES; slice++) x[i] += sums[slice * HEAD_SIZE + d + i];
            to.v[start + d + i] = x[i] /= total;
        }
        if (QUANTIZES) write_codes(codes, row, to_stride / 32, (head * HEAD_SIZE + d) / 4, x, d < HEAD_SIZE);
    }
}
