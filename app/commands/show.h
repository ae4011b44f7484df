// Show: computes the memory that `confab show` reports, as text or as JSON.
#ifndef CONFAB_APP_SHOW_H
#define CONFAB_APP_SHOW_H

#include "engine/local_engine.h"

#define SHOW_CONTEXTS     4
#define SHOW_CONVERSATION 4096 // tokens of a short conversation

struct show_memory {
    enum kv_type kv_type;
    uint64_t token_bytes;                  // of a token in the KV cache
    int n_contexts;                        // 0: the model cannot run
    struct model_memory at[SHOW_CONTEXTS]; // one conversation with contexts of different lengths
    uint64_t available;                    // bytes of free memory; 0: unknown
    int largest_context;                   // that fits into it; 0: not even the weights fit
    int conversations;                     // of SHOW_CONVERSATION tokens that fit into it together
};

struct show_memory show_memory_of(const struct model_file *m, enum kv_type kv_type);
void show_json(const struct model_file *m, const struct show_memory *memory);

#endif
