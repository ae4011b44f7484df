// Kernels on vectors of floats, for every vector width: kernels_avx2.c and kernels_avx512.c include this behind
// lanes.h, inverse_root and sum_of, and the parts of quantising a block: greatest_magnitude, squared_errors,
// round_block.

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

// --- quantising ------------------------------------------------------------------------------------------------------

// Sums of the 8 lanes of each.
INLINE __m128 four_sums(const __m256 lanes[4]) {
    __m128 v[4]; // l + 4
    UNROLL for (int i = 0; i < 4; i++)
        v[i] = _mm_add_ps(_mm256_castps256_ps128(lanes[i]), _mm256_extractf128_ps(lanes[i], 1));
    const __m128 a = _mm_add_ps(_mm_unpacklo_ps(v[0], v[1]), _mm_unpackhi_ps(v[0], v[1])); // l + 2
    const __m128 b = _mm_add_ps(_mm_unpacklo_ps(v[2], v[3]), _mm_unpackhi_ps(v[2], v[3]));
    return _mm_add_ps(_mm_movelh_ps(a, b), _mm_movehl_ps(b, a)); // l + 1
}

// The choices of several blocks. What one block needs is a long chain, so each turn has many blocks under way.
enum { SOME_BLOCKS = 16 };
struct scale_choices {
    float maximum[SOME_BLOCKS];
    float scale[SCALE_CHOICES][SOME_BLOCKS], inverse[SCALE_CHOICES][SOME_BLOCKS];
    float unit[SCALE_CHOICES][SOME_BLOCKS]; // the scale's square, relative to the first one's
    float error[SOME_BLOCKS][SCALE_CHOICES];
};

INLINE void list_choices(struct scale_choices *s) {
    UNROLL for (int i = 0; i < SCALE_CHOICES; i++)
        for (int b = 0; b < SOME_BLOCKS; b++) {
            const uint32_t bits = activation_scale_bits(s->maximum[b]) + (uint32_t)(i * SCALE_STEP_BITS);
            memcpy(&s->scale[i][b], &bits, sizeof bits);
            s->inverse[i][b] = 1 / s->scale[i][b];
            const float unit = s->scale[i][b] * s->inverse[0][b];
            s->unit[i][b] = unit * unit;
        }
}

INLINE void judge_choices(struct scale_choices *s, int b, const float *x) {
    __m256 errors[SCALE_CHOICES];
    UNROLL for (int i = 0; i < SCALE_CHOICES; i++) errors[i] = squared_errors(x, s->inverse[i][b]);
    _mm_storeu_ps(s->error[b], four_sums(errors));
}

INLINE int best_choice(const struct scale_choices *s, int b) {
    float errors[SCALE_CHOICES];
    UNROLL for (int i = 0; i < SCALE_CHOICES; i++) errors[i] = s->error[b][i] * s->unit[i][b];
    return least_error(errors);
}

INLINE void quantize_block(const struct scale_choices *s, int b, const float *x, struct activation_block *out) {
    if (s->maximum[b] < QUANTIZE_HUGE && s->maximum[b] > QUANTIZE_TINY) {
        const int best = best_choice(s, b);
        const struct half_sums q = round_block(x, s->inverse[best][b], out->q);
        activation_finish(out, s->scale[best][b], q.low, q.low + q.high);
    } else {
        memset(out->q, 0, sizeof out->q);
        activation_finish(out, s->maximum[b] < QUANTIZE_HUGE ? 0 : NAN, 0, 0);
    }
}

static void quantize(const float *x, int n_blocks, struct activation_block *out, int stride) {
    struct scale_choices s = {.maximum = {0}};
    for (int first = 0; first < n_blocks; first += SOME_BLOCKS, x += SOME_BLOCKS * BLOCK_COLUMNS) {
        const int n = n_blocks - first < SOME_BLOCKS ? n_blocks - first : SOME_BLOCKS;
        for (int b = 0; b < n; b++) s.maximum[b] = greatest_magnitude(x + b * BLOCK_COLUMNS);
        list_choices(&s);
        for (int b = 0; b < n; b++) judge_choices(&s, b, x + b * BLOCK_COLUMNS);
        for (int b = 0; b < n; b++)
            quantize_block(&s, b, x + b * BLOCK_COLUMNS, out + (size_t)(first + b) * stride);
    }
}

// For attention, towards the second cache: a block of pages is more than the first holds.
INLINE void fetch(const void *p, ptrdiff_t ahead) { _mm_prefetch((const char *)p + ahead, _MM_HINT_T1); }
