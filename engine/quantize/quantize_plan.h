// Quantize plan: chooses the format of each tensor of a model.
#ifndef CONFAB_ENGINE_QUANTIZE_PLAN_H
#define CONFAB_ENGINE_QUANTIZE_PLAN_H

#include "engine/format/gguf.h"

// A type is a format or a mix: one format for most matrices, finer ones where errors cost most.
enum quantize_mix { MIX_NONE, MIX_Q4_K_S, MIX_Q4_K_M, MIX_Q5_K_M, MIX_COUNT };

struct quantize_type {
    const char *name;
    enum block_id format;
    uint32_t file_type;
    enum quantize_mix mix;
};

const struct quantize_type *quantize_type_find(const char *name, struct status *st); // case-insensitive

struct quantize_choice {
    const struct block_format *format; // writable, and its blocks fill the tensor's rows
    const char *note;                  // why it is not the type's format; "" if it is
};

// Properties of a model that the rules depend on.
struct quantize_plan {
    const struct quantize_type *type;
    int n_layers, n_experts;
    bool tied;         // no output.weight; the embedding is used instead
    bool shared_heads; // fewer KV heads than query heads
};

struct quantize_plan quantize_plan_make(const struct gguf *g, const struct quantize_type *type);
struct quantize_choice quantize_plan_choose(const struct quantize_plan *p, const struct gguf_tensor *t);

int quantize_layer_of(struct span name); // N of "blk.N.…"; −1 for other names

#endif
