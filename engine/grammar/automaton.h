// Automaton: the rules of a grammar as states with edges over bytes.
//
// An edge takes a byte of a range, or goes through another rule: enters it at its start and goes on behind it when it
// is over. So the automaton together with a stack of states to go on at is a pushdown automaton; where it is, with what
// stacks, is a place (machine.h). It is not deterministic, but has no empty edges, and from every state that can be
// reached there is a way to an end. Rules that are small and do not contain themselves are built into those that use
// them.
#ifndef CONFAB_GRAMMAR_AUTOMATON_H
#define CONFAB_GRAMMAR_AUTOMATON_H

#include "engine/grammar/rules.h"

enum {
    AUTOMATON_MOST_STATES = 1 << 18,
    AUTOMATON_MOST_EDGES = 1 << 19,
    AUTOMATON_TWINS = 32,
    AUTOMATON_END = 0 // every state that ends a rule and goes on nowhere is this one
};

struct automaton_edge {
    uint32_t to;
    uint32_t rule;     // its start; 0: takes a byte
    uint8_t low, high; // of the bytes
};

struct automaton_state {
    uint32_t first; // edge
    uint32_t n;
    // The same state of a later repetition where many are left: the next AUTOMATON_TWINS of them go on in the same way.
    // Itself where few are.
    uint32_t twin;
    uint32_t origin; // the same state of the first repetition
    bool ends;       // the rule may be over here
};

struct automaton {
    struct automaton_state *states;
    struct automaton_edge *edges;
    uint32_t n_states, n_edges;
    uint32_t start;        // of the root
    uint32_t start_spaced; // the same behind up to two line ends or spaces
    uint8_t classes[256];  // bytes of one class are alike everywhere
    int n_classes;
};

bool automaton_build(struct automaton *a, const struct rules *r, struct status *st);
void automaton_free(struct automaton *a);

#endif
