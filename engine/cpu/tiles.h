// Tiles of the formats beyond the four that kernels.h lists: how they lie in memory, how a file's block becomes one row
// of a tile, and the kernels that read them.
//
// Lines and nibble lines are those of kernels.h. A tile has the columns of one block. Q3_K and IQ3_S share Q6_K's tile,
// TQ1_0 and TQ2_0 share Q2_K's. Most are as small as the file's blocks; the exceptions, in bits a weight (the file's in
// brackets): Q3_K 6.6 (3.4), IQ3_S 6.6 (3.4), IQ3_XXS 8.6 (3.1), IQ2_S, IQ2_XS and IQ2_XXS 8.6 (2.6, 2.3, 2.1), IQ1_M
// and IQ1_S 8.6 (1.8, 1.6), TQ1_0 and TQ2_0 2.6 (1.7, 2.1).
#ifndef CONFAB_CPU_TILES_H
#define CONFAB_CPU_TILES_H

#include "engine/cpu/kernels.h"

// A high line has in bit g of a byte the fifth bit of column 4g + (byte mod 4). A pair line [v][h] has in bits 2f, 2f + 1
// the value of column 4(2f + v) + (byte mod 4), as the high bits of Q6_K.
struct tile_q4_1 { uint16_t d[32], min[32]; uint8_t q[4][2][64]; };              // weight = d × q − min
struct tile_q5_0 { uint16_t d[32]; uint8_t q[4][2][64], high[2][64]; };          // weight = d × (q − 16)
struct tile_q5_1 { uint16_t d[32], min[32]; uint8_t q[4][2][64], high[2][64]; }; // weight = d × q − min
struct tile_q5_k {                                                               // weight = d × scale × q − dmin × min
    uint16_t d[32], dmin[32];
    struct { uint8_t scale[32], min[32], q[4][2][64], high[2][64]; } part[8];
};
struct tile_q2_k {                                                               // weight = d × scale × q − dmin × min
    uint16_t d[32], dmin[32];
    struct {
        uint8_t scale[2][32]; // of columns 0–15 and 16–31; the minimum is the high nibble
        uint8_t q[2][2][64];  // pair lines
    } part[8];
};
struct tile_iq4_nl { uint16_t d[32]; uint8_t q[4][2][64]; };                     // weight = d × iq4_values[q]
struct tile_iq4_xs {                                                             // weight = d × scale × iq4_values[q]
    uint16_t d[32];
    struct { int8_t scale[32]; uint8_t q[4][2][64]; } part[8];
};
struct tile_mxfp4 { uint8_t e[32]; uint8_t q[4][2][64]; };                       // weight = 2^(e − 128) × fp4_values[q]
struct tile_nvfp4 {                                                              // weight = scale × fp4_values[q]
    struct { uint8_t scale[2][32], q[4][2][64]; } part[2]; // scale: nvfp4_scale's byte
};
struct tile_bytes {                                                              // weight = d × scale × (q − 128)
    float d[32];
    struct { int8_t scale[2][32]; uint8_t q[8][2][64]; } part[8];
};
_Static_assert(sizeof(struct tile_q4_1) == 32 * 20 && sizeof(struct tile_q5_0) == 32 * 22, "as small as the file");
_Static_assert(sizeof(struct tile_q5_1) == 32 * 24 && sizeof(struct tile_q2_k) == 32 * 84, "as small as the file");
_Static_assert(sizeof(struct tile_q5_k) == 32 * 180 && sizeof(struct tile_iq4_xs) == 32 * 138, "176 and 136 in the file");
_Static_assert(sizeof(struct tile_iq4_nl) == 32 * 18 && sizeof(struct tile_mxfp4) == 32 * 17, "as small as the file");
_Static_assert(sizeof(struct tile_nvfp4) == 32 * 36 && sizeof(struct tile_bytes) == 32 * 276, "and the widest");

// X(format, tile)
#define TILE_FORMATS(X)                                                                                                \
    X(BLOCK_Q4_1, q4_1)                                                                                                \
    X(BLOCK_Q5_0, q5_0)                                                                                                \
    X(BLOCK_Q5_1, q5_1)                                                                                                \
    X(BLOCK_Q5_K, q5_k)                                                                                                \
    X(BLOCK_Q2_K, q2_k)                                                                                                \
    X(BLOCK_TQ1_0, q2_k)                                                                                               \
    X(BLOCK_TQ2_0, q2_k)                                                                                               \
    X(BLOCK_IQ4_NL, iq4_nl)                                                                                            \
    X(BLOCK_IQ4_XS, iq4_xs)                                                                                            \
    X(BLOCK_MXFP4, mxfp4)                                                                                              \
    X(BLOCK_NVFP4, nvfp4)                                                                                              \
    X(BLOCK_IQ3_XXS, bytes)                                                                                            \
    X(BLOCK_IQ2_S, bytes)                                                                                              \
    X(BLOCK_IQ2_XS, bytes)                                                                                             \
    X(BLOCK_IQ2_XXS, bytes)                                                                                            \
    X(BLOCK_IQ1_M, bytes)                                                                                              \
    X(BLOCK_IQ1_S, bytes)

// tile_prepare_BLOCK_… puts one block into row r of its tile; strip_… are kernels for `strip` of struct cpu_kernels.
#define X(id, tile)                                                                                                    \
    void tile_prepare_##id(void *tiles, int r, const void *block);                                                     \
    void strip_##tile##_scalar(const struct strip *s);                                                                 \
    void strip_##tile##_avx2(const struct strip *s);                                                                   \
    void strip_##tile##_avx512(const struct strip *s);
TILE_FORMATS(X)
#undef X
// For Q6_K's tile and kernels.
void tile_prepare_BLOCK_Q3_K(void *tiles, int r, const void *block);
void tile_prepare_BLOCK_IQ3_S(void *tiles, int r, const void *block);

#endif
