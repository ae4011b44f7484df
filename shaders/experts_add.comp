#version 450
// Sums a row's results of its experts, and of the shared one, into `to`, or onto it.
#include "common.glsl"

layout(local_size_x = 64) in;

layout(constant_id = 0) const uint USED = 2;
layout(constant_id = 1) const bool SHARED = false;
layout(constant_id = 2) const bool WEIGHED = false; // the shared one, by a sigmoid
layout(constant_id = 3) const bool ADDS = true;

layout(push_constant, scalar) uniform Push {
    Floats results; // [rows × USED, stride]
    Ints choices;
    Floats shared_results, shared_logits; // [rows, stride], [rows, logits_stride]
    Floats to;                            // [rows, stride]
    uint n, stride, logits_stride;
    float scale;
};

void main() {
    const uint k = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
    if (k >= n) return;
    float sum = 0;
    for (uint i = row * USED; i < row * USED + USED; i++)
        sum += results.v[i * stride + k] * intBitsToFloat(choices.v[2 * i + 1]);
    if (SHARED) {
        const float weight = WEIGHED ? 1 / (1 + exp(-shared_logits.v[row * logits_stride])) : 1;
        sum += weight * shared_results.v[row * stride + k];
    }
    to.v[row * stride + k] = ADDS ? to.v[row * stride + k] + scale * sum : sum;
}
