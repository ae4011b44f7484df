// The writer behind tiny models: one whole GGUF file with random weights from a description of its shape.
// The same shape gives the same bytes.
#ifndef CONFAB_TESTS_TINY_SHAPE_H
#define CONFAB_TESTS_TINY_SHAPE_H

#include "engine/format/gguf.h"
#include "engine/model/model_family.h"
#include "tests/unit/gguf_writer.h"

enum { TINY_MAX_KEYS = 16, TINY_MAX_LAYERS = 64 };

// A key behind the architecture's name.
struct tiny_key {
    const char *name;    // NULL ends a list
    enum gguf_type type; // u32, f32, bool, string, or array: of bools, as long as the text has characters
    double number;
    const char *text; // "1101"
};

#define TINY_INT(key, value)                                                                                           \
    { .name = key, .type = GGUF_U32, .number = value }
#define TINY_FLOAT(key, value)                                                                                         \
    { .name = key, .type = GGUF_F32, .number = value }
#define TINY_BOOL(key, value)                                                                                          \
    { .name = key, .type = GGUF_BOOL, .number = value }
#define TINY_STRING(key, value)                                                                                        \
    { .name = key, .type = GGUF_STRING, .text = value }
#define TINY_BOOLS(key, value)                                                                                         \
    { .name = key, .type = GGUF_ARRAY, .text = value }

// How a file may store what others store differently. The weights' values do not depend on it.
enum tiny_storage {
    TINY_FUSED_QKV = 1 << 0,
    TINY_FUSED_EXPERTS = 1 << 1,  // ffn_gate_up_exps
    TINY_SINGLE_EXPERTS = 1 << 2, // ffn_gate.0 …
    TINY_TIED = 1 << 3,
    TINY_PADDED = 1 << 4,     // all layers as large as the largest, with zeros for what they lack: computes the same
    TINY_NO_LENGTHS = 1 << 5, // no attention.key_length, so that it follows from n_embd / n_head
};

struct tiny_shape {
    const char *name, *architecture;
    unsigned parts;   // enum model_part: the tensors there are, beside what every model has
    unsigned storage; // enum tiny_storage
    int n_layer, n_embd, n_head, n_head_kv, head_size, n_ff, n_context;
    int n_rot;                                            // rope.dimension_count; 0: not written
    int experts, used, n_ff_expert, n_ff_shared, n_dense; // layers in front without experts
    // Where layers differ: metrics of each, repeated from the start when the list ends with 0. The first are the
    // largest.
    int heads[4], heads_kv[4], ffs[4];
    struct tiny_key keys[TINY_MAX_KEYS];
    enum block_id format; // of matrices; where a row has no whole number of its blocks, Q8_0 or F16
    uint64_t seed;
    const char *pre, *chat_template; // see tiny_model.h
};

// In memory; the caller frees.
void *tiny_shape_bytes(const struct tiny_shape *shape, size_t *size);

// Adds the keys that say a shape, also that of a model which is not tiny, under this name; those of the vocabulary are
// left to the caller.
void tiny_shape_keys(struct gguf_writer *file, const struct tiny_shape *shape, const char *name);
// The figure of a layer: from a shape's list, or `all` where that is empty.
int tiny_shape_of_layer(const int list[4], int all, int layer);
// What layers smaller than the largest are padded to; 0: they are not.
int tiny_shape_room(const struct tiny_shape *shape, const int list[4]);

#endif
