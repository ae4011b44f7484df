// Kernels on vectors of floats, for every vector width: kernels_avx2.c and kernels_avx512.c include this behind
// lanes.h, vector_min, vector_max, vector_round and vector_scaled, and inverse_root and sum_of, whose sums go by
// sixteen lanes whatever a vector holds.

static void layer_norm(const float *x, const float *weight, const float *bias, float *y, int n, float epsilon) {
    const float mean = sum_of(x, n) / (float)n;
    for (int i = 0; i < n; i++) y[i] = x[i] - mean;
    const float factor = inverse_root(y, n, epsilon);
    for (int i = 0; i < n; i++) y[i] = bias ? fmaf(y[i] * factor, weight[i], bias[i]) : y[i] * factor * weight[i];
}

INLINE vector exponential(vector x) {
    x = vector_min(vector_of(EXP_HIGH), x); // in this order a NaN stays one
    x = vector_max(vector_of(EXP_LOW), x);
    const vector n = vector_round(x * vector_of(EXP_LOG2E));
    vector r = vector_fma(n, vector_of(-EXP_LN2_HIGH), x);
    r = vector_fma(n, vector_of(-EXP_LN2_LOW), r);
    vector p = vector_fma(r, vector_of(EXP_C6), vector_of(EXP_C5));
    p = vector_fma(p, r, vector_of(EXP_C4));
    p = vector_fma(p, r, vector_of(EXP_C3));
    p = vector_fma(p, r, vector_of(EXP_C2));
    p = vector_fma(p, r, vector_of(1));
    p = vector_fma(p, r, vector_of(1));
    return vector_scaled(p, n);
}

INLINE vector gated(vector x, vector slope) { return x / (vector_of(1) + exponential(-slope)); } // x·σ(slope)

static void silu(float *gate, const float *up, int n) {
    for (int i = 0; i < n; i += VECTOR_FLOATS) {
        const vector g = vector_load(gate + i);
        vector_store(gate + i, gated(g, g) * vector_load(up + i));
    }
}

static void gelu(float *gate, const float *up, int n) {
    for (int i = 0; i < n; i += VECTOR_FLOATS) {
        const vector g = vector_load(gate + i);
        const vector factor = vector_fma(g * g, vector_of(GELU_CUBIC), vector_of(GELU_LINEAR));
        vector_store(gate + i, gated(g, factor * g) * vector_load(up + i));
    }
}

static void silu_clamped(float *gate, const float *up, int n) {
    const vector limit = vector_of(CLAMPED_LIMIT), lowest = vector_of(-CLAMPED_LIMIT);
    for (int i = 0; i < n; i += VECTOR_FLOATS) { // limits first: so a NaN stays one
        const vector g = vector_min(limit, vector_load(gate + i));
        const vector u = vector_max(lowest, vector_min(limit, vector_load(up + i)));
        vector_store(gate + i, gated(g, g * vector_of(CLAMPED_SLOPE)) * (u + vector_of(1)));
    }
}

static void softcap(float *x, int n, float cap) {
    const vector one = vector_of(1), two = vector_of(2), twice = vector_of(2 / cap);
    for (int i = 0; i < n; i += VECTOR_FLOATS) {
        const vector e = exponential(vector_load(x + i) * twice);
        vector_store(x + i, (one - two / (one + e)) * vector_of(cap)); // tanh × cap
    }
}

static void scale(float *x, int n, float factor) {
    for (int i = 0; i < n; i += VECTOR_FLOATS) vector_store(x + i, vector_load(x + i) * vector_of(factor));
}

// For attention, towards the second cache: a block of pages is more than the first holds.
INLINE void fetch(const void *p, ptrdiff_t ahead) { _mm_prefetch((const char *)p + ahead, _MM_HINT_T1); }
