#include "engine/grammar/lexicon.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "engine/base/panic.h"
#include "engine/base/utf8.h"

enum { LONGEST = 1024 }; // bytes of a token; longer ones are never allowed

struct counted {
    struct lexicon lexicon;
    atomic_int references;
    char *bytes; // of all texts
};

int lexicon_kind(uint8_t byte) {
    static const char *const kinds[] = {"abcdefghijklmnopqrstuvwxyz",
                                        "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
                                        "0123456789",
                                        " ",
                                        "_",
                                        "-",
                                        ".",
                                        ",;:!?'",
                                        "\n",
                                        "\"",
                                        "\\"};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    for (int i = 0; i < KINDS; i++)
        if (byte && strchr(kinds[i], byte)) return i;
    return byte < 0x20 ? KINDS : byte < 0x7f ? KINDS + 1 : KINDS + 2;
}

// The characters of a plain token; 0: it is not.
static int plain_characters(struct span text) {
    int n = 0;
    for (size_t at = 0, size; at < text.size; at += size, n++) {
        uint32_t code;
        if ((uint8_t)text.data[at] < 0x80) {
            if (!lexicon_is_plain((uint8_t)text.data[at])) return 0;
            size = 1;
            continue;
        }
        size = utf8_decode(text.data + at, text.size - at, &code);
        char again[4];
        if (utf8_encode(code, again) != size || memcmp(again, text.data + at, size) != 0) return 0;
    }
    return n <= LEXICON_PLAIN ? n : 0;
}

// A token with its first bytes as a number, which mostly decides.
struct entry {
    uint64_t first;
    struct span text;
    int32_t id;
};

static uint64_t first_bytes(struct span text) {
    uint64_t first = 0;
    for (size_t i = 0; i < 8; i++) first = first << 8 | (i < text.size ? (uint8_t)text.data[i] : 0);
    return first;
}

static int by_text(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    const int order = span_compare(x->text, y->text);
    return order ? order : x->id < y->id ? -1 : x->id > y->id;
}

// The tokens that have a text, sorted; returns how many.
static uint32_t sort(const struct lexicon *l, int32_t *out) {
    struct entry *entries = xmalloc(((size_t)l->n_tokens + 1) * sizeof *entries);
    uint32_t n = 0;
    for (int i = 0; i < l->n_tokens; i++)
        if (l->texts[i].size) entries[n++] = (struct entry){first_bytes(l->texts[i]), l->texts[i], i};
    if (n) qsort(entries, n, sizeof *entries, by_text);
    for (uint32_t i = 0; i < n; i++) out[i] = entries[i].id;
    free(entries);
    return n;
}

static size_t common_bytes(struct span a, struct span b) {
    size_t n = 0;
    while (n < a.size && n < b.size && a.data[n] == b.data[n]) n++;
    return n;
}

// From the last node to the first, so that those further down are done.
static void note_below(struct lexicon_tree *t) {
    uint16_t bits[256];
    for (int b = 0; b < 256; b++) bits[b] = (uint16_t)(1u << lexicon_kind((uint8_t)b));
    for (uint32_t i = t->n_nodes; i-- > 0;)
        for (uint32_t k = i + 1; k < t->nodes[i].end; k = t->nodes[k].end)
            t->nodes[i].below |= t->nodes[k].below | bits[t->nodes[k].byte];
}

// A node for each byte that a token does not have in common with the one before it. `tokens` is sorted, and kept.
static struct lexicon_tree grow(const struct lexicon *l, int32_t *tokens, uint32_t n) {
    uint32_t *path = xmalloc((l->longest + 1) * sizeof *path);
    struct span before = {"", 0};
    size_t n_nodes = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct span text = l->texts[tokens[i]];
        n_nodes += text.size - common_bytes(before, text);
        before = text;
    }
    struct lexicon_tree t = {.nodes = xmalloc((n_nodes + 1) * sizeof *t.nodes), .tokens = tokens};
    before.size = 0;
    size_t depth = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct span text = l->texts[tokens[i]];
        const size_t common = common_bytes(before, text);
        while (depth > common) t.nodes[path[depth--]].end = t.n_nodes;
        while (depth < text.size) {
            t.nodes[t.n_nodes] = (struct lexicon_node){
                .first_token = i, .depth = (uint16_t)(depth + 1), .byte = (uint8_t)text.data[depth]};
            path[++depth] = t.n_nodes++;
        }
        before = text;
    }
    while (depth) t.nodes[path[depth--]].end = t.n_nodes;
    note_below(&t);
    t.nodes[t.n_nodes] = (struct lexicon_node){.end = t.n_nodes + 1, .first_token = n};
    free(path);
    return t;
}

static void copy_texts(struct counted *c, const struct span *texts, int n) {
    struct lexicon *l = &c->lexicon;
    size_t size = 1;
    for (int i = 0; i < n; i++) size += texts[i].size;
    char *at = c->bytes = xmalloc(size);
    l->texts = xcalloc((size_t)n + 1, sizeof *l->texts);
    for (int i = 0; i < n; i++) {
        if (!texts[i].size || texts[i].size > LONGEST) continue;
        memcpy(at, texts[i].data, texts[i].size);
        l->texts[i] = (struct span){at, texts[i].size};
        at += texts[i].size;
        if (texts[i].size > l->longest) l->longest = texts[i].size;
    }
}

static void fill_plain(struct lexicon *l, const uint8_t *characters) {
    for (int k = 0; k <= LEXICON_PLAIN; k++) l->plain[k] = xcalloc((size_t)l->n_words, sizeof **l->plain);
    for (int i = 0; i < l->n_tokens; i++)
        if (characters[i]) l->plain[characters[i]][i / 32] |= 1u << i % 32;
    for (int k = 1; k <= LEXICON_PLAIN; k++)
        for (int i = 0; i < l->n_words; i++) l->plain[k][i] |= l->plain[k - 1][i];
}

struct lexicon *lexicon_open(const struct span *texts, int n) {
    struct counted *c = xcalloc(1, sizeof *c);
    struct lexicon *l = &c->lexicon;
    *l = (struct lexicon){.n_tokens = n, .n_words = (n + 31) / 32};
    atomic_init(&c->references, 1);
    copy_texts(c, texts, n);
    int32_t *all = xmalloc(((size_t)n + 1) * sizeof *all), *rest = xmalloc(((size_t)n + 1) * sizeof *rest);
    uint8_t *characters = xcalloc((size_t)n + 1, 1);
    uint32_t n_rest = 0;
    const uint32_t n_all = sort(l, all);
    for (uint32_t i = 0; i < n_all; i++) {
        characters[all[i]] = (uint8_t)plain_characters(l->texts[all[i]]);
        if (!characters[all[i]]) rest[n_rest++] = all[i];
    }
    l->all = grow(l, all, n_all);
    l->rest = grow(l, rest, n_rest);
    fill_plain(l, characters);
    free(characters);
    return l;
}

int32_t lexicon_longest(const struct lexicon *l, struct span text, size_t *length) {
    const struct lexicon_node *nodes = l->all.nodes;
    int32_t longest = -1;
    uint32_t at = 0, end = l->all.n_nodes;
    for (size_t i = 0; i < text.size; i++) {
        while (at < end && nodes[at].byte != (uint8_t)text.data[i]) at = nodes[at].end;
        if (at >= end) break;
        end = nodes[at].end;
        if (nodes[at].first_token < nodes[at + 1].first_token)
            longest = l->all.tokens[nodes[at].first_token], *length = i + 1;
        at++;
    }
    return longest;
}

struct lexicon *lexicon_share(struct lexicon *l) {
    atomic_fetch_add(&((struct counted *)l)->references, 1);
    return l;
}

bool lexicon_is_last(const struct lexicon *l) { return atomic_load(&((const struct counted *)l)->references) == 1; }

void lexicon_drop(struct lexicon *l) {
    struct counted *c = (struct counted *)l;
    if (!l || atomic_fetch_sub(&c->references, 1) > 1) return;
    for (int k = 0; k <= LEXICON_PLAIN; k++) free(l->plain[k]);
    free(l->all.nodes), free(l->all.tokens);
    free(l->rest.nodes), free(l->rest.tokens);
    free(l->texts);
    free(c->bytes);
    free(c);
}
