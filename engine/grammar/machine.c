#include "engine/grammar/machine.h"

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
    pthread_mutex_lock(&m->lock);
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
            const uint32_t whole = frame_on(m, item.frame, 0, r->at[i].frame, false);
            items[n] = place_settled(m, item.state, whole);
            common = n ? common_frame(m, common, items[n].frame) : items[n].frame;
            n++;
        }
        if (n == PLACE_MOST_ITEMS)
            status_fail(&m->failed, STATUS_LIMIT, "the grammar is too ambiguous (maximum %d ways at once)",
                        PLACE_MOST_ITEMS);
    }
    for (uint32_t i = 0; i < n; i++) items[i].frame = frame_on(m, items[i].frame, common, 0, false);
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
