// Code set: a set of Unicode characters, as ranges in an arena. Surrogates in a range stand for nothing: no text has
// any.
#ifndef CONFAB_GRAMMAR_CODE_SET_H
#define CONFAB_GRAMMAR_CODE_SET_H

#include "engine/base/arena.h"

#define CODE_LAST 0x10FFFFu

struct code_range {
    uint32_t first, last;
};

struct code_set {
    struct code_range *ranges;
    size_t count, capacity;
};

void code_set_add(struct arena *a, struct code_set *s, uint32_t first, uint32_t last);
void code_set_add_all(struct arena *a, struct code_set *s, const struct code_set *other);
// Sorts and joins the ranges.
void code_set_settle(struct code_set *s);
// Of settled sets; the results are settled.
struct code_set code_set_complement(struct arena *a, const struct code_set *s);
struct code_set code_set_common(struct arena *a, const struct code_set *s, const struct code_set *other);

#endif
