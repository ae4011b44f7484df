// An automaton in the making, shared by automaton.c (its states), automaton_raw.c (from expressions, with empty edges)
// and automaton_check.c (what may not be).
#ifndef CONFAB_GRAMMAR_AUTOMATON_BUILD_H
#define CONFAB_GRAMMAR_AUTOMATON_BUILD_H

#include "engine/grammar/automaton.h"

#define RAW_NONE UINT32_MAX

enum {
    AUTOMATON_MOST_ADDED = 1 << 21,   // expressions, as often as they are repeated, and bytes of texts
    AUTOMATON_MOST_FOLLOWED = 1 << 22 // empty edges that are followed
};

enum raw_kind { RAW_EMPTY, RAW_BYTES, RAW_RULE };

struct raw_edge {
    uint32_t to, next; // of the same state's, RAW_NONE: the last
    enum raw_kind kind;
    int rule;
    uint8_t low, high;
};

struct raw {
    const struct rules *rules;
    uint32_t *first;           // edge, by state
    uint32_t *twins, *origins; // by state, as of struct automaton_state
    struct raw_edge *edges;
    uint32_t n_states, n_edges, states_capacity, edges_capacity;
    uint32_t *starts, *ends; // states, by rule
    bool *inlined;           // by rule
    size_t n_added;
    struct status status; // why it failed
};

// From the rules, whose bodies are all there. Fails where there is too much.
bool raw_build(struct raw *raw, const struct rules *r, struct status *st);
void raw_free(struct raw *raw);

// Removes edges that lead to no end. Fails where the root matches nothing, or a rule begins with itself.
bool automaton_check(struct automaton *a, const struct rules *r, const uint32_t *starts, struct status *st);

#endif
