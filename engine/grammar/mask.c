// Masks: which tokens may follow.
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/grammar/machine_state.h"

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
        for (uint32_t t = node->first_token; t < nodes[i + 1].first_token; t++)
            bits[tree->tokens[t] / 32] |= 1u << tree->tokens[t] % 32;
        i++;
        if (i == node->end || !place_ends(m, place)) continue;
        if (mask) note_exit(mask, i - 1);
        else add_task_behind(m, i, node->end, node->depth, task->from.frame);
    }
    machine_work(m, steps);
}

// ---- plain tokens ----

enum { PLAIN_PLACES = 4 };

struct place_set {
    uint32_t places[PLAIN_PLACES];
    uint32_t n;
};

static bool add_place(struct place_set *s, uint32_t place) {
    for (uint32_t i = 0; i < s->n; i++)
        if (s->places[i] == place) return true;
    if (s->n == PLAIN_PLACES) return false;
    s->places[s->n++] = place;
    return true;
}

// How the characters above 0x7F are encoded: by the ranges of the first two bytes, and how many any others follow.
static const struct {
    uint8_t low, high, second_low, second_high, others;
} encodings[] = {{0xc2, 0xdf, 0x80, 0xbf, 0}, {0xe0, 0xe0, 0xa0, 0xbf, 1}, {0xe1, 0xec, 0x80, 0xbf, 1},
                 {0xed, 0xed, 0x80, 0x9f, 1}, {0xee, 0xef, 0x80, 0xbf, 1}, {0xf0, 0xf0, 0x90, 0xbf, 2},
                 {0xf1, 0xf3, 0x80, 0xbf, 2}, {0xf4, 0xf4, 0x80, 0x8f, 2}};

// Where any byte of a range leads from any place of a set; false where some lead nowhere, or there are too many.
static bool step_all(struct machine *m, const struct place_set *from, uint8_t low, uint8_t high, struct place_set *to) {
    const uint8_t *classes = m->automaton->classes;
    for (uint32_t i = 0; i < from->n; i++) {
        for (int b = low; b <= high; b++) {
            if (b > low && classes[b] == classes[b - 1]) continue;
            const uint32_t next = place_next(m, from->places[i], (uint8_t)b);
            if (next == PLACE_DEAD || !add_place(to, next)) return false;
        }
    }
    return true;
}

static bool step_plain(struct machine *m, const struct place_set *from, struct place_set *to) {
    *to = (struct place_set){0};
    if (!step_all(m, from, 0x20, '"' - 1, to) || !step_all(m, from, '"' + 1, '\\' - 1, to) ||
        !step_all(m, from, '\\' + 1, 0x7e, to))
        return false;
    for (size_t i = 0; i < sizeof encodings / sizeof *encodings; i++) {
        struct place_set sets[2] = {0};
        if (!step_all(m, from, encodings[i].low, encodings[i].high, &sets[0])) return false;
        if (!encodings[i].others) {
            if (!step_all(m, &sets[0], encodings[i].second_low, encodings[i].second_high, to)) return false;
            continue;
        }
        if (!step_all(m, &sets[0], encodings[i].second_low, encodings[i].second_high, &sets[1])) return false;
        int now = 1;
        for (int k = encodings[i].others; k > 0; k--, now = !now) {
            struct place_set *next = k == 1 ? to : &sets[!now];
            if (k > 1) *next = (struct place_set){0};
            if (!step_all(m, &sets[now], 0x80, 0xbf, next)) return false;
        }
    }
    return true;
}

static bool takes_some_plain(struct machine *m, const struct place_set *from) {
    for (uint32_t i = 0; i < from->n; i++)
        for (int b = 0x20; b < 0x100; b++)
            if ((b >= 0x80 || lexicon_is_plain((uint8_t)b)) && place_next(m, from->places[i], (uint8_t)b)) return true;
    return false;
}

// The number k of characters for which all plain texts of up to k are taken, and none that are longer but such of more
// than LEXICON_PLAIN characters; −1: there is none.
static int plain_reach(struct machine *m, uint32_t place) {
    struct place_set now = {{place}, 1}, next;
    int k = 0;
    for (; k < LEXICON_PLAIN && step_plain(m, &now, &next); k++) {
        if (next.n == 1 && now.n == 1 && next.places[0] == now.places[0]) return LEXICON_PLAIN;
        now = next;
    }
    return k == LEXICON_PLAIN || (k > 0 && !takes_some_plain(m, &now)) ? k : -1;
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
        const struct mask *mask = mask_of(m, at.place);
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
