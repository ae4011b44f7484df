#include "engine/format/block_encode.h"

#include <math.h>
#include <string.h>

#include "engine/format/block_encode_parts.h"

uint16_t bf16_from_f32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value)) return (uint16_t)(bits >> 16 | 0x40); // made quiet
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void encode_BLOCK_F32(const float *x, size_t n, void *blocks) { memcpy(blocks, x, n * sizeof *x); }

void encode_BLOCK_F16(const float *x, size_t n, void *blocks) {
    uint8_t *out = blocks;
    for (size_t i = 0; i < n; i++) {
        uint16_t half = f16_from_f32(x[i]);
        memcpy(out + i * sizeof half, &half, sizeof half);
    }
}

void encode_BLOCK_BF16(const float *x, size_t n, void *blocks) {
    uint8_t *out = blocks;
    for (size_t i = 0; i < n; i++) {
        uint16_t half = bf16_from_f32(x[i]);
        memcpy(out + i * sizeof half, &half, sizeof half);
    }
}

block_encoder *const block_encoders[BLOCK_FORMAT_COUNT] = {
#define X(id) [id] = encode_##id,
    ENCODED_FORMATS(X)
#undef X
};
