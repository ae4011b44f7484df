// Unigram: normalises the text and splits it into the tokens with the highest total score (log probability).
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/text/charsmap.h"
#include "engine/text/space_mark.h"
#include "engine/text/tokenizer_ops.h"

// The penalty of an unknown character, relative to the worst token.
static const double unknown_penalty = 10;

struct unigram {
    struct token_trie tokens;
    struct charsmap charsmap;
    const float *scores;
    double unknown_score;
    bool puts_space;    // in front of the text
    bool spells_bytes;  // unknown characters become byte tokens
    bool merges_spaces; // collapses runs of spaces and removes those at both ends
};

// Opening.

static bool read_charsmap(struct unigram *u, const struct gguf *g, struct status *st) {
    const char *key = VOCABULARY_KEY("precompiled_charsmap");
    const struct gguf_pair *p = gguf_find(g, key);
    if (!p) return true;
    if (p->type != GGUF_ARRAY || (p->element != GGUF_U8 && p->element != GGUF_I8))
        return status_fail(st, STATUS_FORMAT, "%s: %s: expected an array of bytes", g->path, key);
    return charsmap_open(&u->charsmap, (struct span){(const char *)p->data, p->count}, g->path, st);
}

static bool index_tokens(struct tokenizer *t, struct unigram *u, struct status *st) {
    struct vocabulary *v = &t->vocabulary;
    double lowest = FLT_MAX;
    if (!token_trie_open(&u->tokens, &v->arena, v->bytes, st)) return false;
    for (int32_t id = 0; id < v->count; id++) {
        uint8_t type = v->types[id];
        if (type == TOKEN_BYTE) t->byte_ids[token_byte(v->texts[id])] = id, u->spells_bytes = true;
        if (type == TOKEN_NORMAL && u->scores[id] < lowest) lowest = u->scores[id];
        if (type == TOKEN_NORMAL || type == TOKEN_UNUSED || type == TOKEN_USER_DEFINED)
            token_trie_add(&u->tokens, v->texts[id], id);
    }
    u->unknown_score = lowest - unknown_penalty;
    return true;
}

static bool unigram_open(struct tokenizer *t, struct status *st) {
    struct vocabulary *v = &t->vocabulary;
    struct unigram *u = t->family = arena_alloc(&v->arena, sizeof *u);
    if (!gguf_get_bool(v->file, VOCABULARY_KEY("add_space_prefix"), &u->puts_space, st) ||
        !gguf_get_bool(v->file, VOCABULARY_KEY("remove_extra_whitespaces"), &u->merges_spaces, st) ||
        !read_charsmap(u, v->file, st))
        return false;
    t->drops_space = u->puts_space || u->merges_spaces;
    u->scores = vocabulary_scores(v, st);
    return u->scores && index_tokens(t, u, st);
}

static struct span unigram_spell(const struct tokenizer *t, int32_t id, char **room) {
    return space_mark_decode(t->vocabulary.texts[id], room);
}

// Normalising.

struct normalised {
    char *text;
    size_t size, capacity;
    bool in_word, has_space; // inside a word; the space in front has been added
};

static void push(struct normalised *n, const char *text, size_t size) {
    if (n->size + size > n->capacity) {
        n->capacity = 2 * (n->size + size) + 64;
        n->text = xrealloc(n->text, n->capacity);
    }
    memcpy(n->text + n->size, text, size);
    n->size += size;
}

static void push_spaced(const struct unigram *u, struct normalised *n, struct span text) {
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == ' ') {
            n->in_word = false;
            if (!u->merges_spaces) push(n, SPACE_MARK, SPACE_MARK_SIZE);
            continue;
        }
        if (!n->in_word && ((u->puts_space && !n->has_space) || u->merges_spaces)) {
            push(n, SPACE_MARK, SPACE_MARK_SIZE);
            n->has_space = true;
        }
        n->in_word = true;
        push(n, text.data + i, 1);
    }
}

// The normalised start of text; an invalid byte becomes U+FFFD.
static size_t map_character(const struct unigram *u, const char *text, size_t size, struct span *mapped) {
    size_t n = charsmap_match(&u->charsmap, text, size, mapped);
    if (n) return n;
    uint32_t code;
    n = utf8_decode(text, size, &code);
    *mapped = (struct span){text, n};
    if (code != UTF8_REPLACEMENT || (n == 3 && !memcmp(text, "\ufffd", 3))) return n;
    *mapped = (struct span){"\ufffd", 3};
    return 1;
}

static struct normalised normalise(const struct unigram *u, const char *text, size_t size) {
    struct normalised n = {0};
    struct span mapped;
    for (size_t at = 0; at < size;) {
        at += map_character(u, text + at, size - at, &mapped);
        push_spaced(u, &n, mapped);
    }
    return n;
}

// The best path to a position in the text: its last token, and where that starts.
struct step {
    double score;
    uint32_t from;
    int32_t id;
};

static void offer(struct step *to, double score, uint32_t from, int32_t id) {
    if (score > to->score) *to = (struct step){score, from, id};
}

// Extends the path by every token that starts here; length: of the character here.
static void go_on(const struct tokenizer *t, struct step *steps, const char *text, size_t size, size_t at,
                  size_t length) {
    const struct unigram *u = t->family;
    const struct token_node *nodes = u->tokens.nodes;
    double score = steps[at].score;
    bool covered = false;
    uint32_t node = token_trie_first(&u->tokens, text[at]);
    for (size_t end = at + 1; node; end++) {
        int32_t id = nodes[node].id;
        if (id >= 0) {
            bool user_defined = t->vocabulary.types[id] == TOKEN_USER_DEFINED;
            offer(&steps[end], score + (user_defined ? 0.0 : (double)u->scores[id]), (uint32_t)at, id);
            covered |= end - at == length;
        }
        node = end < size ? token_trie_next(&u->tokens, node, text[end]) : 0;
    }
    if (!covered) offer(&steps[at + length], score + u->unknown_score, (uint32_t)at, t->vocabulary.unknown);
}

static void reverse(int32_t *ids, size_t count) {
    for (size_t i = 0; i < count / 2; i++) {
        int32_t other = ids[i];
        ids[i] = ids[count - 1 - i];
        ids[count - 1 - i] = other;
    }
}

// Consecutive unknown characters are one unknown token, unless spelled in bytes.
static void emit(const struct tokenizer *t, const struct step *steps, const char *text, size_t size,
                 struct token_list *out) {
    const struct unigram *u = t->family;
    size_t first = out->count;
    bool after_unknown = false;
    for (size_t at = size; at > 0; at = steps[at].from) {
        bool unknown = steps[at].id == t->vocabulary.unknown;
        if (unknown && u->spells_bytes)
            for (size_t i = at; i-- > steps[at].from;) tokenizer_push_byte(t, (uint8_t)text[i], out);
        else if (steps[at].id >= 0 && !(unknown && after_unknown)) token_list_push(out, steps[at].id);
        after_unknown = unknown;
    }
    if (out->count > first) reverse(out->ids + first, out->count - first);
}

static void unigram_encode(const struct tokenizer *t, struct pair_merger *m, const char *text, size_t size,
                           struct token_list *out) {
    (void)m;
    struct normalised n = normalise(t->family, text, size);
    struct step *steps = xmalloc((n.size + 1) * sizeof *steps);
    for (size_t i = 0; i <= n.size; i++) steps[i] = (struct step){-DBL_MAX, 0, t->vocabulary.unknown};
    steps[0].score = 0;
    for (size_t at = 0, length; at < n.size; at += length) {
        uint32_t code;
        length = utf8_decode(n.text + at, n.size - at, &code);
        go_on(t, steps, n.text, n.size, at, length);
    }
    emit(t, steps, n.text, n.size, out);
    free(steps);
    free(n.text);
}

const struct tokenizer_ops tokenizer_unigram = {
    .model = "t5",
    .defaults = {.bos = -1, .eos = 1, .unknown = 2, .separator = -1},
    .adds_eos = true,
    .open = unigram_open,
    .spell = unigram_spell,
    .encode = unigram_encode,
};
