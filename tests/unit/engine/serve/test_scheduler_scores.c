// Scheduler over the toy backend: how likely a prompt's tokens are.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/scheduler_bench.h"

static void ask(struct bench *b, uint64_t id, int n_prompt, int n_answer) {
    struct scheduler_request q = bench_ask(id, n_prompt, n_prompt, n_answer);
    q.score_prompt = true;
    scheduler_submit(b->scheduler, &q);
}

// By the definition, from the logits of each token's place.
static float likelihood(const int32_t *ids, int i) {
    float logits[VOCAB];
    double sum = 0;
    toy_logits(ids, i, VOCAB, logits);
    for (int k = 0; k < VOCAB; k++) sum += exp((double)logits[k]);
    return (float)(exp((double)logits[ids[i]]) / sum);
}

// All of them, in order, each once.
static void assert_scored(const struct bench *b, uint64_t id, int n_prompt) {
    const struct bench_answer *a = &b->answers[id];
    int32_t *ids = bench_prompt(id, n_prompt, n_prompt);
    assert_int_equal(a->n_scored, n_prompt);
    assert_memory_equal(a->scored, ids, (size_t)n_prompt * sizeof *ids);
    assert_true(isnan(a->scores[0]));
    for (int i = 1; i < n_prompt; i++) assert_float_equal(a->scores[i], likelihood(ids, i), 1e-6);
    free(ids);
}

static void test_prompts_of_all_lengths(void **state) {
    static const int lengths[] = {1, 2, 16, 63, 64, 65, 66, 129, 300};
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct bench *b = bench_open((struct bench_options){.n_pages = 32});
        ask(b, 1, lengths[i], 5);
        bench_run(b);
        assert_scored(b, 1, lengths[i]);
        bench_assert_text_alone(b, 1, lengths[i], lengths[i], 5);
        bench_close(b);
    }
}

static void test_nobody_else_is_scored(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 32});
    bench_submit(b, 1, 100, 100, 5);
    bench_run(b);
    assert_int_equal(b->answers[1].n_scored, 0);
    bench_close(b);
}

// What is cached does not tell; but what is computed for it is there for others.
static void test_all_of_it_is_computed(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 64});
    bench_submit(b, 1, 100, 100, 5);
    bench_run(b);
    ask(b, 2, 100, 5);
    bench_run(b);
    assert_int_equal(b->answers[2].n_reused, 0);
    assert_scored(b, 2, 100);
    bench_submit(b, 3, 110, 110, 5);
    bench_run(b);
    assert_int_equal(b->answers[3].n_reused, 100);
    bench_close(b);
}

// As many rows of logits as there are decide how much of a prompt a step takes; those that decode have theirs.
static void test_beside_others(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 256, .chunk = 48});
    for (uint64_t id = 1; id <= 12; id++) {
        if (id % 3) bench_submit(b, id, 30 + (int)id * 11, 30 + (int)id * 11, 60);
        else ask(b, id, 150, 40);
        scheduler_step(b->scheduler);
    }
    bench_run(b);
    for (uint64_t id = 1; id <= 12; id++) {
        if (id % 3) bench_assert_text_alone(b, id, 30 + (int)id * 11, 30 + (int)id * 11, 60);
        else assert_scored(b, id, 150), bench_assert_text_alone(b, id, 150, 150, 40);
    }
    bench_close(b);
}

// Whoever loses its pages goes on where it was; what it had told is not told again.
static void test_pre_emption(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 14, .chunk = 32});
    for (uint64_t id = 1; id <= 4; id++) ask(b, id, 60, 100);
    bench_run(b);
    int resumed = 0;
    for (uint64_t id = 1; id <= 4; id++) {
        assert_scored(b, id, 60);
        bench_assert_text_alone(b, id, 60, 60, 100);
        resumed += b->answers[id].times_pending > 1;
    }
    assert_true(resumed > 0);
    bench_close(b);
}

static void test_a_step_that_is_given_up(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 32});
    ask(b, 1, 200, 5);
    scheduler_step(b->scheduler);
    b->stops = 1;
    bench_run(b);
    assert_int_equal(toy.given_up, 1);
    assert_scored(b, 1, 200);
    bench_close(b);
}

static void test_a_device_that_is_lost_halfway(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 32, .fallback = placement_on(&toy_backend, 0)});
    ask(b, 1, 200, 5);
    scheduler_step(b->scheduler);
    assert_true(b->answers[1].n_scored > 0 && b->answers[1].n_scored < 200);
    toy.fail_runs = 1;
    bench_run(b);
    assert_int_equal(b->n_moved, 1);
    assert_scored(b, 1, 200);
    bench_close(b);
}

static void test_each_answer_has_its_own(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 64});
    struct scheduler_request q = bench_ask(1, 90, 90, 5);
    q.score_prompt = true;
    q.n_answers = 3;
    scheduler_submit(b->scheduler, &q);
    bench_run(b);
    for (uint64_t id = 1; id <= 3; id++) {
        assert_scored(b, id, 90);
        bench_assert_answer(b, id, 1, 90, 90, 5);
    }
    bench_close(b);
}

// Only the prompt is scored, not what the answer begins with.
static void test_an_answer_that_is_begun(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 32});
    struct scheduler_request q = bench_ask(1, 100, 100, 20);
    q.score_prompt = true;
    q.n_begun = 10;
    scheduler_submit(b->scheduler, &q);
    bench_run(b);
    assert_int_equal(b->answers[1].n_scored, 90);
    assert_int_equal(b->answers[1].n, 20);
    bench_close(b);
}

static void test_no_number_ends_it(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 32});
    int32_t *ids = bench_prompt(1, 100, 100);
    toy.poison = ids[40];
    ask(b, 1, 100, 5);
    bench_run(b);
    assert_int_equal(b->answers[1].state, REQUEST_FAILED);
    assert_non_null(strstr(b->answers[1].message, "NaN"));
    assert_int_equal(b->answers[1].n_scored, 41);
    free(ids);
    bench_close(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prompts_of_all_lengths),
        cmocka_unit_test(test_nobody_else_is_scored),
        cmocka_unit_test(test_all_of_it_is_computed),
        cmocka_unit_test(test_beside_others),
        cmocka_unit_test(test_pre_emption),
        cmocka_unit_test(test_a_step_that_is_given_up),
        cmocka_unit_test(test_a_device_that_is_lost_halfway),
        cmocka_unit_test(test_each_answer_has_its_own),
        cmocka_unit_test(test_an_answer_that_is_begun),
        cmocka_unit_test(test_no_number_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
