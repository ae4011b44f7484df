#include "engine/cpu/kv_page.h"

#include <math.h>

#include "engine/cpu/packed.h"
#include "engine/cpu/packed_values.h"

static int padded_to_blocks(int n) { return (n + BLOCK_COLUMNS - 1) / BLOCK_COLUMNS * BLOCK_COLUMNS; }

struct kv_layout kv_layout_of(enum kv_type type, bool exact, int head_size) {
    static const size_t key_blocks[KV_LAYOUTS] = {
        [KV_Q8_0] = sizeof(struct packed_q8_0), [KV_Q4_0] = sizeof(struct packed_q4_0)};
    static const size_t value_blocks[KV_LAYOUTS] = {
        [KV_Q8_0] = sizeof(struct packed_values_q8_0), [KV_Q4_0] = sizeof(struct packed_values_q4_0)};
    struct kv_layout l = {.layout = exact ? KV_EXACT : (int)type, .size = head_size};
    l.padded = padded_to_blocks(head_size);
    const size_t blocks = (size_t)l.padded / BLOCK_COLUMNS, element = exact ? sizeof(float) : sizeof(uint16_t);
    if (key_blocks[l.layout]) {
        l.key_bytes = blocks * key_blocks[l.layout];
        l.value_bytes = blocks * value_blocks[l.layout];
    } else {
        l.key_bytes = (size_t)head_size * KV_PAGE_TOKENS * element;
        l.value_bytes = (size_t)(exact ? head_size : l.padded) * KV_PAGE_TOKENS * element;
    }
    return l;
}

// --- one token -------------------------------------------------------------------------------------------------------

size_t kv_store_scratch(int head_size) { // padded floats and their blocks, or halves
    const size_t padded = (size_t)padded_to_blocks(head_size);
    return padded + padded / BLOCK_COLUMNS * sizeof(struct activation_block) / sizeof(float);
}

static void store_exact(const struct kv_layout *l, float *keys, float *values, int slot, const float *key,
                        const float *value) {
    memcpy(keys + (size_t)slot * l->size, key, (size_t)l->size * sizeof *key);
    memcpy(values + (size_t)slot * l->size, value, (size_t)l->size * sizeof *value);
}

static void store_halves(const struct kv_layout *l, const struct cpu_kernels *k, uint16_t *keys, uint16_t *values,
                         int slot, const float *key, const float *value, uint16_t *halves) {
    k->to_half[l->layout](key, halves, l->size);
    for (int d = 0; d < l->size; d++) keys[d * KV_PAGE_TOKENS + slot] = halves[d];
    k->to_half[l->layout](value, values + (size_t)slot * l->padded, l->size);
}

// Four bits of a block's bytes. Its scale is that of 7.5 steps, so that neither the largest nor the smallest is cut by
// more than half a step.
static float four_bits(const struct activation_block *a, int8_t q[BLOCK_COLUMNS]) {
    for (int i = 0; i < BLOCK_COLUMNS; i++) {
        const int step = (int)lrintf(a->q[i] * (7.5f / 127));
        q[i] = (int8_t)(step > 7 ? 7 : step);
    }
    return a->scale * (127 / 7.5f);
}

static void store_key_block(int layout, void *keys, int block, int slot, const struct activation_block *a) {
    if (layout == KV_Q8_0) {
        struct packed_q8_0 *packed = (struct packed_q8_0 *)keys + block;
        packed->d[slot] = f16_from_f32(a->scale);
        for (int i = 0; i < BLOCK_COLUMNS; i++)
            packed->q[i / 4][slot / 16][slot % 16 * 4 + i % 4] = (uint8_t)(a->q[i] + 128);
        return;
    }
    int8_t q[BLOCK_COLUMNS];
    struct packed_q4_0 *packed = (struct packed_q4_0 *)keys + block;
    packed->d[slot] = f16_from_f32(four_bits(a, q));
    for (int i = 0; i < 16; i++)
        packed->q[i / 4][slot / 16][slot % 16 * 4 + i % 4] = (uint8_t)((q[i] + 8) | (q[i + 16] + 8) << 4);
}

static void store_value_block(int layout, void *values, int block, int slot, const struct activation_block *a) {
    if (layout == KV_Q8_0) {
        struct packed_values_q8_0 *packed = (struct packed_values_q8_0 *)values + block;
        packed->d[slot] = f16_from_f32(a->scale);
        for (int i = 0; i < BLOCK_COLUMNS; i++) packed->q[slot / 4][i / 16][i % 16 * 4 + slot % 4] = a->q[i];
        return;
    }
    int8_t q[BLOCK_COLUMNS];
    struct packed_values_q4_0 *packed = (struct packed_values_q4_0 *)values + block;
    packed->d[slot] = f16_from_f32(four_bits(a, q));
    for (int i = 0; i < 16; i++) packed->q[slot / 4][i * 4 + slot % 4] = (uint8_t)((q[i] + 8) | (q[i + 16] + 8) << 4);
}

typedef void block_store(int layout, void *packed, int block, int slot, const struct activation_block *a);

static void store_blocks(const struct kv_layout *l, const struct cpu_kernels *k, block_store *store, void *packed,
                         int slot, const float *x, float *padded) {
    struct activation_block *blocks = (struct activation_block *)(padded + l->padded);
    const int n = l->padded / BLOCK_COLUMNS;
    memcpy(padded, x, (size_t)l->size * sizeof *x);
    memset(padded + l->size, 0, (size_t)(l->padded - l->size) * sizeof *x);
    k->quantize(padded, n, blocks, 1);
    for (int i = 0; i < n; i++) store(l->layout, packed, i, slot, &blocks[i]);
}

void kv_store(const struct kv_layout *l, const struct cpu_kernels *k, void *keys, void *values, int slot,
              const float *key, const float *value, float *scratch) {
    switch (l->layout) {
    case KV_EXACT: store_exact(l, keys, values, slot, key, value); break;
    case KV_F16:
    case KV_BF16: store_halves(l, k, keys, values, slot, key, value, (uint16_t *)scratch); break;
    default:
        store_blocks(l, k, store_key_block, keys, slot, key, scratch);
        store_blocks(l, k, store_value_block, values, slot, value, scratch);
    }
}

// --- looking at values -----------------------------------------------------------------------------------------------

// A half is not finite when all bits of its exponent are set: adding one to it then carries into the sign's place.
bool kv_values_finite(const struct kv_layout *l, const void *values, int first, int end) {
    const uint64_t ones = 0x0001000100010001;
    const uint64_t exponent = l->layout == KV_F16 ? 0x7C00 * ones : 0x7F80 * ones,
                   lowest = l->layout == KV_F16 ? 0x0400 * ones : 0x0080 * ones;
    uint64_t carried = 0;
    for (int slot = first; slot < end; slot++)
        for (int d = 0; d < l->size; d += 4) { // into the padding, which stays zero
            uint64_t four;
            memcpy(&four, (const uint16_t *)values + (size_t)slot * l->padded + d, sizeof four);
            carried |= (four & exponent) + lowest;
        }
    return !(carried & 0x8000 * ones);
}
