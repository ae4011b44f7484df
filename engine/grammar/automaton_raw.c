// From expressions to states and edges, by Thompson's construction: between two given states.
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/base/utf8.h"
#include "engine/grammar/automaton_build.h"

enum {
    TOO_LARGE = 13, // sets and bytes of a rule, to be built into others
    INLINED_DEPTH = 100,
    SIZE_UNKNOWN = -1
};

static uint32_t add_state(struct raw *raw) {
    if (raw->n_states == raw->states_capacity) {
        raw->states_capacity = raw->states_capacity ? 2 * raw->states_capacity : 256;
        raw->first = xrealloc(raw->first, raw->states_capacity * sizeof *raw->first);
        raw->twins = xrealloc(raw->twins, raw->states_capacity * sizeof *raw->twins);
        raw->origins = xrealloc(raw->origins, raw->states_capacity * sizeof *raw->origins);
    }
    raw->first[raw->n_states] = RAW_NONE;
    raw->twins[raw->n_states] = raw->origins[raw->n_states] = raw->n_states;
    return raw->n_states++;
}

static void add_edge(struct raw *raw, uint32_t from, struct raw_edge edge) {
    if (raw->n_edges == raw->edges_capacity) {
        raw->edges_capacity = raw->edges_capacity ? 2 * raw->edges_capacity : 1024;
        raw->edges = xrealloc(raw->edges, raw->edges_capacity * sizeof *raw->edges);
    }
    edge.next = raw->first[from];
    raw->first[from] = raw->n_edges;
    raw->edges[raw->n_edges++] = edge;
}

static void add_empty(struct raw *raw, uint32_t from, uint32_t to) {
    add_edge(raw, from, (struct raw_edge){.to = to, .kind = RAW_EMPTY});
}

static void add_bytes(struct raw *raw, uint32_t from, uint32_t to, uint8_t low, uint8_t high) {
    add_edge(raw, from, (struct raw_edge){.to = to, .kind = RAW_BYTES, .low = low, .high = high});
}

static bool is_full(struct raw *raw) {
    if (raw->n_states < AUTOMATON_MOST_STATES && raw->n_edges < AUTOMATON_MOST_EDGES &&
        raw->n_added <= AUTOMATON_MOST_ADDED)
        return false;
    if (!raw->status.code)
        status_fail(&raw->status, STATUS_LIMIT, "the grammar is too large (maximum %d states)", AUTOMATON_MOST_STATES);
    return true;
}

// ---- characters ----

// One byte after the other; an edge that is there already is taken again, so that ranges share what they begin with.
static uint32_t follow(struct raw *raw, uint32_t from, uint8_t low, uint8_t high) {
    const uint32_t newest = raw->first[from];
    if (newest != RAW_NONE) {
        const struct raw_edge *e = &raw->edges[newest];
        if (e->kind == RAW_BYTES && e->low == low && e->high == high) return e->to;
    }
    const uint32_t state = add_state(raw);
    add_bytes(raw, from, state, low, high);
    return state;
}

// The characters first … last, whose encodings have the same number of bytes: cut until every byte has a range of its
// own, whatever the others are.
static void add_encoded(struct raw *raw, uint32_t from, uint32_t to, uint32_t first, uint32_t last) {
    char low[4], high[4];
    const size_t n = utf8_encode(first, low);
    utf8_encode(last, high);
    for (size_t i = 1; i < n; i++) {
        const uint32_t mask = (1u << (6 * i)) - 1;
        if ((first & ~mask) == (last & ~mask)) continue;
        const uint32_t cut = first & mask ? first | mask : (last & ~mask) - 1;
        if (!(first & mask) && (last & mask) == mask) continue;
        add_encoded(raw, from, to, first, cut);
        add_encoded(raw, from, to, cut + 1, last);
        return;
    }
    for (size_t i = 0; i + 1 < n; i++) from = follow(raw, from, (uint8_t)low[i], (uint8_t)high[i]);
    add_bytes(raw, from, to, (uint8_t)low[n - 1], (uint8_t)high[n - 1]);
}

static void add_range(struct raw *raw, uint32_t from, uint32_t to, uint32_t first, uint32_t last) {
    static const struct code_range lengths[] = {
        {0, 0x7F}, {0x80, 0x7FF}, {0x800, 0xD7FF}, {0xE000, 0xFFFF}, {0x10000, CODE_LAST}};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const uint32_t low = first > lengths[i].first ? first : lengths[i].first,
                       high = last < lengths[i].last ? last : lengths[i].last;
        if (low <= high) add_encoded(raw, from, to, low, high);
    }
}

// ---- texts, as a tree of what they have in common ----

static int by_text(const void *a, const void *b) {
    return span_compare((*(const struct expression *const *)a)->text, (*(const struct expression *const *)b)->text);
}

static void add_texts(struct raw *raw, const struct expression *e, uint32_t from, uint32_t to) {
    const struct expression **sorted = xmalloc((size_t)e->n * sizeof *sorted);
    uint32_t *path = NULL; // states behind the bytes of the last text
    size_t longest = 0;
    memcpy(sorted, e->items, (size_t)e->n * sizeof *sorted);
    qsort(sorted, (size_t)e->n, sizeof *sorted, by_text);
    for (int i = 0; i < e->n; i++) {
        raw->n_added += 8 + sorted[i]->text.size;
        if (sorted[i]->text.size > longest) longest = sorted[i]->text.size;
    }
    path = xmalloc((longest + 1) * sizeof *path);
    path[0] = from;
    for (int i = 0; i < e->n && !is_full(raw); i++) {
        const struct span text = sorted[i]->text, before = i ? sorted[i - 1]->text : (struct span){"", 0};
        size_t common = 0;
        while (common < text.size && common < before.size && text.data[common] == before.data[common]) common++;
        if (i && common == text.size && common == before.size) continue; // the same again
        for (size_t k = common; k < text.size; k++) {
            path[k + 1] = add_state(raw);
            add_bytes(raw, path[k], path[k + 1], (uint8_t)text.data[k], (uint8_t)text.data[k]);
        }
        add_empty(raw, path[text.size], to);
    }
    free(path);
    free(sorted);
}

// ---- expressions ----

static void add(struct raw *raw, const struct expression *e, uint32_t from, uint32_t to);

static void add_sequence(struct raw *raw, const struct expression *const *items, int n, uint32_t from, uint32_t to) {
    if (!n) add_empty(raw, from, to);
    for (int i = 0; i < n && !is_full(raw); i++) {
        const uint32_t next = i == n - 1 ? to : add_state(raw);
        add(raw, items[i], from, next);
        from = next;
    }
}

// States from `begin` on are those of n repetitions, which all have as many: all have an origin in the first one, and
// all but the last ones twins there.
static void set_twins(struct raw *raw, uint32_t begin, int n) {
    if (n < 2 || is_full(raw)) return;
    const uint32_t size = (raw->n_states - begin) / (uint32_t)n;
    for (uint32_t i = begin + size; i < raw->n_states; i++) raw->origins[i] = raw->origins[i - size];
    if (n <= AUTOMATON_TWINS) return;
    const uint32_t later = (uint32_t)(n - AUTOMATON_TWINS) * size;
    for (uint32_t i = 0; i < later; i++) raw->twins[begin + i] = begin + later + i % size;
}

static void add_repeat(struct raw *raw, const struct expression *e, uint32_t from, uint32_t to) {
    const struct expression *item = e->items[0];
    uint32_t begin = raw->n_states;
    for (int i = 0; i < e->least && !is_full(raw); i++) {
        const uint32_t next = add_state(raw);
        add(raw, item, from, next);
        from = next;
    }
    set_twins(raw, begin, e->least);
    if (e->most == RULES_UNLIMITED) {
        const uint32_t loop = add_state(raw);
        add_empty(raw, from, loop);
        add(raw, item, loop, loop);
        from = loop;
    }
    begin = raw->n_states;
    for (int i = e->least; i < e->most && !is_full(raw); i++) {
        const uint32_t next = add_state(raw);
        add_empty(raw, from, to);
        add(raw, item, from, next);
        from = next;
    }
    set_twins(raw, begin, e->most - e->least);
    add_empty(raw, from, to);
}

static void add_rule(struct raw *raw, int rule, uint32_t from, uint32_t to) {
    if (raw->inlined[rule]) add(raw, raw->rules->rules[rule].body, from, to);
    else add_edge(raw, from, (struct raw_edge){.to = to, .kind = RAW_RULE, .rule = rule});
}

static void add(struct raw *raw, const struct expression *e, uint32_t from, uint32_t to) {
    raw->n_added++;
    if (is_full(raw)) return;
    switch (e->kind) {
    case EXPRESSION_NOTHING: break;
    case EXPRESSION_TEXT:
        for (size_t i = 0; i < e->text.size; i++) {
            const uint32_t next = i == e->text.size - 1 ? to : add_state(raw);
            add_bytes(raw, from, next, (uint8_t)e->text.data[i], (uint8_t)e->text.data[i]);
            from = next;
        }
        break;
    case EXPRESSION_SET:
        // Its bytes begin at a state of their own: edges there are those of this set alone.
        add_empty(raw, from, add_state(raw));
        from = raw->n_states - 1;
        for (size_t i = 0; i < e->set->count; i++)
            add_range(raw, from, to, e->set->ranges[i].first, e->set->ranges[i].last);
        break;
    case EXPRESSION_SEQUENCE: add_sequence(raw, e->items, e->n, from, to); break;
    case EXPRESSION_CHOICE:
        for (int i = 0; i < e->n; i++) add(raw, e->items[i], from, to);
        break;
    case EXPRESSION_TEXTS: add_texts(raw, e, from, to); break;
    case EXPRESSION_REPEAT: add_repeat(raw, e, from, to); break;
    case EXPRESSION_RULE: add_rule(raw, e->rule, from, to); break;
    }
}

// ---- rules ----

struct sizes {
    const struct rules *rules;
    int *of; // rules
    int depth;
};

// The sets and bytes that a rule is built into others with; TOO_LARGE at most.
static int size_of(struct sizes *s, const struct expression *e);

// A rule that is looked at already contains itself.
static int rule_size(struct sizes *s, int rule) {
    if (s->of[rule] != SIZE_UNKNOWN) return s->of[rule];
    s->of[rule] = TOO_LARGE;
    if (s->depth == INLINED_DEPTH) return TOO_LARGE;
    s->depth++;
    s->of[rule] = size_of(s, s->rules->rules[rule].body);
    s->depth--;
    return s->of[rule];
}

static int size_of(struct sizes *s, const struct expression *e) {
    int n = 0;
    switch (e->kind) {
    case EXPRESSION_TEXT: return e->text.size < TOO_LARGE ? (int)e->text.size : TOO_LARGE;
    case EXPRESSION_SET: return 1;
    case EXPRESSION_RULE: return rule_size(s, e->rule);
    default: break;
    }
    for (int i = 0; i < e->n && n < TOO_LARGE; i++) n += size_of(s, e->items[i]);
    if (e->kind == EXPRESSION_REPEAT) {
        const int times = e->most == RULES_UNLIMITED ? e->least + 1 : e->most;
        n = times < TOO_LARGE ? n * times : TOO_LARGE;
    }
    return n < TOO_LARGE ? n : TOO_LARGE;
}

bool raw_build(struct raw *raw, const struct rules *r, struct status *st) {
    const size_t n = (size_t)r->n;
    struct sizes sizes = {.rules = r, .of = xmalloc(n * sizeof *sizes.of)};
    *raw = (struct raw){.rules = r,
                        .starts = xcalloc(n, sizeof *raw->starts),
                        .ends = xcalloc(n, sizeof *raw->ends),
                        .inlined = xcalloc(n, sizeof *raw->inlined)};
    for (size_t i = 0; i < n; i++) sizes.of[i] = SIZE_UNKNOWN;
    for (size_t i = 0; i < n; i++) raw->inlined[i] = rule_size(&sizes, (int)i) < TOO_LARGE;
    for (size_t i = 0; i < n && !is_full(raw); i++) {
        raw->starts[i] = add_state(raw);
        raw->ends[i] = add_state(raw);
        add(raw, r->rules[i].body, raw->starts[i], raw->ends[i]);
    }
    free(sizes.of);
    if (raw->status.code && st) *st = raw->status;
    return !raw->status.code;
}

void raw_free(struct raw *raw) {
    free(raw->first);
    free(raw->twins);
    free(raw->origins);
    free(raw->edges);
    free(raw->starts);
    free(raw->ends);
    free(raw->inlined);
}
