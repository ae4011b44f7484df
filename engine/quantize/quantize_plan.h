// Quantize plan: which format each tensor of a model gets.
#ifndef CONFAB_ENGINE_QUANTIZE_PLAN_H
#define CONFAB_ENGINE_QUANTIZE_PLAN_H

#include "engine/format/gguf.h"

// A type's name may mean one format, or a mix: one for most matrices, finer ones for those whose error costs most.
enum quantize_mix { MIX_NONE, MIX_Q4_K_S, MIX_Q4_K_M, MIX_Q5_K_M, MIX_COUNT };

struct quantize_type {
    const char *name;
    enum block_id format;
    uint32_t file_type;
    enum quantize_mix mix;
};

const struct quantize_type *quantize_type_find(const char *name, struct status *st); // in either case

struct quantize_choice {
    const struct block_format *format; // one that can be written, and whose blocks fill the tensor's rows
    const char *note;                  // why it is not the type's own, "" when it is
};

// What the rules ask of a model beside a tensor's name.
struct quantize_plan {
    const struct quantize_type *type;
    int n_layers, n_experts;
    bool tied;         // no output.weight: the embedding does its work too
    bool shared_heads; // fewer heads of keys and values than of queries
};

struct quantize_plan quantize_plan_make(const struct gguf *g, const struct quantize_type *type);
struct quantize_choice quantize_plan_choose(const struct quantize_plan *p, const struct gguf_tensor *t);

int quantize_layer_of(struct span name); // N of a tensor "blk.N.…"; −1 for others

#endif
