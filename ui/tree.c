#include "ui/tree.h"

#include <stdlib.h>

#include "engine/base/panic.h"

void tree_free(struct tree *t) {
    free(t->rows);
    free(t->after);
    *t = (struct tree){0};
}

static void make_room(struct tree *t, int n) {
    if (n <= t->room) return;
    t->room = 2 * n;
    t->rows = xrealloc(t->rows, 2 * (size_t)t->room * sizeof *t->rows); // the rows, then those to come
    t->after = xrealloc(t->after, (3 * (size_t)t->room + 1) * sizeof *t->after);
    t->next = t->after + t->room + 1;
    t->ends = t->next + t->room;
}

// after[1 + m]: the last message after m, next[m]: the version before m, ends[m]: where the branch through m ends.
static void link_messages(struct tree *t, const struct view_node *nodes, int n) {
    for (int i = 0; i <= n; i++) t->after[i] = -1;
    for (int i = 0; i < n; i++) {
        if (!nodes[i].id) continue;
        t->next[i] = t->after[1 + nodes[i].parent];
        t->after[1 + nodes[i].parent] = i;
    }
    for (int i = n - 1; i >= 0; i--) t->ends[i] = nodes[i].chosen >= 0 ? t->ends[nodes[i].chosen] : i;
}

static int pages_of(int tokens, int page) { return (tokens + page - 1) / page; }

static void reckon(struct tree *t, const struct view_node *nodes, struct tree_row *row, int page) {
    const struct view_node *m = &nodes[row->node];
    int all = pages_of(nodes[t->ends[row->node]].tokens, page);
    row->shared = m->parent >= 0 ? nodes[m->parent].tokens / page : 0;
    if (row->shared > all) row->shared = all;
    row->own = all - row->shared;
    if (!row->begins && m->parent >= 0) return; // its branch has begun before
    t->branches++;
    t->pages += row->own;
    t->unshared += all;
}

void tree_layout(struct tree *t, const struct view_node *nodes, int n, int page_tokens) {
    t->n_rows = t->branches = 0;
    t->pages = t->unshared = 0;
    if (!n) return;
    make_room(t, n);
    link_messages(t, nodes, n);
    struct tree_row *waiting = t->rows + t->room; // the next one is the last
    int n_waiting = 0, first = -1, page = page_tokens > 0 ? page_tokens : 1;
    for (int m = t->after[0]; m >= 0; m = t->next[m])
        if (nodes[m].on_path) first = m;
    for (int before = -1, chosen = first, lane = 0;;) {
        if (chosen >= 0) waiting[n_waiting++] = (struct tree_row){.node = chosen, .lane = lane};
        for (int m = t->after[1 + before]; m >= 0; m = t->next[m])
            if (m != chosen) waiting[n_waiting++] = (struct tree_row){.node = m, .lane = lane + 1, .begins = true};
        if (!n_waiting) return;
        struct tree_row row = waiting[--n_waiting];
        row.id = nodes[row.node].id;
        reckon(t, nodes, &row, page);
        t->rows[t->n_rows++] = row;
        before = row.node, chosen = nodes[before].chosen, lane = row.lane;
    }
}
