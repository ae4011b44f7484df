// The activation of a feed-forward network; see enum activation.
const uint ACTIVATION_SILU = 0, ACTIVATION_GELU = 1, ACTIVATION_SILU_CLAMPED = 2;
layout(constant_id = 0) const uint ACTIVATION = ACTIVATION_SILU;
layout(constant_id = 1) const bool GATED = true; // or the activation of `up` itself

float silu(float x, float slope) { return x / (1 + exp(-slope * x)); }

// The approximation by tanh; beyond ±20 that is ±1.
float gelu(float x) {
    return 0.5 * x * (1 + tanh(clamp(0.79788456080286535588 * x * (1 + 0.044715 * x * x), -20.0, 20.0)));
}

float activate(float gate, float up) {
    const float g = GATED ? gate : up;
    if (ACTIVATION == ACTIVATION_SILU_CLAMPED) return silu(min(g, 7.0), 1.702) * (clamp(up, -7.0, 7.0) + 1);
    return (ACTIVATION == ACTIVATION_SILU ? silu(g, 1) : gelu(g)) * (GATED ? up : 1);
}
