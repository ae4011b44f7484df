// What an automaton may not be: without an end, or with rules that begin with themselves.
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/grammar/automaton_build.h"

// ---- states from which something can be reached ----

// Edges by the states that they depend on: where they lead to, and where the rule that they go through starts.
struct dependents {
    uint32_t *first, *edges, *from; // [n_states + 1] into edges; edges; [n_edges] the state that an edge leaves
};

static void count_dependent(struct dependents *d, const struct automaton_edge *e) {
    d->first[e->to + 1]++;
    if (e->rule) d->first[e->rule + 1]++;
}

static struct dependents find_dependents(const struct automaton *a) {
    struct dependents d = {.first = xcalloc((size_t)a->n_states + 2, sizeof *d.first),
                           .edges = xmalloc(((size_t)2 * a->n_edges + 1) * sizeof *d.edges),
                           .from = xmalloc(((size_t)a->n_edges + 1) * sizeof *d.from)};
    for (uint32_t i = 0; i < a->n_edges; i++) count_dependent(&d, &a->edges[i]);
    for (uint32_t s = 0; s < a->n_states; s++) d.first[s + 1] += d.first[s];
    uint32_t *at = xmalloc(((size_t)a->n_states + 1) * sizeof *at);
    memcpy(at, d.first, ((size_t)a->n_states + 1) * sizeof *at);
    for (uint32_t s = 0; s < a->n_states; s++) {
        for (uint32_t i = a->states[s].first; i < a->states[s].first + a->states[s].n; i++) {
            d.from[i] = s;
            d.edges[at[a->edges[i].to]++] = i;
            if (a->edges[i].rule) d.edges[at[a->edges[i].rule]++] = i;
        }
    }
    free(at);
    return d;
}

static void free_dependents(struct dependents *d) {
    free(d->first);
    free(d->edges);
    free(d->from);
}

// The states from which a rule can be brought to its end: by any text, or without one.
static bool *find_ending(const struct automaton *a, const struct dependents *d, bool without_text) {
    bool *ending = xcalloc(a->n_states, sizeof *ending);
    uint32_t *stack = xmalloc((size_t)a->n_states * sizeof *stack), n = 0;
    for (uint32_t s = 0; s < a->n_states; s++)
        if ((ending[s] = a->states[s].ends)) stack[n++] = s;
    while (n) {
        const uint32_t s = stack[--n];
        for (uint32_t k = d->first[s]; k < d->first[s + 1]; k++) {
            const struct automaton_edge *e = &a->edges[d->edges[k]];
            const uint32_t from = d->from[d->edges[k]];
            const bool passes = e->rule ? ending[e->rule] : !without_text;
            if (ending[from] || !ending[e->to] || !passes) continue;
            ending[from] = true;
            stack[n++] = from;
        }
    }
    free(stack);
    return ending;
}

// Edges that lead to no end are taken out; a state that only ends its rule is AUTOMATON_END.
static void keep_ending(struct automaton *a, const bool *ending) {
    for (uint32_t s = 0; s < a->n_states; s++) {
        struct automaton_state *state = &a->states[s];
        uint32_t n = 0;
        for (uint32_t i = state->first; i < state->first + state->n; i++) {
            const struct automaton_edge e = a->edges[i];
            if (ending[e.to] && (!e.rule || ending[e.rule])) a->edges[state->first + n++] = e;
        }
        state->n = n;
    }
    for (uint32_t i = 0; i < a->n_edges; i++)
        if (!a->states[a->edges[i].to].n) a->edges[i].to = AUTOMATON_END;
}

// ---- rules that begin with themselves ----

struct beginnings {
    const struct automaton *a;
    const bool *empty; // by state: its rule may be over without a text
    uint8_t *marks;    // by start of a rule: 0, being looked at, done
    uint32_t *seen, stamp;
};

enum { MARK_OPEN = 1, MARK_DONE };

// The starts of the rules that may be entered from `start` before any byte, into `out`; returns how many.
static uint32_t entered(struct beginnings *b, uint32_t start, uint32_t *out, uint32_t *stack) {
    uint32_t n = 0, n_stack = 0;
    b->stamp++;
    b->seen[start] = b->stamp;
    stack[n_stack++] = start;
    while (n_stack) {
        const struct automaton_state *s = &b->a->states[stack[--n_stack]];
        for (uint32_t i = s->first; i < s->first + s->n; i++) {
            const struct automaton_edge *e = &b->a->edges[i];
            if (!e->rule) continue;
            out[n++] = e->rule;
            if (!b->empty[e->rule] || b->seen[e->to] == b->stamp) continue;
            b->seen[e->to] = b->stamp;
            stack[n_stack++] = e->to;
        }
    }
    return n;
}

struct visit {
    uint32_t start;
    uint32_t *next, n; // rules entered from it
};

// Depth first from one rule; returns the start of a rule that is entered again from itself, 0: none.
static uint32_t find_cycle(struct beginnings *b, uint32_t root, struct visit *visits, uint32_t *out, uint32_t *stack) {
    uint32_t n = 0, found = 0;
    visits[n++] = (struct visit){.start = root, .n = UINT32_MAX};
    while (n) {
        struct visit *v = &visits[n - 1];
        if (v->n == UINT32_MAX) {
            b->marks[v->start] = MARK_OPEN;
            v->n = entered(b, v->start, out, stack);
            v->next = xmalloc(((size_t)v->n + 1) * sizeof *v->next);
            memcpy(v->next, out, v->n * sizeof *out);
        }
        if (found || !v->n) {
            b->marks[v->start] = MARK_DONE;
            free(v->next);
            n--;
            continue;
        }
        const uint32_t next = v->next[--v->n];
        if (b->marks[next] == MARK_OPEN) found = next;
        else if (!b->marks[next]) visits[n++] = (struct visit){.start = next, .n = UINT32_MAX};
    }
    return found;
}

static bool check_beginnings(const struct automaton *a, const struct rules *r, const uint32_t *starts,
                             const bool *empty, struct status *st) {
    struct beginnings b = {.a = a,
                           .empty = empty,
                           .marks = xcalloc(a->n_states, sizeof *b.marks),
                           .seen = xcalloc(a->n_states, sizeof *b.seen)};
    struct visit *visits = xmalloc(((size_t)r->n + 1) * sizeof *visits);
    uint32_t *out = xmalloc(((size_t)a->n_edges + 1) * sizeof *out);
    uint32_t *stack = xmalloc((size_t)a->n_states * sizeof *stack);
    uint32_t found = 0;
    for (int i = 0; i < r->n && !found; i++)
        if (starts[i] && !b.marks[starts[i]]) found = find_cycle(&b, starts[i], visits, out, stack);
    for (int i = 0; i < r->n && found; i++) {
        if (starts[i] != found) continue;
        status_fail(st, STATUS_UNSUPPORTED, "rule '%.100s' begins with itself (left recursion)", r->rules[i].name);
        break;
    }
    free(b.marks), free(b.seen), free(visits), free(out), free(stack);
    return !found;
}

bool automaton_check(struct automaton *a, const struct rules *r, const uint32_t *starts, struct status *st) {
    struct dependents d = find_dependents(a);
    bool *ending = find_ending(a, &d, false), *empty = find_ending(a, &d, true);
    const bool matches = ending[a->start];
    keep_ending(a, ending);
    const bool ok = matches ? check_beginnings(a, r, starts, empty, st)
                            : status_fail(st, STATUS_FORMAT, "the grammar matches no text");
    free(ending);
    free(empty);
    free_dependents(&d);
    return ok;
}
