// Messages that name the one before them become a tree.
#include <stdlib.h>
#include <string.h>

#include "app/session/import_state.h"
#include "engine/base/panic.h"

void import_tree_add(struct import_tree *t, const struct import_message *m) {
    if (t->count == t->capacity) {
        t->capacity = t->capacity ? 2 * t->capacity : 64;
        t->messages = xrealloc(t->messages, (size_t)t->capacity * sizeof *t->messages);
    }
    t->messages[t->count++] = *m;
}

struct place {
    const char *id;
    int message;
};

static int by_id(const void *a, const void *b) {
    const struct place *one = a, *other = b;
    const int order = strcmp(one->id, other->id);
    return order ? order : one->message - other->message;
}

// The first message with this id; −1: none.
static int find(const struct place *places, int count, const char *id) {
    int low = 0, high = count;
    while (id && low < high) {
        const int middle = low + (high - low) / 2;
        if (strcmp(places[middle].id, id) < 0) low = middle + 1;
        else high = middle;
    }
    return id && low < count && !strcmp(places[low].id, id) ? places[low].message : -1;
}

static int add(struct conversation *c, struct import_message *m, int parent) {
    const int added = conversation_add(c, parent, m->role, m->text, m->size);
    struct message *own = &c->messages[added];
    own->created = m->created;
    if (m->model) conversation_set_model(c, added, m->model);
    if (m->own) import_own_members(c, added, m->own);
    return added;
}

enum { BEFORE_ALL = -1, UNPLACED = -2, ON_THE_WAY = -3, LEFT_OUT = -4 }; // otherwise an index in the conversation

// Those before it are placed first, from the first one on; `way` has room for all. Whatever leads in a circle is left
// out, and what follows a message that is skipped follows the one before that.
static void place(struct import_tree *t, struct conversation *c, const int *parents, int *places, int *way, int from) {
    int n = 0, at = from;
    for (; at >= 0 && places[at] == UNPLACED; at = parents[at]) places[at] = ON_THE_WAY, way[n++] = at;
    const bool lost = at >= 0 && places[at] < UNPLACED;
    while (n--) {
        const int m = way[n], parent = parents[m] < 0 ? BEFORE_ALL : places[parents[m]];
        if (lost) places[m] = LEFT_OUT;
        else places[m] = t->messages[m].skipped ? parent : add(c, &t->messages[m], parent);
    }
}

void import_tree_end(struct import_tree *t, struct conversation *c, const char *last) {
    const size_t n = (size_t)t->count + 1;
    struct place *ids = xcalloc(n, sizeof *ids);
    int *parents = xcalloc(n, sizeof *parents), *places = xcalloc(n, sizeof *places), *way = xcalloc(n, sizeof *way);
    for (int i = 0; i < t->count; i++)
        ids[i] = (struct place){t->messages[i].id ? t->messages[i].id : "", i}, places[i] = UNPLACED;
    qsort(ids, (size_t)t->count, sizeof *ids, by_id);
    for (int i = 0; i < t->count; i++) parents[i] = find(ids, t->count, t->messages[i].parent);
    for (int i = 0; i < t->count; i++) place(t, c, parents, places, way, i);
    const int end = find(ids, t->count, last);
    if (end >= 0 && places[end] >= 0) conversation_choose(c, places[end]);
    for (int i = 0; i < t->count; i++) free(t->messages[i].id), free(t->messages[i].parent), free(t->messages[i].text);
    free(t->messages), free(ids), free(parents), free(places), free(way);
    *t = (struct import_tree){0};
}
