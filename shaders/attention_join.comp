#version 450
// Joins the parts that attention leaves of a row and head, where several work groups shared the keys.
#include "common.glsl"

const uint THREADS = 64;
layout(local_size_x = 64) in;

layout(constant_id = 0) const uint HEAD_SIZE = 64;
layout(constant_id = 1) const bool SINKS = false;

layout(push_constant, scalar) uniform Push {
    Floats parts, to, sinks; // parts as in attention
    uint to_stride, n_parts;
};

void main() {
    const uint head = gl_WorkGroupID.x, n_head = gl_NumWorkGroups.x, row = gl_WorkGroupID.y;
    const uint first = (row * n_head + head) * n_parts * (HEAD_SIZE + 2), end = first + n_parts * (HEAD_SIZE + 2);
    float top = SINKS ? sinks.v[head] : parts.v[first];
    for (uint at = first; at < end; at += HEAD_SIZE + 2) top = max(top, parts.v[at]);
    float total = SINKS ? exp(sinks.v[head] - top) : 0;
    for (uint at = first; at < end; at += HEAD_SIZE + 2) total += parts.v[at + 1] * exp(parts.v[at] - top);
    for (uint d = gl_LocalInvocationIndex; d < HEAD_SIZE; d += THREADS) {
        float sum = 0;
        for (uint at = first; at < end; at += HEAD_SIZE + 2) sum += parts.v[at + 2 + d] * exp(parts.v[at] - top);
        to.v[row * to_stride + head * HEAD_SIZE + d] = sum / total;
    }
}
