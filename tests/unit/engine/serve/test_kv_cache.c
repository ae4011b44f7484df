// KV cache: counts add up, nothing leaks, nobody reads what another wrote.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/serve/kv_cache.h"

static void test_append_takes_pages_as_they_fill(void **state) {
    (void)state;
    struct kv_cache c;
    struct kv_copy copy;
    kv_cache_open(&c, 3);
    struct kv_sequence s = {.owner = 7};
    assert_true(kv_cache_append(&c, &s, KV_PAGE_TOKENS, &copy));
    assert_int_equal(s.n_pages, 1);
    assert_true(kv_cache_append(&c, &s, 1, &copy));
    assert_int_equal(s.n_pages, 2);
    assert_int_equal(copy.n_tokens, 0);
    assert_int_equal(c.pages[s.pages[1]].filled, 1);
    assert_int_equal(c.pages[s.pages[1]].owner, 7);
    assert_false(kv_cache_append(&c, &s, 2 * KV_PAGE_TOKENS, &copy)); // two more pages, one is free
    assert_int_equal(s.n_tokens, KV_PAGE_TOKENS + 1);
    assert_int_equal(c.n_free, 1);
    kv_cache_release(&c, &s);
    assert_int_equal(c.n_free, 3);
    kv_cache_close(&c);
}

static void test_append_into_borrowed_page_copies(void **state) {
    (void)state;
    struct kv_cache c;
    struct kv_copy copy;
    kv_cache_open(&c, 4);
    struct kv_sequence a = {.owner = 1};
    assert_true(kv_cache_append(&c, &a, KV_PAGE_TOKENS + 10, &copy));
    struct kv_sequence b = kv_cache_fork(&c, a.pages, KV_PAGE_TOKENS + 4, 2);
    assert_int_equal(c.n_shared, 2);
    int32_t shared = a.pages[1];
    // Who took the page goes on in it: the fork reads none of the slots that come.
    assert_true(kv_cache_append(&c, &a, 1, &copy));
    assert_int_equal(copy.n_tokens, 0);
    assert_true(kv_cache_append(&c, &b, 1, &copy));
    assert_int_equal(copy.from, shared);
    assert_int_equal(copy.to, b.pages[1]);
    assert_int_equal(copy.n_tokens, 4);
    assert_int_equal(b.pages[0], a.pages[0]);
    assert_int_not_equal(b.pages[1], shared);
    assert_int_equal(c.n_shared, 1);
    kv_cache_release(&c, &a);
    kv_cache_release(&c, &b);
    assert_int_equal(c.n_free, 4);
    kv_cache_close(&c);
}

// Where somebody may read what was taken back, it is not written over.
static void test_append_after_truncation_copies(void **state) {
    (void)state;
    struct kv_cache c;
    struct kv_copy copy;
    kv_cache_open(&c, 4);
    struct kv_sequence a = {.owner = 1};
    assert_true(kv_cache_append(&c, &a, 20, &copy));
    struct kv_sequence b = kv_cache_fork(&c, a.pages, 20, 2);
    kv_cache_truncate(&c, &a, 15);
    assert_true(kv_cache_append(&c, &a, 1, &copy));
    assert_int_equal(copy.n_tokens, 15);
    assert_int_not_equal(a.pages[0], b.pages[0]);
    kv_cache_release(&c, &a);
    assert_true(kv_cache_append(&c, &b, 1, &copy)); // the last one has it for itself
    assert_int_equal(copy.n_tokens, 0);
    kv_cache_release(&c, &b);
    kv_cache_close(&c);
}

static void test_cached_pages_are_counted_apart(void **state) {
    (void)state;
    struct kv_cache c;
    struct kv_copy copy;
    kv_cache_open(&c, 4);
    struct kv_sequence a = {.owner = 1};
    assert_true(kv_cache_append(&c, &a, 3 * KV_PAGE_TOKENS, &copy));
    int32_t pages[3];
    memcpy(pages, a.pages, sizeof pages);
    for (int i = 0; i < 3; i++) kv_cache_index(&c, pages[i], true);
    assert_int_equal(c.n_cached, 0);
    kv_cache_release(&c, &a);
    assert_int_equal(c.n_cached, 3);
    assert_int_equal(c.n_free, 1);
    struct kv_sequence b = kv_cache_fork(&c, pages, 2 * KV_PAGE_TOKENS, 1);
    assert_int_equal(c.n_cached, 1);
    assert_int_equal(c.n_shared, 0); // by no other sequence
    kv_cache_release(&c, &b);
    assert_int_equal(c.n_cached, 3);
    for (int i = 0; i < 3; i++) kv_cache_index(&c, pages[i], false);
    assert_int_equal(c.n_cached, 0);
    assert_int_equal(c.n_free, 4);
    kv_cache_close(&c);
}

// ---- random operations against a shadow of every slot ----

enum { PAGES = 40, SEQUENCES = 12, OPERATIONS = 20000 };

struct world {
    struct kv_cache cache;
    int32_t slots[PAGES * KV_PAGE_TOKENS]; // what a backend would hold
    struct kv_sequence sequences[SEQUENCES];
    int32_t *texts[SEQUENCES]; // [PAGES × KV_PAGE_TOKENS]: what each sequence must read
    struct {
        int n; // slots that the index reads; 0: it does not hold the page
        int32_t slots[KV_PAGE_TOKENS];
    } indexed[PAGES];
    uint32_t random;
};

static uint32_t roll(struct world *w, uint32_t n) {
    w->random = w->random * 1664525u + 1013904223u;
    return (w->random >> 8) % n;
}

static void world_append(struct world *w, int i) {
    struct kv_sequence *s = &w->sequences[i];
    int n = 1 + (int)roll(w, 50), before = s->n_tokens, free_before = w->cache.n_free;
    struct kv_copy copy;
    if (!kv_cache_append(&w->cache, s, n, &copy)) {
        assert_int_equal(s->n_tokens, before);
        assert_int_equal(w->cache.n_free, free_before);
        return;
    }
    memcpy(&w->slots[copy.to * KV_PAGE_TOKENS], &w->slots[copy.from * KV_PAGE_TOKENS],
           (size_t)copy.n_tokens * sizeof *w->slots);
    for (int p = before; p < s->n_tokens; p++) {
        int32_t page = s->pages[p / KV_PAGE_TOKENS];
        w->slots[page * KV_PAGE_TOKENS + p % KV_PAGE_TOKENS] = w->texts[i][p] = (int32_t)roll(w, 1u << 20);
    }
}

static void world_fork(struct world *w, int i) {
    int from = (int)roll(w, SEQUENCES);
    if (from == i) return;
    kv_cache_release(&w->cache, &w->sequences[i]);
    int n = (int)roll(w, (uint32_t)w->sequences[from].n_tokens + 1);
    w->sequences[i] = kv_cache_fork(&w->cache, w->sequences[from].pages, n, (uint64_t)i + 1);
    memcpy(w->texts[i], w->texts[from], (size_t)n * sizeof *w->texts[i]);
}

// The index takes hold of a page, full or not, or lets it go.
static void world_index(struct world *w, int i) {
    const struct kv_sequence *s = &w->sequences[i];
    int32_t page = (int32_t)roll(w, PAGES);
    if (w->indexed[page].n) {
        w->indexed[page].n = 0;
        kv_cache_index(&w->cache, page, false);
    } else if (s->n_pages) {
        int at = (int)roll(w, (uint32_t)s->n_pages), n = s->n_tokens - at * KV_PAGE_TOKENS;
        page = s->pages[at];
        w->indexed[page].n = n < KV_PAGE_TOKENS ? n : KV_PAGE_TOKENS;
        memcpy(w->indexed[page].slots, &w->slots[page * KV_PAGE_TOKENS], sizeof w->indexed[page].slots);
        kv_cache_index(&w->cache, page, true);
    }
}

static void world_operate(struct world *w) {
    int i = (int)roll(w, SEQUENCES);
    switch (roll(w, 8)) {
    case 0: kv_cache_release(&w->cache, &w->sequences[i]); break;
    case 1: kv_cache_truncate(&w->cache, &w->sequences[i], (int)roll(w, (uint32_t)w->sequences[i].n_tokens + 1)); break;
    case 2: world_index(w, i); break;
    case 3:
    case 4: world_fork(w, i); break;
    default: world_append(w, i);
    }
}

static void world_verify(struct world *w) {
    const struct kv_sequence *all[SEQUENCES];
    struct status st = {0};
    for (int i = 0; i < SEQUENCES; i++) {
        const struct kv_sequence *s = all[i] = &w->sequences[i];
        for (int p = 0; p < s->n_tokens; p++)
            assert_int_equal(w->slots[s->pages[p / KV_PAGE_TOKENS] * KV_PAGE_TOKENS + p % KV_PAGE_TOKENS],
                             w->texts[i][p]);
    }
    for (int i = 0; i < PAGES; i++) {
        assert_int_equal(w->cache.pages[i].indexed, w->indexed[i].n > 0);
        assert_memory_equal(&w->slots[i * KV_PAGE_TOKENS], w->indexed[i].slots,
                            (size_t)w->indexed[i].n * sizeof *w->slots);
    }
    if (!kv_cache_check(&w->cache, all, SEQUENCES, &st)) fail_msg("%s", st.text);
}

static void test_random_operations(void **state) {
    (void)state;
    struct world *w = calloc(1, sizeof *w);
    w->random = 1;
    kv_cache_open(&w->cache, PAGES);
    for (int i = 0; i < SEQUENCES; i++) w->texts[i] = calloc(PAGES * KV_PAGE_TOKENS, sizeof(int32_t));
    for (int i = 0; i < OPERATIONS; i++) {
        world_operate(w);
        world_verify(w);
    }
    for (int i = 0; i < SEQUENCES; i++) {
        kv_cache_release(&w->cache, &w->sequences[i]);
        free(w->texts[i]);
    }
    for (int i = 0; i < PAGES; i++)
        if (w->indexed[i].n) kv_cache_index(&w->cache, i, false);
    assert_int_equal(w->cache.n_free, PAGES);
    kv_cache_close(&w->cache);
    free(w);
}

static void test_check_finds_a_lost_reference(void **state) {
    (void)state;
    struct kv_cache c;
    struct kv_copy copy;
    kv_cache_open(&c, 4);
    struct kv_sequence a = {.owner = 1};
    assert_true(kv_cache_append(&c, &a, 5, &copy));
    const struct kv_sequence *all[] = {&a};
    struct status st = {0};
    assert_true(kv_cache_check(&c, all, 1, &st));
    assert_false(kv_cache_check(&c, all, 0, &st)); // a page nobody admits to
    assert_non_null(strstr(st.text, "1 references"));
    kv_cache_release(&c, &a);
    kv_cache_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append_takes_pages_as_they_fill),
        cmocka_unit_test(test_append_into_borrowed_page_copies),
        cmocka_unit_test(test_append_after_truncation_copies),
        cmocka_unit_test(test_cached_pages_are_counted_apart),
        cmocka_unit_test(test_random_operations),
        cmocka_unit_test(test_check_finds_a_lost_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
