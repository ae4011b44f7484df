// What the kernels of every vector width share, in terms of engine/base/lanes_avx2.h or lanes_avx512.h, and of
// PART_INPUTS, the inputs that are computed at once.
//
// Two vectors hold the rows that are computed at once: all 32 of a strip, or half h of them, from row 16h on.
#ifndef CONFAB_CPU_LANES_H
#define CONFAB_CPU_LANES_H

typedef integers sums[PART_INPUTS][2];
typedef vector totals[PART_INPUTS][2];
struct row_vector { vector v[2]; }; // one number for each row
struct half_sums { int low, high; }; // of columns 0–15 and 16–31

INLINE void clear(totals total, int width) {
    UNROLL for (int c = 0; c < width; c++) total[c][0] = total[c][1] = vector_of(0);
}

INLINE void store(const struct strip *s, int h, int first, totals total, int width) {
    UNROLL for (int c = 0; c < width; c++) {
        float *out = s->out + (first + c) * STRIP_ROWS + 16 * h;
        vector_store(out, total[c][0]);
        vector_store(out + VECTOR_FLOATS, total[c][1]);
    }
}

INLINE struct row_vector row_floats(const float *p) {
    return (struct row_vector){{vector_load(p), vector_load(p + VECTOR_FLOATS)}};
}
INLINE struct row_vector row_halves(const uint16_t *p) {
    return (struct row_vector){{vector_halves(p), vector_halves(p + VECTOR_FLOATS)}};
}
INLINE struct row_vector row_product(struct row_vector a, struct row_vector b) {
    return (struct row_vector){{a.v[0] * b.v[0], a.v[1] * b.v[1]}};
}

// Has the compiler read memory before and after this in the order of the source. Processors read ahead where lines come
// one after the other: a single one that is taken early costs a quarter of the memory's speed.
INLINE void in_order(void) { __asm__ volatile("" ::: "memory"); }

// Fetches what the same columns of later rows hold, in the file's own layout. Processors do not do so by themselves, as
// rows begin in other pages.
INLINE void fetch_ahead(const struct strip *s, const uint8_t *at) {
    enum { ROWS_AHEAD = 8 };
    __builtin_prefetch((const void *)((uintptr_t)at + ROWS_AHEAD * s->row_bytes), 0, 2); // perhaps past the last
}

// −8 × the sum of an input's columns: of half 0 or 1, or of both.
enum { BOTH = 2 };
INLINE int zero_of(const struct activation_block *a, int half) {
    return half == BOTH ? a->zero : half ? a->zero - a->zero_low : a->zero_low;
}

// sum[c] = −offset × the sum of the columns of the input, or of one half of them
INLINE void begin(sums sum, const struct activation_block *a, int width, int half, const int offset) {
    UNROLL for (int c = 0; c < width; c++) {
        const int zero = zero_of(&a[c], half);
        sum[c][0] = sum[c][1] = integers_of(offset % 8 ? zero / 8 * offset : zero * (offset / 8));
    }
}

// total[c] += sum[c] × scale × the input's scale
INLINE void add_scaled(totals total, sums sum, const struct activation_block *a, int width, struct row_vector scale) {
    UNROLL for (int c = 0; c < width; c++)
        UNROLL for (int v = 0; v < 2; v++) {
            const vector both = scale.v[v] * vector_of(a[c].scale);
            total[c][v] = vector_fma(vector_from(sum[c][v]), both, total[c][v]);
        }
}

// total[c] += min × minus the input's sum
INLINE void add_minimum(totals total, const struct activation_block *a, int width, struct row_vector min) {
    UNROLL for (int c = 0; c < width; c++)
        UNROLL for (int v = 0; v < 2; v++) total[c][v] = vector_fma(min.v[v], vector_of(a[c].minimum), total[c][v]);
}

// Of a block whose halves have scales of their own: half 0 begins `part`, half 1 is added; then add_part adds both.
INLINE void scale_half(totals part, sums sum, int width, int half, struct row_vector scale) {
    UNROLL for (int c = 0; c < width; c++)
        UNROLL for (int v = 0; v < 2; v++) {
            const vector x = vector_from(sum[c][v]);
            part[c][v] = half ? vector_fma(x, scale.v[v], part[c][v]) : (vector)(x * scale.v[v]);
        }
}
INLINE void add_part(totals total, totals part, const struct activation_block *a, int width) {
    UNROLL for (int c = 0; c < width; c++)
        UNROLL for (int v = 0; v < 2; v++) total[c][v] = vector_fma(part[c][v], vector_of(a[c].scale), total[c][v]);
}

// part[c] −= min × the sum of the input's half, which is there times −8
INLINE void subtract_half(totals part, const struct activation_block *a, int width, int half, struct row_vector min) {
    UNROLL for (int v = 0; v < 2; v++) {
        const vector eighth = min.v[v] * vector_of(0.125f);
        UNROLL for (int c = 0; c < width; c++) part[c][v] =
            vector_fma(vector_of((float)zero_of(&a[c], half)), eighth, part[c][v]);
    }
}

#endif
