// Model file: opens a model with its tokenizer and template; tokenizing without an engine.
#include "engine/model/opened_model.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/format/model_files.h"
#include "engine/model/template.h"

size_t display_clean(struct span text, char *out, size_t size) {
    size_t n = 0;
    for (size_t at = 0; at < text.size;) {
        uint32_t code;
        char character[4];
        at += utf8_decode(text.data + at, text.size - at, &code);
        size_t length = utf8_encode(utf8_is_hidden(code) ? '?' : code, character);
        if (n + length >= size) break;
        memcpy(out + n, character, length);
        n += length;
    }
    out[n] = 0;
    return n;
}

// ---- opening ----

// Weights may be missing or unsupported; the vocabulary still works.
static struct model_file *finish(struct model_file *m, const char *name, uint64_t bytes) {
    int32_t n_vocab = m->tokenizer ? tokenizer_count(m->tokenizer) : 0;
    m->info.file_bytes = bytes;
    m->info.has_weights = model_open(&m->model, &m->gguf, n_vocab, &m->weight_status);
    model_describe(m, name);
    return m;
}

// Opens the rest, given an open m->gguf. `template` replaces the file's own chat template if not NULL.
static struct model_file *open_rest(struct model_file *m, const char *name, uint64_t bytes, const char *template,
                                    struct status *st) {
    if (!gguf_get_string(&m->gguf, "tokenizer.chat_template", GGUF_OPTIONAL, &m->template_text, st) ||
        !(m->tokenizer = tokenizer_open(&m->gguf, st))) {
        model_file_close(m);
        return NULL;
    }
    if (template) m->template_text = span_of(template);
    m->chat_template = chat_template_recognise(m->template_text);
    if (!m->template_text.data && channel_has_harmony(m->tokenizer)) m->chat_template = CHAT_TEMPLATE_HARMONY;
    m->channels = channel_recognise(m->tokenizer, m->chat_template, m->template_text);
    if (m->template_text.data) m->template = jinja_compile(m->template_text, &m->template_status);
    if (m->template) template_works(m, &m->template_status);
    return finish(m, name, bytes);
}

static struct model_file *open_files(const char *path, enum model_files_use use, bool text, struct status *st) {
    struct model_file *m = xcalloc(1, sizeof *m);
    m->described = use == MODEL_FILES_DESCRIBE;
    if (!model_files_open(&m->gguf, path, use, st)) {
        free(m);
        return NULL;
    }
    uint64_t bytes = gguf_file_bytes(&m->gguf);
    return text ? open_rest(m, path, bytes, NULL, st) : finish(m, path, bytes);
}

struct model_file *model_file_open(const char *path, struct status *st) {
    return open_files(path, MODEL_FILES_RUN, true, st);
}

struct model_file *model_file_open_header(const char *path, bool text, struct status *st) {
    return open_files(path, MODEL_FILES_DESCRIBE, text, st);
}

struct model_file *model_file_open_memory(const char *name, const void *data, size_t size, const char *template,
                                          struct status *st) {
    struct model_file *m = xcalloc(1, sizeof *m);
    if (gguf_open_memory(&m->gguf, name, data, size, st)) return open_rest(m, name, size, template, st);
    free(m);
    return NULL;
}

void model_file_fill_slots(struct model_file *m, model_slot_text *text, void *context) {
    tokenizer_fill_slots(m->tokenizer, text, context);
}

void model_file_close(struct model_file *m) {
    if (!m) return;
    if (m->info.has_weights) model_close(&m->model);
    jinja_template_free(m->template);
    if (m->tokenizer) tokenizer_close(m->tokenizer);
    gguf_close(&m->gguf);
    arena_free(&m->arena);
    free(m);
}

const struct model_info *model_file_info(const struct model_file *m) { return &m->info; }

bool reasoning_fits(const struct model_info *info, enum reasoning r) {
    switch (r) {
    case REASONING_OFF:
    case REASONING_ON: return info->chooses_thinking;
    case REASONING_LOW:
    case REASONING_MEDIUM:
    case REASONING_HIGH: return info->chooses_effort;
    case REASONING_AUTO:
    case REASONING_COUNT: break;
    }
    return true;
}

// ---- text and ids ----

int32_t *model_file_tokenize(const struct model_file *m, const char *text, size_t size, bool special, size_t *count) {
    struct token_list list = {0};
    tokenizer_encode(m->tokenizer, text, size, special, &list);
    *count = list.count;
    return list.ids ? list.ids : xcalloc(1, sizeof *list.ids);
}

char *model_file_detokenize(const struct model_file *m, const int32_t *ids, size_t count, size_t *size,
                            struct status *st) {
    for (size_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= m->info.n_vocab) {
            status_fail(st, STATUS_USAGE, "id %zu: %d is out of range (0 to %d)", i, ids[i], m->info.n_vocab - 1);
            return NULL;
        }
    return tokenizer_decode(m->tokenizer, ids, count, true, size);
}
