// KV pages: where the keys and values of a page's 32 tokens lie, and how a token's are written.
//
// The pages of a layer lie in runs of KV_RUN_PAGES: of a run first what all its pages hold of kv head 0, then of head 1
// and so on. So a conversation whose pages follow each other, as most do, is read in long streams, which is what memory
// is fastest at. Of a page and kv head the values follow the keys. What the last token leaves of its page stays as it
// was; a token is written alone, into no byte of another's.
//     f16, bf16   keys transposed [head_size][32 tokens], so that the scores of 32 tokens are vectors;
//                 values [32 tokens][head_size padded to 32]
//     q8_0, q4_0  both in blocks of 32 elements, head_size padded to 32: keys as packed weights (packed.h), whose rows
//                 are the tokens; values as packed_values.h says
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

enum { KV_RUN_PAGES = 8 };

static inline size_t kv_head_bytes(const struct kv_layout *l) { return l->key_bytes + l->value_bytes; } // of one page
static inline size_t kv_page_bytes(const struct kv_layout *l, int n_head_kv) {
    return kv_head_bytes(l) * (size_t)n_head_kv;
}
// Where the keys of a page and kv head lie, of a layer's n_pages; the last run may be shorter.
static inline uint8_t *kv_keys(const struct kv_layout *l, uint8_t *pages, int n_pages, int n_head_kv, int page,
                               int kv_head) {
    const int first = page / KV_RUN_PAGES * KV_RUN_PAGES;
    const int run = n_pages - first < KV_RUN_PAGES ? n_pages - first : KV_RUN_PAGES;
    return pages + kv_head_bytes(l) * ((size_t)first * (size_t)n_head_kv + (size_t)(kv_head * run + page - first));
}
static inline uint8_t *kv_values(const struct kv_layout *l, uint8_t *keys) { return keys + l->key_bytes; }

// Writes one token's key and value of a head [size] into their slot. Scratch: floats for kv_store_scratch.
void kv_store(const struct kv_layout *l, const struct cpu_kernels *k, void *keys, void *values, int slot,
              const float *key, const float *value, float *scratch);
size_t kv_store_scratch(int head_size);

// Whether there is neither a NaN nor an infinity among the values of slots [first, end), of halves.
bool kv_values_finite(const struct kv_layout *l, const void *values, int first, int end);

#endif
