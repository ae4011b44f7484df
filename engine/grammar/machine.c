#include "engine/grammar/machine.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/grammar/machine_state.h"

struct machine *machine_open(const struct automaton *a, struct lexicon *l) {
    struct machine *m = xcalloc(1, sizeof *m);
    m->automaton = a;
    m->lexicon = lexicon_share(l);
    atomic_init(&m->references, 1);
    atomic_init(&m->full, false);
    atomic_init(&m->callers, 0);
    atomic_init(&m->prepared, false);
    pthread_mutex_init(&m->lock, NULL);
    m->path = xmalloc((l->longest + 1) * sizeof *m->path);
    machine_open_places(m);
    return m;
}

struct machine *machine_share(struct machine *m) {
    atomic_fetch_add(&m->references, 1);
    return m;
}

void machine_drop(struct machine *m) {
    if (!m || atomic_fetch_sub(&m->references, 1) > 1) return;
    mask_free_all(m);
    machine_close_places(m);
    lexicon_drop(m->lexicon);
    pthread_mutex_destroy(&m->lock);
    free(m->path);
    free(m->tasks);
    free(m->states);
    free(m);
}

bool machine_is_last(const struct machine *m) { return atomic_load(&m->references) == 1; }
bool machine_is_full(const struct machine *m) { return atomic_load(&m->full); }
const struct lexicon *machine_lexicon(const struct machine *m) { return m->lexicon; }

// ---- calls ----

static void begin(struct machine *m) {
    atomic_fetch_add(&m->callers, 1);
    pthread_mutex_lock(&m->lock);
    atomic_fetch_sub(&m->callers, 1);
    m->failed = (struct status){0};
    m->work = 0;
}

static bool end(struct machine *m, struct status *st) {
    const bool ok = !m->failed.code;
    if (!ok && st) *st = m->failed;
    pthread_mutex_unlock(&m->lock);
    return ok;
}

bool machine_start(struct machine *m, bool spaced, struct position *out, struct status *st) {
    begin(m);
    struct place_item item = {spaced ? m->automaton->start_spaced : m->automaton->start, 0};
    *out = (struct position){.place = place_of(m, &item, 1)};
    return end(m, st);
}

bool machine_mask(struct machine *m, struct position at, uint32_t *mask, struct status *st) {
    begin(m);
    memset(mask, 0, (size_t)m->lexicon->n_words * sizeof *mask);
    if (at.place) mask_add(m, at, mask);
    return end(m, st);
}

bool machine_look(struct machine *m, struct position at, bool *may_end, bool *goes_on, struct status *st) {
    begin(m);
    *may_end = *goes_on = false;
    while (place_ends(m, at.place) && at.frame && machine_work(m, 1)) {
        *goes_on |= m->places[at.place].goes_on;
        at = (struct position){.place = place_behind(m, at.frame), .frame = m->frames[at.frame].below};
    }
    *may_end = place_ends(m, at.place);
    *goes_on |= m->places[at.place].goes_on;
    return end(m, st);
}

// The only byte that leads on; −1: there are several.
static int only_byte(struct machine *m, uint32_t place) {
    int only = -1;
    for (int b = 0; b < 256; b++) {
        if (place_next(m, place, (uint8_t)b) == PLACE_DEAD) continue;
        if (only >= 0) return -1;
        only = b;
    }
    return only;
}

bool machine_forced(struct machine *m, struct position at, char *out, size_t size, size_t *n, struct status *st) {
    begin(m);
    for (*n = 0; *n < size && machine_work(m, 1);) {
        if (place_ends(m, at.place)) {
            if (!at.frame || m->places[at.place].goes_on) break;
            at = (struct position){.place = place_behind(m, at.frame), .frame = m->frames[at.frame].below};
            continue;
        }
        const int byte = only_byte(m, at.place);
        if (byte < 0) break;
        out[(*n)++] = (char)byte;
        at.place = place_next(m, at.place, (uint8_t)byte);
    }
    return end(m, st);
}

// ---- advancing ----

// What a text may be read as: positions, each of its own.
struct readings {
    struct position at[MACHINE_MOST_READINGS];
    uint32_t n;
};

static void add_reading(struct machine *m, struct readings *r, struct position at) {
    for (uint32_t i = 0; i < r->n; i++)
        if (r->at[i].place == at.place && r->at[i].frame == at.frame) return;
    if (r->n < MACHINE_MOST_READINGS) r->at[r->n++] = at;
    else
        status_fail(&m->failed, STATUS_LIMIT, "the grammar is too ambiguous (maximum %d ways at once)",
                    MACHINE_MOST_READINGS);
}

static void read_byte(struct machine *m, struct readings *r, uint8_t byte) {
    for (uint32_t i = 0; i < r->n && !m->failed.code; i++) {
        const struct position at = r->at[i];
        if (!at.frame || !place_ends(m, at.place)) continue;
        const uint32_t behind = place_behind(m, at.frame);
        add_reading(m, r, (struct position){behind, m->frames[at.frame].below});
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        const uint32_t next = place_next(m, r->at[i].place, byte);
        if (next) r->at[n++] = (struct position){next, r->at[i].frame};
    }
    r->n = n;
    machine_work(m, 1 + n);
}

static uint32_t common_frame(const struct machine *m, uint32_t a, uint32_t b) {
    while (a != b) {
        if (m->frames[a].depth >= m->frames[b].depth) a = m->frames[a].below;
        else b = m->frames[b].below;
    }
    return a;
}

// All readings as one position: what their frames have in common is its frame.
static struct position join(struct machine *m, const struct readings *r) {
    struct place_item items[PLACE_MOST_ITEMS];
    uint32_t n = 0, common = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        const struct place place = m->places[r->at[i].place];
        for (uint32_t k = 0; k < place.n && n < PLACE_MOST_ITEMS; k++) {
            const struct place_item item = m->items[place.first + k];
            const uint32_t whole = frame_on(m, item.frame, 0, r->at[i].frame, LIKE_ITSELF);
            items[n] = place_settled(m, item.state, whole);
            common = n ? common_frame(m, common, items[n].frame) : items[n].frame;
            n++;
        }
        if (n == PLACE_MOST_ITEMS)
            status_fail(&m->failed, STATUS_LIMIT, "the grammar is too ambiguous (maximum %d ways at once)",
                        PLACE_MOST_ITEMS);
    }
    for (uint32_t i = 0; i < n; i++) items[i].frame = frame_on(m, items[i].frame, common, 0, LIKE_ITSELF);
    return (struct position){.place = place_of(m, items, place_sort(items, n)), .frame = common};
}

bool machine_advance(struct machine *m, struct position *at, struct span text, bool *fits, struct status *st) {
    begin(m);
    struct readings r = {.at = {*at}, .n = at->place != PLACE_DEAD};
    for (size_t i = 0; i < text.size && r.n && !m->failed.code; i++) read_byte(m, &r, (uint8_t)text.data[i]);
    *fits = r.n > 0;
    const struct position joined = *fits && !m->failed.code ? join(m, &r) : *at;
    if (!m->failed.code) *at = joined;
    else *fits = false;
    return end(m, st);
}

// ---- preparing ----

enum { PREPARED_POSITIONS = 512, PREPARED_MASKS = 96 };
#define PREPARED_WORK (1u << 20) // steps

struct preparation {
    struct position at[PREPARED_POSITIONS]; // in the order in which they are reached
    uint32_t n, n_masks;
    uint64_t work;
    enum likeness like;
    bool (*go_on)(const void *context);
    const void *context;
    uint32_t *mask; // of whom it is does not matter
};

static void add_position(struct preparation *p, struct position at) {
    for (uint32_t i = p->n; i > 0; i--)
        if (p->at[i - 1].place == at.place && p->at[i - 1].frame == at.frame) return;
    if (p->n < PREPARED_POSITIONS) p->at[p->n++] = at;
}

// Where each byte leads; LIKE_ORIGINS: as if all that is repeated stood there for the first time.
static void add_next(struct machine *m, struct preparation *p, struct position at) {
    const uint8_t *classes = m->automaton->classes;
    const bool ends = place_ends(m, at.place) && at.frame;
    for (int b = 0; b < 256 && !m->failed.code; b++) {
        if (b && classes[b] == classes[b - 1]) continue;
        if (b && !ends && place_next(m, at.place, (uint8_t)b) == place_next(m, at.place, (uint8_t)(b - 1))) continue;
        struct readings r = {.at = {at}, .n = 1};
        read_byte(m, &r, (uint8_t)b);
        if (!r.n || m->failed.code) continue;
        struct position next = join(m, &r);
        next.place = place_like(m, next.place, p->like);
        next.frame = frame_on(m, next.frame, 0, 0, p->like);
        if (!m->failed.code) add_position(p, next);
    }
}

// Two bytes that have to come leave few tokens to look at.
static bool is_literal(struct machine *m, uint32_t place) {
    const int byte = only_byte(m, place);
    if (byte < 0) return false;
    const uint32_t next = place_next(m, place, (uint8_t)byte);
    return !place_ends(m, next) && only_byte(m, next) >= 0;
}

static bool prepare_position(struct machine *m, struct preparation *p, struct position at) {
    while (atomic_load(&m->callers)) sched_yield();
    begin(m);
    const size_t before = m->mask_bytes;
    if (!is_literal(m, at.place)) mask_add(m, at, p->mask);
    p->n_masks += m->mask_bytes != before;
    add_next(m, p, at);
    p->work += m->work;
    return end(m, NULL) && p->n_masks < PREPARED_MASKS && p->work < PREPARED_WORK;
}

static void prepare(struct machine *m, struct preparation *p, enum likeness like) {
    p->like = like;
    p->n = 0;
    for (int spaced = 0; spaced < 2; spaced++) {
        struct position start;
        if (machine_start(m, spaced, &start, NULL)) add_position(p, start);
    }
    for (uint32_t i = 0; i < p->n && (!p->go_on || p->go_on(p->context)); i++)
        if (!prepare_position(m, p, p->at[i])) break;
}

void machine_prepare(struct machine *m, bool (*go_on)(const void *context), const void *context) {
    if (atomic_exchange(&m->prepared, true)) return;
    struct preparation *p = xcalloc(1, sizeof *p);
    p->go_on = go_on, p->context = context;
    p->mask = xcalloc((size_t)m->lexicon->n_words, sizeof *p->mask);
    prepare(m, p, LIKE_ORIGINS);
    prepare(m, p, LIKE_ITSELF);
    free(p->mask);
    free(p);
}
