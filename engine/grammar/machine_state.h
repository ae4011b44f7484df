// The machine's insides, shared by machine.c (what callers see), place.c (places and frames) and mask.c.
#ifndef CONFAB_GRAMMAR_MACHINE_STATE_H
#define CONFAB_GRAMMAR_MACHINE_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/grammar/machine.h"

enum {
    PLACE_DEAD = 0, // nothing leads on from it; where calls fail, too
    PLACE_MOST_ITEMS = 4096,
    MACHINE_MOST_READINGS = 256
};
enum { PLAIN_UNKNOWN = 0 };                  // not needed yet
#define PLAIN_NONE          UINT32_MAX       // none leads on
#define PLAIN_SOME          (UINT32_MAX - 1) // some do, or to several places
#define MACHINE_MOST_PLACES (1u << 15)
#define MACHINE_MOST_FRAMES (1u << 19)
#define MACHINE_MOST_MASKS  (24u << 20) // bytes; then they are found out again
#define MACHINE_MOST_WORK   (6u << 20)  // steps of a call

struct frame {
    uint32_t state, below; // where to go on, and the frame then
    uint32_t depth;        // of frame 0, the bottom: 0
};

struct place_item {
    uint32_t state, frame;
};

// What may follow a place: tokens by a mask, as far as they do not lead below its bottom; and where some do.
struct mask {
    uint32_t *bits;
    const struct lexicon_tree *tree;
    uint32_t *exits; // nodes of the tree at which the bottom is reached and tokens go on
    uint32_t n_exits, capacity;
};

struct place {
    uint32_t first; // item
    uint32_t n;
    bool known;   // the rest of this, and where bytes lead
    bool ends;    // the bottom can be reached from it without another byte
    bool goes_on; // some byte leads on
    bool loops_known;
    uint16_t loops;    // kinds of bytes that all lead to the place itself, as bits
    uint32_t twin;     // the place whose mask it has; PLACE_DEAD: not needed yet
    uint32_t plain;    // the place to which all plain characters lead, or one of the below
    struct mask *mask; // NULL: not needed yet
};

struct id_table { // open addressing; 0: empty
    uint32_t *slots, n, capacity;
};

struct closure_target {
    struct place_item item;
    uint32_t class;
};

struct machine {
    const struct automaton *automaton;
    struct lexicon *lexicon;
    atomic_int references;
    pthread_mutex_t lock;
    atomic_int callers; // that wait for it
    atomic_bool prepared;
    struct status failed; // the call in progress

    struct frame *frames;
    uint32_t n_frames, frames_capacity;
    struct id_table frame_table;

    struct place *places;
    uint32_t n_places, places_capacity;
    struct place_item *items; // of all places
    uint32_t n_items, items_capacity;
    uint32_t *next; // [n_places][n_classes]
    struct id_table place_table;
    size_t mask_bytes;
    atomic_bool full;

    uint64_t work;
    // Of the place that is looked at.
    struct place_item closure[PLACE_MOST_ITEMS];
    uint32_t n_closure;
    struct id_table seen;             // of closure, by number + 1
    uint32_t slots[PLACE_MOST_ITEMS]; // of `seen` that are taken
    struct closure_target *targets;
    uint32_t n_targets, targets_capacity;
    uint32_t *path; // of a walk: a place a byte, [longest + 1]
    struct walk_task *tasks;
    uint32_t n_tasks, tasks_capacity;
    uint32_t *states; // of a frame, from the top down
    uint32_t n_states, states_capacity;
};

// ---- place.c ----

void machine_open_places(struct machine *m);
void machine_close_places(struct machine *m);
// Counts steps; false, and the call fails, where there were too many.
bool machine_work(struct machine *m, uint64_t steps);
// The frame that goes on at a state and then as `below` does.
uint32_t frame_push(struct machine *m, uint32_t state, uint32_t below);
// The place of these items, which are sorted and settled: a rule that is over has been left, unless at the bottom.
struct place_item place_settled(const struct machine *m, uint32_t state, uint32_t frame);
uint32_t place_of(struct machine *m, struct place_item *items, uint32_t n);
// Where a frame goes on, its bottom right below.
uint32_t place_behind(struct machine *m, uint32_t frame);
void place_know(struct machine *m, uint32_t place);
// The same frame, from `bottom` up, on another one; or one of the twins or origins of its states.
enum likeness { LIKE_ITSELF, LIKE_TWINS, LIKE_ORIGINS };
uint32_t frame_on(struct machine *m, uint32_t frame, uint32_t bottom, uint32_t other, enum likeness like);
// Sorts items, drops those that are there twice; returns how many are left.
uint32_t place_sort(struct place_item *items, uint32_t n);
uint32_t place_twin(struct machine *m, uint32_t place);
uint32_t place_like(struct machine *m, uint32_t place, enum likeness like);

static inline uint32_t state_like(const struct machine *m, uint32_t state, enum likeness like) {
    const struct automaton_state *s = &m->automaton->states[state];
    return like == LIKE_TWINS ? s->twin : like == LIKE_ORIGINS ? s->origin : state;
}

static inline bool place_ends(struct machine *m, uint32_t place) {
    if (!m->places[place].known) place_know(m, place);
    return m->places[place].ends;
}

// Where a byte leads; PLACE_DEAD: nowhere.
static inline uint32_t place_next(struct machine *m, uint32_t place, uint8_t byte) {
    if (!m->places[place].known) place_know(m, place);
    return m->next[(size_t)place * (size_t)m->automaton->n_classes + m->automaton->classes[byte]];
}

// ---- mask.c ----

void mask_add(struct machine *m, struct position at, uint32_t *out);
void mask_free_all(struct machine *m);

#endif
