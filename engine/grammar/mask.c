// Masks: which tokens may follow.
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/grammar/machine_state.h"

enum { LARGE_BRANCH = 4 }; // nodes

// Of a tree the nodes [begin, end), which are `depth` bytes below the top, from a position.
struct walk_task {
    uint32_t begin, end, depth;
    struct position from;
};

static void add_task(struct machine *m, const struct walk_task *task) {
    if (m->n_tasks == m->tasks_capacity) {
        m->tasks_capacity = m->tasks_capacity ? 2 * m->tasks_capacity : 16;
        m->tasks = xrealloc(m->tasks, m->tasks_capacity * sizeof *m->tasks);
    }
    m->tasks[m->n_tasks++] = *task;
}

// Where the bottom of the position's place is reached the walk goes on behind its frame.
static void add_task_behind(struct machine *m, uint32_t begin, uint32_t end, uint32_t depth, uint32_t frame) {
    if (!frame || begin == end) return;
    const struct position behind = {.place = place_behind(m, frame), .frame = m->frames[frame].below};
    add_task(m, &(struct walk_task){begin, end, depth, behind});
}

static void note_exit(struct mask *mask, uint32_t node) {
    if (mask->n_exits == mask->capacity) {
        mask->capacity = mask->capacity ? 2 * mask->capacity : 16;
        mask->exits = xrealloc(mask->exits, mask->capacity * sizeof *mask->exits);
    }
    mask->exits[mask->n_exits++] = node;
}

// Kinds of bytes of which each leads from a place, which is known, to itself.
static uint16_t place_loops(struct machine *m, uint32_t place) {
    struct place *p = &m->places[place];
    if (!p->loops_known) {
        uint16_t leave = 0;
        for (int b = 0; b < 256; b++)
            if (place_next(m, place, (uint8_t)b) != place) leave |= (uint16_t)(1u << lexicon_kind((uint8_t)b));
        p->loops = (uint16_t)~leave;
        p->loops_known = true;
    }
    return p->loops;
}

static void set_tokens(const struct lexicon_tree *tree, uint32_t from, uint32_t to, uint32_t *bits) {
    for (uint32_t t = from; t < to; t++) bits[tree->tokens[t] / 32] |= 1u << tree->tokens[t] % 32;
}

// Sets the bits of tokens that the grammar takes from `task->from`. Where they lead below its bottom: with `mask`, the
// node is noted as an exit; without, it becomes another task.
static void walk(struct machine *m, const struct lexicon_tree *tree, const struct walk_task *task, struct mask *mask,
                 uint32_t *bits) {
    const struct lexicon_node *nodes = tree->nodes;
    uint32_t steps = 0;
    m->path[0] = task->from.place;
    for (uint32_t i = task->begin; i < task->end;) {
        const struct lexicon_node *node = &nodes[i];
        const uint32_t depth = node->depth - task->depth, place = place_next(m, m->path[depth - 1], node->byte);
        steps++;
        if (place == PLACE_DEAD) {
            if (m->failed.code) return;
            i = node->end;
            continue;
        }
        m->path[depth] = place;
        const bool stays = place == m->path[depth - 1] && !place_ends(m, place) && node->end - i >= LARGE_BRANCH;
        if (stays && !(node->below & ~place_loops(m, place))) { // all the way
            set_tokens(tree, node->first_token, nodes[node->end].first_token, bits);
            i = node->end;
            continue;
        }
        set_tokens(tree, node->first_token, nodes[i + 1].first_token, bits);
        i++;
        if (i == node->end || !place_ends(m, place)) continue;
        if (mask) note_exit(mask, i - 1);
        else add_task_behind(m, i, node->end, node->depth, task->from.frame);
    }
    machine_work(m, steps);
}

// ---- plain tokens ----

// How the characters above 0x7F are encoded: by the ranges of the first two bytes, and how many any others follow.
static const struct {
    uint8_t low, high, second_low, second_high, others;
} encodings[] = {{0xc2, 0xdf, 0x80, 0xbf, 0}, {0xe0, 0xe0, 0xa0, 0xbf, 1}, {0xe1, 0xec, 0x80, 0xbf, 1},
                 {0xed, 0xed, 0x80, 0x9f, 1}, {0xee, 0xef, 0x80, 0xbf, 1}, {0xf0, 0xf0, 0x90, 0xbf, 2},
                 {0xf1, 0xf3, 0x80, 0xbf, 2}, {0xf4, 0xf4, 0x80, 0x8f, 2}};

// The one place where all bytes of a range lead from a place; PLACE_DEAD: some lead nowhere, or elsewhere.
static uint32_t step_all(struct machine *m, uint32_t from, uint8_t low, uint8_t high) {
    const uint8_t *classes = m->automaton->classes;
    const uint32_t to = place_next(m, from, low);
    for (int b = low + 1; b <= high; b++)
        if (classes[b] != classes[b - 1] && place_next(m, from, (uint8_t)b) != to) return PLACE_DEAD;
    return to;
}

// The one place to which all plain characters lead; PLACE_DEAD: there is none.
static uint32_t step_plain(struct machine *m, uint32_t from) {
    const uint32_t to = step_all(m, from, 0x20, '"' - 1);
    if (to == PLACE_DEAD || step_all(m, from, '"' + 1, '\\' - 1) != to || step_all(m, from, '\\' + 1, 0x7e) != to)
        return PLACE_DEAD;
    for (size_t i = 0; i < sizeof encodings / sizeof *encodings; i++) {
        // From the first byte on each may lead to several places, which all lead to the one.
        for (int b = encodings[i].low; b <= encodings[i].high; b++) {
            if (b > encodings[i].low && m->automaton->classes[b] == m->automaton->classes[b - 1]) continue;
            uint32_t at = place_next(m, from, (uint8_t)b);
            at = step_all(m, at, encodings[i].second_low, encodings[i].second_high);
            for (int k = encodings[i].others; k > 0; k--) at = step_all(m, at, 0x80, 0xbf);
            if (at != to) return PLACE_DEAD;
        }
    }
    return to;
}

static bool takes_some_plain(struct machine *m, uint32_t place) {
    for (int b = 0x20; b < 0x100; b++)
        if ((b >= 0x80 || lexicon_is_plain((uint8_t)b)) && place_next(m, place, (uint8_t)b)) return true;
    return false;
}

static uint32_t plain_next(struct machine *m, uint32_t place) {
    if (m->places[place].plain != PLAIN_UNKNOWN) return m->places[place].plain;
    uint32_t next = step_plain(m, place);
    if (!next) next = takes_some_plain(m, place) ? PLAIN_SOME : PLAIN_NONE;
    if (m->failed.code) return PLAIN_SOME; // not known
    m->places[place].plain = next;
    return next;
}

// The number k for which all plain texts of up to k characters are taken, and none that are longer but such of more
// than LEXICON_PLAIN; −1: there is none.
static int plain_reach(struct machine *m, uint32_t place) {
    for (int k = 0; k < LEXICON_PLAIN; k++) {
        const uint32_t next = plain_next(m, place);
        if (next == PLAIN_NONE) return k;
        if (next == PLAIN_SOME) return -1;
        if (next == place) break;
        place = next;
    }
    return LEXICON_PLAIN;
}

// ---- masks ----

static void mask_free(struct mask *mask) {
    free(mask->bits);
    free(mask->exits);
    free(mask);
}

void mask_free_all(struct machine *m) {
    for (uint32_t i = 0; i < m->n_places; i++) {
        if (m->places[i].mask) mask_free(m->places[i].mask);
        m->places[i].mask = NULL;
    }
    m->mask_bytes = 0;
}

static struct mask *mask_make(struct machine *m, uint32_t place) {
    const struct lexicon *l = m->lexicon;
    const size_t size = (size_t)l->n_words * sizeof(uint32_t);
    const int plain = plain_reach(m, place);
    struct mask *mask = xcalloc(1, sizeof *mask);
    mask->bits = xcalloc((size_t)l->n_words, sizeof *mask->bits);
    mask->tree = plain < 0 ? &l->all : &l->rest;
    if (plain > 0) memcpy(mask->bits, l->plain[plain], size);
    const struct walk_task task = {.end = mask->tree->n_nodes, .from.place = place};
    walk(m, mask->tree, &task, mask, mask->bits);
    return mask;
}

// NULL: the call fails.
static const struct mask *mask_of(struct machine *m, uint32_t place) {
    if (m->places[place].mask) return m->places[place].mask;
    if (m->mask_bytes > MACHINE_MOST_MASKS) mask_free_all(m);
    struct mask *mask = mask_make(m, place);
    if (m->failed.code) {
        mask_free(mask);
        return NULL;
    }
    m->mask_bytes += sizeof *mask + (size_t)m->lexicon->n_words * sizeof(uint32_t) + mask->capacity * sizeof(uint32_t);
    return m->places[place].mask = mask;
}

void mask_add(struct machine *m, struct position at, uint32_t *out) {
    for (;;) {
        const struct mask *mask = mask_of(m, place_twin(m, at.place));
        if (!mask) return;
        for (int i = 0; i < m->lexicon->n_words; i++) out[i] |= mask->bits[i];
        const struct lexicon_node *nodes = mask->tree->nodes;
        m->n_tasks = 0;
        for (uint32_t i = 0; i < mask->n_exits; i++) {
            const uint32_t node = mask->exits[i];
            add_task_behind(m, node + 1, nodes[node].end, nodes[node].depth, at.frame);
        }
        while (m->n_tasks && !m->failed.code) {
            const struct walk_task task = m->tasks[--m->n_tasks];
            if (place_ends(m, task.from.place)) add_task_behind(m, task.begin, task.end, task.depth, task.from.frame);
            walk(m, mask->tree, &task, NULL, out);
        }
        if (m->failed.code || !at.frame || !place_ends(m, at.place)) return;
        at = (struct position){.place = place_behind(m, at.frame), .frame = m->frames[at.frame].below};
        if (!machine_work(m, 1)) return;
    }
}
