#include "engine/cpu/tiles.h"

#include <string.h>

// Columns 4g..4g+3 of row r go to line [g][r / 16] at 4 (r mod 16).
static void put_lines(uint8_t lines[][2][64], int r, const uint8_t *bytes, int n_groups) {
    for (int g = 0; g < n_groups; g++) memcpy(&lines[g][r / 16][r % 16 * 4], bytes + 4 * g, 4);
}

static uint32_t four(const int8_t *q) {
    uint32_t word;
    memcpy(&word, q, sizeof word);
    return word;
}

// The low four bits of 32 values as nibble lines.
static void put_nibbles(uint8_t lines[4][2][64], int r, const int8_t q[32]) {
    for (int g = 0; g < 4; g++) {
        const uint32_t packed = (four(q + 4 * g) & 0x0f0f0f0f) | (four(q + 16 + 4 * g) & 0x0f0f0f0f) << 4;
        memcpy(&lines[g][r / 16][r % 16 * 4], &packed, sizeof packed);
    }
}

// The fifth bit of 32 values as a high line.
static void put_fifth_bits(uint8_t line[2][64], int r, const int8_t q[32]) {
    uint32_t packed = 0;
    for (int g = 0; g < 8; g++) packed |= (four(q + 4 * g) >> 4 & 0x01010101) << g;
    memcpy(&line[r / 16][r % 16 * 4], &packed, sizeof packed);
}

// 32 values of two bits, taken at `shift`, as pair lines.
static void put_pairs(uint8_t lines[2][2][64], int r, const int8_t q[32], int shift) {
    uint32_t packed[2] = {0, 0};
    for (int g = 0; g < 8; g++) packed[g % 2] |= (four(q + 4 * g) >> shift & 0x03030303) << g / 2 * 2;
    for (int v = 0; v < 2; v++) memcpy(&lines[v][r / 16][r % 16 * 4], &packed[v], sizeof packed[v]);
}

static struct block_codes codes_of(enum block_id format, const void *block) {
    struct block_codes codes;
    block_formats[format].unpack(block, &codes);
    return codes;
}

void tile_prepare_BLOCK_Q4_1(void *tiles, int r, const void *block) {
    struct tile_q4_1 *t = tiles;
    const struct block_codes codes = codes_of(BLOCK_Q4_1, block);
    t->d[r] = f16_from_f32(codes.d), t->min[r] = f16_from_f32(codes.dmin); // they came from halves: exact
    put_nibbles(t->q, r, codes.code);
}

void tile_prepare_BLOCK_Q5_0(void *tiles, int r, const void *block) {
    struct tile_q5_0 *t = tiles;
    struct block_codes codes = codes_of(BLOCK_Q5_0, block);
    for (int i = 0; i < 32; i++) codes.code[i] = (int8_t)(codes.code[i] + 16);
    t->d[r] = f16_from_f32(codes.d);
    put_nibbles(t->q, r, codes.code);
    put_fifth_bits(t->high, r, codes.code);
}

void tile_prepare_BLOCK_Q5_1(void *tiles, int r, const void *block) {
    struct tile_q5_1 *t = tiles;
    const struct block_codes codes = codes_of(BLOCK_Q5_1, block);
    t->d[r] = f16_from_f32(codes.d), t->min[r] = f16_from_f32(codes.dmin);
    put_nibbles(t->q, r, codes.code);
    put_fifth_bits(t->high, r, codes.code);
}

void tile_prepare_BLOCK_Q5_K(void *tiles, int r, const void *block) {
    struct tile_q5_k *t = tiles;
    const struct block_codes codes = codes_of(BLOCK_Q5_K, block);
    t->d[r] = f16_from_f32(codes.d), t->dmin[r] = f16_from_f32(codes.dmin);
    for (int p = 0; p < 8; p++) {
        t->part[p].scale[r] = (uint8_t)codes.scale[2 * p], t->part[p].min[r] = (uint8_t)codes.minimum[2 * p];
        put_nibbles(t->part[p].q, r, codes.code + 32 * p);
        put_fifth_bits(t->part[p].high, r, codes.code + 32 * p);
    }
}

static void prepare_q2_k(struct tile_q2_k *t, int r, const struct block_codes *codes) {
    t->d[r] = f16_from_f32(codes->d), t->dmin[r] = f16_from_f32(codes->dmin);
    for (int p = 0; p < 8; p++) {
        for (int half = 0; half < 2; half++)
            t->part[p].scale[half][r] =
                (uint8_t)((int)codes->scale[2 * p + half] | (int)codes->minimum[2 * p + half] << 4);
        put_pairs(t->part[p].q, r, codes->code + 32 * p, 0);
    }
}

void tile_prepare_BLOCK_Q2_K(void *tiles, int r, const void *block) {
    const struct block_codes codes = codes_of(BLOCK_Q2_K, block);
    prepare_q2_k(tiles, r, &codes);
}

// d × (q − 1) is d × q − d × 1.
static void prepare_ternary(enum block_id format, void *tiles, int r, const void *block) {
    struct block_codes codes = codes_of(format, block);
    codes.dmin = codes.d;
    for (int i = 0; i < 16; i++) codes.minimum[i] = 1;
    for (int i = 0; i < 256; i++) codes.code[i]++;
    prepare_q2_k(tiles, r, &codes);
}

void tile_prepare_BLOCK_TQ1_0(void *tiles, int r, const void *block) { prepare_ternary(BLOCK_TQ1_0, tiles, r, block); }
void tile_prepare_BLOCK_TQ2_0(void *tiles, int r, const void *block) { prepare_ternary(BLOCK_TQ2_0, tiles, r, block); }

// Q3_K and IQ3_S fit Q6_K's 8-bit scales and 6-bit values.
static void prepare_q6_k(enum block_id format, struct tile_q6_k *t, int r, const void *block) {
    struct block_codes codes = codes_of(format, block);
    t->d[r] = f16_from_f32(codes.d);
    for (int i = 0; i < 256; i++) codes.code[i] = (int8_t)(codes.code[i] + 32);
    for (int p = 0; p < 8; p++) {
        for (int half = 0; half < 2; half++) t->part[p].scale[half][r] = (int8_t)codes.scale[2 * p + half];
        put_nibbles(t->part[p].low, r, codes.code + 32 * p);
        put_pairs(t->part[p].high, r, codes.code + 32 * p, 4);
    }
}

void tile_prepare_BLOCK_Q3_K(void *tiles, int r, const void *block) { prepare_q6_k(BLOCK_Q3_K, tiles, r, block); }
void tile_prepare_BLOCK_IQ3_S(void *tiles, int r, const void *block) { prepare_q6_k(BLOCK_IQ3_S, tiles, r, block); }

// The codes of these are places in a table, which the kernels look up: the file's nibbles are kept.
void tile_prepare_BLOCK_IQ4_NL(void *tiles, int r, const void *block) {
    struct tile_iq4_nl *t = tiles;
    struct block_iq4_nl b;
    memcpy(&b, block, sizeof b);
    t->d[r] = b.d;
    put_lines(t->q, r, b.q, 4);
}

void tile_prepare_BLOCK_IQ4_XS(void *tiles, int r, const void *block) {
    struct tile_iq4_xs *t = tiles;
    const struct block_codes codes = codes_of(BLOCK_IQ4_XS, block);
    struct block_iq4_xs b;
    memcpy(&b, block, sizeof b);
    t->d[r] = b.d;
    for (int p = 0; p < 8; p++) {
        t->part[p].scale[r] = (int8_t)codes.scale[2 * p];
        put_lines(t->part[p].q, r, b.q + 16 * p, 4);
    }
}

void tile_prepare_BLOCK_MXFP4(void *tiles, int r, const void *block) {
    struct tile_mxfp4 *t = tiles;
    struct block_mxfp4 b;
    memcpy(&b, block, sizeof b);
    t->e[r] = b.e;
    put_lines(t->q, r, b.q, 4);
}

void tile_prepare_BLOCK_NVFP4(void *tiles, int r, const void *block) {
    struct tile_nvfp4 *t = tiles;
    struct block_nvfp4 b;
    memcpy(&b, block, sizeof b);
    for (int p = 0; p < 2; p++) {
        int8_t q[32];
        for (int i = 0; i < 32; i++) q[i] = b.q[2 * p + i / 16][i % 8] >> i % 16 / 8 * 4 & 15;
        for (int half = 0; half < 2; half++) t->part[p].scale[half][r] = b.d[2 * p + half];
        put_nibbles(t->part[p].q, r, q);
    }
}

static void prepare_bytes(enum block_id format, struct tile_bytes *t, int r, const void *block) {
    const struct block_codes codes = codes_of(format, block);
    t->d[r] = codes.d;
    for (int p = 0; p < 8; p++) {
        uint8_t shifted[32];
        for (int i = 0; i < 32; i++) shifted[i] = (uint8_t)codes.code[32 * p + i] ^ 0x80;
        for (int half = 0; half < 2; half++) t->part[p].scale[half][r] = (int8_t)codes.scale[2 * p + half];
        put_lines(t->part[p].q, r, shifted, 8);
    }
}

void tile_prepare_BLOCK_IQ3_XXS(void *tiles, int r, const void *block) { prepare_bytes(BLOCK_IQ3_XXS, tiles, r, block); }
void tile_prepare_BLOCK_IQ2_S(void *tiles, int r, const void *block) { prepare_bytes(BLOCK_IQ2_S, tiles, r, block); }
void tile_prepare_BLOCK_IQ2_XS(void *tiles, int r, const void *block) { prepare_bytes(BLOCK_IQ2_XS, tiles, r, block); }
void tile_prepare_BLOCK_IQ2_XXS(void *tiles, int r, const void *block) { prepare_bytes(BLOCK_IQ2_XXS, tiles, r, block); }
void tile_prepare_BLOCK_IQ1_M(void *tiles, int r, const void *block) { prepare_bytes(BLOCK_IQ1_M, tiles, r, block); }
void tile_prepare_BLOCK_IQ1_S(void *tiles, int r, const void *block) { prepare_bytes(BLOCK_IQ1_S, tiles, r, block); }
