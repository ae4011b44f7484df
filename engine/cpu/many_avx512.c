// Packed weights times many inputs, for AVX-512 with VNNI: some columns of a strip are unpacked into bytes and float
// scales, which stay in the cache while every panel of inputs goes over them. The results are those of packed_avx512.c
// to the last bit.
//
// Multiplications are what limits: dot products share their pipes. So with one scale for 32 columns, its products with
// the SCALE_STEPS mantissas that a block of inputs can have are kept, as sums of a coarse and a fine part, both exact;
// and the power of two comes in through the conversion of the sum: integer sums begin from the bits of the block's
// `base`, so that taking `base` off as floats leaves the sum times the power.
#include "engine/cpu/packed.h"

#if defined(__x86_64__)
#include "engine/cpu/lines_avx512.h"

enum {
    CHUNK_BLOCKS = 32,    // blocks of columns that are unpacked at once;
    CHUNK_ONE_SCALE = 12, // of those with one scale, whose products take as much again, fewer fit the nearest cache
    COARSE = 8,           // steps of a mantissa
    FINE = SCALE_STEPS / COARSE,
    COARSE_SHIFT = 20, // where the coarse part lies in the bits of a scale
    FINE_SHIFT = 17,
};

enum shape { ONE_SCALE, ONE_SCALE_MIN, TWO_SCALES, TWO_SCALES_MIN };

// 32 rows × CHUNK_BLOCKS × 32 columns. Weights with a minimum are unsigned codes; to others BYTE_OFFSET is added.
struct chunk {
    _Alignas(64) uint8_t q[CHUNK_BLOCKS][8][2][64];
    union {
        struct {
            float coarse[COARSE][32], fine[FINE][32]; // × (1 + i / COARSE), × i / SCALE_STEPS
        } one;
        float two[2][32]; // of either half
    } scale[CHUNK_BLOCKS];
    float min[CHUNK_BLOCKS][2][32]; // of a block, or of either half
};

// --- unpacking -------------------------------------------------------------------------------------------------------

INLINE void put_rows(float out[32], struct row_vector x) {
    vector_store(out, x.v[0]);
    vector_store(out + VECTOR_FLOATS, x.v[1]);
}

INLINE void put_scale(struct chunk *to, int b, struct row_vector x) {
    UNROLL for (int i = 0; i < COARSE; i++) UNROLL for (int v = 0; v < 2; v++)
        vector_store(to->scale[b].one.coarse[i] + v * VECTOR_FLOATS, x.v[v] * vector_of(1 + (float)i / COARSE));
    UNROLL for (int i = 0; i < FINE; i++) UNROLL for (int v = 0; v < 2; v++)
        vector_store(to->scale[b].one.fine[i] + v * VECTOR_FLOATS, x.v[v] * vector_of((float)i / SCALE_STEPS));
}

// One block: part p of a packed block to block b of a chunk.
#define UNPACK(name)                                                                                                   \
    INLINE void name##_unpack(struct chunk *to, const int b, const struct packed_##name *t,                            \
                              __attribute__((unused)) const int p)

// Lines of a block; `line` is an expression of g and h.
#define PUT_LINES(line)                                                                                                \
    UNROLL for (int g = 0; g < 8; g++) UNROLL for (int h = 0; h < 2; h++) _mm512_storeu_si512(to->q[b][g][h], (line))
#define PUT_OFFSET_LINES(line, offset) PUT_LINES(_mm512_add_epi8((line), _mm512_set1_epi8(BYTE_OFFSET - (offset))))

UNPACK(q4_0) {
    PUT_OFFSET_LINES(nibble_line(t->q, g, h), 8);
    put_scale(to, b, row_halves(t->d));
}

UNPACK(q4_1) {
    PUT_LINES(nibble_line(t->q, g, h));
    put_scale(to, b, row_halves(t->d));
    put_rows(to->min[b][0], row_halves(t->min));
}

UNPACK(q4_k) {
    PUT_LINES(nibble_line(t->part[p].q, g, h));
    put_scale(to, b, row_product(row_halves(t->d), row_u8(t->part[p].scale)));
    put_rows(to->min[b][0], row_product(row_halves(t->dmin), row_u8(t->part[p].min)));
}

UNPACK(q5_0) {
    PUT_OFFSET_LINES(five_bit_line(t->q, t->high, g, h), 16);
    put_scale(to, b, row_halves(t->d));
}

UNPACK(q5_1) {
    PUT_LINES(five_bit_line(t->q, t->high, g, h));
    put_scale(to, b, row_halves(t->d));
    put_rows(to->min[b][0], row_halves(t->min));
}

UNPACK(q5_k) {
    PUT_LINES(five_bit_line(t->part[p].q, t->part[p].high, g, h));
    put_scale(to, b, row_product(row_halves(t->d), row_u8(t->part[p].scale)));
    put_rows(to->min[b][0], row_product(row_halves(t->dmin), row_u8(t->part[p].min)));
}

UNPACK(q2_k) {
    PUT_LINES(pair_line(t->part[p].q, g, h));
    UNROLL for (int half = 0; half < 2; half++) {
        const uint8_t *scale = t->part[p].scale[half];
        put_rows(to->scale[b].two[half], row_product(row_halves(t->d), row_nibbles(scale, 0)));
        put_rows(to->min[b][half], row_product(row_halves(t->dmin), row_nibbles(scale, 1)));
    }
}

UNPACK(iq4_nl) {
    PUT_LINES(table_line(t->q, table_of(iq4_values, BYTE_OFFSET), g, h));
    put_scale(to, b, row_halves(t->d));
}

UNPACK(iq4_xs) {
    PUT_LINES(table_line(t->part[p].q, table_of(iq4_values, BYTE_OFFSET), g, h));
    put_scale(to, b, row_product(row_halves(t->d), row_i8(t->part[p].scale)));
}

UNPACK(mxfp4) {
    PUT_LINES(table_line(t->q, table_of(fp4_values, BYTE_OFFSET), g, h));
    put_scale(to, b, (struct row_vector){{mxfp4_scales(t->e), mxfp4_scales(t->e + VECTOR_FLOATS)}});
}

UNPACK(nvfp4) {
    PUT_LINES(table_line(t->part[p].q, table_of(fp4_values, BYTE_OFFSET), g, h));
    UNROLL for (int half = 0; half < 2; half++) {
        const uint8_t *bits = t->part[p].scale[half];
        put_rows(to->scale[b].two[half],
                 (struct row_vector){{nvfp4_scales(bits), nvfp4_scales(bits + VECTOR_FLOATS)}});
    }
}

UNPACK(q6_k) {
    PUT_OFFSET_LINES(six_bit_line(t->part[p].low, t->part[p].high, g, h), 32);
    UNROLL for (int half = 0; half < 2; half++)
        put_rows(to->scale[b].two[half], row_product(row_halves(t->d), row_i8(t->part[p].scale[half])));
}

// --- matmuls ---------------------------------------------------------------------------------------------------------

// sum × the power of two in the block's scale
INLINE vector vector_from_base(integers sum, const struct activation_block *a) {
    return _mm512_castsi512_ps(sum) - vector_of(a->base);
}

// Rows of 16v.. of a scale × the mantissa of the block's scale
INLINE vector step_of(const struct chunk *w, int b, int v, const struct activation_block *a) {
    uint32_t bits;
    memcpy(&bits, &a->scale, sizeof bits);
    return vector_load(w->scale[b].one.coarse[bits >> COARSE_SHIFT & (COARSE - 1)] + v * VECTOR_FLOATS) +
           vector_load(w->scale[b].one.fine[bits >> FINE_SHIFT & (FINE - 1)] + v * VECTOR_FLOATS);
}

// Block b of a chunk, with one scale.
INLINE void step_one(totals total, const struct chunk *w, int b, const struct activation_block *a, const bool min,
                     const int width) {
    sums sum;
    UNROLL for (int c = 0; c < width; c++) {
        int32_t base;
        memcpy(&base, &a[c].base, sizeof base);
        sum[c][0] = sum[c][1] = integers_of(min ? base : a[c].start);
    }
    UNROLL for (int g = 0; g < 8; g++)
        dot(sum, a, width, g, byte_line(w->q[b], g, 0), byte_line(w->q[b], g, 1));
    UNROLL for (int c = 0; c < width; c++) UNROLL for (int v = 0; v < 2; v++)
        total[c][v] = vector_fma(vector_from_base(sum[c][v], &a[c]), step_of(w, b, v, &a[c]), total[c][v]);
    if (min) add_minimum(total, a, width, row_floats(w->min[b][0]));
}

// The same with a scale for either half.
INLINE void step_two(totals total, const struct chunk *w, int b, const struct activation_block *a, const bool min,
                     const int width) {
    totals part;
    UNROLL for (int half = 0; half < 2; half++) {
        sums sum;
        begin(sum, a, width, half, min ? 0 : BYTE_OFFSET);
        UNROLL for (int g = 4 * half; g < 4 * half + 4; g++)
            dot(sum, a, width, g, byte_line(w->q[b], g, 0), byte_line(w->q[b], g, 1));
        scale_half(part, sum, width, half, row_floats(w->scale[b].two[half]));
    }
    if (min)
        UNROLL for (int half = 0; half < 2; half++)
            subtract_half(part, a, width, half, row_floats(w->min[b][half]));
    add_part(total, part, a, width);
}

// The first n blocks of a chunk times one panel, to or onto out.
INLINE void chunk_panel(const struct chunk *w, int n, const struct activation_block *a, float *out, bool onto,
                        const enum shape shape, const int width) {
    totals total;
    UNROLL for (int c = 0; c < width; c++) UNROLL for (int v = 0; v < 2; v++)
        total[c][v] = onto ? vector_load(out + c * STRIP_ROWS + v * VECTOR_FLOATS) : vector_of(0);
    const bool min = shape == ONE_SCALE_MIN || shape == TWO_SCALES_MIN;
    for (int b = 0; b < n; b++, a += width)
        if (shape >= TWO_SCALES) step_two(total, w, b, a, min, width);
        else step_one(total, w, b, a, min, width);
    UNROLL for (int c = 0; c < width; c++) UNROLL for (int v = 0; v < 2; v++)
        vector_store(out + c * STRIP_ROWS + v * VECTOR_FLOATS, total[c][v]);
}

// All panels of a strip times n blocks from `first` on, which have been unpacked. `ahead`: so many bytes of the next
// strip, of which each panel fetches its share.
INLINE void chunk_panels(const struct strip *s, const struct chunk *w, int first, int n, const char *ahead,
                         size_t ahead_bytes, const enum shape shape) {
    const int n_blocks = s->columns / BLOCK_COLUMNS;
    for (int i = 0; i < s->width; i += s->panel) {
        const int width = s->width - i < s->panel ? s->width - i : s->panel;
        const struct activation_block *a = s->blocks + (size_t)i * (size_t)n_blocks + (size_t)first * (size_t)width;
        float *out = s->out + (size_t)i * STRIP_ROWS;
        for (size_t at = (size_t)(i / s->panel) * 64; at < ahead_bytes; at += (size_t)s->turns * 64)
            __builtin_prefetch(ahead + at, 0, 2);
        switch (width) {
        case 1: chunk_panel(w, n, a, out, first > 0, shape, 1); break;
        case 2: chunk_panel(w, n, a, out, first > 0, shape, 2); break;
        case 3: chunk_panel(w, n, a, out, first > 0, shape, 3); break;
        case 4: chunk_panel(w, n, a, out, first > 0, shape, 4); break;
        case 5: chunk_panel(w, n, a, out, first > 0, shape, 5); break;
        case 6: chunk_panel(w, n, a, out, first > 0, shape, 6); break;
        }
    }
}

#define PANELS(name, shape)                                                                                            \
    enum { name##_blocks = shape < TWO_SCALES ? CHUNK_ONE_SCALE : CHUNK_BLOCKS };                                      \
    static __attribute__((noinline)) void name(const struct strip *s, const struct chunk *w, int first, int n,         \
                                               const char *ahead, size_t ahead_bytes) {                                \
        chunk_panels(s, w, first, n, ahead, ahead_bytes, shape);                                                       \
    }
PANELS(panels_one, ONE_SCALE)
PANELS(panels_one_min, ONE_SCALE_MIN)
PANELS(panels_two, TWO_SCALES)
PANELS(panels_two_min, TWO_SCALES_MIN)

#define MANY(name, parts, panels)                                                                                      \
    void many_##name##_avx512(const struct strip *s) {                                                                 \
        const struct packed_##name *packed = s->weights;                                                               \
        const int n_blocks = s->columns / BLOCK_COLUMNS;                                                               \
        struct chunk chunk;                                                                                            \
        for (int first = 0; first < n_blocks; first += panels##_blocks) {                                              \
            const int n = n_blocks - first < panels##_blocks ? n_blocks - first : panels##_blocks;                     \
            for (int b = 0; b < n; b++)                                                                                \
                name##_unpack(&chunk, b, &packed[(first + b) / (parts)], (first + b) % (parts));                       \
            const size_t block_bytes = sizeof *packed / (parts);                                                       \
            panels(s, &chunk, first, n, (const char *)s->weights + s->ahead + first * block_bytes,                     \
                   s->fetches ? (size_t)n * block_bytes : 0);                                                          \
        }                                                                                                              \
    }

MANY(q4_0, 1, panels_one)
MANY(q4_1, 1, panels_one_min)
MANY(q4_k, 8, panels_one_min)
MANY(q5_0, 1, panels_one)
MANY(q5_1, 1, panels_one_min)
MANY(q5_k, 8, panels_one_min)
MANY(q2_k, 8, panels_two_min)
MANY(iq4_nl, 1, panels_one)
MANY(iq4_xs, 8, panels_one)
MANY(mxfp4, 1, panels_one)
MANY(nvfp4, 2, panels_two)
MANY(q6_k, 8, panels_two)
#endif
