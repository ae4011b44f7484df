// Packed blocks: quantised weights repacked for the kernels, 32 rows × the columns of one block of the file.
//
// A line is 64 bytes: 16 rows × 4 consecutive columns, one operand of a 4-way byte dot product. Line [g][h] holds
// columns 4g..4g+3 of rows 16h..16h+15.
// - A nibble line holds columns 4g.. in its low and 16 + 4g.. in its high nibbles.
// - A pair line [v][h] has in bits 2f, 2f + 1 of its bytes two bits of columns 4(2f + v)..
// - A high line [h] has in bit g of its bytes the fifth bit of columns 4g..
//
// Most are as small as the file's blocks. Some formats share a wider one; in bits a weight (the file's in brackets):
// Q3_K 6.6 (3.4), IQ3_S 6.6 (3.4), IQ3_XXS 8.6 (3.1), IQ2_S, IQ2_XS and IQ2_XXS 8.6 (2.6, 2.3, 2.1), IQ1_M and IQ1_S
// 8.6 (1.8, 1.6), TQ1_0 and TQ2_0 2.6 (1.7, 2.1). Models in them need that much more memory than their file.
#ifndef CONFAB_CPU_PACKED_H
#define CONFAB_CPU_PACKED_H

#include "engine/cpu/kernels.h"

struct packed_q8_0 { uint16_t d[32]; uint8_t q[8][2][64]; };                     // weight = d × (q − 128)
struct packed_q4_0 { uint16_t d[32]; uint8_t q[4][2][64]; };                     // weight = d × (q − 8)
struct packed_q4_1 { uint16_t d[32], min[32]; uint8_t q[4][2][64]; };            // weight = d × q − min
struct packed_q5_0 { uint16_t d[32]; uint8_t high[2][64], q[4][2][64]; };        // weight = d × (q − 16)
struct packed_q5_1 { uint16_t d[32], min[32]; uint8_t high[2][64], q[4][2][64]; }; // weight = d × q − min
struct packed_q4_k {                                                             // weight = d × scale × q − dmin × min
    uint16_t d[32], dmin[32];
    struct { uint8_t scale[32], min[32], q[4][2][64]; } part[8];
};
struct packed_q5_k {                                                             // the same
    uint16_t d[32], dmin[32];
    struct { uint8_t scale[32], min[32], high[2][64], q[4][2][64]; } part[8];
};
struct packed_q2_k {                                                             // the same
    uint16_t d[32], dmin[32];
    struct {
        uint8_t scale[2][32]; // of columns 0–15 and 16–31; the minimum is the high nibble
        uint8_t q[2][2][64];  // pair lines
    } part[8];
};
struct packed_q6_k {                                                             // weight = d × scale × (q − 32)
    uint16_t d[32];
    struct {
        int8_t scale[2][32];    // of columns 0–15 and 16–31
        uint8_t high[2][2][64]; // pair lines: bits 4 and 5
        uint8_t low[4][2][64];  // nibble lines
    } part[8];
};
struct packed_iq4_nl { uint16_t d[32]; uint8_t q[4][2][64]; };                   // weight = d × iq4_values[q]
struct packed_iq4_xs {                                                           // weight = d × scale × iq4_values[q]
    uint16_t d[32];
    struct { int8_t scale[32]; uint8_t q[4][2][64]; } part[8];
};
struct packed_mxfp4 { uint8_t e[32]; uint8_t q[4][2][64]; };                     // weight = 2^(e − 128) × fp4_values[q]
struct packed_nvfp4 {                                                            // weight = scale × fp4_values[q]
    struct { uint8_t scale[2][32], q[4][2][64]; } part[2]; // scale: nvfp4_scale's byte
};
struct packed_bytes {                                                            // weight = d × scale × (q − 128)
    float d[32];
    struct { int8_t scale[2][32]; uint8_t q[8][2][64]; } part[8];
};
// As small as the file's blocks, but for 144 and 176 bytes of Q4_K and Q5_K, 136 of IQ4_XS, and the widest.
_Static_assert(sizeof(struct packed_q8_0) == 32 * 34 && sizeof(struct packed_q4_0) == 32 * 18, "");
_Static_assert(sizeof(struct packed_q4_1) == 32 * 20 && sizeof(struct packed_q5_0) == 32 * 22, "");
_Static_assert(sizeof(struct packed_q5_1) == 32 * 24 && sizeof(struct packed_q2_k) == 32 * 84, "");
_Static_assert(sizeof(struct packed_q4_k) == 32 * 148 && sizeof(struct packed_q5_k) == 32 * 180, "");
_Static_assert(sizeof(struct packed_q6_k) == 32 * 210 && sizeof(struct packed_iq4_xs) == 32 * 138, "");
_Static_assert(sizeof(struct packed_iq4_nl) == 32 * 18 && sizeof(struct packed_mxfp4) == 32 * 17, "");
_Static_assert(sizeof(struct packed_nvfp4) == 32 * 36 && sizeof(struct packed_bytes) == 32 * 276, "");

enum { PACKED_ROWS = 16 }; // repacked together: few enough streams to be prefetched, whole cache lines to be written

// X(format, packed block): those that kernels unpack, and those that are bytes already.
#define PACKED_BITS_FORMATS(X)                                                                                         \
    X(BLOCK_Q4_0, q4_0)                                                                                                \
    X(BLOCK_Q4_1, q4_1)                                                                                                \
    X(BLOCK_Q5_0, q5_0)                                                                                                \
    X(BLOCK_Q5_1, q5_1)                                                                                                \
    X(BLOCK_Q2_K, q2_k)                                                                                                \
    X(BLOCK_Q3_K, q6_k)                                                                                                \
    X(BLOCK_Q4_K, q4_k)                                                                                                \
    X(BLOCK_Q5_K, q5_k)                                                                                                \
    X(BLOCK_Q6_K, q6_k)                                                                                                \
    X(BLOCK_IQ4_NL, iq4_nl)                                                                                            \
    X(BLOCK_IQ4_XS, iq4_xs)                                                                                            \
    X(BLOCK_IQ3_S, q6_k)                                                                                               \
    X(BLOCK_MXFP4, mxfp4)                                                                                              \
    X(BLOCK_NVFP4, nvfp4)                                                                                              \
    X(BLOCK_TQ1_0, q2_k)                                                                                               \
    X(BLOCK_TQ2_0, q2_k)
#define PACKED_BYTES_FORMATS(X)                                                                                        \
    X(BLOCK_Q8_0, q8_0)                                                                                                \
    X(BLOCK_IQ3_XXS, bytes)                                                                                            \
    X(BLOCK_IQ2_S, bytes)                                                                                              \
    X(BLOCK_IQ2_XS, bytes)                                                                                             \
    X(BLOCK_IQ2_XXS, bytes)                                                                                            \
    X(BLOCK_IQ1_M, bytes)                                                                                              \
    X(BLOCK_IQ1_S, bytes)
#define PACKED_FORMATS(X) PACKED_BITS_FORMATS(X) PACKED_BYTES_FORMATS(X)

// packed_fill_BLOCK_… puts rows of n blocks into the rows from `first` on of n packed blocks; strip_… and many_… are
// kernels for `strip` and `many` of struct cpu_kernels.
#define X(id, name)                                                                                                    \
    void packed_fill_##id(void *packed, int first, const uint8_t *const rows[PACKED_ROWS], size_t n);                  \
    void strip_##name##_scalar(const struct strip *s);                                                                 \
    void strip_##name##_avx2(const struct strip *s);                                                                   \
    void strip_##name##_avxvnni(const struct strip *s);                                                                \
    void strip_##name##_avx512(const struct strip *s);
PACKED_FORMATS(X)
#undef X
#define X(id, name) void many_##name##_avx512(const struct strip *s);
PACKED_BITS_FORMATS(X)
#undef X

#endif
