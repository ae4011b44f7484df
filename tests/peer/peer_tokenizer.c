#include "tests/peer/peer_tokenizer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/panic.h"

#if defined(__has_include) && __has_include("llama.h")
#include "llama.h"

struct peer_tokenizer {
    struct llama_model *model;
    const struct llama_vocab *vocabulary;
};

void peer_needed(void) {}

static void silence(enum ggml_log_level level, const char *text, void *user) { (void)level, (void)text, (void)user; }

struct peer_tokenizer *peer_open(const char *path, const char *pre) {
    struct llama_model_kv_override overrides[2] = {{.tag = LLAMA_KV_OVERRIDE_TYPE_STR, .key = "tokenizer.ggml.pre"}};
    llama_log_set(silence, NULL);
    struct llama_model_params params = llama_model_default_params();
    params.vocab_only = true;
    if (pre) {
        snprintf(overrides[0].val_str, sizeof overrides[0].val_str, "%s", pre);
        params.kv_overrides = overrides;
    }
    struct llama_model *model = llama_model_load_from_file(path, params);
    if (!model) return NULL;
    struct peer_tokenizer *p = xmalloc(sizeof *p);
    *p = (struct peer_tokenizer){model, llama_model_get_vocab(model)};
    return p;
}

void peer_close(struct peer_tokenizer *p) {
    llama_model_free(p->model);
    free(p);
}

int32_t *peer_encode(const struct peer_tokenizer *p, const char *text, size_t size, bool parse_special, bool whole,
                     size_t *count) {
    int32_t room = (int32_t)(3 * size) + 16;
    int32_t *ids = xmalloc((size_t)room * sizeof *ids);
    int32_t n = llama_tokenize(p->vocabulary, text, (int32_t)size, ids, room, whole, parse_special);
    assert_in_range(n, 0, room);
    *count = (size_t)n;
    return ids;
}

#else

void peer_needed(void) {
    print_message("built without CONFAB_PEER_DIR: skipped\n");
    skip();
}

struct peer_tokenizer *peer_open(const char *path, const char *pre) {
    return (void)path, (void)pre, NULL;
}
void peer_close(struct peer_tokenizer *p) { (void)p; }
int32_t *peer_encode(const struct peer_tokenizer *p, const char *text, size_t size, bool parse_special, bool whole,
                     size_t *count) {
    (void)p, (void)text, (void)size, (void)parse_special, (void)whole;
    return *count = 0, NULL;
}
#endif
