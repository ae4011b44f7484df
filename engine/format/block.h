// Block formats: how weights are stored in files, and the scalar decoders that define them.
//
// A row of n elements is n / elements blocks of `bytes` bytes. Layouts are pictured and static-asserted in block.c.
// The scalar decoder is the specification; SIMD kernels and shaders are checked against it.
#ifndef CONFAB_FORMAT_BLOCK_H
#define CONFAB_FORMAT_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// X(enumerator, GGUF type id, name, bytes a block, elements a block)
#define BLOCK_FORMATS(X)                                                                                               \
    X(BLOCK_F32, 0, "F32", 4, 1)                                                                                       \
    X(BLOCK_F16, 1, "F16", 2, 1)                                                                                       \
    X(BLOCK_BF16, 30, "BF16", 2, 1)                                                                                    \
    X(BLOCK_Q8_0, 8, "Q8_0", 34, 32)                                                                                   \
    X(BLOCK_Q4_0, 2, "Q4_0", 18, 32)                                                                                   \
    X(BLOCK_Q4_K, 12, "Q4_K", 144, 256)                                                                                \
    X(BLOCK_Q6_K, 14, "Q6_K", 210, 256)

enum block_id {
#define X(id, gguf, name, bytes, elements) id,
    BLOCK_FORMATS(X)
#undef X
        BLOCK_FORMAT_COUNT
};

struct block_format {
    enum block_id id;
    uint32_t gguf_type;
    const char *name;
    size_t bytes, elements;
    // Decodes n elements (a multiple of `elements`) from blocks to out [n] f32.
    void (*decode)(const void *blocks, float *out, size_t n);
};

extern const struct block_format block_formats[BLOCK_FORMAT_COUNT]; // indexed by enum block_id

const struct block_format *block_format_find(uint32_t gguf_type); // NULL if we lack it
// The name of any GGUF type id, also of those we lack; "type 99" style names are never returned: NULL if unknown.
const char *block_format_known_name(uint32_t gguf_type);

float f16_to_f32(uint16_t half);
uint16_t f16_from_f32(float value); // round to nearest even
float bf16_to_f32(uint16_t half);

// The 6-bit scale and minimum of sub-block j (0–7) of a Q4_K block, out of its 12 packed bytes.
void q4_k_scale_min(const uint8_t packed[12], int j, uint8_t *scale, uint8_t *min);

// On-disk layouts. All little endian, no padding.
struct block_q8_0 { uint16_t d; int8_t q[32]; };
struct block_q4_0 { uint16_t d; uint8_t q[16]; };
struct block_q4_k { uint16_t d, dmin; uint8_t scales[12]; uint8_t q[128]; };
struct block_q6_k { uint8_t ql[128], qh[64]; int8_t scales[16]; uint16_t d; };

#endif
