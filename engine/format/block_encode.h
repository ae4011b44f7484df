// Block encoders: floats to the blocks of block.h, minimising the mean squared error by a short search.
//
// Deterministic: the same floats give the same bytes on every machine and thread. Each encoder describes its search:
// block_encode_plain.c (32 elements), block_encode_k.c (256).
#ifndef CONFAB_FORMAT_BLOCK_ENCODE_H
#define CONFAB_FORMAT_BLOCK_ENCODE_H

#include "engine/format/block.h"

// Encodes n finite floats (a multiple of the format's elements) to n / elements blocks at any address.
// Except in MXFP4, scales are halves, so weights are clamped to ±65504. F16 stores larger ones as infinities.
typedef void block_encoder(const float *x, size_t n, void *blocks);

// Indexed by enum block_id; NULL for read-only formats.
extern block_encoder *const block_encoders[BLOCK_FORMAT_COUNT];

uint16_t bf16_from_f32(float value); // round to nearest even

#endif
