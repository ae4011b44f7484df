// Opens a model by path, joining split models: "NAME-00001-of-00003.gguf" and so on, each a complete GGUF file with
// split.no (from 0), split.count and split.tensors.count (of all parts). The first part has the model's keys.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/base/split_name.h"
#include "engine/format/gguf_parts.h"

struct split {
    const char *path; // of the part the user named
    struct split_name name;
    struct gguf *parts; // [name.count]
};

static bool check_part(const struct gguf *part, int number, int count, struct status *st) {
    int64_t no = 0, of = 0;
    if (!gguf_get_int(part, "split.no", GGUF_REQUIRED, 0, UINT16_MAX, &no, st) ||
        !gguf_get_int(part, "split.count", GGUF_REQUIRED, 0, UINT16_MAX, &of, st))
        return false;
    if (no == number - 1 && of == count) return true;
    return status_fail(st, STATUS_FORMAT, "%s: named part %d of %d but its keys say %lld of %lld", part->path, number,
                       count, (long long)no + 1, (long long)of);
}

static bool open_parts(struct split *s, struct status *st) {
    for (int i = 0; i < s->name.count; i++) {
        struct gguf *part = &s->parts[i];
        if (!part->path) { // not open yet
            char *path = split_name_of(s->path, &s->name, i + 1);
            bool opened = gguf_open_part(part, path, st);
            free(path);
            if (!opened) return status_prefix(st, "part %d of %d", i + 1, s->name.count);
        }
        if (!check_part(part, i + 1, s->name.count, st)) return false;
    }
    return true;
}

// Moves tensors and mappings of all parts to the first.
static bool merge_tensors(struct split *s, struct status *st) {
    struct gguf *first = &s->parts[0];
    uint64_t n = 0;
    int64_t claimed = -1;
    for (int i = 0; i < s->name.count; i++) n += s->parts[i].n_tensors;
    if (!gguf_get_int(first, "split.tensors.count", GGUF_OPTIONAL, 0, INT64_MAX, &claimed, st)) return false;
    if (claimed >= 0 && (uint64_t)claimed != n)
        return status_fail(st, STATUS_FORMAT, "%s: split.tensors.count is %lld but the %d parts have %llu tensors",
                           first->path, (long long)claimed, s->name.count, (unsigned long long)n);
    struct gguf_tensor *all = arena_array(&first->arena, n, sizeof *all, st);
    if (!all) return false;
    n = 0;
    for (int i = 0; i < s->name.count; i++) {
        struct gguf *part = &s->parts[i];
        if (part->n_tensors) memcpy(all + n, part->tensors, part->n_tensors * sizeof *all);
        n += part->n_tensors;
        for (int k = 0; i > 0 && k < part->n_mappings; k++) gguf_own_mapping(first, part->mappings[k]);
        if (i > 0) part->n_mappings = 0;
    }
    first->tensors = all;
    first->n_tensors = n;
    return gguf_sort_tensors(first, st) || status_prefix(st, "%s", first->path);
}

// g is the part the user named; afterwards it holds all parts.
static bool open_split(struct gguf *g, struct split *s, struct status *st) {
    s->parts = xcalloc((size_t)s->name.count, sizeof *s->parts);
    s->parts[s->name.part - 1] = *g;
    bool merged = open_parts(s, st) && merge_tensors(s, st);
    for (int i = merged; i < s->name.count; i++) gguf_close(&s->parts[i]);
    *g = s->parts[0]; // closed on failure
    free(s->parts);
    uint64_t kept = 0;
    for (uint64_t i = 0; i < g->n_pairs; i++)
        if (g->pairs[i].key.size < 6 || memcmp(g->pairs[i].key.data, "split.", 6)) g->pairs[kept++] = g->pairs[i];
    g->n_pairs = kept;
    return merged;
}

bool gguf_open(struct gguf *g, const char *path, struct status *st) {
    int64_t count = 1;
    struct split s = {.path = path};
    if (!gguf_open_part(g, path, st)) return false;
    if (gguf_get_int(g, "split.count", GGUF_OPTIONAL, 0, UINT16_MAX, &count, st)) {
        if (count <= 1) return true;
        if (split_name_parse(path, &s.name)) return open_split(g, &s, st);
        status_fail(st, STATUS_FORMAT, "%s: one of %lld parts but not named like NAME-00001-of-%05lld.gguf", g->path,
                    (long long)count, (long long)count);
    }
    gguf_close(g);
    return false;
}
