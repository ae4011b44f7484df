// Repacking: four rows at a time. 16 bytes of each are a vector, which is worked on as a whole; the four are then
// transposed, so that 16 bytes of a line are written at once. What a vector does is plain C to the compiler.
#include "engine/cpu/packed.h"

#include <stddef.h>
#include <string.h>

#include "engine/base/unroll.h"

typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef uint32_t words4 __attribute__((vector_size(16))); // four of a row, or one of each of four rows

// Where a field of four rows' blocks begins; the file may not align it.
struct four {
    const uint8_t *row[4];
};

INLINE struct four four_rows(const uint8_t *const rows[4], size_t offset) {
    return (struct four){{rows[0] + offset, rows[1] + offset, rows[2] + offset, rows[3] + offset}};
}
INLINE struct four further(struct four f, int n) { return four_rows(f.row, (size_t)n); }
#define FIELD(format, name) four_rows(block.row, offsetof(struct block_##format, name))

INLINE bytes16 sixteen(const uint8_t *p) {
    bytes16 v;
    memcpy(&v, p, sizeof v);
    return v;
}

// --- scales ----------------------------------------------------------------------------------------------------------

INLINE void put_halves(uint16_t d[32], int r, struct four f) {
    UNROLL for (int i = 0; i < 4; i++) memcpy(&d[r + i], f.row[i], sizeof *d);
}

INLINE void put_byte(void *scales, int r, struct four f) {
    UNROLL for (int i = 0; i < 4; i++)((uint8_t *)scales)[r + i] = *f.row[i];
}

// --- rows of lines ---------------------------------------------------------------------------------------------------
//
// A line has four bytes for row r, at [r / 16][4 (r mod 16)]; r is a multiple of four throughout.

INLINE void put(uint8_t line[2][64], int r, words4 w) { memcpy(&line[r / 16][r % 16 * 4], &w, sizeof w); }

// What row[i] had at g is in row[g] at i.
INLINE void transpose(words4 row[4]) {
    const words4 a = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5),
                 b = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
    const words4 c = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7),
                 d = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
    row[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
    row[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
    row[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5);
    row[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
}

// n × 16 bytes, changed by `flip`: columns 4g..4g+3 to line g.
INLINE void put_bytes(uint8_t lines[][2][64], int r, struct four q, int n, uint8_t flip) {
    UNROLL for (int k = 0; k < n; k++) {
        words4 w[4];
        UNROLL for (int i = 0; i < 4; i++) w[i] = (words4)(sixteen(q.row[i] + 16 * k) ^ flip);
        transpose(w);
        UNROLL for (int g = 0; g < 4; g++) put(lines[4 * k + g], r, w[g]);
    }
}

enum { AS_THEY_ARE = 0, SIGNED = 0x80 }; // flips: the second adds 128

// The bits in `mask` << shift of 32 bytes, those of the second 16 four bits higher: words of columns 4g.. and 16 + 4g..
INLINE void fold(words4 w[4], struct four q, int shift, uint8_t mask) {
    UNROLL for (int i = 0; i < 4; i++) {
        const bytes16 low = sixteen(q.row[i]) >> shift & mask, high = sixteen(q.row[i] + 16) >> shift & mask;
        w[i] = (words4)(low | high << 4);
    }
    transpose(w);
}

// Four bits of 32 bytes as nibble lines.
INLINE void put_nibbles(uint8_t lines[4][2][64], int r, struct four q, int shift) {
    words4 w[4];
    fold(w, q, shift, 15);
    UNROLL for (int g = 0; g < 4; g++) put(lines[g], r, w[g]);
}

// Two bits of 32 bytes as pair lines.
INLINE void put_pairs(uint8_t lines[2][2][64], int r, struct four q, int shift) {
    words4 w[4];
    fold(w, q, shift, 3);
    UNROLL for (int v = 0; v < 2; v++) put(lines[v], r, w[v] | w[2 + v] << 2);
}

// One bit of 32 bytes as a high line.
INLINE void put_bits(uint8_t line[2][64], int r, struct four q, int shift) {
    words4 w[4];
    fold(w, q, shift, 1);
    put(line, r, w[0] | w[1] << 1 | w[2] << 2 | w[3] << 3);
}

// 32 bits as a high line. The product puts bit i of four into byte i.
INLINE void put_packed_bits(uint8_t line[2][64], int r, struct four bits) {
    words4 packed = {0};
    UNROLL for (int i = 0; i < 4; i++) for (int g = 0; g < 8; g++) packed[i] |=
        ((bits.row[i][g / 2] >> g % 2 * 4 & 15) * 0x00204081u & 0x01010101) << g;
    put(line, r, packed);
}

// --- blocks of 32 ----------------------------------------------------------------------------------------------------

#define PACK(id, name)                                                                                                 \
    INLINE void pack_##id(struct packed_##name *t, int r, struct four block);                                          \
    void packed_fill_##id(void *packed, int first, const uint8_t *const rows[PACKED_ROWS], size_t n) {                 \
        struct packed_##name *t = packed;                                                                              \
        for (size_t b = 0; b < n; b++)                                                                                 \
            for (int r = 0; r < PACKED_ROWS; r += 4)                                                                   \
                pack_##id(t + b, first + r, four_rows(rows + r, b * block_formats[id].bytes));                         \
    }                                                                                                                  \
    INLINE void pack_##id(struct packed_##name *t, int r, struct four block)

PACK(BLOCK_Q8_0, q8_0) {
    put_halves(t->d, r, FIELD(q8_0, d));
    put_bytes(t->q, r, FIELD(q8_0, q), 2, SIGNED);
}

PACK(BLOCK_Q4_0, q4_0) {
    put_halves(t->d, r, FIELD(q4_0, d));
    put_bytes(t->q, r, FIELD(q4_0, q), 1, AS_THEY_ARE);
}

// d × q + m is d × q − min.
INLINE void put_negated(uint16_t min[32], int r, struct four m) {
    enum { HALF_SIGN = 0x8000 };
    put_halves(min, r, m);
    UNROLL for (int i = 0; i < 4; i++) min[r + i] ^= HALF_SIGN;
}

PACK(BLOCK_Q4_1, q4_1) {
    put_halves(t->d, r, FIELD(q4_1, d));
    put_negated(t->min, r, FIELD(q4_1, m));
    put_bytes(t->q, r, FIELD(q4_1, q), 1, AS_THEY_ARE);
}

PACK(BLOCK_Q5_0, q5_0) {
    put_halves(t->d, r, FIELD(q5_0, d));
    put_bytes(t->q, r, FIELD(q5_0, q), 1, AS_THEY_ARE);
    put_packed_bits(t->high, r, FIELD(q5_0, qh));
}

PACK(BLOCK_Q5_1, q5_1) {
    put_halves(t->d, r, FIELD(q5_1, d));
    put_negated(t->min, r, FIELD(q5_1, m));
    put_bytes(t->q, r, FIELD(q5_1, q), 1, AS_THEY_ARE);
    put_packed_bits(t->high, r, FIELD(q5_1, qh));
}

PACK(BLOCK_IQ4_NL, iq4_nl) {
    put_halves(t->d, r, FIELD(iq4_nl, d));
    put_bytes(t->q, r, FIELD(iq4_nl, q), 1, AS_THEY_ARE);
}

PACK(BLOCK_MXFP4, mxfp4) {
    put_byte(t->e, r, FIELD(mxfp4, e));
    put_bytes(t->q, r, FIELD(mxfp4, q), 1, AS_THEY_ARE);
}

// Of NVFP4's 16 elements eight lie in low and eight in high nibbles; of a packed block's 32 it is 16 and 16.
PACK(BLOCK_NVFP4, nvfp4) {
    const struct four d = FIELD(nvfp4, d), q = FIELD(nvfp4, q);
    for (int p = 0; p < 2; p++) {
        uint8_t nibbles[4][32];
        UNROLL for (int i = 0; i < 4; i++) for (int k = 0; k < 32; k++) nibbles[i][k] =
            q.row[i][(2 * p + k / 16) * 8 + k % 8] >> k % 16 / 8 * 4;
        for (int half = 0; half < 2; half++) put_byte(t->part[p].scale[half], r, further(d, 2 * p + half));
        put_nibbles(t->part[p].q, r, (struct four){{nibbles[0], nibbles[1], nibbles[2], nibbles[3]}}, 0);
    }
}

// --- blocks of 256 ---------------------------------------------------------------------------------------------------

INLINE void put_scale_min(uint8_t scale[32], uint8_t min[32], int r, struct four packed, int part) {
    UNROLL for (int i = 0; i < 4; i++) q4_k_scale_min(packed.row[i], part, &scale[r + i], &min[r + i]);
}

PACK(BLOCK_Q4_K, q4_k) {
    const struct four scales = FIELD(q4_k, scales), q = FIELD(q4_k, q);
    put_halves(t->d, r, FIELD(q4_k, d));
    put_halves(t->dmin, r, FIELD(q4_k, dmin));
    for (int p = 0; p < 8; p++) {
        put_scale_min(t->part[p].scale, t->part[p].min, r, scales, p);
        put_nibbles(t->part[p].q, r, further(q, p / 2 * 32), p % 2 * 4);
    }
}

PACK(BLOCK_Q5_K, q5_k) {
    const struct four scales = FIELD(q5_k, scales), q = FIELD(q5_k, q), high = FIELD(q5_k, qh);
    put_halves(t->d, r, FIELD(q5_k, d));
    put_halves(t->dmin, r, FIELD(q5_k, dmin));
    for (int p = 0; p < 8; p++) {
        put_scale_min(t->part[p].scale, t->part[p].min, r, scales, p);
        put_nibbles(t->part[p].q, r, further(q, p / 2 * 32), p % 2 * 4);
        put_bits(t->part[p].high, r, high, p);
    }
}

PACK(BLOCK_Q6_K, q6_k) {
    const struct four scales = FIELD(q6_k, scales), low = FIELD(q6_k, ql), high = FIELD(q6_k, qh);
    put_halves(t->d, r, FIELD(q6_k, d));
    for (int p = 0; p < 8; p++) { // of each 128 columns, part p is quarter p mod 4
        for (int half = 0; half < 2; half++) put_byte(t->part[p].scale[half], r, further(scales, 2 * p + half));
        put_nibbles(t->part[p].low, r, further(low, p / 4 * 64 + p % 2 * 32), p % 4 / 2 * 4);
        put_pairs(t->part[p].high, r, further(high, p / 4 * 32), p % 4 * 2);
    }
}

PACK(BLOCK_Q2_K, q2_k) {
    const struct four scales = FIELD(q2_k, scales), q = FIELD(q2_k, q);
    put_halves(t->d, r, FIELD(q2_k, d));
    put_halves(t->dmin, r, FIELD(q2_k, dmin));
    for (int p = 0; p < 8; p++) {
        for (int half = 0; half < 2; half++) put_byte(t->part[p].scale[half], r, further(scales, 2 * p + half));
        put_pairs(t->part[p].q, r, further(q, p / 4 * 32), p % 4 * 2);
    }
}

PACK(BLOCK_IQ4_XS, iq4_xs) {
    const struct four low = FIELD(iq4_xs, scales_low), high = FIELD(iq4_xs, scales_high), q = FIELD(iq4_xs, q);
    put_halves(t->d, r, FIELD(iq4_xs, d));
    for (int p = 0; p < 8; p++) {
        UNROLL for (int i = 0; i < 4; i++) {
            uint16_t bits;
            memcpy(&bits, high.row[i], sizeof bits);
            t->part[p].scale[r + i] = (int8_t)iq4_xs_scale(low.row[i], bits, p);
        }
        put_bytes(t->part[p].q, r, further(q, 16 * p), 1, AS_THEY_ARE);
    }
}

// --- formats that share a wider packed block -------------------------------------------------------------------------

struct four_codes {
    struct block_codes row[4];
};

static void unpack(struct four_codes *c, enum block_id format, struct four block, int added) {
    UNROLL for (int i = 0; i < 4; i++) {
        block_formats[format].unpack(block.row[i], &c->row[i]);
        for (int k = 0; k < 256; k++) c->row[i].code[k] = (int8_t)(c->row[i].code[k] + added);
    }
}

// 32 of each.
INLINE struct four codes_of(const struct four_codes *c, int part) {
    struct four f;
    UNROLL for (int i = 0; i < 4; i++) f.row[i] = (const uint8_t *)c->row[i].code + 32 * part;
    return f;
}

INLINE void put_code_scales(int8_t scale[2][32], int r, const struct four_codes *c, int part) {
    for (int half = 0; half < 2; half++)
        UNROLL for (int i = 0; i < 4; i++) scale[half][r + i] = (int8_t)c->row[i].scale[2 * part + half];
}

// d × (q − 1) is d × q − d × 1.
static void pack_ternary(enum block_id format, struct packed_q2_k *t, int r, struct four block) {
    struct four_codes codes;
    unpack(&codes, format, block, 1);
    UNROLL for (int i = 0; i < 4; i++) t->d[r + i] = t->dmin[r + i] =
        f16_from_f32(codes.row[i].d); // it came from a half: exact
    for (int p = 0; p < 8; p++) {
        for (int half = 0; half < 2; half++) memset(&t->part[p].scale[half][r], 1 | 1 << 4, 4);
        put_pairs(t->part[p].q, r, codes_of(&codes, p), 0);
    }
}

// Formats whose scales fit eight bits and whose values fit six.
static void pack_as_q6_k(enum block_id format, struct packed_q6_k *t, int r, struct four block) {
    struct four_codes codes;
    unpack(&codes, format, block, 32);
    UNROLL for (int i = 0; i < 4; i++) t->d[r + i] = f16_from_f32(codes.row[i].d);
    for (int p = 0; p < 8; p++) {
        put_code_scales(t->part[p].scale, r, &codes, p);
        put_nibbles(t->part[p].low, r, codes_of(&codes, p), 0);
        put_pairs(t->part[p].high, r, codes_of(&codes, p), 4);
    }
}

static void pack_as_bytes(enum block_id format, struct packed_bytes *t, int r, struct four block) {
    struct four_codes codes;
    unpack(&codes, format, block, 0);
    UNROLL for (int i = 0; i < 4; i++) t->d[r + i] = codes.row[i].d;
    for (int p = 0; p < 8; p++) {
        put_code_scales(t->part[p].scale, r, &codes, p);
        put_bytes(t->part[p].q, r, codes_of(&codes, p), 2, SIGNED);
    }
}

PACK(BLOCK_TQ1_0, q2_k) { pack_ternary(BLOCK_TQ1_0, t, r, block); }
PACK(BLOCK_TQ2_0, q2_k) { pack_ternary(BLOCK_TQ2_0, t, r, block); }
PACK(BLOCK_Q3_K, q6_k) { pack_as_q6_k(BLOCK_Q3_K, t, r, block); }
PACK(BLOCK_IQ3_S, q6_k) { pack_as_q6_k(BLOCK_IQ3_S, t, r, block); }
PACK(BLOCK_IQ3_XXS, bytes) { pack_as_bytes(BLOCK_IQ3_XXS, t, r, block); }
PACK(BLOCK_IQ2_S, bytes) { pack_as_bytes(BLOCK_IQ2_S, t, r, block); }
PACK(BLOCK_IQ2_XS, bytes) { pack_as_bytes(BLOCK_IQ2_XS, t, r, block); }
PACK(BLOCK_IQ2_XXS, bytes) { pack_as_bytes(BLOCK_IQ2_XXS, t, r, block); }
PACK(BLOCK_IQ1_M, bytes) { pack_as_bytes(BLOCK_IQ1_M, t, r, block); }
PACK(BLOCK_IQ1_S, bytes) { pack_as_bytes(BLOCK_IQ1_S, t, r, block); }
