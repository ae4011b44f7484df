// Shared by block_encode*.c: one encode_BLOCK_… function per writable format.
#ifndef CONFAB_FORMAT_BLOCK_ENCODE_PARTS_H
#define CONFAB_FORMAT_BLOCK_ENCODE_PARTS_H

#include "engine/format/block_encode.h"

// X(enumerator)
#define ENCODED_FORMATS(X)                                                                                             \
    X(BLOCK_F32)                                                                                                       \
    X(BLOCK_F16)                                                                                                       \
    X(BLOCK_BF16)                                                                                                      \
    X(BLOCK_Q8_0)                                                                                                      \
    X(BLOCK_Q4_0)                                                                                                      \
    X(BLOCK_Q4_1)                                                                                                      \
    X(BLOCK_Q5_0)                                                                                                      \
    X(BLOCK_Q5_1)                                                                                                      \
    X(BLOCK_Q2_K)                                                                                                      \
    X(BLOCK_Q3_K)                                                                                                      \
    X(BLOCK_Q4_K)                                                                                                      \
    X(BLOCK_Q5_K)                                                                                                      \
    X(BLOCK_Q6_K)                                                                                                      \
    X(BLOCK_IQ4_NL)                                                                                                    \
    X(BLOCK_IQ4_XS)                                                                                                    \
    X(BLOCK_MXFP4)

#define X(id) void encode_##id(const float *x, size_t n, void *blocks);
ENCODED_FORMATS(X)
#undef X

#endif
