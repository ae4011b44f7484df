// Block formats: how files store weights, and the scalar decoders that define them.
//
// A row of n elements is n / elements blocks of `bytes` bytes. Layouts are drawn and static-asserted next to their
// decoders: block_plain.c (32 elements), block_k.c (256), block_iq.c (codebooks), block_small.c (4-bit floats,
// ternary). The scalar decoder is the specification; SIMD kernels and shaders are tested against it.
#ifndef CONFAB_FORMAT_BLOCK_H
#define CONFAB_FORMAT_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// X(enumerator, GGUF type id, name, bytes per block, elements per block)
#define FLOAT_FORMATS(X)                                                                                               \
    X(BLOCK_F32, 0, "F32", 4, 1)                                                                                       \
    X(BLOCK_F16, 1, "F16", 2, 1)                                                                                       \
    X(BLOCK_BF16, 30, "BF16", 2, 1)
#define QUANTISED_FORMATS(X)                                                                                           \
    X(BLOCK_Q8_0, 8, "Q8_0", 34, 32)                                                                                   \
    X(BLOCK_Q4_0, 2, "Q4_0", 18, 32)                                                                                   \
    X(BLOCK_Q4_1, 3, "Q4_1", 20, 32)                                                                                   \
    X(BLOCK_Q5_0, 6, "Q5_0", 22, 32)                                                                                   \
    X(BLOCK_Q5_1, 7, "Q5_1", 24, 32)                                                                                   \
    X(BLOCK_Q2_K, 10, "Q2_K", 84, 256)                                                                                 \
    X(BLOCK_Q3_K, 11, "Q3_K", 110, 256)                                                                                \
    X(BLOCK_Q4_K, 12, "Q4_K", 144, 256)                                                                                \
    X(BLOCK_Q5_K, 13, "Q5_K", 176, 256)                                                                                \
    X(BLOCK_Q6_K, 14, "Q6_K", 210, 256)                                                                                \
    X(BLOCK_IQ4_NL, 20, "IQ4_NL", 18, 32)                                                                              \
    X(BLOCK_IQ4_XS, 23, "IQ4_XS", 136, 256)                                                                            \
    X(BLOCK_IQ3_S, 21, "IQ3_S", 110, 256)                                                                              \
    X(BLOCK_IQ3_XXS, 18, "IQ3_XXS", 98, 256)                                                                           \
    X(BLOCK_IQ2_S, 22, "IQ2_S", 82, 256)                                                                               \
    X(BLOCK_IQ2_XS, 17, "IQ2_XS", 74, 256)                                                                             \
    X(BLOCK_IQ2_XXS, 16, "IQ2_XXS", 66, 256)                                                                           \
    X(BLOCK_IQ1_M, 29, "IQ1_M", 56, 256)                                                                               \
    X(BLOCK_IQ1_S, 19, "IQ1_S", 50, 256)                                                                               \
    X(BLOCK_MXFP4, 39, "MXFP4", 17, 32)                                                                                \
    X(BLOCK_NVFP4, 40, "NVFP4", 36, 64)                                                                                \
    X(BLOCK_TQ1_0, 34, "TQ1_0", 54, 256)                                                                               \
    X(BLOCK_TQ2_0, 35, "TQ2_0", 66, 256)
#define BLOCK_FORMATS(X) FLOAT_FORMATS(X) QUANTISED_FORMATS(X)

enum block_id {
#define X(id, gguf, name, bytes, elements) id,
    BLOCK_FORMATS(X)
#undef X
        BLOCK_FORMAT_COUNT
};

// A block of any quantised format, unpacked to small integers in element order:
// element i = d × scale[i / 16] × code[i] − dmin × minimum[i / 16].
struct block_codes {
    float d, dmin;
    float scale[16], minimum[16]; // whole numbers, except the scales of NVFP4
    int8_t code[256];
};

struct block_format {
    enum block_id id;
    uint32_t gguf_type;
    const char *name;
    size_t bytes, elements;
    // Decodes n elements (a multiple of `elements`) from blocks to out [n] f32.
    void (*decode)(const void *blocks, float *out, size_t n);
    // Unpacks one block at any address; NULL for floats. Defines what decode returns.
    void (*unpack)(const void *block, struct block_codes *out);
};

extern const struct block_format block_formats[BLOCK_FORMAT_COUNT]; // indexed by enum block_id

const struct block_format *block_format_find(uint32_t gguf_type); // NULL if not supported
// The name of a GGUF type, supported or not; NULL if there is no such type.
const char *block_format_known_name(uint32_t gguf_type);

float f16_to_f32(uint16_t half);
uint16_t f16_from_f32(float value); // round to nearest even
float bf16_to_f32(uint16_t half);

// The 6-bit scale and minimum of sub-block j (0–7) of a Q4_K or Q5_K block, from its 12 packed bytes.
void q4_k_scale_min(const uint8_t packed[12], int j, uint8_t *scale, uint8_t *min);

// The scale, −32 to 31, of sub-block j (0–7) of an IQ4_XS block.
int iq4_xs_scale(const uint8_t low[4], uint16_t high, int j);

// Values of the 16 codes of IQ4_NL and IQ4_XS, and, doubled to be whole, of MXFP4 and NVFP4.
extern const int8_t iq4_values[16], fp4_values[16];
// 2^(e − 128), the scale of doubled MXFP4 values; finite for every e.
float mxfp4_scale(uint8_t e);
// An unsigned float with 4 exponent and 3 mantissa bits, halved for doubled NVFP4 values. Ignores the top bit;
// 127 is 0.
float nvfp4_scale(uint8_t bits);

// The codebooks of the IQ formats: an index stands for 8 (IQ3: 4) values, unsigned except in IQ1.
struct block_grids {
    int8_t iq2_xxs[256][8], iq2_xs[512][8], iq2_s[1024][8]; // 8, 25 or 43
    int8_t iq3_xxs[256][4], iq3_s[512][4];                  // 4, 12 … 52 or 62; 1, 3 … 15
    int8_t iq1[2048][8];                                    // −1, 0 or 1
};
const struct block_grids *block_grids(void);

// On-disk layouts: little endian, no padding.
struct block_q8_0 { uint16_t d; int8_t q[32]; };
struct block_q4_0 { uint16_t d; uint8_t q[16]; };
struct block_q4_1 { uint16_t d, m; uint8_t q[16]; };
struct block_q5_0 { uint16_t d; uint8_t qh[4], q[16]; };
struct block_q5_1 { uint16_t d, m; uint8_t qh[4], q[16]; };
struct block_q2_k { uint8_t scales[16], q[64]; uint16_t d, dmin; };
struct block_q3_k { uint8_t qh[32], q[64], scales[12]; uint16_t d; };
struct block_q4_k { uint16_t d, dmin; uint8_t scales[12]; uint8_t q[128]; };
struct block_q5_k { uint16_t d, dmin; uint8_t scales[12], qh[32], q[128]; };
struct block_q6_k { uint8_t ql[128], qh[64]; int8_t scales[16]; uint16_t d; };
struct block_iq4_nl { uint16_t d; uint8_t q[16]; };
struct block_iq4_xs { uint16_t d, scales_high; uint8_t scales_low[4], q[128]; };
struct block_iq3_s { uint16_t d; uint8_t q[64], qh[8], signs[32], scales[4]; };
struct block_iq3_xxs { uint16_t d; uint8_t q[64], signs[8][4]; };
struct block_iq2_s { uint16_t d; uint8_t q[32], signs[32], qh[8], scales[8]; };
struct block_iq2_xs { uint16_t d, q[32]; uint8_t scales[8]; };
struct block_iq2_xxs { uint16_t d; struct { uint8_t q[4], signs[4]; } part[8]; };
struct block_iq1_m { uint8_t q[32], qh[16], scales[4][2]; };
struct block_iq1_s { uint16_t d; uint8_t q[32]; uint16_t qh[8]; };
struct block_mxfp4 { uint8_t e, q[16]; };
struct block_nvfp4 { uint8_t d[4], q[4][8]; };
struct block_tq1_0 { uint8_t q[48], qh[4]; uint16_t d; };
struct block_tq2_0 { uint8_t q[64]; uint16_t d; };

#endif
