// Places and frames: each is there once, known by its number.
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/grammar/machine_state.h"

bool machine_work(struct machine *m, uint64_t steps) {
    m->work += steps;
    if (m->failed.code) return false;
    if (m->work <= MACHINE_MOST_WORK) return true;
    return status_fail(&m->failed, STATUS_LIMIT, "the grammar is too ambiguous: a token takes too many steps");
}

// From half way on others are given a new machine, so that whoever has this one can go on.
static bool has_room(struct machine *m, uint32_t n, uint32_t most) {
    if (n >= most / 2) atomic_store(&m->full, true);
    if (n < most) return true;
    return status_fail(&m->failed, STATUS_LIMIT, "the grammar takes too much memory");
}

// ---- tables ----

static uint64_t mix(uint64_t h, uint64_t value) {
    h = (h ^ value) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static void table_place(struct id_table *t, uint64_t hash, uint32_t id) {
    uint32_t at = (uint32_t)hash & (t->capacity - 1);
    while (t->slots[at]) at = (at + 1) & (t->capacity - 1);
    t->slots[at] = id;
}

// Room for one more; the hashes of those that are there come from `hash`.
static void table_grow(struct machine *m, struct id_table *t, uint64_t (*hash)(const struct machine *m, uint32_t id)) {
    if (2 * (t->n + 1) <= t->capacity) return;
    const struct id_table old = *t;
    t->capacity = old.capacity ? 2 * old.capacity : 64;
    t->slots = xcalloc(t->capacity, sizeof *t->slots);
    for (uint32_t i = 0; i < old.capacity; i++)
        if (old.slots[i]) table_place(t, hash(m, old.slots[i]), old.slots[i]);
    free(old.slots);
}

// ---- frames ----

static uint64_t hash_pair(uint32_t state, uint32_t frame) { return mix(mix(1, state), frame); }

static uint64_t hash_frame(const struct machine *m, uint32_t id) {
    return hash_pair(m->frames[id].state, m->frames[id].below);
}

uint32_t frame_push(struct machine *m, uint32_t state, uint32_t below) {
    if (state == AUTOMATON_END) return below; // nothing to do there
    struct id_table *t = &m->frame_table;
    table_grow(m, t, hash_frame);
    const uint64_t hash = hash_pair(state, below);
    for (uint32_t at = (uint32_t)hash & (t->capacity - 1), id; (id = t->slots[at]); at = (at + 1) & (t->capacity - 1))
        if (m->frames[id].state == state && m->frames[id].below == below) return id;
    if (!has_room(m, m->n_frames, MACHINE_MOST_FRAMES)) return below;
    if (m->n_frames == m->frames_capacity) {
        m->frames_capacity *= 2;
        m->frames = xrealloc(m->frames, m->frames_capacity * sizeof *m->frames);
    }
    const uint32_t id = m->n_frames++;
    m->frames[id] = (struct frame){.state = state, .below = below, .depth = m->frames[below].depth + 1};
    table_place(t, hash, id);
    t->n++;
    return id;
}

static void note_state(struct machine *m, uint32_t state) {
    if (m->n_states == m->states_capacity) {
        m->states_capacity = m->states_capacity ? 2 * m->states_capacity : 64;
        m->states = xrealloc(m->states, m->states_capacity * sizeof *m->states);
    }
    m->states[m->n_states++] = state;
}

uint32_t frame_on(struct machine *m, uint32_t frame, uint32_t bottom, uint32_t other, enum likeness like) {
    m->n_states = 0;
    for (; frame != bottom; frame = m->frames[frame].below) note_state(m, m->frames[frame].state);
    while (m->n_states) {
        const uint32_t state = m->states[--m->n_states];
        other = frame_push(m, state_like(m, state, like), other);
    }
    return other;
}

// ---- places ----

static uint64_t hash_items(const struct place_item *items, uint32_t n) {
    uint64_t h = n;
    for (uint32_t i = 0; i < n; i++) h = mix(mix(h, items[i].state), items[i].frame);
    return h;
}

static uint64_t hash_place(const struct machine *m, uint32_t id) {
    return hash_items(m->items + m->places[id].first, m->places[id].n);
}

struct place_item place_settled(const struct machine *m, uint32_t state, uint32_t frame) {
    if (state == AUTOMATON_END && frame) return (struct place_item){m->frames[frame].state, m->frames[frame].below};
    return (struct place_item){state, frame};
}

static bool make_room(struct machine *m, uint32_t n) {
    if (!has_room(m, m->n_places, MACHINE_MOST_PLACES) || !has_room(m, m->n_items, 16 * MACHINE_MOST_PLACES))
        return false;
    if (m->n_places == m->places_capacity) {
        m->places_capacity *= 2;
        m->places = xrealloc(m->places, m->places_capacity * sizeof *m->places);
        m->next = xrealloc(m->next, (size_t)m->places_capacity * (size_t)m->automaton->n_classes * sizeof *m->next);
    }
    while (m->n_items + n > m->items_capacity) {
        m->items_capacity *= 2;
        m->items = xrealloc(m->items, m->items_capacity * sizeof *m->items);
    }
    return true;
}

uint32_t place_of(struct machine *m, struct place_item *items, uint32_t n) {
    if (!n) return PLACE_DEAD;
    struct id_table *t = &m->place_table;
    table_grow(m, t, hash_place);
    const uint64_t hash = hash_items(items, n);
    for (uint32_t at = (uint32_t)hash & (t->capacity - 1), id; (id = t->slots[at]); at = (at + 1) & (t->capacity - 1))
        if (m->places[id].n == n && !memcmp(m->items + m->places[id].first, items, n * sizeof *items)) return id;
    if (!make_room(m, n)) return PLACE_DEAD;
    const uint32_t id = m->n_places++;
    m->places[id] = (struct place){.first = m->n_items, .n = n};
    memcpy(m->items + m->n_items, items, n * sizeof *items);
    m->n_items += n;
    table_place(t, hash, id);
    t->n++;
    return id;
}

static int by_state(const void *a, const void *b) {
    const struct place_item *x = a, *y = b;
    if (x->state != y->state) return x->state < y->state ? -1 : 1;
    return x->frame < y->frame ? -1 : x->frame > y->frame;
}

uint32_t place_sort(struct place_item *items, uint32_t n) {
    uint32_t kept = 0;
    if (n > 1) qsort(items, n, sizeof *items, by_state);
    for (uint32_t i = 0; i < n; i++)
        if (!i || by_state(&items[i - 1], &items[i])) items[kept++] = items[i];
    return kept;
}

uint32_t place_like(struct machine *m, uint32_t place, enum likeness like) {
    struct place_item items[PLACE_MOST_ITEMS];
    const uint32_t first = m->places[place].first, n = m->places[place].n;
    for (uint32_t i = 0; i < n; i++) {
        const struct place_item item = m->items[first + i];
        items[i] = place_settled(m, state_like(m, item.state, like), frame_on(m, item.frame, 0, 0, like));
    }
    return place_of(m, items, place_sort(items, n));
}

uint32_t place_twin(struct machine *m, uint32_t place) {
    if (m->places[place].twin != PLACE_DEAD) return m->places[place].twin;
    const uint32_t twin = place_like(m, place, LIKE_TWINS);
    m->places[place].twin = twin;
    return twin;
}

uint32_t place_behind(struct machine *m, uint32_t frame) {
    return place_of(m, &(struct place_item){m->frames[frame].state, 0}, 1);
}

// ---- what follows a place ----

static void add_to_closure(struct machine *m, uint32_t state, uint32_t frame) {
    struct id_table *t = &m->seen;
    const uint32_t mask = t->capacity - 1;
    uint32_t at = (uint32_t)hash_pair(state, frame) & mask;
    for (uint32_t i; (i = t->slots[at]); at = (at + 1) & mask)
        if (m->closure[i - 1].state == state && m->closure[i - 1].frame == frame) return;
    if (m->n_closure == PLACE_MOST_ITEMS) {
        status_fail(&m->failed, STATUS_LIMIT, "the grammar is too ambiguous (maximum %d ways at once)",
                    PLACE_MOST_ITEMS);
        return;
    }
    m->slots[m->n_closure] = at;
    m->closure[m->n_closure] = (struct place_item){state, frame};
    t->slots[at] = ++m->n_closure;
}

static void add_target(struct machine *m, uint32_t class, uint32_t state, uint32_t frame) {
    if (m->n_targets == m->targets_capacity) {
        m->targets_capacity *= 2;
        m->targets = xrealloc(m->targets, m->targets_capacity * sizeof *m->targets);
    }
    m->targets[m->n_targets++] = (struct closure_target){place_settled(m, state, frame), class};
}

// The edges of one item; rules that they enter, and what is behind one that may be over, become further items.
static void follow_item(struct machine *m, struct place *p, struct place_item item) {
    const struct automaton *a = m->automaton;
    const struct automaton_state *state = &a->states[item.state];
    if (state->ends && item.frame) add_to_closure(m, m->frames[item.frame].state, m->frames[item.frame].below);
    p->ends |= state->ends && !item.frame;
    for (uint32_t i = state->first; i < state->first + state->n && !m->failed.code; i++) {
        const struct automaton_edge *e = &a->edges[i];
        if (e->rule) {
            add_to_closure(m, e->rule, frame_push(m, e->to, item.frame));
            continue;
        }
        for (uint32_t k = a->classes[e->low]; k <= a->classes[e->high]; k++) add_target(m, k, e->to, item.frame);
    }
}

static int by_class(const void *a, const void *b) {
    const struct closure_target *x = a, *y = b;
    if (x->class != y->class) return x->class < y->class ? -1 : 1;
    if (x->item.state != y->item.state) return x->item.state < y->item.state ? -1 : 1;
    return x->item.frame < y->item.frame ? -1 : x->item.frame > y->item.frame;
}

// One place for each class; targets[from .. to) are of it.
static uint32_t place_of_targets(struct machine *m, uint32_t from, uint32_t to) {
    struct place_item items[PLACE_MOST_ITEMS];
    uint32_t n = 0;
    for (uint32_t i = from; i < to; i++) {
        const struct place_item item = m->targets[i].item;
        if (n && items[n - 1].state == item.state && items[n - 1].frame == item.frame) continue;
        if (n == PLACE_MOST_ITEMS) {
            status_fail(&m->failed, STATUS_LIMIT, "the grammar is too ambiguous (maximum %d ways at once)",
                        PLACE_MOST_ITEMS);
            return PLACE_DEAD;
        }
        items[n++] = item;
    }
    return place_of(m, items, n);
}

static void set_next(struct machine *m, uint32_t place) {
    const size_t n_classes = (size_t)m->automaton->n_classes;
    memset(m->next + place * n_classes, 0, n_classes * sizeof *m->next);
    if (m->n_targets > 1) qsort(m->targets, m->n_targets, sizeof *m->targets, by_class);
    for (uint32_t i = 0, end; i < m->n_targets && !m->failed.code; i = end) {
        end = i + 1;
        while (end < m->n_targets && m->targets[end].class == m->targets[i].class) end++;
        const uint32_t next = place_of_targets(m, i, end); // may move m->next
        m->next[place * n_classes + m->targets[i].class] = next;
    }
}

// What fails is not known, and found out again by a later call.
void place_know(struct machine *m, uint32_t place) {
    struct place known = m->places[place];
    for (uint32_t i = 0; i < m->n_closure; i++) m->seen.slots[m->slots[i]] = 0;
    m->n_closure = m->n_targets = 0;
    for (uint32_t i = 0; i < known.n; i++)
        add_to_closure(m, m->items[known.first + i].state, m->items[known.first + i].frame);
    for (uint32_t i = 0; i < m->n_closure && !m->failed.code; i++) follow_item(m, &known, m->closure[i]);
    machine_work(m, m->n_closure + m->n_targets + 1);
    set_next(m, place);
    known.goes_on = m->n_targets > 0;
    known.known = !m->failed.code;
    m->places[place].ends = known.ends;
    m->places[place].goes_on = known.goes_on;
    m->places[place].known = known.known;
}

void machine_open_places(struct machine *m) {
    m->frames_capacity = 64;
    m->frames = xcalloc(m->frames_capacity, sizeof *m->frames);
    m->n_frames = 1; // the bottom
    m->places_capacity = 64;
    m->places = xcalloc(m->places_capacity, sizeof *m->places);
    m->next = xcalloc((size_t)m->places_capacity * (size_t)m->automaton->n_classes, sizeof *m->next);
    m->n_places = 1; // PLACE_DEAD
    m->places[PLACE_DEAD].known = true;
    m->items_capacity = 256;
    m->items = xmalloc(m->items_capacity * sizeof *m->items);
    m->targets_capacity = 256;
    m->targets = xmalloc(m->targets_capacity * sizeof *m->targets);
    m->seen.capacity = 2 * PLACE_MOST_ITEMS;
    m->seen.slots = xcalloc(m->seen.capacity, sizeof *m->seen.slots);
}

void machine_close_places(struct machine *m) {
    free(m->frames), free(m->frame_table.slots);
    free(m->places), free(m->place_table.slots);
    free(m->items), free(m->next), free(m->targets), free(m->seen.slots);
}
