// The merges of BPE, and when they can be said in scores.
#include <math.h>
#include <string.h>

#include "engine/format/huggingface_tokenizer_parts.h"

enum { MERGES_LIMIT = 1 << 24 }; // ranks are exact as floats

// "left right": cut at the first space after the first byte. data NULL: there is none.
static struct span left_part(struct span merge) {
    const char *cut = merge.size > 2 ? memchr(merge.data + 1, ' ', merge.size - 2) : NULL;
    return cut ? (struct span){merge.data, (size_t)(cut - merge.data)} : (struct span){0};
}

static struct span right_part(struct span merge, struct span left) {
    return (struct span){merge.data + left.size + 1, merge.size - left.size - 1};
}

// Pairs are written into room, which is moved on.
static bool read_merge(const json_t *merge, struct span *out, char **room, struct status *st) {
    if (json_is_string(merge)) {
        *out = (struct span){json_string_value(merge), json_string_length(merge)};
    } else {
        const json_t *left = json_array_get(merge, 0), *right = json_array_get(merge, 1);
        size_t size = json_string_length(left);
        *out = (struct span){*room, size + 1 + json_string_length(right)};
        if (!json_is_string(left) || !json_is_string(right) || json_array_size(merge) != 2)
            return status_fail(st, STATUS_FORMAT, "is neither a text nor a pair of texts");
        memcpy(*room, json_string_value(left), size);
        (*room)[size] = ' ';
        memcpy(*room + size + 1, json_string_value(right), out->size - size - 1);
        *room += out->size;
        if (left_part(*out).size != size)
            return status_fail(st, STATUS_UNSUPPORTED, "\"%.*s\" has a space in its parts", import_shown(*out),
                               out->data);
    }
    return left_part(*out).data ||
           status_fail(st, STATUS_FORMAT, "\"%.*s\" has no two parts", import_shown(*out), out->data);
}

bool import_merges(struct tokenizer_import *t, const json_t *merges, struct status *st) {
    uint64_t bytes = 0;
    if (!json_is_array(merges)) return status_fail(st, STATUS_FORMAT, "merges: is no list");
    t->n_merges = json_array_size(merges);
    if (t->n_merges > MERGES_LIMIT)
        return status_fail(st, STATUS_LIMIT, "merges: %llu, at most %d are supported", (unsigned long long)t->n_merges,
                           MERGES_LIMIT);
    for (size_t i = 0; i < t->n_merges; i++) {
        const json_t *merge = json_array_get(merges, i);
        if (json_is_array(merge))
            bytes += json_string_length(json_array_get(merge, 0)) + 1 + json_string_length(json_array_get(merge, 1));
    }
    t->merges = arena_array(&t->arena, t->n_merges, sizeof *t->merges, st);
    char *room = arena_array(&t->arena, bytes + 1, 1, st);
    if (!t->merges || !room) return false;
    for (size_t i = 0; i < t->n_merges; i++)
        if (!read_merge(json_array_get(merges, i), &t->merges[i], &room, st))
            return status_prefix(st, "merges: merge %zu", i);
    return true;
}

// One merge a line; a first line "#version: …" is none.
bool import_merges_text(struct tokenizer_import *t, struct span text, struct status *st) {
    uint64_t lines = 1;
    for (size_t i = 0; i < text.size; i++) lines += text.data[i] == '\n';
    if (lines > MERGES_LIMIT) return status_fail(st, STATUS_LIMIT, "more than %d lines", MERGES_LIMIT);
    if (!(t->merges = arena_array(&t->arena, lines, sizeof *t->merges, st))) return false;
    uint64_t number = 0;
    for (size_t at = 0, n; at < text.size; at += n + 1) {
        const char *line = text.data + at, *end = memchr(line, '\n', text.size - at);
        n = end ? (size_t)(end - line) : text.size - at;
        struct span merge = {line, n && line[n - 1] == '\r' ? n - 1 : n};
        if (merge.size == 0 || (number++ == 0 && n > 9 && !memcmp(line, "#version:", 9))) continue;
        if (!left_part(merge).data)
            return status_fail(st, STATUS_FORMAT, "merge %llu, \"%.*s\", has no two parts",
                               (unsigned long long)t->n_merges, import_shown(merge), line);
        t->merges[t->n_merges++] = merge;
    }
    return true;
}

// ---- scores ----
//
// SentencePiece merges any two neighbours that together are a token, the highest score first. Hugging Face's files
// list every such pair, those of one token one after the other, by falling score. Where a file really is such a list,
// the rank at which a token's merges begin says the same as its score did.

struct vocabulary_map {
    const json_t *ids; // {"text": id}
    char *room;        // for the longest product
};

static int64_t find(const struct vocabulary_map *map, const char *text, size_t size) {
    const json_t *id = json_object_getn(map->ids, text, size);
    return id ? json_integer_value(id) : -1;
}

// The token that merge i makes; −1 when it, or a part, is none.
static int64_t product_of(const struct tokenizer_import *t, const struct vocabulary_map *map, uint64_t i) {
    struct span left = left_part(t->merges[i]), right = right_part(t->merges[i], left);
    if (find(map, left.data, left.size) < 0 || find(map, right.data, right.size) < 0) return -1;
    memcpy(map->room, left.data, left.size);
    memcpy(map->room + left.size, right.data, right.size);
    return find(map, map->room, left.size + right.size);
}

// Scores by rank. *ordered: the merges of each token are one after the other, but for tokens that are found whole
// before any merging.
static bool rank_products(struct tokenizer_import *t, const struct vocabulary_map *map, bool *ordered,
                          struct status *st) {
    int64_t last = -1;
    *ordered = true;
    for (uint64_t i = 0; i < t->n_merges; i++) {
        int64_t product = product_of(t, map, i);
        if (product < 0)
            return status_fail(st, STATUS_FORMAT, "merges: merge %llu, \"%.*s\", is not of tokens of the vocabulary",
                               (unsigned long long)i, import_shown(t->merges[i]), t->merges[i].data);
        struct import_token *token = &t->tokens[product];
        if (token->score == 0) token->score = -(float)(i + 1);
        else if (product != last && token->type != IMPORT_USER_DEFINED) *ordered = false;
        last = product;
    }
    return true;
}

static bool starts_character(char c) { return ((uint8_t)c & 0xc0) != 0x80; }

// In how many ways two tokens of the vocabulary make a third.
static uint64_t count_splits(const struct tokenizer_import *t, const struct vocabulary_map *map) {
    uint64_t count = 0;
    const char *text;
    size_t size;
    json_t *id;
    (void)t;
    json_object_keylen_foreach((json_t *)map->ids, text, size, id) {
        if (import_is_byte((struct span){text, size})) continue;
        for (size_t at = 1; at < size; at++)
            count += starts_character(text[at]) && find(map, text, at) >= 0 && find(map, text + at, size - at) >= 0;
    }
    return count;
}

// Whether some token would reach across the places where words are cut, or where the gemma4 scheme cuts lines.
static bool crosses(struct span text, const char *mark, bool either_way) {
    size_t n = strlen(mark);
    bool before_is_mark = true;
    for (size_t at = 0; at < text.size;) {
        bool is_mark = text.size - at >= n && !memcmp(text.data + at, mark, n);
        if (at && is_mark != before_is_mark && (is_mark || either_way)) return true;
        before_is_mark = is_mark;
        at += is_mark ? n : 1;
    }
    return false;
}

static bool any_crosses(const struct tokenizer_import *t, const char *mark, bool either_way) {
    for (int64_t id = 0; id < t->count; id++)
        if (t->tokens[id].type == IMPORT_NORMAL && crosses(t->tokens[id].text, mark, either_way)) return true;
    return false;
}

bool import_byte_fallback(struct tokenizer_import *t, const json_t *vocabulary, const struct import_scheme *scheme,
                          struct status *st) {
    uint64_t longest = 0;
    bool ordered;
    for (uint64_t i = 0; i < t->n_merges; i++)
        if (t->merges[i].size > longest) longest = t->merges[i].size;
    struct vocabulary_map map = {vocabulary, arena_array(&t->arena, longest + 1, 1, st)};
    if (!map.room || !rank_products(t, &map, &ordered, st)) return false;
    if (scheme->cuts_words && any_crosses(t, "\u2581", false))
        return status_fail(st, STATUS_UNSUPPORTED, "pre_tokenizer: cuts between words, but some tokens reach across");
    if (t->space_prefix == IMPORT_UNSAID) t->space_prefix = IMPORT_NO;
    if (ordered && count_splits(t, &map) == t->n_merges) {
        t->model = "llama";
        t->has_scores = true;
        return true;
    }
    if (t->space_prefix == IMPORT_YES || any_crosses(t, "\n", true))
        return status_fail(st, STATUS_UNSUPPORTED,
                           "model: merges that are not those of SentencePiece, with %s",
                           t->space_prefix == IMPORT_YES ? "a space put in front" : "tokens across line ends");
    t->model = "gpt2";
    t->pre = "sarvam-moe"; // the name of plain BPE over characters, line by line
    return true;
}
