#include "engine/text/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/text/character.h"
#include "engine/text/space_mark.h"
#include "engine/text/tokenizer_ops.h"

void token_list_push(struct token_list *list, int32_t id) {
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 64;
        list->ids = xrealloc(list->ids, list->capacity * sizeof *list->ids);
    }
    list->ids[list->count++] = id;
}

// Opening.

static const struct tokenizer_ops *find_family(const struct gguf *g, struct status *st) {
    static const struct tokenizer_ops *const families[] = {&tokenizer_spm, &tokenizer_bpe, &tokenizer_gemma,
                                                           &tokenizer_unigram, &tokenizer_wordpiece};
    struct span model;
    if (!gguf_get_string(g, VOCABULARY_KEY("model"), GGUF_REQUIRED, &model, st)) return NULL;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (span_equals(model, families[i]->model)) return families[i];
    status_fail(st, STATUS_UNSUPPORTED, "%s: tokenizer.ggml.model: unsupported tokenizer '%.*s'", g->path,
                (int)(model.size < 64 ? model.size : 64), model.data);
    return NULL;
}

static bool is_control(const struct vocabulary *v, int32_t id) {
    return v->types[id] == TOKEN_CONTROL || v->types[id] == TOKEN_UNKNOWN;
}

static bool spell_pieces(struct tokenizer *t, struct status *st) {
    const struct vocabulary *v = &t->vocabulary;
    t->pieces = arena_array(&t->vocabulary.arena, (uint64_t)v->count, sizeof *t->pieces, st);
    char *room = arena_array(&t->vocabulary.arena, v->bytes + 1, 1, st);
    if (!t->pieces || !room) return false;
    for (int32_t id = 0; id < v->count; id++) {
        if (v->types[id] == TOKEN_BYTE) {
            *room = (char)token_byte(v->texts[id]);
            t->pieces[id] = (struct span){room++, 1};
        } else if (vocabulary_is_special(v, id)) t->pieces[id] = v->texts[id];
        else t->pieces[id] = t->ops->spell(t, id, &room);
    }
    return true;
}

static bool add_specials(struct tokenizer *t, struct status *st) {
    const struct vocabulary *v = &t->vocabulary;
    uint64_t bytes[2] = {0};
    for (int32_t id = 0; id < v->count; id++)
        if (vocabulary_is_special(v, id)) bytes[v->types[id] == TOKEN_USER_DEFINED] += v->texts[id].size;
    if (!token_trie_open(&t->trusted, &t->vocabulary.arena, bytes[0], st) ||
        !token_trie_open(&t->user_defined, &t->vocabulary.arena, bytes[1], st))
        return false;
    for (int32_t id = 0; id < v->count; id++)
        if (vocabulary_is_special(v, id))
            token_trie_add(v->types[id] == TOKEN_USER_DEFINED ? &t->user_defined : &t->trusted, v->texts[id], id);
    return true;
}

// Settings of Hugging Face's Metaspace; absent in other files.
static bool read_space_scheme(struct tokenizer *t, struct status *st) {
    struct span scheme = {"", 0};
    if (!gguf_get_string(t->vocabulary.file, "tokenizer.confab.space_prefix", GGUF_OPTIONAL, &scheme, st)) return false;
    t->puts_space_once = span_equals(scheme, "first");
    t->doubles_no_space = t->puts_space_once || span_equals(scheme, "always");
    return true;
}

static bool read_strips(struct tokenizer *t, struct status *st) {
    static const char key[] = "tokenizer.confab.strips";
    const struct gguf_pair *p = vocabulary_numbers(&t->vocabulary, key, st);
    if (!p) return st->code == STATUS_OK;
    if (p->element != GGUF_U8)
        return status_fail(st, STATUS_FORMAT, "%s: %s: expected an array of bytes", t->vocabulary.file->path, key);
    t->strips = p->data;
    return true;
}

static bool read_flags(struct tokenizer *t, struct status *st) {
    const struct gguf *g = t->vocabulary.file;
    struct span architecture = {"", 0};
    if (!gguf_get_bool(g, VOCABULARY_KEY("add_bos_token"), &t->adds_bos, st) ||
        !gguf_get_bool(g, VOCABULARY_KEY("add_eos_token"), &t->adds_eos, st) ||
        !gguf_get_bool(g, VOCABULARY_KEY("add_sep_token"), &t->adds_separator, st) ||
        !gguf_get_string(g, "general.architecture", GGUF_OPTIONAL, &architecture, st))
        return false;
    t->adds_bos |= t->needs_bos;
    if (t->ops->puts_space && !gguf_get_bool(g, VOCABULARY_KEY("add_space_prefix"), &t->puts_space, st)) return false;
    t->drops_space |= t->puts_space;
    if (!read_space_scheme(t, st) || !read_strips(t, st)) return false;
    // Phi-3's markers strip the line end after them; there is no key for that.
    t->strips_after_special = t->ops == &tokenizer_spm && span_equals(architecture, "phi3");
    return true;
}

static bool open_checked(struct tokenizer *t, const struct gguf *g, struct status *st) {
    t->ops = find_family(g, st);
    if (!t->ops) return false;
    t->adds_bos = t->ops->adds_bos;
    t->adds_eos = t->ops->adds_eos;
    t->adds_separator = t->ops->adds_separator;
    t->puts_space = t->ops->puts_space;
    t->pre = "";
    memset(t->byte_ids, -1, sizeof t->byte_ids);
    return vocabulary_open(&t->vocabulary, g, t->ops->defaults, st) && t->ops->open(t, st) && read_flags(t, st) &&
           spell_pieces(t, st) && add_specials(t, st);
}

struct tokenizer *tokenizer_open(const struct gguf *g, struct status *st) {
    struct status own = {0};
    struct tokenizer *t = xcalloc(1, sizeof *t);
    if (open_checked(t, g, &own)) return t;
    if (st) *st = own;
    tokenizer_close(t);
    return NULL;
}

void tokenizer_fill_slots(struct tokenizer *t, char *(*text)(void *context, const char *name), void *context) {
    struct vocabulary *v = &t->vocabulary;
    for (int32_t id = 0; id < v->count; id++) {
        char mark[80], name[72];
        struct span whole = v->texts[id];
        if (v->types[id] != TOKEN_CONTROL || whole.size >= sizeof mark) continue;
        memcpy(mark, whole.data, whole.size);
        mark[whole.size] = '\0';
        int length = 0;
        if (sscanf(mark, "<|%71[^|]|>%n", name, &length) != 1 || (size_t)length != whole.size) continue;
        char *shown = text(context, name);
        if (!shown) continue;
        t->pieces[id] = (struct span){arena_copy(&v->arena, shown, strlen(shown)), strlen(shown)};
        v->types[id] = TOKEN_USER_DEFINED; // visible; still matched by name, in trusted text only
        free(shown);
    }
}

void tokenizer_close(struct tokenizer *t) {
    if (!t) return;
    if (t->ops && t->ops->close) t->ops->close(t);
    vocabulary_close(&t->vocabulary);
    free(t);
}

// Encoding. Text between special tokens is collected in a stretch, across parts, and encoded as one.

struct stretch {
    const char *text; // in a part, or `joined`
    size_t size;
    char *joined; // for a stretch across parts
    size_t capacity;
};

struct encoding {
    const struct tokenizer *t;
    struct token_list *out;
    struct pair_merger merger;
    struct stretch stretch;
    bool at_start;    // of the text, or after a special token: a space may be added
    bool skips_space; // after a special token that strips white space
};

void tokenizer_push_byte(const struct tokenizer *t, uint8_t byte, struct token_list *out) {
    int32_t id = t->byte_ids[byte] >= 0 ? t->byte_ids[byte] : t->vocabulary.unknown;
    if (id >= 0) token_list_push(out, id);
}

static void join_stretch(struct stretch *s, const char *text, size_t size) {
    if (s->size + size > s->capacity) {
        s->capacity = 2 * (s->size + size);
        char *joined = xmalloc(s->capacity);
        if (s->size) memcpy(joined, s->text, s->size);
        free(s->joined);
        s->text = s->joined = joined;
    } else if (s->text != s->joined) {
        memcpy(s->joined, s->text, s->size);
        s->text = s->joined;
    }
    memcpy(s->joined + s->size, text, size);
    s->size += size;
}

static bool begins_with_space(const char *text, size_t size) { return *text == ' ' || space_mark_begins(text, size); }

static void add_text(struct encoding *e, const char *text, size_t size) {
    if (size == 0) return;
    bool begins = e->at_start && e->stretch.size == 0;
    if (begins && e->t->puts_space && !(e->t->doubles_no_space && begins_with_space(text, size)))
        join_stretch(&e->stretch, " ", 1);
    if (e->stretch.size) join_stretch(&e->stretch, text, size);
    else e->stretch.text = text, e->stretch.size = size;
}

static void flush(struct encoding *e) {
    struct stretch *s = &e->stretch;
    for (size_t at = 0, n; at < s->size; at += n) {
        n = s->size - at < TOKENIZER_STRETCH ? s->size - at : TOKENIZER_STRETCH;
        e->t->ops->encode(e->t, &e->merger, s->text + at, n, e->out);
    }
    if (s->size) e->at_start = false;
    s->size = 0;
}

static bool strips_space_after(const struct tokenizer *t, int32_t id) {
    static const char *const others[] = {"<s>", "<unk>", "<|endoftext|>"};
    if (t->strips) return t->strips[id] & 2;
    if (!t->strips_after_special || !is_control(&t->vocabulary, id)) return false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (span_equals(t->vocabulary.texts[id], others[i])) return false;
    return true;
}

// The length of the white space here; beyond ASCII only if the file has strip flags.
static size_t space_size(const struct tokenizer *t, const char *text, size_t size, size_t at) {
    struct character c = character_at(text, size, at);
    return c.class & CLASSES_SPACE && (c.code < 0x80 || t->strips) ? c.size : 0;
}

static void strip_space_before(const struct tokenizer *t, struct stretch *s) {
    while (s->size) {
        size_t at = s->size - 1;
        while (at && ((uint8_t)s->text[at] & 0xc0) == 0x80) at--;
        if (at + space_size(t, s->text, s->size, at) != s->size) break;
        s->size = at;
    }
}

static void add_special(struct encoding *e, int32_t id) {
    if (e->t->strips && e->t->strips[id] & 1) strip_space_before(e->t, &e->stretch);
    flush(e);
    token_list_push(e->out, id);
    e->at_start = !e->t->puts_space_once;
    e->skips_space = strips_space_after(e->t, id);
}

// The longest special token here.
static int32_t match_special(const struct tokenizer *t, const struct tokenizer_part *part, size_t at, size_t *length) {
    size_t longer;
    int32_t id = token_trie_longest(&t->user_defined, part->text + at, part->size - at, length);
    if (!part->parse_special) return id;
    int32_t other = token_trie_longest(&t->trusted, part->text + at, part->size - at, &longer);
    if (other < 0 || (id >= 0 && *length > longer)) return id;
    *length = longer;
    return other;
}

static void add_part(struct encoding *e, const struct tokenizer_part *part) {
    size_t from = 0;
    for (size_t at = 0, length; at < part->size;) {
        if (e->skips_space && (length = space_size(e->t, part->text, part->size, at))) {
            from = at += length;
            continue;
        }
        e->skips_space = false;
        int32_t id = match_special(e->t, part, at, &length);
        if (id < 0) {
            at++;
            continue;
        }
        add_text(e, part->text + from, at - from);
        add_special(e, id);
        from = at += length;
    }
    add_text(e, part->text + from, part->size - from);
}

void tokenizer_encode_parts(const struct tokenizer *t, const struct tokenizer_part *parts, size_t count,
                            bool no_space_prefix, struct token_list *out) {
    struct encoding e = {.t = t, .out = out, .at_start = !no_space_prefix};
    for (size_t i = 0; i < count; i++) add_part(&e, &parts[i]);
    flush(&e);
    free(e.stretch.joined);
    pair_merger_free(&e.merger);
}

void tokenizer_encode(const struct tokenizer *t, const char *text, size_t size, bool parse_special,
                      struct token_list *out) {
    tokenizer_encode_parts(t, &(struct tokenizer_part){text, size, parse_special}, 1, false, out);
}

// Decoding.

struct span tokenizer_piece(const struct tokenizer *t, int32_t id, bool special) {
    if (id < 0 || id >= t->vocabulary.count) return (struct span){"", 0};
    if (!special && is_control(&t->vocabulary, id)) return (struct span){"", 0};
    return t->pieces[id];
}

char *tokenizer_decode(const struct tokenizer *t, const int32_t *ids, size_t count, bool special, size_t *size) {
    size_t room = 1, n = 0;
    for (size_t i = 0; i < count; i++) room += tokenizer_piece(t, ids[i], special).size;
    char *text = xmalloc(room);
    bool at_start = true;
    for (size_t i = 0; i < count; i++) {
        struct span piece = tokenizer_piece(t, ids[i], special);
        bool is_special = ids[i] >= 0 && ids[i] < t->vocabulary.count && vocabulary_is_special(&t->vocabulary, ids[i]);
        if (at_start && t->drops_space && !is_special && piece.size && *piece.data == ' ') piece.data++, piece.size--;
        memcpy(text + n, piece.data, piece.size);
        n += piece.size;
        at_start = is_special && !t->puts_space_once;
    }
    text[n] = 0;
    *size = n;
    return text;
}

// Properties.

int32_t tokenizer_count(const struct tokenizer *t) { return t->vocabulary.count; }
int32_t tokenizer_bos(const struct tokenizer *t) { return t->vocabulary.bos; }
int32_t tokenizer_eos(const struct tokenizer *t) { return t->vocabulary.eos; }
bool tokenizer_adds_bos(const struct tokenizer *t) { return t->adds_bos && t->vocabulary.bos >= 0; }

bool tokenizer_ends_generation(const struct tokenizer *t, int32_t id) {
    return id >= 0 && id < t->vocabulary.count && t->vocabulary.ends[id];
}

int32_t tokenizer_find(const struct tokenizer *t, const char *text, size_t size) {
    return vocabulary_find(&t->vocabulary, (struct span){text, size});
}

const char *tokenizer_model_name(const struct tokenizer *t) { return t->ops->model; }
const char *tokenizer_pre_name(const struct tokenizer *t) { return t->pre; }

int32_t tokenizer_closing(const struct tokenizer *t) {
    return t->adds_separator ? t->vocabulary.separator : t->adds_eos ? t->vocabulary.eos : -1;
}
