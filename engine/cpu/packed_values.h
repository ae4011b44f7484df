// Packed values: 32 elements of the values of a page's 32 tokens, quantised, as products with weights read them.
//
// A line is 64 bytes, one operand of a 4-way byte dot product: 16 elements × 4 consecutive tokens. Line [g][h] holds
// elements 16h..16h+15 of tokens 4g..4g+3; a nibble line [g] holds elements 0–15 in its low and 16–31 in its high
// nibbles. No byte belongs to two tokens. Keys are packed blocks of weights, packed.h, whose rows are the tokens.
#ifndef CONFAB_CPU_PACKED_VALUES_H
#define CONFAB_CPU_PACKED_VALUES_H

#include "engine/cpu/kernels.h"

struct packed_values_q8_0 {
    uint16_t d[32];
    int8_t q[8][2][64];
}; // value = d × q
struct packed_values_q4_0 {
    uint16_t d[32];
    uint8_t q[8][64];
}; // value = d × (q − 8)

// d ≥ 0, a scale for every token. Weights × scales become bytes, 0 to 255 under one scale for a page's 32 slots.
#define WEIGHT_MOST 255

#endif
