// Prefix index: what it finds is what was computed after the same tokens, whatever is added, used, evicted and
// forgotten.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/serve/prefix.h"

enum { P = KV_PAGE_TOKENS, PAGES = 24, MOST = PAGES * KV_PAGE_TOKENS };

struct bench {
    struct kv_cache cache;
    struct prefix_index index;
};

static void bench_open(struct bench *b, int n_pages) {
    kv_cache_open(&b->cache, n_pages);
    prefix_open(&b->index, &b->cache);
}

static void bench_close(struct bench *b) {
    prefix_close(&b->index);
    kv_cache_close(&b->cache);
}

static void bench_check(struct bench *b) {
    struct status st = {0};
    if (!prefix_check(&b->index, &st) || !kv_cache_check(&b->cache, NULL, 0, &st)) fail_msg("%s", st.text);
}

// A text: `first` a hundred times, then `then`.
static void text(int32_t *tokens, int n, int common, int32_t then) {
    for (int i = 0; i < n; i++) tokens[i] = i < common ? 7 : then;
}

// A conversation computes a text, is done with it, and nobody runs on its pages.
static void compute(struct bench *b, uint64_t owner, const int32_t *tokens, int n) {
    struct kv_copy copy;
    struct prefix_match match = prefix_find(&b->index, tokens, n);
    struct kv_sequence kv = prefix_fork(&b->index, &match, owner);
    while (kv.n_tokens < n && !kv_cache_append(&b->cache, &kv, n - kv.n_tokens, &copy))
        if (!prefix_evict(&b->index)) fail_msg("no pages");
    prefix_add(&b->index, &kv, tokens, n);
    kv_cache_release(&b->cache, &kv);
    bench_check(b);
}

static int found(struct bench *b, const int32_t *tokens, int n) { return prefix_find(&b->index, tokens, n).n_tokens; }

static void test_finds_the_longest_beginning_to_the_token(void **state) {
    (void)state;
    struct bench b;
    int32_t a[MOST], c[MOST];
    bench_open(&b, PAGES);
    text(a, 3 * P, 2 * P + 5, 1);
    text(c, 3 * P, 2 * P + 9, 2);
    assert_int_equal(found(&b, a, 3 * P), 0);
    compute(&b, 1, a, 3 * P);
    assert_int_equal(found(&b, a, 3 * P), 3 * P);
    assert_int_equal(found(&b, a, P + 3), P + 3);
    assert_int_equal(found(&b, c, 3 * P), 2 * P + 5); // where they part
    compute(&b, 2, c, 3 * P);
    assert_int_equal(b.index.count, 4); // two pages are everybody's
    assert_int_equal(found(&b, c, 3 * P), 3 * P);
    assert_int_equal(found(&b, a, 3 * P), 3 * P);
    bench_close(&b);
}

static void test_what_another_begins_with_is_redundant(void **state) {
    (void)state;
    struct bench b;
    int32_t a[MOST];
    bench_open(&b, PAGES);
    text(a, 2 * P, 2 * P, 0);
    compute(&b, 1, a, P + 10);
    compute(&b, 1, a, P + 4);
    assert_int_equal(b.index.count, 2);
    compute(&b, 1, a, P + 20); // takes the place of the first
    assert_int_equal(b.index.count, 2);
    assert_int_equal(found(&b, a, 2 * P), P + 20);
    compute(&b, 1, a, 2 * P);
    assert_int_equal(b.index.count, 2);
    assert_int_equal(b.cache.n_cached, 2);
    bench_close(&b);
}

static void test_the_least_recently_used_leaf_goes_first(void **state) {
    (void)state;
    struct bench b;
    int32_t a[MOST], c[MOST];
    bench_open(&b, PAGES);
    text(a, 3 * P, P, 1);
    text(c, 3 * P, P, 2);
    compute(&b, 1, a, 3 * P);
    compute(&b, 2, c, 3 * P);
    compute(&b, 3, a, 2 * P); // uses the beginning of the first again
    assert_true(prefix_evict(&b.index));
    assert_int_equal(found(&b, a, 3 * P), 2 * P);
    assert_true(prefix_evict(&b.index));
    assert_int_equal(found(&b, c, 3 * P), 2 * P);
    assert_true(prefix_evict(&b.index));
    assert_int_equal(found(&b, c, 3 * P), P);
    assert_int_equal(found(&b, a, 3 * P), 2 * P);
    assert_true(prefix_evict(&b.index) && prefix_evict(&b.index));
    assert_int_equal(b.cache.n_free, PAGES);
    assert_false(prefix_evict(&b.index));
    assert_int_equal(b.index.evictions, 5);
    bench_close(&b);
}

// A page that a sequence runs on frees nothing; one before it that nobody runs on does.
static void test_pages_in_use_are_not_evicted(void **state) {
    (void)state;
    struct bench b;
    struct kv_copy copy;
    int32_t a[MOST];
    bench_open(&b, PAGES);
    text(a, 2 * P, 2 * P, 0);
    struct kv_sequence first = {.owner = 1}, second = {.owner = 2};
    assert_true(kv_cache_append(&b.cache, &first, P, &copy) && kv_cache_append(&b.cache, &second, 2 * P, &copy));
    prefix_add(&b.index, &first, a, P);
    assert_false(prefix_evict(&b.index));
    prefix_add(&b.index, &second, a, 2 * P); // after the page of the first, though its own has the same tokens
    assert_int_equal(b.index.count, 2);
    kv_cache_release(&b.cache, &first);
    assert_int_equal(b.cache.n_cached, 1);
    assert_true(prefix_evict(&b.index));
    assert_int_equal(b.cache.n_cached, 0);
    kv_cache_release(&b.cache, &second);
    bench_check(&b);
    bench_close(&b);
}

static void test_forgetting_takes_what_nobody_else_needs(void **state) {
    (void)state;
    struct bench b;
    int32_t a[MOST], c[MOST];
    bench_open(&b, PAGES);
    text(a, 4 * P, 2 * P, 1);
    text(c, 3 * P, 2 * P, 2);
    compute(&b, 1, a, 4 * P);
    compute(&b, 2, c, 3 * P);
    prefix_forget(&b.index, 1);
    bench_check(&b);
    assert_int_equal(found(&b, c, 3 * P), 3 * P);
    assert_int_equal(found(&b, a, 4 * P), 2 * P);
    for (int i = 0; i < PAGES; i++) assert_int_not_equal(b.cache.pages[i].owner, 1);
    prefix_forget(&b.index, 2);
    assert_int_equal(b.cache.n_free, PAGES);
    bench_close(&b);
}

// Nor is what it took first left behind in its name, when another that goes on using it is forgotten later.
static void test_who_adds_a_page_again_owns_it(void **state) {
    (void)state;
    struct bench b;
    int32_t a[MOST];
    bench_open(&b, PAGES);
    text(a, 2 * P, 2 * P, 0);
    compute(&b, 1, a, 2 * P);
    struct prefix_match match = prefix_find(&b.index, a, 2 * P);
    struct kv_sequence kv = prefix_fork(&b.index, &match, 2);
    prefix_forget(&b.index, 1);
    assert_int_equal(b.index.count, 0);
    prefix_add(&b.index, &kv, a, 2 * P);
    kv_cache_release(&b.cache, &kv);
    assert_int_equal(b.cache.n_cached, 2);
    prefix_forget(&b.index, 2);
    assert_int_equal(b.cache.n_free, PAGES);
    bench_close(&b);
}

static void test_a_fork_is_a_use(void **state) {
    (void)state;
    struct bench b;
    int32_t a[MOST], c[MOST];
    bench_open(&b, PAGES);
    text(a, P, 0, 1);
    text(c, P, 0, 2);
    compute(&b, 1, a, P);
    compute(&b, 2, c, P);
    struct prefix_match match = prefix_find(&b.index, a, P);
    struct kv_sequence kv = prefix_fork(&b.index, &match, 3);
    kv_cache_release(&b.cache, &kv);
    assert_true(prefix_evict(&b.index));
    assert_int_equal(found(&b, a, P), P);
    assert_int_equal(found(&b, c, P), 0);
    bench_close(&b);
}

static void test_rubbish_goes_with_all_that_came_after_it(void **state) {
    (void)state;
    struct bench b;
    int32_t a[MOST], c[MOST], other[MOST];
    bench_open(&b, PAGES);
    text(a, 3 * P, P, 1);
    text(c, 3 * P, P, 2);
    text(other, P, 0, 3);
    compute(&b, 1, a, 3 * P);
    compute(&b, 2, c, 3 * P);
    compute(&b, 3, other, P);
    struct prefix_match match = prefix_find(&b.index, a, P);
    struct kv_sequence kv = prefix_fork(&b.index, &match, 4);
    prefix_drop(&b.index, &kv);
    kv_cache_release(&b.cache, &kv);
    bench_check(&b);
    assert_int_equal(b.index.count, 1);
    assert_int_equal(found(&b, other, P), P);
    bench_close(&b);
}

// ---- random operations: a slot holds a hash of all tokens up to its own ----

enum { SEQUENCES = 8, OPERATIONS = 30000 };

struct world {
    struct bench b;
    uint64_t slots[PAGES * KV_PAGE_TOKENS];
    struct kv_sequence kv[SEQUENCES];
    int32_t texts[SEQUENCES][MOST];
    uint32_t random;
};

static uint32_t roll(struct world *w, uint32_t n) {
    w->random = w->random * 1664525u + 1013904223u;
    return (w->random >> 8) % n;
}

static uint64_t hash(uint64_t before, int32_t token) {
    uint64_t z = before * 0x9e3779b97f4a7c15u + (uint64_t)token + 1;
    return z ^ z >> 29;
}

static void world_append(struct world *w, int i) {
    struct kv_sequence *kv = &w->kv[i];
    struct kv_copy copy;
    const int before = kv->n_tokens, n = 1 + (int)roll(w, 50);
    if (before + n > MOST) return;
    while (!kv_cache_append(&w->b.cache, kv, n, &copy))
        if (!prefix_evict(&w->b.index)) return;
    if (copy.n_tokens) memcpy(&w->slots[copy.to * P], &w->slots[copy.from * P], P * sizeof *w->slots);
    uint64_t h = before ? w->slots[kv->pages[(before - 1) / P] * P + (before - 1) % P] : 1;
    for (int p = before; p < kv->n_tokens; p++) { // few texts, so that many begin alike
        w->texts[i][p] = roll(w, 40) == 0;
        w->slots[kv->pages[p / P] * P + p % P] = h = hash(h, w->texts[i][p]);
    }
}

// Begins anew with as much of another's text as the index has.
static void world_resume(struct world *w, int i) {
    int from = (int)roll(w, SEQUENCES), n = (int)roll(w, (uint32_t)w->kv[from].n_tokens + 1);
    if (from == i) return;
    memcpy(w->texts[i], w->texts[from], sizeof w->texts[i]);
    kv_cache_release(&w->b.cache, &w->kv[i]);
    struct prefix_match match = prefix_find(&w->b.index, w->texts[i], n);
    w->kv[i] = prefix_fork(&w->b.index, &match, (uint64_t)i + 1);
}

static void world_operate(struct world *w) {
    const int i = (int)roll(w, SEQUENCES);
    struct kv_sequence *kv = &w->kv[i];
    const int n = (int)roll(w, (uint32_t)kv->n_tokens + 1);
    switch (roll(w, 12)) {
    case 0: kv_cache_release(&w->b.cache, kv); break;
    case 1: kv_cache_truncate(&w->b.cache, kv, n); break;
    case 2: prefix_add(&w->b.index, kv, w->texts[i], n / P * P); break;
    case 3: prefix_add(&w->b.index, kv, w->texts[i], n); break;
    case 4: prefix_evict(&w->b.index); break;
    case 5:
        if (!roll(w, 20)) prefix_forget(&w->b.index, 1 + roll(w, SEQUENCES));
        break;
    case 6:
        if (!roll(w, 40)) prefix_drop(&w->b.index, kv);
        break;
    case 7:
    case 8: world_resume(w, i); break;
    default: world_append(w, i);
    }
}

static void verify_sequences(struct world *w) {
    const struct kv_sequence *all[SEQUENCES];
    struct status st = {0};
    for (int i = 0; i < SEQUENCES; i++) {
        const struct kv_sequence *kv = all[i] = &w->kv[i];
        uint64_t h = 1;
        for (int p = 0; p < kv->n_tokens; p++) {
            h = hash(h, w->texts[i][p]);
            assert_true(w->slots[kv->pages[p / P] * P + p % P] == h);
        }
    }
    if (!kv_cache_check(&w->b.cache, all, SEQUENCES, &st)) fail_msg("%s", st.text);
}

static void verify_nodes(struct world *w) {
    struct status st = {0};
    if (!prefix_check(&w->b.index, &st)) fail_msg("%s", st.text);
    for (int i = 0; i < PAGES; i++) {
        const struct prefix_node *n = &w->b.index.nodes[i];
        if (!n->n_tokens) continue;
        uint64_t h = n->parent == w->b.index.root ? 1 : w->slots[n->parent * P + P - 1];
        for (int k = 0; k < n->n_tokens; k++) {
            h = hash(h, n->tokens[k]);
            assert_true(w->slots[i * P + k] == h);
        }
    }
}

static void test_random_operations(void **state) {
    (void)state;
    struct world *w = calloc(1, sizeof *w);
    int most = 0;
    w->random = 3;
    bench_open(&w->b, PAGES);
    for (int i = 0; i < SEQUENCES; i++) w->kv[i].owner = (uint64_t)i + 1;
    for (int i = 0; i < OPERATIONS; i++) {
        world_operate(w);
        verify_sequences(w);
        verify_nodes(w);
        if (w->b.index.count > most) most = w->b.index.count;
    }
    assert_true(most > PAGES / 2);
    for (int i = 0; i < SEQUENCES; i++) kv_cache_release(&w->b.cache, &w->kv[i]);
    prefix_clear(&w->b.index);
    assert_int_equal(w->b.cache.n_free, PAGES);
    bench_close(&w->b);
    free(w);
}

static void test_check_finds_what_is_wrong(void **state) {
    (void)state;
    struct bench b;
    struct status st = {0};
    int32_t a[MOST];
    bench_open(&b, PAGES);
    text(a, 3 * P, 3 * P, 0);
    compute(&b, 1, a, 2 * P + 3);
    const int node = prefix_find(&b.index, a, P).node, leaf = prefix_find(&b.index, a, 3 * P).node;
    b.index.nodes[node].n_tokens--;
    assert_false(prefix_check(&b.index, &st)); // a parent that is not full
    b.index.nodes[node].n_tokens++;
    b.cache.pages[leaf].indexed = false;
    assert_false(prefix_check(&b.index, &st));
    b.cache.pages[leaf].indexed = true;
    b.index.nodes[leaf].parent = node;
    assert_false(prefix_check(&b.index, &st));
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds_the_longest_beginning_to_the_token),
        cmocka_unit_test(test_what_another_begins_with_is_redundant),
        cmocka_unit_test(test_the_least_recently_used_leaf_goes_first),
        cmocka_unit_test(test_pages_in_use_are_not_evicted),
        cmocka_unit_test(test_forgetting_takes_what_nobody_else_needs),
        cmocka_unit_test(test_who_adds_a_page_again_owns_it),
        cmocka_unit_test(test_a_fork_is_a_use),
        cmocka_unit_test(test_rubbish_goes_with_all_that_came_after_it),
        cmocka_unit_test(test_random_operations),
        cmocka_unit_test(test_check_finds_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
