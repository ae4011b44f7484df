// The kernels of packed weights, for every vector width: packed_avx2.c, packed_avxvnni.c and packed_avx512.c include
// this behind what turns packed blocks into products: …_dots for each kind of weights, table_of, the scales of MXFP4
// and NVFP4, what was added to weights to make them unsigned (IQ4_OFFSET, FP4_OFFSET, BYTE_OFFSET), fetch_part, which
// may fetch weights ahead of part p of a packed block, and stride_of, the inputs from one block of columns to the next.

// One step: part p of a packed block, 32 columns, times `width` inputs, for the rows from 16h on.
#define STEP(name)                                                                                                     \
    INLINE void name##_step(totals total, const struct packed_##name *t, __attribute__((unused)) const int p,          \
                            const struct activation_block *a, const int h, const int width)

// strip_name_isa from the steps of a packed block of so many parts.
#define KERNEL_OF(name, isa, parts)                                                                                    \
    INLINE void name##_part(const struct strip *s, const int h, int first, const int width) {                          \
        const struct packed_##name *t = s->weights, *end = t + s->columns / (BLOCK_COLUMNS * parts);                   \
        totals total;                                                                                                  \
        clear(total, width);                                                                                           \
        int turn = s->turn;                                                                                            \
        for (const struct activation_block *a = s->blocks + first; t < end; t++)                                       \
            for (int p = 0; p < parts; p++, a += stride_of(s, width)) {                                                \
                fetch_part(s, &turn, (const uint8_t *)t + p * (sizeof *t / parts), sizeof *t / parts, h, first);       \
                name##_step(total, t, p, a, h, width);                                                                 \
            }                                                                                                          \
        store(s, h, first, total, width);                                                                              \
    }                                                                                                                  \
    FOR_PARTS(strip_##name##_##isa, name##_part)
#define KERNEL(name, isa, parts) KERNEL_OF(name, isa, parts) // with isa expanded

// --- four and five bits under one scale and minimum ------------------------------------------------------------------

STEP(q4_0) {
    sums sum;
    begin(sum, a, width, BOTH, 8);
    nibble_dots(sum, a, width, t->q, h);
    add_scaled(total, sum, a, width, row_halves(t->d + 16 * h));
}

STEP(q4_1) {
    sums sum;
    begin(sum, a, width, BOTH, 0);
    nibble_dots(sum, a, width, t->q, h);
    add_scaled(total, sum, a, width, row_halves(t->d + 16 * h));
    add_minimum(total, a, width, row_halves(t->min + 16 * h));
}

STEP(q4_k) {
    sums sum;
    begin(sum, a, width, BOTH, 0);
    nibble_dots(sum, a, width, t->part[p].q, h);
    add_scaled(total, sum, a, width, row_product(row_halves(t->d + 16 * h), row_u8(t->part[p].scale + 16 * h)));
    add_minimum(total, a, width, row_product(row_halves(t->dmin + 16 * h), row_u8(t->part[p].min + 16 * h)));
}

STEP(q5_0) {
    sums sum;
    begin(sum, a, width, BOTH, 16);
    five_bit_dots(sum, a, width, t->q, t->high, h);
    add_scaled(total, sum, a, width, row_halves(t->d + 16 * h));
}

STEP(q5_1) {
    sums sum;
    begin(sum, a, width, BOTH, 0);
    five_bit_dots(sum, a, width, t->q, t->high, h);
    add_scaled(total, sum, a, width, row_halves(t->d + 16 * h));
    add_minimum(total, a, width, row_halves(t->min + 16 * h));
}

STEP(q5_k) {
    sums sum;
    begin(sum, a, width, BOTH, 0);
    five_bit_dots(sum, a, width, t->part[p].q, t->part[p].high, h);
    add_scaled(total, sum, a, width, row_product(row_halves(t->d + 16 * h), row_u8(t->part[p].scale + 16 * h)));
    add_minimum(total, a, width, row_product(row_halves(t->dmin + 16 * h), row_u8(t->part[p].min + 16 * h)));
}

// --- two bits under a scale and a minimum for 16 columns -------------------------------------------------------------

STEP(q2_k) {
    totals part;
    UNROLL for (int half = 0; half < 2; half++) {
        sums sum;
        begin(sum, a, width, half, 0);
        pair_dots(sum, a, width, t->part[p].q, h, half);
        scale_half(part, sum, width, half,
                   row_product(row_halves(t->d + 16 * h), row_nibbles(t->part[p].scale[half] + 16 * h, 0)));
    }
    UNROLL for (int half = 0; half < 2; half++)
        subtract_half(part, a, width, half,
                      row_product(row_halves(t->dmin + 16 * h), row_nibbles(t->part[p].scale[half] + 16 * h, 1)));
    add_part(total, part, a, width);
}

// --- four bits that stand for other values ---------------------------------------------------------------------------

STEP(iq4_nl) {
    const integers table = table_of(iq4_values, IQ4_OFFSET);
    sums sum;
    begin(sum, a, width, BOTH, IQ4_OFFSET);
    table_dots(sum, a, width, t->q, table, h, 0);
    table_dots(sum, a, width, t->q, table, h, 1);
    add_scaled(total, sum, a, width, row_halves(t->d + 16 * h));
}

STEP(iq4_xs) {
    const integers table = table_of(iq4_values, IQ4_OFFSET);
    sums sum;
    begin(sum, a, width, BOTH, IQ4_OFFSET);
    table_dots(sum, a, width, t->part[p].q, table, h, 0);
    table_dots(sum, a, width, t->part[p].q, table, h, 1);
    add_scaled(total, sum, a, width, row_product(row_halves(t->d + 16 * h), row_i8(t->part[p].scale + 16 * h)));
}

STEP(mxfp4) {
    const integers table = table_of(fp4_values, FP4_OFFSET);
    const uint8_t *e = t->e + 16 * h;
    const struct row_vector scale = {{mxfp4_scales(e), mxfp4_scales(e + VECTOR_FLOATS)}};
    sums sum;
    begin(sum, a, width, BOTH, FP4_OFFSET);
    table_dots(sum, a, width, t->q, table, h, 0);
    table_dots(sum, a, width, t->q, table, h, 1);
    add_scaled(total, sum, a, width, scale);
}

STEP(nvfp4) {
    const integers table = table_of(fp4_values, FP4_OFFSET);
    totals part;
    UNROLL for (int half = 0; half < 2; half++) {
        const uint8_t *bits = t->part[p].scale[half] + 16 * h;
        const struct row_vector scale = {{nvfp4_scales(bits), nvfp4_scales(bits + VECTOR_FLOATS)}};
        sums sum;
        begin(sum, a, width, half, FP4_OFFSET);
        table_dots(sum, a, width, t->part[p].q, table, h, half);
        scale_half(part, sum, width, half, scale);
    }
    add_part(total, part, a, width);
}

// --- six bits under a scale for 16 columns ---------------------------------------------------------------------------

STEP(q6_k) {
    totals part;
    UNROLL for (int half = 0; half < 2; half++) {
        sums sum;
        begin(sum, a, width, half, 32);
        six_bit_dots(sum, a, width, t->part[p].low, t->part[p].high, h, half);
        scale_half(part, sum, width, half,
                   row_product(row_halves(t->d + 16 * h), row_i8(t->part[p].scale[half] + 16 * h)));
    }
    add_part(total, part, a, width);
}

// --- bytes -----------------------------------------------------------------------------------------------------------

STEP(q8_0) {
    sums sum;
    begin(sum, a, width, BOTH, BYTE_OFFSET);
    UNROLL for (int g = 0; g < 8; g++) byte_dots(sum, a, width, t->q, h, g);
    add_scaled(total, sum, a, width, row_halves(t->d + 16 * h));
}

STEP(bytes) {
    totals part;
    UNROLL for (int half = 0; half < 2; half++) {
        sums sum;
        begin(sum, a, width, half, BYTE_OFFSET);
        UNROLL for (int g = 4 * half; g < 4 * half + 4; g++) byte_dots(sum, a, width, t->part[p].q, h, g);
        scale_half(part, sum, width, half,
                   row_product(row_floats(t->d + 16 * h), row_i8(t->part[p].scale[half] + 16 * h)));
    }
    add_part(total, part, a, width);
}

KERNEL(q4_0, PACKED_ISA, 1)
KERNEL(q4_1, PACKED_ISA, 1)
KERNEL(q4_k, PACKED_ISA, 8)
KERNEL(q5_0, PACKED_ISA, 1)
KERNEL(q5_1, PACKED_ISA, 1)
KERNEL(q5_k, PACKED_ISA, 8)
KERNEL(q2_k, PACKED_ISA, 8)
KERNEL(iq4_nl, PACKED_ISA, 1)
KERNEL(iq4_xs, PACKED_ISA, 8)
KERNEL(mxfp4, PACKED_ISA, 1)
KERNEL(nvfp4, PACKED_ISA, 2)
KERNEL(q6_k, PACKED_ISA, 8)
KERNEL(q8_0, PACKED_ISA, 1)
KERNEL(bytes, PACKED_ISA, 8)
