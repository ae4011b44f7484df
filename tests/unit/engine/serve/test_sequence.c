// Sequence: what is committed stays, what is only proposed goes without a trace.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/serve/sequence.h"

enum { PAGES = 8, LIMIT = 200, PROMPT = 40 };

struct bench {
    struct kv_cache cache;
    struct request request;
    struct sequence sequence;
    int32_t tokens[LIMIT];
};

static void bench_open(struct bench *b) {
    *b = (struct bench){.request = {.n_prompt = PROMPT, .limit = LIMIT}};
    b->sequence = (struct sequence){.request = &b->request, .tokens = b->tokens, .n_tokens = PROMPT};
    for (int i = 0; i < PROMPT; i++) b->tokens[i] = i;
    kv_cache_open(&b->cache, PAGES);
}

static void bench_close(struct bench *b) {
    kv_cache_release(&b->cache, &b->sequence.kv);
    assert_int_equal(b->cache.n_free, PAGES);
    kv_cache_close(&b->cache);
}

static void compute(struct bench *b, int n) {
    struct kv_copy copy;
    assert_true(sequence_reserve(&b->sequence, &b->cache, n, &copy));
    sequence_advance(&b->sequence);
}

static void assert_at(const struct bench *b, int n_tokens, int computed) {
    const struct sequence *q = &b->sequence;
    const struct kv_sequence *all[] = {&q->kv};
    struct status st = {0};
    assert_int_equal(q->n_tokens, n_tokens);
    assert_int_equal(sequence_computed(q), computed);
    assert_int_equal(sequence_generated(q), n_tokens - PROMPT);
    if (!kv_cache_check(&b->cache, all, 1, &st)) fail_msg("%s", st.text);
}

static void test_a_drawn_token_is_proposed_and_accepted(void **state) {
    (void)state;
    struct bench b;
    bench_open(&b);
    compute(&b, 25);
    assert_int_equal(sequence_missing(&b.sequence), 15);
    compute(&b, 15);
    assert_at(&b, PROMPT, PROMPT);
    sequence_propose(&b.sequence, &(int32_t){77}, 1);
    sequence_accept(&b.sequence, &b.cache, 1);
    assert_at(&b, PROMPT + 1, PROMPT);
    assert_int_equal(b.tokens[PROMPT], 77);
    compute(&b, 1);
    sequence_propose(&b.sequence, &(int32_t){78}, 1);
    sequence_accept(&b.sequence, &b.cache, 0); // it ends the answer
    assert_at(&b, PROMPT + 1, PROMPT + 1);
    bench_close(&b);
}

// A step that computes guesses along with what is known commits those that hold, and one more.
static void test_a_step_commits_several(void **state) {
    (void)state;
    struct bench b;
    const int32_t guesses[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, drawn = 55;
    for (int held = 0; held <= 10; held++) {
        bench_open(&b);
        compute(&b, PROMPT - 1);
        sequence_propose(&b.sequence, guesses, 10);
        assert_int_equal(sequence_missing(&b.sequence), 11);
        compute(&b, 11);
        sequence_accept(&b.sequence, &b.cache, held);
        assert_at(&b, PROMPT + held, PROMPT + held);
        sequence_propose(&b.sequence, &drawn, 1);
        sequence_accept(&b.sequence, &b.cache, 1);
        assert_at(&b, PROMPT + held + 1, PROMPT + held);
        for (int i = 0; i < held; i++) assert_int_equal(b.tokens[PROMPT + i], guesses[i]);
        assert_int_equal(b.tokens[PROMPT + held], 55);
        assert_int_equal(b.sequence.kv.n_pages, kv_pages_for(PROMPT + held));
        bench_close(&b);
    }
}

static void test_a_step_given_up_leaves_no_trace(void **state) {
    (void)state;
    struct bench b;
    struct kv_copy copy;
    bench_open(&b);
    compute(&b, 30);
    const int pages = b.cache.n_free;
    assert_true(sequence_reserve(&b.sequence, &b.cache, 10, &copy));
    sequence_propose(&b.sequence, &(int32_t){5}, 1);
    assert_true(sequence_reserve(&b.sequence, &b.cache, 1, &copy));
    sequence_take_back(&b.sequence, &b.cache);
    assert_at(&b, PROMPT, 30);
    assert_int_equal(b.sequence.n_proposed, 0);
    assert_int_equal(b.cache.n_free, pages);
    compute(&b, 10);
    sequence_propose(&b.sequence, (int32_t[]){1, 2}, 2);
    compute(&b, 2);
    sequence_take_back(&b.sequence, &b.cache); // computed, but never accepted
    assert_at(&b, PROMPT, PROMPT);
    bench_close(&b);
}

// A fork of what is committed reads the same whatever is proposed, computed and taken back after it.
static void test_taking_back_writes_over_nobody(void **state) {
    (void)state;
    struct bench b;
    struct kv_copy copy;
    bench_open(&b);
    compute(&b, PROMPT);
    struct kv_sequence fork = kv_cache_fork(&b.cache, b.sequence.kv.pages, PROMPT, 2);
    sequence_propose(&b.sequence, (int32_t[]){1, 2, 3}, 3);
    assert_true(sequence_reserve(&b.sequence, &b.cache, 3, &copy));
    assert_int_equal(copy.n_tokens, 0); // its own page, past what the fork reads
    sequence_advance(&b.sequence);
    sequence_accept(&b.sequence, &b.cache, 1);
    assert_int_equal(b.sequence.kv.n_tokens, PROMPT + 1);
    kv_cache_release(&b.cache, &fork);
    assert_at(&b, PROMPT + 1, PROMPT + 1);
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_drawn_token_is_proposed_and_accepted),
        cmocka_unit_test(test_a_step_commits_several),
        cmocka_unit_test(test_a_step_given_up_leaves_no_trace),
        cmocka_unit_test(test_taking_back_writes_over_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
