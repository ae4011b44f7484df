#version 450
// Joins the parts that attention leaves of a row and head, where several work groups shared the keys. Threads read the
// maxima and sums of a part each, then a dimension each, of every SLICES-th part.
#include "common.glsl"

const uint THREADS = 256;
layout(local_size_x = 256) in;
#include "reduce.glsl"

layout(constant_id = 0) const uint HEAD_SIZE = 64;
layout(constant_id = 1) const bool SINKS = false;

layout(push_constant, scalar) uniform Push {
    Floats parts, to, sinks; // parts as in attention
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
    for (uint d = t; d < HEAD_SIZE; d += THREADS) {
        float sum = 0;
        for (uint slice = 0; slice < SLICES; slice++) sum += sums[slice * HEAD_SIZE + d];
        to.v[row * to_stride + head * HEAD_SIZE + d] = sum / total;
    }
}
