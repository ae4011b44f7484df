// Blocks of 32 elements with one scale, some with a minimum. Element j is the low nibble of byte j, element j + 16 its
// high nibble; the fifth bit of element j, if any, is bit j of qh.
#include <assert.h>

#include "engine/format/block_unpack.h"

// Q8_0, 34 bytes: d·q.
//   0      2                                34
//   │ d    │ q[32], signed                   │
static_assert(sizeof(struct block_q8_0) == 34 && offsetof(struct block_q8_0, q) == 2, "Q8_0");

// Q4_0, 18 bytes: d·(q − 8).            Q4_1, 20 bytes: d·q + m.
//   0      2                18            0      2      4                20
//   │ d    │ q[16]           │            │ d    │ m    │ q[16]           │
static_assert(sizeof(struct block_q4_0) == 18 && offsetof(struct block_q4_0, q) == 2, "Q4_0");
static_assert(sizeof(struct block_q4_1) == 20 && offsetof(struct block_q4_1, q) == 4, "Q4_1");

// Q5_0, 22 bytes: d·(q − 16).           Q5_1, 24 bytes: d·q + m.
//   0      2       6             22       0      2      4       8             24
//   │ d    │ qh[4] │ q[16]        │       │ d    │ m    │ qh[4] │ q[16]        │
static_assert(sizeof(struct block_q5_0) == 22 && offsetof(struct block_q5_0, q) == 6, "Q5_0");
static_assert(sizeof(struct block_q5_1) == 24 && offsetof(struct block_q5_1, q) == 8, "Q5_1");

// IQ4_NL, 18 bytes like Q4_0: d·iq4_values[q], with finer steps near zero.
static_assert(sizeof(struct block_iq4_nl) == 18 && offsetof(struct block_iq4_nl, q) == 2, "IQ4_NL");

const int8_t iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

static void put_nibbles(int8_t code[32], const uint8_t q[16]) {
    for (int j = 0; j < 16; j++) {
        code[j] = q[j] & 15;
        code[j + 16] = q[j] >> 4;
    }
}

static void add_fifth_bits(int8_t code[32], const uint8_t qh[4]) {
    for (int j = 0; j < 32; j++) code[j] |= (int8_t)((qh[j / 8] >> j % 8 & 1) << 4);
}

static void add(int8_t code[32], int offset) {
    for (int j = 0; j < 32; j++) code[j] = (int8_t)(code[j] + offset);
}

void unpack_BLOCK_Q8_0(const void *block, struct block_codes *out) {
    struct block_q8_0 b;
    memcpy(&b, block, sizeof b);
    whole_block(out, f16_to_f32(b.d), 0, 32);
    memcpy(out->code, b.q, sizeof b.q);
}

void unpack_BLOCK_Q4_0(const void *block, struct block_codes *out) {
    struct block_q4_0 b;
    memcpy(&b, block, sizeof b);
    whole_block(out, f16_to_f32(b.d), 0, 32);
    put_nibbles(out->code, b.q);
    add(out->code, -8);
}

void unpack_BLOCK_Q4_1(const void *block, struct block_codes *out) {
    struct block_q4_1 b;
    memcpy(&b, block, sizeof b);
    whole_block(out, f16_to_f32(b.d), -f16_to_f32(b.m), 32);
    put_nibbles(out->code, b.q);
}

void unpack_BLOCK_Q5_0(const void *block, struct block_codes *out) {
    struct block_q5_0 b;
    memcpy(&b, block, sizeof b);
    whole_block(out, f16_to_f32(b.d), 0, 32);
    put_nibbles(out->code, b.q);
    add_fifth_bits(out->code, b.qh);
    add(out->code, -16);
}

void unpack_BLOCK_Q5_1(const void *block, struct block_codes *out) {
    struct block_q5_1 b;
    memcpy(&b, block, sizeof b);
    whole_block(out, f16_to_f32(b.d), -f16_to_f32(b.m), 32);
    put_nibbles(out->code, b.q);
    add_fifth_bits(out->code, b.qh);
}

void unpack_BLOCK_IQ4_NL(const void *block, struct block_codes *out) {
    struct block_iq4_nl b;
    memcpy(&b, block, sizeof b);
    whole_block(out, f16_to_f32(b.d), 0, 32);
    put_nibbles(out->code, b.q);
    for (int i = 0; i < 32; i++) out->code[i] = iq4_values[out->code[i]];
}
