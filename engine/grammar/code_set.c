#include "engine/grammar/code_set.h"

#include <stdlib.h>
#include <string.h>

void code_set_add(struct arena *a, struct code_set *s, uint32_t first, uint32_t last) {
    if (s->count == s->capacity) {
        struct code_range *old = s->ranges;
        s->capacity = s->capacity ? 2 * s->capacity : 8;
        s->ranges = arena_alloc(a, s->capacity * sizeof *s->ranges);
        if (old) memcpy(s->ranges, old, s->count * sizeof *old);
    }
    s->ranges[s->count++] = (struct code_range){first, last};
}

void code_set_add_all(struct arena *a, struct code_set *s, const struct code_set *other) {
    for (size_t i = 0; i < other->count; i++) code_set_add(a, s, other->ranges[i].first, other->ranges[i].last);
}

static int by_first(const void *a, const void *b) {
    const struct code_range *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

void code_set_settle(struct code_set *s) {
    size_t n = 0;
    if (s->count) qsort(s->ranges, s->count, sizeof *s->ranges, by_first);
    for (size_t i = 0; i < s->count; i++) {
        const struct code_range r = s->ranges[i];
        if (n && r.first <= s->ranges[n - 1].last + 1) {
            if (r.last > s->ranges[n - 1].last) s->ranges[n - 1].last = r.last;
        } else s->ranges[n++] = r;
    }
    s->count = n;
}

struct code_set code_set_complement(struct arena *a, const struct code_set *s) {
    struct code_set out = {0};
    uint32_t next = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (s->ranges[i].first > next) code_set_add(a, &out, next, s->ranges[i].first - 1);
        next = s->ranges[i].last + 1;
    }
    if (next <= CODE_LAST) code_set_add(a, &out, next, CODE_LAST);
    return out;
}

struct code_set code_set_common(struct arena *a, const struct code_set *s, const struct code_set *other) {
    struct code_set out = {0};
    for (size_t i = 0, k = 0; i < s->count && k < other->count;) {
        const struct code_range x = s->ranges[i], y = other->ranges[k];
        const uint32_t first = x.first > y.first ? x.first : y.first, last = x.last < y.last ? x.last : y.last;
        if (first <= last) code_set_add(a, &out, first, last);
        if (x.last < y.last) i++;
        else k++;
    }
    return out;
}
