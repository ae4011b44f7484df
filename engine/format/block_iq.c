// Blocks of 256 elements in groups of 8 (IQ3: 4), each an entry of a codebook (block_grids.c), with separate signs.
//
// Where a group stores seven sign bits, the eighth makes the number of negative elements even.
#include <assert.h>

#include "engine/format/block_unpack.h"

// IQ2_XXS, 66 bytes, sub-blocks of 32: d/8·(2·scale + 1)·±grid.
//   0      2                                        66
//   │ d    │ 8 × (q[4], signs[4])                   │
// q: grid indices of four groups; signs: a 32-bit word, 7 sign bits per group and the scale in the top four bits.
static_assert(sizeof(struct block_iq2_xxs) == 66 && offsetof(struct block_iq2_xxs, part) == 2, "IQ2_XXS");

// IQ2_XS, 74 bytes, sub-blocks of 16: d/8·(2·scale + 1)·±grid.
//   0      2                          66          74
//   │ d    │ q[32], 16 bits each      │ scales[8] │
// q: a 9-bit grid index below 7 sign bits; scale j is nibble j of scales.
static_assert(sizeof(struct block_iq2_xs) == 74 && offsetof(struct block_iq2_xs, scales) == 66, "IQ2_XS");

// IQ2_S, 82 bytes, sub-blocks of 16: d/8·(2·scale + 1)·±grid.
//   0      2          34           66      74          82
//   │ d    │ q[32]    │ signs[32]  │ qh[8] │ scales[8] │
// The grid index of group g is q[g], with bits 2·(g mod 4) and up of qh[g / 4] as its top two.
static_assert(sizeof(struct block_iq2_s) == 82 && offsetof(struct block_iq2_s, qh) == 66 &&
                  offsetof(struct block_iq2_s, scales) == 74,
              "IQ2_S");

// IQ3_XXS, 98 bytes, sub-blocks of 32: d/4·(2·scale + 1)·±grid.
//   0      2                  66                 98
//   │ d    │ q[64]            │ signs[8][4]       │
// A grid index for every 4 elements; signs and scale of a sub-block as in IQ2_XXS.
static_assert(sizeof(struct block_iq3_xxs) == 98 && offsetof(struct block_iq3_xxs, signs) == 66, "IQ3_XXS");

// IQ3_S, 110 bytes, sub-blocks of 32: d·(2·scale + 1)·±grid.
//   0      2                  66      74           106         110
//   │ d    │ q[64]            │ qh[8] │ signs[32]  │ scales[4] │
// The grid index of group g is q[g], with bit g mod 8 of qh[g / 8] as its top bit; scale j is nibble j of scales.
static_assert(sizeof(struct block_iq3_s) == 110 && offsetof(struct block_iq3_s, qh) == 66 &&
                  offsetof(struct block_iq3_s, signs) == 74 && offsetof(struct block_iq3_s, scales) == 106,
              "IQ3_S");

// IQ1_S, 50 bytes, sub-blocks of 32: d·(2·scale + 1)·(grid ± 1/8).
//   0      2          34                     50
//   │ d    │ q[32]    │ qh[8], 16 bits each  │
// qh has a word per sub-block: the top three bits of four grid indices, the scale at bit 12, and bit 15 set if the
// shift is negative.
static_assert(sizeof(struct block_iq1_s) == 50 && offsetof(struct block_iq1_s, qh) == 34, "IQ1_S");

// IQ1_M, 56 bytes, sub-blocks of 16: d·(2·scale + 1)·(grid ± 1/8).
//   0          32       48                     56
//   │ q[32]    │ qh[16] │ scales[4], 16 bits   │
// Nibble g of qh belongs to group g: the top three bits of the grid index, and whether the shift is negative. A word of
// scales has four scales of three bits; its top nibble is a nibble of d, lowest first.
static_assert(sizeof(struct block_iq1_m) == 56 && offsetof(struct block_iq1_m, qh) == 32 &&
                  offsetof(struct block_iq1_m, scales) == 48,
              "IQ1_M");

static float odd(int scale) { return (float)(2 * scale + 1); }

static int nibble(const uint8_t *bytes, int i) { return bytes[i / 2] >> i % 2 * 4 & 15; }

static void put_signed(int8_t *code, const int8_t *grid, int signs, int n) {
    for (int i = 0; i < n; i++) code[i] = (int8_t)(signs >> i & 1 ? -grid[i] : grid[i]);
}

// Seven sign bits and their parity.
static int even_signs(unsigned seven) {
    unsigned parity = seven ^ seven >> 4;
    parity ^= parity >> 2;
    return (int)(seven | ((parity ^ parity >> 1) & 1) << 7);
}

static uint32_t little_endian(const uint8_t b[4]) {
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

void unpack_BLOCK_IQ2_XXS(const void *block, struct block_codes *out) {
    const struct block_grids *grids = block_grids();
    struct block_iq2_xxs b;
    memcpy(&b, block, sizeof b);
    out->d = f16_to_f32(b.d) / 8;
    no_minimum(out);
    for (int j = 0; j < 8; j++) {
        uint32_t word = little_endian(b.part[j].signs);
        out->scale[2 * j] = out->scale[2 * j + 1] = odd((int)(word >> 28));
        for (int g = 0; g < 4; g++)
            put_signed(out->code + 32 * j + 8 * g, grids->iq2_xxs[b.part[j].q[g]], even_signs(word >> 7 * g & 127), 8);
    }
}

void unpack_BLOCK_IQ2_XS(const void *block, struct block_codes *out) {
    const struct block_grids *grids = block_grids();
    struct block_iq2_xs b;
    memcpy(&b, block, sizeof b);
    out->d = f16_to_f32(b.d) / 8;
    no_minimum(out);
    for (int j = 0; j < 16; j++) out->scale[j] = odd(nibble(b.scales, j));
    for (int g = 0; g < 32; g++) put_signed(out->code + 8 * g, grids->iq2_xs[b.q[g] & 511], even_signs(b.q[g] >> 9), 8);
}

void unpack_BLOCK_IQ2_S(const void *block, struct block_codes *out) {
    const struct block_grids *grids = block_grids();
    struct block_iq2_s b;
    memcpy(&b, block, sizeof b);
    out->d = f16_to_f32(b.d) / 8;
    no_minimum(out);
    for (int j = 0; j < 16; j++) out->scale[j] = odd(nibble(b.scales, j));
    for (int g = 0; g < 32; g++) {
        int index = b.q[g] | (b.qh[g / 4] >> g % 4 * 2 & 3) << 8;
        put_signed(out->code + 8 * g, grids->iq2_s[index], b.signs[g], 8);
    }
}

void unpack_BLOCK_IQ3_XXS(const void *block, struct block_codes *out) {
    const struct block_grids *grids = block_grids();
    struct block_iq3_xxs b;
    memcpy(&b, block, sizeof b);
    out->d = f16_to_f32(b.d) / 4;
    no_minimum(out);
    for (int j = 0; j < 8; j++) {
        uint32_t word = little_endian(b.signs[j]);
        out->scale[2 * j] = out->scale[2 * j + 1] = odd((int)(word >> 28));
        for (int g = 0; g < 8; g++) {
            int signs = even_signs(word >> g / 2 * 7 & 127) >> g % 2 * 4;
            put_signed(out->code + 32 * j + 4 * g, grids->iq3_xxs[b.q[8 * j + g]], signs, 4);
        }
    }
}

void unpack_BLOCK_IQ3_S(const void *block, struct block_codes *out) {
    const struct block_grids *grids = block_grids();
    struct block_iq3_s b;
    memcpy(&b, block, sizeof b);
    out->d = f16_to_f32(b.d);
    no_minimum(out);
    for (int j = 0; j < 8; j++) out->scale[2 * j] = out->scale[2 * j + 1] = odd(nibble(b.scales, j));
    for (int g = 0; g < 64; g++) {
        int index = b.q[g] | (b.qh[g / 8] >> g % 8 & 1) << 8;
        put_signed(out->code + 4 * g, grids->iq3_s[index], nibble(b.signs, g), 4);
    }
}

// In eighths, to keep codes whole.
static void put_shifted(int8_t code[8], const int8_t grid[8], bool negative) {
    for (int i = 0; i < 8; i++) code[i] = (int8_t)(8 * grid[i] + (negative ? -1 : 1));
}

void unpack_BLOCK_IQ1_S(const void *block, struct block_codes *out) {
    const struct block_grids *grids = block_grids();
    struct block_iq1_s b;
    memcpy(&b, block, sizeof b);
    out->d = f16_to_f32(b.d) / 8;
    no_minimum(out);
    for (int j = 0; j < 8; j++) out->scale[2 * j] = out->scale[2 * j + 1] = odd(b.qh[j] >> 12 & 7);
    for (int g = 0; g < 32; g++) {
        int word = b.qh[g / 4], index = b.q[g] | (word >> g % 4 * 3 & 7) << 8;
        put_shifted(out->code + 8 * g, grids->iq1[index], word >> 15);
    }
}

void unpack_BLOCK_IQ1_M(const void *block, struct block_codes *out) {
    const struct block_grids *grids = block_grids();
    struct block_iq1_m b;
    memcpy(&b, block, sizeof b);
    int d = 0;
    for (int k = 0; k < 4; k++) {
        int word = b.scales[k][0] | b.scales[k][1] << 8;
        d |= word >> 12 << 4 * k;
        for (int j = 0; j < 4; j++) out->scale[4 * k + j] = odd(word >> 3 * j & 7);
    }
    out->d = f16_to_f32((uint16_t)d) / 8;
    no_minimum(out);
    for (int g = 0; g < 32; g++) {
        int high = nibble(b.qh, g);
        put_shifted(out->code + 8 * g, grids->iq1[b.q[g] | (high & 7) << 8], high >> 3);
    }
}
