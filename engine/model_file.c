// Model file: everything about a GGUF file that can be told without running it.
#include "engine/model_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/format/model_files.h"
#include "engine/template.h"

// ---- names ----

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

static const char *display_name(struct model_file *m, struct span text) {
    char clean[160];
    size_t size = display_clean(text, clean, sizeof clean);
    return arena_copy(&m->arena, clean, size);
}

static struct span base_name(const char *path) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    return (struct span){base, strlen(base)};
}

// ---- info ----

static int compare_shares(const void *a, const void *b) {
    const struct format_share *x = a, *y = b;
    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static void describe_tensors(struct model_file *m) {
    struct format_share *shares = arena_alloc(&m->arena, BLOCK_FORMAT_COUNT * sizeof *shares);
    for (int i = 0; i < BLOCK_FORMAT_COUNT; i++) shares[i].name = block_formats[i].name;
    for (uint64_t i = 0; i < m->gguf.n_tensors; i++) {
        const struct gguf_tensor *t = &m->gguf.tensors[i];
        shares[t->format->id].tensors++;
        shares[t->format->id].bytes += t->size;
        m->info.weight_bytes += t->size;
        m->info.n_parameters += t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3];
    }
    qsort(shares, BLOCK_FORMAT_COUNT, sizeof *shares, compare_shares);
    while (m->info.n_formats < BLOCK_FORMAT_COUNT && shares[m->info.n_formats].bytes) m->info.n_formats++;
    m->info.formats = shares;
}

enum { MOST_SHOWN = 1 << 20 };

// A number of the file, for display only: whatever is not there or out of range is 0.
static int shown_number(const struct model_file *m, const char *name, int64_t most) {
    char key[128];
    int64_t value = 0;
    struct status ignored;
    snprintf(key, sizeof key, "%.60s.%s", m->info.family, name);
    gguf_get_int(&m->gguf, key, GGUF_OPTIONAL, 0, most, &value, &ignored);
    return (int)value;
}

// Of a file that cannot run: what its keys say.
static void describe_keys(struct model_file *m) {
    struct model_info *i = &m->info;
    char key[128];
    struct status ignored;
    i->n_layer = shown_number(m, "block_count", MOST_SHOWN);
    i->n_embd = shown_number(m, "embedding_length", MOST_SHOWN);
    i->n_head = shown_number(m, "attention.head_count", MOST_SHOWN);
    i->n_head_kv = shown_number(m, "attention.head_count_kv", MOST_SHOWN);
    if (!i->n_head_kv) i->n_head_kv = i->n_head;
    i->head_size = shown_number(m, "attention.key_length", MOST_SHOWN);
    if (!i->head_size && i->n_head) i->head_size = i->n_embd / i->n_head;
    i->n_ff = shown_number(m, "feed_forward_length", MOST_SHOWN);
    i->n_context = shown_number(m, "context_length", INT32_MAX);
    snprintf(key, sizeof key, "%.60s.rope.freq_base", i->family);
    gguf_get_float(&m->gguf, key, GGUF_OPTIONAL, 0, 1e30, &i->rope_base, &ignored);
}

// Figures that differ from layer to layer are the largest.
static void describe_spec(struct model_file *m) {
    const struct model_spec *s = &m->model.spec;
    struct model_info *i = &m->info;
    i->n_layer = s->n_layer, i->n_embd = s->n_embd, i->n_context = s->n_context, i->head_size = s->head_size;
    i->rope_base = s->rope.base[ROPE_TABLE_FULL];
    i->tied = m->model.tied;
    i->n_ff = s->experts.n_ff;
    for (int k = 0; k < s->n_layer; k++) {
        const struct layer_spec *l = &s->layers[k];
        if (l->n_head > i->n_head) i->n_head = l->n_head;
        if (l->n_head_kv > i->n_head_kv) i->n_head_kv = l->n_head_kv;
        if (l->n_ff > i->n_ff) i->n_ff = l->n_ff;
    }
}

static const char *describe_template(struct model_file *m) {
    bool known = m->chat_template != CHAT_TEMPLATE_NONE, refused = m->template_status.code != STATUS_OK;
    const char *kind = chat_template_name(m->chat_template);
    if (refused) return arena_printf(&m->arena, "%s (own template refused: %s)", kind, m->template_status.text);
    return known || !m->template_text.data ? kind : "own";
}

static void describe_text(struct model_file *m) {
    struct model_info *i = &m->info;
    i->n_vocab = tokenizer_count(m->tokenizer);
    i->tokenizer = tokenizer_model_name(m->tokenizer);
    i->pre_tokenizer = tokenizer_pre_name(m->tokenizer);
    i->chat_template = describe_template(m);
    model_describe_text(m);
}

static void describe(struct model_file *m, const char *name) {
    struct model_info *i = &m->info;
    struct status ignored;
    struct span title = base_name(name), family = {"unknown", 7};
    if (!gguf_get_string(&m->gguf, "general.name", GGUF_OPTIONAL, &title, &ignored) || !title.size)
        title = base_name(name);
    gguf_get_string(&m->gguf, "general.architecture", GGUF_OPTIONAL, &family, &ignored);
    i->path = arena_copy(&m->arena, name, strlen(name));
    i->name = display_name(m, title);
    i->family = display_name(m, family);
    if (m->tokenizer) describe_text(m);
    else i->tokenizer = i->pre_tokenizer = i->chat_template = i->template_kind = i->template_problem = i->thinking = "";
    i->weight_problem = i->has_weights ? "" : m->weight_status.text;
    model_describe_sampling(m);
    describe_tensors(m);
    if (i->has_weights) describe_spec(m);
    else describe_keys(m);
    if (i->has_weights) model_describe_spec(m);
}

// ---- opening ----

// The weights may be missing or unfit: the file still has a vocabulary to work with.
static void bind_weights(struct model_file *m) {
    if (!m->gguf.n_tensors) {
        status_fail(&m->weight_status, STATUS_UNSUPPORTED, "%s: the file holds a vocabulary and no weights",
                    m->gguf.path);
        return;
    }
    int32_t n_vocab = m->tokenizer ? tokenizer_count(m->tokenizer) : 0;
    m->info.has_weights = model_open(&m->model, &m->gguf, n_vocab, &m->weight_status);
}

static struct model_file *finish(struct model_file *m, const char *name, uint64_t bytes) {
    m->info.file_bytes = bytes;
    bind_weights(m);
    describe(m, name);
    return m;
}

// Over m->gguf, which is open.
static struct model_file *open_rest(struct model_file *m, const char *name, uint64_t bytes, struct status *st) {
    if (!gguf_get_string(&m->gguf, "tokenizer.chat_template", GGUF_OPTIONAL, &m->template_text, st) ||
        !(m->tokenizer = tokenizer_open(&m->gguf, st))) {
        model_file_close(m);
        return NULL;
    }
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
    return text ? open_rest(m, path, bytes, st) : finish(m, path, bytes);
}

struct model_file *model_file_open(const char *path, struct status *st) {
    return open_files(path, MODEL_FILES_RUN, true, st);
}

struct model_file *model_file_open_header(const char *path, bool text, struct status *st) {
    return open_files(path, MODEL_FILES_DESCRIBE, text, st);
}

struct model_file *model_file_open_memory(const char *name, const void *data, size_t size, struct status *st) {
    struct model_file *m = xcalloc(1, sizeof *m);
    if (gguf_open_memory(&m->gguf, name, data, size, st)) return open_rest(m, name, size, st);
    free(m);
    return NULL;
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
            status_fail(st, STATUS_USAGE, "id %zu is %d, the vocabulary has %d", i, ids[i], m->info.n_vocab);
            return NULL;
        }
    return tokenizer_decode(m->tokenizer, ids, count, true, size);
}
