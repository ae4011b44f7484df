#version 450
// The activation of a feed-forward network, into `gate`; see enum activation.
#include "common.glsl"

layout(local_size_x = 64) in;

const uint ACTIVATION_SILU = 0, ACTIVATION_GELU = 1, ACTIVATION_SILU_CLAMPED = 2;
layout(constant_id = 0) const uint ACTIVATION = ACTIVATION_SILU;
layout(constant_id = 1) const bool GATED = true; // or the activation of `up` itself

layout(push_constant, scalar) uniform Push {
    Floats gate, up;
    uint n, stride; // of a row
};

float silu(float x, float slope) { return x / (1 + exp(-slope * x)); }

// The approximation by tanh; beyond ±20 that is ±1.
float gelu(float x) {
    return 0.5 * x * (1 + tanh(clamp(0.79788456080286535588 * x * (1 + 0.044715 * x * x), -20.0, 20.0)));
}

void main() {
    const uint k = gl_GlobalInvocationID.x, at = gl_WorkGroupID.y * stride + k;
    if (k >= n) return;
    const float u = up.v[at], g = GATED ? gate.v[at] : u;
    float result;
    if (ACTIVATION == ACTIVATION_SILU_CLAMPED) result = silu(min(g, 7.0), 1.702) * (clamp(u, -7.0, 7.0) + 1);
    else result = (ACTIVATION == ACTIVATION_SILU ? silu(g, 1) : gelu(g)) * (GATED ? u : 1);
    gate.v[at] = result;
}
