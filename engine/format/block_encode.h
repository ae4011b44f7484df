// Block encoders: from floats to the blocks of block.h, with as little mean squared error as a short search finds.
//
// Pure functions of their input: the same floats give the same bytes on every machine and thread. How the scales are
// searched is said beside each encoder: block_encode_plain.c (32 elements), block_encode_k.c (256).
#ifndef CONFAB_FORMAT_BLOCK_ENCODE_H
#define CONFAB_FORMAT_BLOCK_ENCODE_H

#include "engine/format/block.h"

// Encodes n finite floats (a multiple of the format's elements) to n / elements blocks, which may lie anywhere.
// The scales of quantised blocks are halves, but for MXFP4: weights beyond ±65504 are stored as if they were that.
// F16 has infinities for what it cannot hold.
typedef void block_encoder(const float *x, size_t n, void *blocks);

// Indexed by enum block_id; NULL for a format that can only be read.
extern block_encoder *const block_encoders[BLOCK_FORMAT_COUNT];

uint16_t bf16_from_f32(float value); // round to nearest even

#endif
