#include "tests/unit/tiny_model.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/base/panic.h"
#include "tests/unit/tiny_shape.h"

enum { LLAMA_PARTS = PART_ATTN_NORM | PART_FFN_NORM | PART_UP_DOWN | PART_GATE };

static const struct {
    const char *architecture;
    unsigned parts;
    float base;
} families[TINY_FAMILY_COUNT] = {
    [TINY_LLAMA] = {"llama", LLAMA_PARTS, 10000},
    [TINY_LLAMA_ROPE_FREQS] = {"llama", LLAMA_PARTS | PART_ROPE_FREQS, 500000},
    [TINY_QWEN2] = {"qwen2", LLAMA_PARTS | PART_QKV_BIAS, 500000},
    [TINY_QWEN3] = {"qwen3", LLAMA_PARTS | PART_HEAD_NORM_SHARED, 500000},
};

static int either(int value, int otherwise) { return value ? value : otherwise; }

void *tiny_model_bytes(struct tiny_model_options o, size_t *size) {
    const bool wide = block_formats[o.format].elements == 256;
    struct tiny_shape s = {.architecture = families[o.family].architecture,
                           .parts = families[o.family].parts,
                           .n_layer = either(o.n_layer, 2),
                           .n_embd = either(o.n_embd, wide ? 256 : 64),
                           .n_head = either(o.n_head, 4),
                           .n_head_kv = either(o.n_head_kv, 2),
                           .n_ff = either(o.n_ff, wide ? 256 : 128),
                           .n_context = either(o.n_context, 512),
                           .keys = {TINY_FLOAT("attention.layer_norm_rms_epsilon", 1e-5),
                                    TINY_FLOAT("rope.freq_base", families[o.family].base)},
                           .format = o.format,
                           .seed = o.seed,
                           .pre = o.pre,
                           .chat_template = o.chat_template};
    s.head_size = either(o.head_size, s.n_embd / s.n_head * (o.family == TINY_QWEN3 ? 2 : 1));
    s.storage = (o.tied ? TINY_TIED : 0) | (s.head_size * s.n_head == s.n_embd ? TINY_NO_LENGTHS : 0);
    return tiny_shape_bytes(&s, size);
}

void tiny_model_write(const char *path, struct tiny_model_options options) {
    size_t size;
    void *data = tiny_model_bytes(options, &size);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f)) panic("%s cannot be written", path);
    free(data);
}
