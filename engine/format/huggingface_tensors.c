// Maps the tensors of a folder to GGUF tensors, by the tables of its family.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/format/huggingface_parts.h"

enum {
    NAME_ROOM = 320,
    ITEMS_LIMIT = 1 << 16,
    VECTOR_LIMIT = 1 << 28, // elements
};

struct match {
    const struct huggingface_name *rule;
    int layer, item;
    const char *ending; // ".weight", ".bias" or ""
};

struct name {
    char text[NAME_ROOM];
};

// Rows of a source: first, first + step, …; with head > 0 permuted for RoPE that rotates neighbours.
struct rows {
    uint64_t first, step, count, head;
};

struct placement {
    struct huggingface_import *folder;
    struct huggingface_source source;
    struct match match;
    struct status *st;
};

// ---- names ----

// Parts of multimodal models and buffers that are not needed.
static bool is_ignored(const char *name) {
    static const char *const parts[] = {"vision_tower.", "vision_model.",       "multi_modal_projector.",
                                        "visual.",       "rotary_emb.inv_freq", "attn.masked_bias"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(name, parts[i])) return true;
    return false;
}

// Multimodal models nest the language model one level deeper.
static struct name plain_name(const char *name) {
    static const char outer[] = "language_model.", inner[] = "model.language_model.";
    struct name n;
    if (!strncmp(name, outer, strlen(outer))) snprintf(n.text, sizeof n.text, "%s", name + strlen(outer));
    else if (!strncmp(name, inner, strlen(inner))) snprintf(n.text, sizeof n.text, "model.%s", name + strlen(inner));
    else snprintf(n.text, sizeof n.text, "%s", name);
    return n;
}

static bool match_number(const char **name, int *out) {
    const char *at = *name;
    *out = 0;
    while (*at >= '0' && *at <= '9' && at - *name < 6) *out = *out * 10 + (*at++ - '0');
    bool found = at > *name && !(*name[0] == '0' && at - *name > 1);
    *name = at;
    return found;
}

static bool match_rule(const struct huggingface_name *rule, const char *name, struct match *m) {
    *m = (struct match){.rule = rule, .layer = -1, .item = -1};
    for (const char *at = rule->from; *at;) {
        if (*at == '{') {
            if (!match_number(&name, at[1] == 'l' ? &m->layer : &m->item)) return false;
            at = strchr(at, '}') + 1;
        } else if (*at++ != *name++) return false;
    }
    m->ending = !strcmp(name, ".weight") ? ".weight" : !strcmp(name, ".bias") ? ".bias" : "";
    return !strcmp(m->ending, name);
}

static bool match_rules(const struct huggingface_name *rules, const char *name, struct match *m) {
    for (; rules->from; rules++)
        if (match_rule(rules, name, m)) return true;
    return false;
}

static struct name expand(const char *pattern, const struct match *m, int item) {
    struct name n = {""};
    size_t used = 0;
    for (const char *at = pattern; *at && used < sizeof n.text - 32;) {
        if (*at == '{') {
            used += (size_t)snprintf(n.text + used, sizeof n.text - used, "%d", at[1] == 'l' ? m->layer : item);
            at = strchr(at, '}') + 1;
        } else n.text[used++] = *at++;
    }
    snprintf(n.text + used, sizeof n.text - used, "%s", m->ending);
    return n;
}

// ---- rows ----

static uint64_t row_at(const struct rows *r, uint64_t i) {
    if (r->head) {
        uint64_t within = i % r->head;
        i = i - within + within % 2 * (r->head / 2) + within / 2;
    }
    return r->first + i * r->step;
}

static bool fail(const struct placement *p, const char *why) {
    return status_fail(p->st, STATUS_FORMAT, "%s: tensor %s: %s", p->folder->g->path, p->source.tensor->name, why);
}

// Vectors, norms and biases become F32; a row of `r` is one element.
static bool add_vector(struct placement *p, struct name name, int n_dims, const uint64_t *dims, struct rows r) {
    const struct huggingface_source *s = &p->source;
    bool plus_one = p->folder->family->norms_plus_one && span_ends_with(span_of(s->tensor->name), "norm.weight");
    uint64_t n = s->rows * s->columns;
    if (n > VECTOR_LIMIT) return fail(p, "too long for a vector");
    float *out = gguf_own_buffer(p->folder->g, r.count * sizeof *out, p->st);
    if (!out) return false;
    float *values = xmalloc(n * sizeof *values);
    void *row = xmalloc(s->row_bytes);
    for (uint64_t i = 0; i < s->rows; i++) {
        huggingface_source_read(s, i, row);
        s->format->decode(row, values + i * s->columns, s->columns);
    }
    for (uint64_t i = 0; i < r.count; i++) out[i] = values[row_at(&r, i)] + (plus_one ? 1 : 0);
    free(values);
    free(row);
    gguf_add_tensor(p->folder->g, name.text, &block_formats[BLOCK_F32], n_dims, dims, out);
    return true;
}

struct conversion {
    const struct huggingface_source *source;
    struct rows rows;
    uint8_t *out;
};

enum { CONVERSION_ROWS = 64 }; // per unit of work

static void convert_rows(struct worker *w, void *argument) {
    const struct conversion *c = argument;
    const int n_parts = (int)((c->rows.count + CONVERSION_ROWS - 1) / CONVERSION_ROWS);
    for (int part; (part = worker_next(w, n_parts)) >= 0;)
        for (uint64_t i = (uint64_t)part * CONVERSION_ROWS, n = 0; n < CONVERSION_ROWS && i < c->rows.count; i++, n++)
            huggingface_source_read(c->source, row_at(&c->rows, i), c->out + i * c->source->row_bytes);
}

// A copy of the rows in the order of r, in a buffer of the GGUF; NULL if out of memory.
static const uint8_t *converted(struct placement *p, struct rows r) {
    struct huggingface_import *f = p->folder;
    struct conversion c = {&p->source, r, gguf_own_buffer(f->g, r.count * p->source.row_bytes, p->st)};
    if (!c.out || !f->convert) return c.out;
    if (!f->pool && !(f->pool = thread_pool_open(thread_pool_default_size(), p->st))) return NULL;
    thread_pool_run(f->pool, convert_rows, &c);
    return c.out;
}

static bool add_matrix(struct placement *p, struct name name, int n_dims, const uint64_t *dims, struct rows r) {
    const struct huggingface_source *s = &p->source;
    const uint8_t *data = (const uint8_t *)s->tensor->data + r.first * s->row_bytes;
    bool aligned = (uintptr_t)data % (s->format->id == BLOCK_F32 ? 4 : 2) == 0;
    if (s->decode || r.step != 1 || r.head || !aligned) data = converted(p, r);
    if (!data) return false;
    gguf_add_tensor(p->folder->g, name.text, s->format, n_dims, dims, data);
    return true;
}

static bool is_vector(const struct placement *p, const char *name) {
    return p->source.n_dims == 1 || span_ends_with(span_of(name), ".bias") ||
           span_ends_with(span_of(name), "_norm.weight");
}

// Adds the rows of r; the product of the outer dimensions (of a vector, all dimensions) is r.count.
static bool add_rows(struct placement *p, struct name name, int n_dims, const uint64_t *dims, struct rows r) {
    return is_vector(p, name.text) ? add_vector(p, name, n_dims, dims, r) : add_matrix(p, name, n_dims, dims, r);
}

// All rows in order; of a vector, all elements.
static struct rows all_rows(const struct placement *p, const char *name) {
    return (struct rows){0, 1, is_vector(p, name) ? p->source.rows * p->source.columns : p->source.rows, 0};
}

// ---- changes ----

// Embeddings are often padded beyond the last token.
static uint64_t vocabulary_rows(const struct placement *p, const char *name, uint64_t rows) {
    const struct gguf *g = p->folder->g;
    if (strncmp(name, "token_embd.", 11) && strncmp(name, "output.", 7)) return rows;
    for (uint64_t i = 0; i < g->n_pairs; i++)
        if (span_equals(g->pairs[i].key, "tokenizer.ggml.tokens") && g->pairs[i].count < rows) return g->pairs[i].count;
    return rows;
}

static bool place_plain(struct placement *p) {
    struct huggingface_source *s = &p->source;
    struct name name = expand(p->match.rule->to, &p->match, p->match.item);
    struct rows r = all_rows(p, name.text);
    uint64_t dims[4];
    memcpy(dims, s->dims, sizeof dims);
    if (s->n_dims <= 2 && r.count == dims[s->n_dims - 1])
        r.count = dims[s->n_dims - 1] = vocabulary_rows(p, name.text, r.count);
    return add_rows(p, name, s->n_dims, dims, r);
}

static bool place_heads(struct placement *p, uint32_t heads) {
    struct name name = expand(p->match.rule->to, &p->match, p->match.item);
    struct rows r = all_rows(p, name.text);
    if (p->folder->family->permute) {
        if (!heads || r.count % (2 * (uint64_t)heads)) return fail(p, "rows cannot be split into heads");
        r.head = r.count / heads;
    }
    return add_rows(p, name, p->source.n_dims, p->source.dims, r);
}

// Two tensors, each with half of the second dimension (of vectors, the first).
static bool place_halves(struct placement *p, bool interleaved) {
    const struct huggingface_source *s = &p->source;
    for (int i = 0; i < 2; i++) {
        struct name name = expand(i ? p->match.rule->second : p->match.rule->to, &p->match, p->match.item);
        struct rows r = all_rows(p, name.text);
        int halved = is_vector(p, name.text) ? 0 : 1;
        uint64_t dims[4];
        memcpy(dims, s->dims, sizeof dims);
        if (dims[halved] % 2 || (!interleaved && r.count != dims[halved])) return fail(p, "cannot be split in two");
        dims[halved] /= 2, r.count /= 2;
        r.step = interleaved ? 2 : 1;
        r.first = !i ? 0 : interleaved ? 1 : r.count;
        if (!add_rows(p, name, s->n_dims, dims, r)) return false;
    }
    return true;
}

// One tensor per expert, or two with `second`.
static bool place_experts(struct placement *p) {
    const struct huggingface_source *s = &p->source;
    const struct huggingface_name *rule = p->match.rule;
    uint64_t parts = rule->second ? 2 : 1;
    bool fits = s->n_dims == 3 && s->dims[2] <= ITEMS_LIMIT && s->dims[1] % parts == 0;
    if (!fits || !strcmp(p->match.ending, ".bias")) return fail(p, "not a stack of experts"); // a bias has no rows
    const uint64_t dims[2] = {s->columns, s->dims[1] / parts};
    for (uint64_t i = 0; i < s->dims[2] * parts; i++) {
        struct name name = expand(i % parts ? rule->second : rule->to, &p->match, (int)(i / parts));
        if (!add_rows(p, name, 2, dims, (struct rows){i * dims[1], 1, dims[1], 0})) return false;
    }
    return true;
}

// Joins the vectors of all heads when the first of them comes up.
static bool place_head(struct placement *p, uint32_t heads) {
    const struct huggingface_name *rule = p->match.rule;
    uint64_t size = p->source.rows * p->source.columns, dims[2] = {size, heads};
    if (p->match.item) return true;
    if (!heads || heads > ITEMS_LIMIT || size > VECTOR_LIMIT) return fail(p, "number or size of heads is out of range");
    float *out = gguf_own_buffer(p->folder->g, size * heads * sizeof *out, p->st);
    if (!out) return false;
    for (uint32_t h = 0; h < heads; h++) {
        struct name name = expand(rule->from, &p->match, (int)h);
        const struct safetensors_tensor *t = safetensors_find(&p->folder->files, name.text);
        if (!t) return status_fail(p->st, STATUS_FORMAT, "%s: missing tensor %s", p->folder->g->path, name.text);
        struct huggingface_source s;
        if (!huggingface_source_open(p->folder, t, &s, p->st)) return false;
        if (s.n_dims != 1 || s.columns != size) return fail(p, "size differs from the other heads");
        void *row = xmalloc(s.row_bytes);
        huggingface_source_read(&s, 0, row);
        s.format->decode(row, out + h * size, size);
        free(row);
    }
    gguf_add_tensor(p->folder->g, expand(rule->to, &p->match, 0).text, &block_formats[BLOCK_F32], 2, dims, out);
    return true;
}

static uint32_t head_count(const struct huggingface_import *f, bool keys) {
    uint32_t n = keys ? huggingface_added_int(f, "attention.head_count_kv") : 0;
    return n ? n : huggingface_added_int(f, "attention.head_count");
}

static bool place(struct placement *p) {
    const struct huggingface_import *f = p->folder;
    switch (p->match.rule->change) {
    case PLACE_PLAIN: return place_plain(p);
    case PLACE_QUERY: return place_heads(p, head_count(f, false));
    case PLACE_KEY: return place_heads(p, head_count(f, true));
    case PLACE_HALVES: return place_halves(p, false);
    case PLACE_INTERLEAVED: return place_halves(p, true);
    case PLACE_EXPERTS:
    case PLACE_EXPERT_HALVES: return place_experts(p);
    case PLACE_HEAD: return place_head(p, head_count(f, strstr(p->match.rule->to, "attn_k")));
    }
    return false;
}

bool huggingface_add_tensors(struct huggingface_import *f, struct status *st) {
    bool tied = f->family->tied || json_is_true(huggingface_member(f, "tie_word_embeddings"));
    for (uint64_t i = 0; i < f->files.n_tensors; i++) {
        const struct safetensors_tensor *t = &f->files.tensors[i];
        struct placement p = {.folder = f, .st = st};
        struct name name = plain_name(t->name);
        if (is_ignored(t->name) || huggingface_source_is_part(t->name) ||
            (tied && !strcmp(name.text, "lm_head.weight")))
            continue;
        if (!match_rules(f->family->names, name.text, &p.match) &&
            !match_rules(huggingface_common_names, name.text, &p.match))
            return status_fail(st, STATUS_UNSUPPORTED, "%s: unexpected tensor %s in a %s model", f->g->path, t->name,
                               f->family->model_types[0]);
        if (!huggingface_source_open(f, t, &p.source, st) || !place(&p)) return false;
    }
    return true;
}
