#include "engine/cpu/tiles.h"

#include <string.h>

// --- rows of lines ---------------------------------------------------------------------------------------------------
//
// A line has four bytes for row r, at [r / 16][4 (r mod 16)]. Values are taken out of bytes at `shift`, four at a time.

static uint32_t four(const void *bytes) {
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

static void put_four(uint8_t line[2][64], int r, uint32_t word) {
    memcpy(&line[r / 16][r % 16 * 4], &word, sizeof word);
}

// Bytes as they are: columns 4g..4g+3 to line g.
static void put_bytes(uint8_t lines[][2][64], int r, const uint8_t *bytes, int n_lines) {
    for (int g = 0; g < n_lines; g++) put_four(lines[g], r, four(bytes + 4 * g));
}

// 32 signed bytes, 128 added.
static void put_shifted(uint8_t lines[8][2][64], int r, const int8_t q[32]) {
    for (int g = 0; g < 8; g++) put_four(lines[g], r, four(q + 4 * g) ^ 0x80808080);
}

// Four bits of 32 bytes as nibble lines.
static void put_nibbles(uint8_t lines[4][2][64], int r, const void *q, int shift) {
    const uint8_t *low = q, *high = low + 16;
    for (int g = 0; g < 4; g++)
        put_four(lines[g], r,
                 (four(low + 4 * g) >> shift & 0x0f0f0f0f) | (four(high + 4 * g) >> shift & 0x0f0f0f0f) << 4);
}

// Two bits of 32 bytes as pair lines.
static void put_pairs(uint8_t lines[2][2][64], int r, const void *q, int shift) {
    uint32_t packed[2] = {0, 0};
    for (int g = 0; g < 8; g++) packed[g % 2] |= (four((const uint8_t *)q + 4 * g) >> shift & 0x03030303) << g / 2 * 2;
    for (int v = 0; v < 2; v++) put_four(lines[v], r, packed[v]);
}

// One bit of 32 bytes as a high line.
static void put_bits(uint8_t line[2][64], int r, const uint8_t q[32], int shift) {
    uint32_t packed = 0;
    for (int g = 0; g < 8; g++) packed |= (four(q + 4 * g) >> shift & 0x01010101) << g;
    put_four(line, r, packed);
}

// 32 bits as a high line. The product puts bit i of four into byte i.
static void put_packed_bits(uint8_t line[2][64], int r, const uint8_t bits[4]) {
    uint32_t packed = 0;
    for (int g = 0; g < 8; g++) packed |= ((bits[g / 2] >> g % 2 * 4 & 15) * 0x00204081u & 0x01010101) << g;
    put_four(line, r, packed);
}

// --- blocks of 32 ----------------------------------------------------------------------------------------------------
//
// The file may not align blocks; so each is copied first.

void tile_prepare_BLOCK_Q8_0(void *tiles, int r, const void *block) {
    struct tile_q8_0 *t = tiles;
    struct block_q8_0 b;
    memcpy(&b, block, sizeof b);
    t->d[r] = b.d;
    put_shifted(t->q, r, b.q);
}

void tile_prepare_BLOCK_Q4_0(void *tiles, int r, const void *block) {
    struct tile_q4_0 *t = tiles;
    struct block_q4_0 b;
    memcpy(&b, block, sizeof b);
    t->d[r] = b.d;
    put_bytes(t->q, r, b.q, 4);
}

enum { HALF_SIGN = 0x8000 }; // d × q + m is d × q − min

void tile_prepare_BLOCK_Q4_1(void *tiles, int r, const void *block) {
    struct tile_q4_1 *t = tiles;
    struct block_q4_1 b;
    memcpy(&b, block, sizeof b);
    t->d[r] = b.d, t->min[r] = b.m ^ HALF_SIGN;
    put_bytes(t->q, r, b.q, 4);
}

void tile_prepare_BLOCK_Q5_0(void *tiles, int r, const void *block) {
    struct tile_q5_0 *t = tiles;
    struct block_q5_0 b;
    memcpy(&b, block, sizeof b);
    t->d[r] = b.d;
    put_bytes(t->q, r, b.q, 4);
    put_packed_bits(t->high, r, b.qh);
}

void tile_prepare_BLOCK_Q5_1(void *tiles, int r, const void *block) {
    struct tile_q5_1 *t = tiles;
    struct block_q5_1 b;
    memcpy(&b, block, sizeof b);
    t->d[r] = b.d, t->min[r] = b.m ^ HALF_SIGN;
    put_bytes(t->q, r, b.q, 4);
    put_packed_bits(t->high, r, b.qh);
}

void tile_prepare_BLOCK_IQ4_NL(void *tiles, int r, const void *block) {
    struct tile_iq4_nl *t = tiles;
    struct block_iq4_nl b;
    memcpy(&b, block, sizeof b);
    t->d[r] = b.d;
    put_bytes(t->q, r, b.q, 4);
}

void tile_prepare_BLOCK_MXFP4(void *tiles, int r, const void *block) {
    struct tile_mxfp4 *t = tiles;
    struct block_mxfp4 b;
    memcpy(&b, block, sizeof b);
    t->e[r] = b.e;
    put_bytes(t->q, r, b.q, 4);
}

// Of NVFP4's 16 elements eight lie in low and eight in high nibbles; of a tile's 32 it is 16 and 16.
void tile_prepare_BLOCK_NVFP4(void *tiles, int r, const void *block) {
    struct tile_nvfp4 *t = tiles;
    struct block_nvfp4 b;
    memcpy(&b, block, sizeof b);
    for (int p = 0; p < 2; p++) {
        uint8_t q[32];
        for (int i = 0; i < 32; i++) q[i] = b.q[2 * p + i / 16][i % 8] >> i % 16 / 8 * 4;
        for (int half = 0; half < 2; half++) t->part[p].scale[half][r] = b.d[2 * p + half];
        put_nibbles(t->part[p].q, r, q, 0);
    }
}

// --- blocks of 256 ---------------------------------------------------------------------------------------------------

void tile_prepare_BLOCK_Q4_K(void *tiles, int r, const void *block) {
    struct tile_q4_k *t = tiles;
    struct block_q4_k b;
    memcpy(&b, block, sizeof b);
    t->d[r] = b.d, t->dmin[r] = b.dmin;
    for (int p = 0; p < 8; p++) {
        q4_k_scale_min(b.scales, p, &t->part[p].scale[r], &t->part[p].min[r]);
        put_nibbles(t->part[p].q, r, b.q + p / 2 * 32, p % 2 * 4);
    }
}

void tile_prepare_BLOCK_Q5_K(void *tiles, int r, const void *block) {
    struct tile_q5_k *t = tiles;
    struct block_q5_k b;
    memcpy(&b, block, sizeof b);
    t->d[r] = b.d, t->dmin[r] = b.dmin;
    for (int p = 0; p < 8; p++) {
        q4_k_scale_min(b.scales, p, &t->part[p].scale[r], &t->part[p].min[r]);
        put_nibbles(t->part[p].q, r, b.q + p / 2 * 32, p % 2 * 4);
        put_bits(t->part[p].high, r, b.qh, p);
    }
}

void tile_prepare_BLOCK_Q6_K(void *tiles, int r, const void *block) {
    struct tile_q6_k *t = tiles;
    struct block_q6_k b;
    memcpy(&b, block, sizeof b);
    t->d[r] = b.d;
    for (int p = 0; p < 8; p++) { // of each 128 columns, part p is quarter p mod 4
        for (int half = 0; half < 2; half++) t->part[p].scale[half][r] = b.scales[2 * p + half];
        put_nibbles(t->part[p].low, r, b.ql + p / 4 * 64 + p % 2 * 32, p % 4 / 2 * 4);
        put_pairs(t->part[p].high, r, b.qh + p / 4 * 32, p % 4 * 2);
    }
}

void tile_prepare_BLOCK_Q2_K(void *tiles, int r, const void *block) {
    struct tile_q2_k *t = tiles;
    struct block_q2_k b;
    memcpy(&b, block, sizeof b);
    t->d[r] = b.d, t->dmin[r] = b.dmin;
    for (int p = 0; p < 8; p++) {
        for (int half = 0; half < 2; half++) t->part[p].scale[half][r] = b.scales[2 * p + half];
        put_pairs(t->part[p].q, r, b.q + p / 4 * 32, p % 4 * 2);
    }
}

static struct block_codes codes_of(enum block_id format, const void *block) {
    struct block_codes codes;
    block_formats[format].unpack(block, &codes);
    return codes;
}

// d × (q − 1) is d × q − d × 1.
static void prepare_ternary(enum block_id format, struct tile_q2_k *t, int r, const void *block) {
    struct block_codes codes = codes_of(format, block);
    t->d[r] = t->dmin[r] = f16_from_f32(codes.d); // it came from a half: exact
    for (int i = 0; i < 256; i++) codes.code[i] = (int8_t)(codes.code[i] + 1);
    for (int p = 0; p < 8; p++) {
        for (int half = 0; half < 2; half++) t->part[p].scale[half][r] = 1 | 1 << 4;
        put_pairs(t->part[p].q, r, codes.code + 32 * p, 0);
    }
}

void tile_prepare_BLOCK_TQ1_0(void *tiles, int r, const void *block) { prepare_ternary(BLOCK_TQ1_0, tiles, r, block); }
void tile_prepare_BLOCK_TQ2_0(void *tiles, int r, const void *block) { prepare_ternary(BLOCK_TQ2_0, tiles, r, block); }

// Formats whose scales fit eight bits and whose values fit six.
static void prepare_as_q6_k(enum block_id format, struct tile_q6_k *t, int r, const void *block) {
    struct block_codes codes = codes_of(format, block);
    t->d[r] = f16_from_f32(codes.d);
    for (int i = 0; i < 256; i++) codes.code[i] = (int8_t)(codes.code[i] + 32);
    for (int p = 0; p < 8; p++) {
        for (int half = 0; half < 2; half++) t->part[p].scale[half][r] = (int8_t)codes.scale[2 * p + half];
        put_nibbles(t->part[p].low, r, codes.code + 32 * p, 0);
        put_pairs(t->part[p].high, r, codes.code + 32 * p, 4);
    }
}

void tile_prepare_BLOCK_Q3_K(void *tiles, int r, const void *block) { prepare_as_q6_k(BLOCK_Q3_K, tiles, r, block); }
void tile_prepare_BLOCK_IQ3_S(void *tiles, int r, const void *block) { prepare_as_q6_k(BLOCK_IQ3_S, tiles, r, block); }

void tile_prepare_BLOCK_IQ4_XS(void *tiles, int r, const void *block) {
    struct tile_iq4_xs *t = tiles;
    struct block_iq4_xs b;
    memcpy(&b, block, sizeof b);
    t->d[r] = b.d;
    for (int p = 0; p < 8; p++) {
        t->part[p].scale[r] = (int8_t)iq4_xs_scale(b.scales_low, b.scales_high, p);
        put_bytes(t->part[p].q, r, b.q + 16 * p, 4);
    }
}

static void prepare_bytes(enum block_id format, struct tile_bytes *t, int r, const void *block) {
    const struct block_codes codes = codes_of(format, block);
    t->d[r] = codes.d;
    for (int p = 0; p < 8; p++) {
        for (int half = 0; half < 2; half++) t->part[p].scale[half][r] = (int8_t)codes.scale[2 * p + half];
        put_shifted(t->part[p].q, r, codes.code + 32 * p);
    }
}

void tile_prepare_BLOCK_IQ3_XXS(void *tiles, int r, const void *block) {
    prepare_bytes(BLOCK_IQ3_XXS, tiles, r, block);
}
void tile_prepare_BLOCK_IQ2_S(void *tiles, int r, const void *block) { prepare_bytes(BLOCK_IQ2_S, tiles, r, block); }
void tile_prepare_BLOCK_IQ2_XS(void *tiles, int r, const void *block) { prepare_bytes(BLOCK_IQ2_XS, tiles, r, block); }
void tile_prepare_BLOCK_IQ2_XXS(void *tiles, int r, const void *block) {
    prepare_bytes(BLOCK_IQ2_XXS, tiles, r, block);
}
void tile_prepare_BLOCK_IQ1_M(void *tiles, int r, const void *block) { prepare_bytes(BLOCK_IQ1_M, tiles, r, block); }
void tile_prepare_BLOCK_IQ1_S(void *tiles, int r, const void *block) { prepare_bytes(BLOCK_IQ1_S, tiles, r, block); }
