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
            return status_fail(st, STATUS_UNSUPPORTED, "\"%.*s\" has a space in its parts", token_import_shown(*out),
                               out->data);
    }
    return left_part(*out).data ||
           status_fail(st, STATUS_FORMAT, "\"%.*s\" has no two parts", token_import_shown(*out), out->data);
}

bool token_import_merges(struct token_import *t, const json_t *merges, struct status *st) {
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
bool token_import_merges_text(struct token_import *t, struct span text, struct status *st) {
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
                               (unsigned long long)t->n_merges, token_import_shown(merge), line);
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
static int64_t product_of(const struct token_import *t, const struct vocabulary_map *map, uint64_t i) {
    struct span left = left_part(t->merges[i]), right = right_part(t->merges[i], left);
    if (find(map, left.data, left.size) < 0 || find(map, right.data, right.size) < 0) return -1;
    memcpy(map->room, left.data, left.size);
    memcpy(map->room + left.size, right.data, right.size);
    return find(map, map->room, left.size + right.size);
}

// Scores by rank. *ordered: the merges of each token are one after the other, but for tokens that are found whole
// before any merging.
static bool rank_products(struct token_import *t, const struct vocabulary_map *map, bool *ordered, struct status *st) {
    int64_t last = -1;
    *ordered = true;
    for (uint64_t i = 0; i < t->n_merges; i++) {
        int64_t product = product_of(t, map, i);
        if (product < 0)
            return status_fail(st, STATUS_FORMAT, "merges: merge %llu, \"%.*s\", is not of tokens of the vocabulary",
                               (unsigned long long)i, token_import_shown(t->merges[i]), t->merges[i].data);
        struct token_import_entry *token = &t->tokens[product];
        if (token->score == 0) token->score = -(float)(i + 1);
        else if (product != last && token->type != IMPORT_USER_DEFINED) *ordered = false;
        last = product;
    }
    return true;
}

static bool starts_character(char c) { return ((uint8_t)c & 0xc0) != 0x80; }

// In how many ways two tokens of the vocabulary make a third.
static uint64_t count_splits(const struct vocabulary_map *map) {
    uint64_t count = 0;
    const char *text;
    size_t size;
    json_t *id;
    json_object_keylen_foreach((json_t *)map->ids, text, size, id) {
        if (token_import_byte((struct span){text, size}) >= 0) continue;
        for (size_t at = 1; at < size; at++)
            count += starts_character(text[at]) && find(map, text, at) >= 0 && find(map, text + at, size - at) >= 0;
    }
    return count;
}

// Whether some token that merging may make has a mark behind its beginning.
static bool any_crosses_words(const struct token_import *t) {
    for (int64_t id = 0; id < t->count; id++) {
        struct span text = t->tokens[id].text;
        if (t->tokens[id].type == IMPORT_NORMAL && text.size > 1 &&
            memmem(text.data + 1, text.size - 1, SPACE_MARK, strlen(SPACE_MARK)))
            return true;
    }
    return false;
}

// Whether some has a line end beside anything else.
static bool any_crosses_lines(const struct token_import *t) {
    for (int64_t id = 0; id < t->count; id++) {
        size_t line_ends = 0, size = t->tokens[id].text.size;
        for (size_t i = 0; i < size; i++) line_ends += t->tokens[id].text.data[i] == '\n';
        if (t->tokens[id].type == IMPORT_NORMAL && line_ends && line_ends < size) return true;
    }
    return false;
}

// Runs of spaces are often added to a vocabulary whose merges make them all the same: then they may.
static void leave_to_merges(struct token_import *t) {
    for (int64_t id = 0; id < t->count; id++) {
        struct token_import_entry *token = &t->tokens[id];
        if (token->type == IMPORT_USER_DEFINED && token->score != 0 &&
            memmem(token->text.data, token->text.size, SPACE_MARK, strlen(SPACE_MARK)))
            token->type = IMPORT_NORMAL;
    }
    token_import_write_spaces(t);
}

bool token_import_byte_fallback(struct token_import *t, const json_t *vocabulary,
                                const struct token_import_scheme *scheme, struct status *st) {
    uint64_t longest = 0;
    bool ordered;
    for (uint64_t i = 0; i < t->n_merges; i++)
        if (t->merges[i].size > longest) longest = t->merges[i].size;
    struct vocabulary_map map = {vocabulary, arena_array(&t->arena, longest + 1, 1, st)};
    if (!map.room || !rank_products(t, &map, &ordered, st)) return false;
    if (scheme->cuts_words && any_crosses_words(t))
        return status_fail(st, STATUS_UNSUPPORTED, "pre_tokenizer: cuts between words, but some tokens reach across");
    if (t->space_prefix == IMPORT_UNSAID) t->space_prefix = IMPORT_NO;
    bool by_scores = ordered && count_splits(&map) == t->n_merges;
    leave_to_merges(t);
    if (by_scores) {
        t->model = "llama";
        t->has_scores = true;
        return true;
    }
    if (t->space_prefix == IMPORT_YES || any_crosses_lines(t))
        return status_fail(st, STATUS_UNSUPPORTED, "model: merges that are not those of SentencePiece, with %s",
                           t->space_prefix == IMPORT_YES ? "a space put in front" : "tokens across line ends");
    t->model = "gpt2";
    t->pre = "sarvam-moe"; // the name of plain BPE over characters, line by line
    return true;
}
