#include "engine/grammar/automaton.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/grammar/automaton_build.h"

// Empty edges are followed while states are taken over: each gets the edges of all that it leads to by empty ones.
struct elimination {
    struct automaton *a;
    const struct raw *raw;
    uint32_t *ids;              // by raw state; RAW_NONE: not taken over yet
    uint32_t *wanted, n_wanted; // raw states that have an id and no edges yet
    uint32_t *seen, stamp;      // by raw state
    uint32_t *stack;
    bool *is_end; // by raw state
    uint32_t states_capacity, edges_capacity;
    size_t n_followed; // empty edges
};

static uint32_t add_state(struct elimination *x) {
    struct automaton *a = x->a;
    if (a->n_states == x->states_capacity) {
        x->states_capacity = x->states_capacity ? 2 * x->states_capacity : 256;
        a->states = xrealloc(a->states, x->states_capacity * sizeof *a->states);
    }
    a->states[a->n_states] = (struct automaton_state){0};
    return a->n_states++;
}

static bool add_edge(struct elimination *x, const struct automaton_edge *edge, struct status *st) {
    struct automaton *a = x->a;
    if (a->n_edges == AUTOMATON_MOST_EDGES)
        return status_fail(st, STATUS_LIMIT, "the grammar is too large (maximum %d edges)", AUTOMATON_MOST_EDGES);
    if (a->n_edges == x->edges_capacity) {
        x->edges_capacity = x->edges_capacity ? 2 * x->edges_capacity : 1024;
        a->edges = xrealloc(a->edges, x->edges_capacity * sizeof *a->edges);
    }
    a->edges[a->n_edges++] = *edge;
    return true;
}

// A raw state that only ends its rule is AUTOMATON_END, but for the start of a rule.
static bool only_ends(struct elimination *x, uint32_t state) {
    for (; !x->is_end[state]; x->n_followed++) {
        const uint32_t first = x->raw->first[state];
        if (first == RAW_NONE) return false;
        const struct raw_edge *e = &x->raw->edges[first];
        if (e->kind != RAW_EMPTY || e->next != RAW_NONE) return false;
        state = e->to;
    }
    return true;
}

static uint32_t id_of(struct elimination *x, uint32_t state, bool is_start) {
    if (!is_start && only_ends(x, state)) return AUTOMATON_END;
    if (x->ids[state] == RAW_NONE) {
        x->ids[state] = add_state(x);
        x->wanted[x->n_wanted++] = state;
    }
    return x->ids[state];
}

static bool take_over(struct elimination *x, uint32_t state, struct status *st) {
    const struct raw *raw = x->raw;
    const uint32_t id = x->ids[state], first = x->a->n_edges;
    uint32_t n = 0;
    x->stamp++;
    x->seen[state] = x->stamp;
    x->stack[n++] = state;
    bool ends = false;
    while (n) {
        const uint32_t at = x->stack[--n];
        ends |= x->is_end[at];
        for (uint32_t i = raw->first[at]; i != RAW_NONE; i = raw->edges[i].next) {
            const struct raw_edge *e = &raw->edges[i];
            if (x->n_followed > AUTOMATON_MOST_FOLLOWED)
                return status_fail(st, STATUS_LIMIT, "the grammar is too ambiguous");
            if (e->kind == RAW_EMPTY) {
                if (x->seen[e->to] != x->stamp) x->stack[n++] = e->to;
                x->seen[e->to] = x->stamp;
                x->n_followed++;
                continue;
            }
            const uint32_t to = id_of(x, e->to, false);
            const uint32_t rule = e->kind == RAW_RULE ? id_of(x, raw->starts[e->rule], true) : 0;
            const struct automaton_edge edge = {.to = to, .rule = rule, .low = e->low, .high = e->high};
            if (!add_edge(x, &edge, st)) return false;
        }
    }
    x->a->states[id] = (struct automaton_state){.first = first, .n = x->a->n_edges - first, .ends = ends};
    return true;
}

static bool eliminate(struct elimination *x, struct status *st) {
    const struct raw *raw = x->raw;
    add_state(x);
    x->a->states[AUTOMATON_END].ends = true;
    x->a->start = id_of(x, raw->starts[raw->rules->root], true);
    x->a->start_spaced = id_of(x, raw->starts[raw->rules->spaced], true);
    while (x->n_wanted)
        if (!take_over(x, x->wanted[--x->n_wanted], st)) return false;
    for (uint32_t i = 0; i < raw->n_states; i++) {
        const uint32_t id = x->ids[i], twin = x->ids[raw->twins[i]], origin = x->ids[raw->origins[i]];
        if (id == RAW_NONE) continue;
        x->a->states[id].twin = twin != RAW_NONE ? twin : id;
        x->a->states[id].origin = origin != RAW_NONE ? origin : id;
    }
    return true;
}

// Bytes between which no range of an edge begins or ends are alike.
static void find_classes(struct automaton *a) {
    bool begins[257] = {true};
    for (uint32_t i = 0; i < a->n_edges; i++) {
        if (a->edges[i].rule) continue;
        begins[a->edges[i].low] = true;
        begins[a->edges[i].high + 1] = true;
    }
    a->n_classes = 0;
    for (int b = 0; b < 256; b++) {
        a->n_classes += begins[b];
        a->classes[b] = (uint8_t)(a->n_classes - 1);
    }
}

static bool build(struct automaton *a, const struct raw *raw, struct status *st) {
    const size_t n = raw->n_states;
    struct elimination x = {.a = a,
                            .raw = raw,
                            .ids = xmalloc(n * sizeof *x.ids),
                            .wanted = xmalloc(n * sizeof *x.wanted),
                            .seen = xcalloc(n, sizeof *x.seen),
                            .stack = xmalloc(n * sizeof *x.stack),
                            .is_end = xcalloc(n, sizeof *x.is_end)};
    memset(x.ids, 0xff, n * sizeof *x.ids);
    for (int i = 0; i < raw->rules->n; i++) x.is_end[raw->ends[i]] = true;
    const bool done = eliminate(&x, st);
    uint32_t *starts = xcalloc((size_t)raw->rules->n, sizeof *starts);
    for (int i = 0; i < raw->rules->n; i++) {
        const uint32_t id = x.ids[raw->starts[i]];
        starts[i] = id == RAW_NONE ? 0 : id;
    }
    free(x.ids), free(x.wanted), free(x.seen), free(x.stack), free(x.is_end);
    const bool ok = done && automaton_check(a, raw->rules, starts, st);
    free(starts);
    if (ok) find_classes(a);
    return ok;
}

bool automaton_build(struct automaton *a, const struct rules *r, struct status *st) {
    struct raw raw;
    *a = (struct automaton){0};
    const bool ok = raw_build(&raw, r, st) && build(a, &raw, st);
    raw_free(&raw);
    if (!ok) automaton_free(a);
    return ok;
}

void automaton_free(struct automaton *a) {
    free(a->states);
    free(a->edges);
    *a = (struct automaton){0};
}
