// Show: what `confab show` tells of a model, reckoned once for text and JSON.
#ifndef CONFAB_APP_SHOW_H
#define CONFAB_APP_SHOW_H

#include "engine/engine.h"

#define SHOW_CONTEXTS      4
#define SHOW_CONVERSATION  4096 // tokens of a short conversation

struct show_memory {
    enum kv_type kv_type;
    uint64_t token_bytes; // of the KV cache, in this type
    int n_contexts; // 0: the model cannot run
    struct model_memory at[SHOW_CONTEXTS]; // one conversation with so long a context; kv_tokens says which
    uint64_t available;   // bytes of memory that are free; 0: not known
    int largest_context;  // that fits here; 0: not even the weights do
    int conversations;    // of SHOW_CONVERSATION tokens, that fit here together
};

struct show_memory show_memory_of(const struct model_file *m, enum kv_type kv_type);
void show_json(const struct model_file *m, const struct show_memory *memory);

#endif
