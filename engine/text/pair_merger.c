#include "engine/text/pair_merger.h"

#include <assert.h>
#include <stdlib.h>

#include "engine/base/panic.h"

struct merge_candidate {
    uint64_t key;  // order, then the index of the left symbol
    uint32_t size; // bytes of both when found; if different now, one of them has changed
    int32_t id;    // of the merged token
};

enum { INITIAL_CAPACITY = 256 }; // symbols; more than nearly every word has

void pair_merger_begin(struct pair_merger *m, size_t capacity) {
    m->n_symbols = m->n_heap = 0;
    if (capacity <= m->capacity) return;
    if (capacity < INITIAL_CAPACITY) capacity = INITIAL_CAPACITY;
    // At most n − 1 initial pairs, and each of at most n − 1 merges removes one and adds two.
    free(m->symbols);
    free(m->heap);
    m->symbols = xmalloc(capacity * sizeof *m->symbols);
    m->heap = xmalloc(2 * capacity * sizeof *m->heap);
    m->capacity = capacity;
}

void pair_merger_add(struct pair_merger *m, const char *text, size_t size, int32_t id) {
    assert(m->n_symbols < m->capacity && m->n_symbols < MERGE_END);
    uint32_t at = (uint32_t)m->n_symbols++;
    m->symbols[at] = (struct merge_symbol){text, (uint32_t)size, id, MERGE_END, at ? at - 1 : MERGE_END};
    if (at) m->symbols[at - 1].next = at;
}

static void sift_up(struct pair_merger *m, size_t at) {
    struct merge_candidate c = m->heap[at];
    for (size_t parent; at && m->heap[parent = (at - 1) / 2].key > c.key; at = parent) m->heap[at] = m->heap[parent];
    m->heap[at] = c;
}

static void sift_down(struct pair_merger *m, size_t at) {
    struct merge_candidate c = m->heap[at];
    for (size_t child; (child = 2 * at + 1) < m->n_heap; at = child) {
        if (child + 1 < m->n_heap && m->heap[child + 1].key < m->heap[child].key) child++;
        if (m->heap[child].key >= c.key) break;
        m->heap[at] = m->heap[child];
    }
    m->heap[at] = c;
}

// Appends the pair starting at `left`, if it merges, without restoring heap order.
static bool append_pair(struct pair_merger *m, uint32_t left, merge_rule rule, const void *rules) {
    const struct merge_symbol *a = &m->symbols[left], *b = &m->symbols[a->next];
    struct merge_product product;
    if (!rule(rules, a, b, &product)) return false;
    m->heap[m->n_heap++] =
        (struct merge_candidate){(uint64_t)product.order << 32 | left, a->size + b->size, product.id};
    return true;
}

static void push_pair(struct pair_merger *m, uint32_t left, merge_rule rule, const void *rules) {
    if (append_pair(m, left, rule, rules)) sift_up(m, m->n_heap - 1);
}

void pair_merger_run(struct pair_merger *m, merge_rule rule, const void *rules) {
    for (uint32_t i = 0; i + 1 < m->n_symbols; i++) append_pair(m, i, rule, rules);
    for (size_t i = m->n_heap / 2; i-- > 0;) sift_down(m, i);
    while (m->n_heap) {
        struct merge_candidate best = m->heap[0];
        m->heap[0] = m->heap[--m->n_heap];
        if (m->n_heap) sift_down(m, 0);
        // Symbols never move, so a pair that covers as many bytes as when it was found is unchanged.
        uint32_t left = (uint32_t)best.key;
        struct merge_symbol *a = &m->symbols[left];
        if (a->size == 0 || a->next == MERGE_END || a->size + m->symbols[a->next].size != best.size) continue;
        struct merge_symbol *b = &m->symbols[a->next];
        a->size += b->size;
        a->id = best.id;
        a->next = b->next;
        b->size = 0;
        if (a->next != MERGE_END) {
            m->symbols[a->next].previous = left;
            push_pair(m, left, rule, rules);
        }
        if (a->previous != MERGE_END) push_pair(m, a->previous, rule, rules);
    }
}

void pair_merger_free(struct pair_merger *m) {
    free(m->symbols);
    free(m->heap);
    *m = (struct pair_merger){0};
}
