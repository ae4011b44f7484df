// Kernels of attention, for every vector width: kernels_avx2.c and kernels_avx512.c include this behind
// vector_kernels.h, MATMUL_ROWS (rows that are computed at once), vector_bf16, weigh_bytes and the byte dot products
// of packed values.

typedef vector matmul_totals[MATMUL_ROWS][2];
typedef integers matmul_sums[MATMUL_ROWS][2];

// Two vectors of each row; rows lie `stride` floats apart.
INLINE void load_totals(matmul_totals total, const float *p, size_t stride, const int rows) {
    UNROLL for (int i = 0; i < rows; i++) {
        total[i][0] = vector_load(p + (size_t)i * stride);
        total[i][1] = vector_load(p + (size_t)i * stride + VECTOR_FLOATS);
    }
}
INLINE void store_totals(matmul_totals total, float *p, size_t stride, const int rows) {
    UNROLL for (int i = 0; i < rows; i++) {
        vector_store(p + (size_t)i * stride, total[i][0]);
        vector_store(p + (size_t)i * stride + VECTOR_FLOATS, total[i][1]);
    }
}

// rows_function(argument, first, rows) over n rows, with `rows` as a constant.
#define FOR_ROWS(rows_function, argument, n)                                                                           \
    int first = 0;                                                                                                     \
    for (; first + MATMUL_ROWS <= (n); first += MATMUL_ROWS) rows_function(argument, first, MATMUL_ROWS);              \
    for (; first + 4 <= (n); first += 4) rows_function(argument, first, 4);                                            \
    for (; first + 2 <= (n); first += 2) rows_function(argument, first, 2);                                            \
    if (first < (n)) rows_function(argument, first, 1)

// --- halves ----------------------------------------------------------------------------------------------------------

#define HALF_KERNELS(name, load)                                                                                       \
    /* total[i] += Σ_j a[i][j] × b[j][0..2 vectors) */                                                               \
    INLINE void name##_steps(matmul_totals total, const uint16_t *b, int b_stride, ptrdiff_t ahead, int n,             \
                             const float *a, int a_stride, const int rows) {                                           \
        for (int j = 0; j < n; j++, b += b_stride) {                                                                   \
            fetch(b, ahead);                                                                                           \
            const vector b0 = load(b), b1 = load(b + VECTOR_FLOATS);                                                   \
            UNROLL for (int i = 0; i < rows; i++) {                                                                    \
                const vector x = vector_of(a[(size_t)i * a_stride + j]);                                               \
                total[i][0] = vector_fma(x, b0, total[i][0]);                                                          \
                total[i][1] = vector_fma(x, b1, total[i][1]);                                                          \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    INLINE void name##_scores_rows(const struct scoring *s, int first, const int rows) {                               \
        for (int t = 0; t < KV_PAGE_TOKENS; t += 2 * VECTOR_FLOATS) {                                                  \
            float *out = s->out + first * KV_PAGE_TOKENS + t;                                                          \
            matmul_totals total;                                                                                       \
            UNROLL for (int i = 0; i < rows; i++) total[i][0] = total[i][1] = vector_of(0);                            \
            name##_steps(total, s->keys + t, KV_PAGE_TOKENS, (const char *)s->ahead - (const char *)s->keys, s->size,  \
                         s->queries + (size_t)first * s->size, s->size, rows);                                         \
            store_totals(total, out, KV_PAGE_TOKENS, rows);                                                            \
        }                                                                                                              \
    }                                                                                                                  \
    static void name##_scores(const struct scoring *s) { FOR_ROWS(name##_scores_rows, s, s->rows); }                   \
    INLINE void name##_weigh_rows(const struct weighing *w, int row, const int rows) {                                 \
        for (int d = 0; d < w->size; d += 2 * VECTOR_FLOATS) {                                                         \
            float *out = w->out + (size_t)row * w->size + d;                                                           \
            matmul_totals total;                                                                                       \
            load_totals(total, out, (size_t)w->size, rows);                                                            \
            for (int p = 0; p < w->n_pages; p++) {                                                                     \
                const int begin = slot_in_page(w->first, p), end = slot_in_page(w->end, p);                            \
                const uint16_t *values = (const uint16_t *)w->pages[p] + (size_t)begin * w->size + d;                  \
                name##_steps(total, values, w->size, (const char *)w->ahead[p] - (const char *)w->pages[p],            \
                             end - begin, w->weights + (size_t)p * w->page_stride + row * KV_PAGE_TOKENS + begin,      \
                             KV_PAGE_TOKENS, rows);                                                                    \
            }                                                                                                          \
            store_totals(total, out, (size_t)w->size, rows);                                                           \
        }                                                                                                              \
    }                                                                                                                  \
    static void name##_weigh(const struct weighing *w) { FOR_ROWS(name##_weigh_rows, w, w->rows); }

HALF_KERNELS(f16, vector_halves)
HALF_KERNELS(bf16, vector_bf16)

static void to_bf16(const float *x, uint16_t *out, int n) {
    for (int i = 0; i < n; i++) out[i] = bf16_rounded(x[i]);
}

// --- packed values ---------------------------------------------------------------------------------------------------

// Some rows, two vectors of 32 elements: half h of them where a vector is no more than half of a half. The bytes of all
// pages come first: what they wait for, others can be computed meanwhile.
#define VALUE_KERNEL(name)                                                                                             \
    INLINE void name##_weigh_part(const struct weighing *w, int row, const int rows, int block, const int h) {         \
        float *out = w->out + (size_t)row * w->size + 32 * block + 16 * h;                                             \
        uint8_t bytes[KV_BLOCK_PAGES][MATMUL_ROWS][KV_PAGE_TOKENS];                                                    \
        float scale[KV_BLOCK_PAGES][MATMUL_ROWS];                                                                      \
        for (int p = 0; p < w->n_pages; p++) {                                                                         \
            const struct packed_values_##name *packed = (const struct packed_values_##name *)w->pages[p] + block;      \
            fetch(packed->d, (const char *)w->ahead[p] - (const char *)w->pages[p]);                                   \
            weigh_bytes(w->weights + (size_t)p * w->page_stride + row * KV_PAGE_TOKENS, packed->d, bytes[p], scale[p], \
                        rows);                                                                                         \
        }                                                                                                              \
        matmul_totals total;                                                                                           \
        load_totals(total, out, (size_t)w->size, rows);                                                                \
        for (int p = 0; p < w->n_pages; p++) {                                                                         \
            const struct packed_values_##name *packed = (const struct packed_values_##name *)w->pages[p] + block;      \
            matmul_sums sum;                                                                                           \
            name##_value_dots(sum, packed, (const char *)w->ahead[p] - (const char *)w->pages[p], bytes[p], rows, h);  \
            UNROLL for (int i = 0; i < rows; i++) UNROLL for (int v = 0; v < 2; v++) total[i][v] =                     \
                vector_fma(vector_from(sum[i][v]), vector_of(scale[p][i]), total[i][v]);                               \
        }                                                                                                              \
        store_totals(total, out, (size_t)w->size, rows);                                                               \
    }                                                                                                                  \
    INLINE void name##_weigh_rows(const struct weighing *w, int row, const int rows) {                                 \
        for (int block = 0; block < w->size / 32; block++)                                                             \
            UNROLL for (int h = 0; h < 16 / VECTOR_FLOATS; h++) name##_weigh_part(w, row, rows, block, h);             \
    }                                                                                                                  \
    static void name##_weigh(const struct weighing *w) { FOR_ROWS(name##_weigh_rows, w, w->rows); }

VALUE_KERNEL(q8_0)
VALUE_KERNEL(q4_0)

// --- softmax ---------------------------------------------------------------------------------------------------------

static void softmax_merge(struct softmax *state, float *sum, const struct softmax *part, const float *part_sum, int n) {
    const float top = state->maximum > part->maximum ? state->maximum : part->maximum;
    const vector keep = exponential(vector_of(state->maximum - top)),
                 take = exponential(vector_of(part->maximum - top));
    for (int i = 0; i < n; i += VECTOR_FLOATS)
        vector_store(sum + i, vector_fma(vector_load(part_sum + i), take, vector_load(sum + i) * keep));
    state->sum = fmaf(part->sum, take[0], state->sum * keep[0]);
    state->maximum = top;
}
