// KV pages: where the keys and values of a page's 32 tokens lie, and how a token's are written.
//
// A page of a layer holds the keys of one kv head after the other, then the values. What the last token leaves of its
// page stays as it was; a token is written alone, into no byte of another's.
//     f16, bf16   keys transposed [head_size][32 tokens], so that the scores of 32 tokens are vectors;
//                 values [32 tokens][head_size padded to 32]
//     q8_0, q4_0  both in blocks of 32 elements, head_size padded to 32: keys as tiles of weights (tiles.h), whose rows
//                 are the tokens; values as value tiles (value_tiles.h)
//     exact       f32 [32 tokens][head_size] both
#ifndef CONFAB_CPU_KV_PAGE_H
#define CONFAB_CPU_KV_PAGE_H

#include "engine/cpu/kernels.h"

enum { KV_EXACT = KV_TYPES, KV_LAYOUTS }; // enum kv_type, and the exact one

struct kv_layout {
    int layout;                    // an enum kv_type or KV_EXACT
    int size, padded;              // of a head; padded to 32
    size_t key_bytes, value_bytes; // of one kv head of a page
};

struct kv_layout kv_layout_of(enum kv_type type, bool exact, int head_size);

static inline size_t kv_page_bytes(const struct kv_layout *l, int n_head_kv) {
    return (l->key_bytes + l->value_bytes) * (size_t)n_head_kv;
}
static inline void *kv_page_keys(const struct kv_layout *l, uint8_t *page, int kv_head) {
    return page + l->key_bytes * (size_t)kv_head;
}
static inline void *kv_page_values(const struct kv_layout *l, uint8_t *page, int n_head_kv, int kv_head) {
    return page + l->key_bytes * (size_t)n_head_kv + l->value_bytes * (size_t)kv_head;
}

// Writes one token's key and value of a head [size] into their slot. Scratch: floats for kv_store_scratch.
void kv_store(const struct kv_layout *l, const struct cpu_kernels *k, void *keys, void *values, int slot,
              const float *key, const float *value, float *scratch);
size_t kv_store_scratch(int head_size);

// Whether there is neither a NaN nor an infinity among the values of slots [first, end), of halves.
bool kv_values_finite(const struct kv_layout *l, const void *values, int first, int end);

#endif
