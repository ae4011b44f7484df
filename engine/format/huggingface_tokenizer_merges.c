// The merges of BPE.
#include <string.h>

#include "engine/format/huggingface_tokenizer_parts.h"

enum { MERGES_LIMIT = 1 << 24 }; // floats represent ranks exactly

struct span token_import_left(struct span merge) {
    const char *cut = merge.size > 2 ? memchr(merge.data + 1, ' ', merge.size - 2) : NULL;
    return cut ? (struct span){merge.data, (size_t)(cut - merge.data)} : (struct span){0};
}

// Pairs are written to *room, which is advanced.
static bool read_merge(const json_t *merge, struct span *out, char **room, struct status *st) {
    if (json_is_string(merge)) {
        *out = (struct span){json_string_value(merge), json_string_length(merge)};
    } else {
        const json_t *left = json_array_get(merge, 0), *right = json_array_get(merge, 1);
        size_t size = json_string_length(left);
        *out = (struct span){*room, size + 1 + json_string_length(right)};
        if (!json_is_string(left) || !json_is_string(right) || json_array_size(merge) != 2)
            return status_fail(st, STATUS_FORMAT, "expected a string or a pair of strings");
        memcpy(*room, json_string_value(left), size);
        (*room)[size] = ' ';
        memcpy(*room + size + 1, json_string_value(right), out->size - size - 1);
        *room += out->size;
        if (token_import_left(*out).size != size)
            return status_fail(st, STATUS_UNSUPPORTED, "'%.*s' has a space in one of its parts",
                               token_import_shown(*out), out->data);
    }
    return token_import_left(*out).data ||
           status_fail(st, STATUS_FORMAT, "'%.*s' does not have two parts", token_import_shown(*out), out->data);
}

bool token_import_merges(struct token_import *t, const json_t *merges, struct status *st) {
    uint64_t bytes = 0;
    if (!json_is_array(merges)) return status_fail(st, STATUS_FORMAT, "merges: expected a list");
    t->n_merges = json_array_size(merges);
    if (t->n_merges > MERGES_LIMIT)
        return status_fail(st, STATUS_LIMIT, "merges: too many: %llu (maximum %d)", (unsigned long long)t->n_merges,
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

// One merge per line; skips a first line "#version: …".
bool token_import_merges_text(struct token_import *t, struct span text, struct status *st) {
    uint64_t lines = 1;
    for (size_t i = 0; i < text.size; i++) lines += text.data[i] == '\n';
    if (lines > MERGES_LIMIT) return status_fail(st, STATUS_LIMIT, "too many lines (maximum %d)", MERGES_LIMIT);
    if (!(t->merges = arena_array(&t->arena, lines, sizeof *t->merges, st))) return false;
    uint64_t number = 0;
    for (size_t at = 0, n; at < text.size; at += n + 1) {
        const char *line = text.data + at, *end = memchr(line, '\n', text.size - at);
        n = end ? (size_t)(end - line) : text.size - at;
        struct span merge = {line, n && line[n - 1] == '\r' ? n - 1 : n};
        if (merge.size == 0 || (number++ == 0 && n > 9 && !memcmp(line, "#version:", 9))) continue;
        if (!token_import_left(merge).data)
            return status_fail(st, STATUS_FORMAT, "merge %llu: '%.*s' does not have two parts",
                               (unsigned long long)t->n_merges, token_import_shown(merge), line);
        t->merges[t->n_merges++] = merge;
    }
    return true;
}
