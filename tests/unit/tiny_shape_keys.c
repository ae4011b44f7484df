// The keys that say a model's shape, apart from its weights: programs that measure write them too.
#include <stdio.h>
#include <string.h>

#include "tests/unit/tiny_shape.h"

struct key_writer {
    struct gguf_writer *file;
    const struct tiny_shape *shape;
};

static const char *family_key(const struct key_writer *w, const char *name) {
    static _Thread_local char key[96];
    snprintf(key, sizeof key, "%s.%s", w->shape->architecture, name);
    return key;
}

static void write_int(const struct key_writer *w, const char *name, int value) {
    if (value) gguf_writer_u32(w->file, family_key(w, name), (uint32_t)value);
}

int tiny_shape_of_layer(const int list[4], int all, int layer) {
    int count = 0;
    while (count < 4 && list[count]) count++;
    return count ? list[layer % count] : all;
}

int tiny_shape_room(const struct tiny_shape *shape, const int list[4]) {
    return shape->storage & TINY_PADDED ? list[0] : 0;
}

static void write_layers(const struct key_writer *w, const char *name, const int list[4], int all) {
    uint32_t values[TINY_MAX_LAYERS];
    if (!list[0] || tiny_shape_room(w->shape, list)) {
        write_int(w, name, list[0] ? list[0] : all);
        return;
    }
    for (int i = 0; i < w->shape->n_layer; i++) values[i] = (uint32_t)tiny_shape_of_layer(list, all, i);
    gguf_writer_array(w->file, family_key(w, name), GGUF_U32, (uint64_t)w->shape->n_layer, values,
                      (size_t)w->shape->n_layer * sizeof *values);
}

static void write_key(const struct key_writer *w, const struct tiny_key *k) {
    const char *key = family_key(w, k->name);
    uint8_t bools[TINY_MAX_LAYERS];
    size_t n = k->text ? strlen(k->text) : 0;
    switch (k->type) {
    case GGUF_U32: gguf_writer_u32(w->file, key, (uint32_t)k->number); break;
    case GGUF_F32: gguf_writer_float(w->file, key, (float)k->number); break;
    case GGUF_BOOL: gguf_writer_bool(w->file, key, k->number != 0); break;
    case GGUF_STRING: gguf_writer_string(w->file, key, k->text); break;
    default:
        for (size_t i = 0; i < n; i++) bools[i] = k->text[i] == '1';
        gguf_writer_array(w->file, key, GGUF_BOOL, n, bools, n);
    }
}

void tiny_shape_keys(struct gguf_writer *file, const struct tiny_shape *s, const char *name) {
    const struct key_writer w = {file, s};
    gguf_writer_string(file, "general.architecture", s->architecture);
    gguf_writer_string(file, "general.name", name);
    write_int(&w, "context_length", s->n_context);
    write_int(&w, "embedding_length", s->n_embd);
    write_int(&w, "block_count", s->n_layer);
    write_layers(&w, "feed_forward_length", s->ffs, s->n_ff);
    write_layers(&w, "attention.head_count", s->heads, s->n_head);
    write_layers(&w, "attention.head_count_kv", s->heads_kv, s->n_head_kv);
    if (!(s->storage & TINY_NO_LENGTHS)) {
        write_int(&w, "attention.key_length", s->head_size);
        write_int(&w, "attention.value_length", s->head_size);
    }
    write_int(&w, "rope.dimension_count", s->n_rot);
    write_int(&w, "expert_count", s->experts);
    write_int(&w, "expert_used_count", s->used);
    write_int(&w, "expert_feed_forward_length", s->n_ff_expert);
    write_int(&w, "leading_dense_block_count", s->n_dense);
    for (const struct tiny_key *k = s->keys; k < s->keys + TINY_MAX_KEYS && k->name; k++) write_key(&w, k);
}
