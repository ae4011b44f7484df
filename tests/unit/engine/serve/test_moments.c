// Moments: the slowest token of each quarter of a second, and what the scheduler says that it waited for.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/serve/moments.h"
#include "tests/unit/scheduler_bench.h"

static const struct latency_moment *moment(const struct moments *m, double time) {
    const int64_t number = (int64_t)(time / METRICS_MOMENT_SECONDS);
    const struct latency_moment *at = &m->ring[number % METRICS_MOMENTS];
    return at->number == number ? at : NULL;
}

static void test_each_quarter_has_its_slowest_token(void **state) {
    (void)state;
    struct moments m = {0};
    moments_add(&m, &(struct latency_moment){.seconds = 0.02f, .rows = 1}, 100.01);
    moments_add(&m, &(struct latency_moment){.seconds = 0.09f, .rows = 2}, 100.1);
    moments_add(&m, &(struct latency_moment){.seconds = 0.03f, .rows = 3}, 100.2);
    moments_add(&m, &(struct latency_moment){.rows = 9}, 100.3); // no token
    assert_null(moment(&m, 100.3));
    moments_add(&m, &(struct latency_moment){.seconds = 0.5f, .rows = 4, .preempted = true}, 100.8);
    assert_int_equal(moment(&m, 100)->rows, 2);
    assert_int_equal(moment(&m, 100.8)->rows, 4);
    assert_true(moment(&m, 100.8)->preempted);
    for (int i = 0; i < METRICS_MOMENTS; i++) // the oldest are forgotten
        moments_add(&m, &(struct latency_moment){.seconds = 0.01f}, 101 + i * METRICS_MOMENT_SECONDS);
    assert_null(moment(&m, 100));
    assert_null(moment(&m, 100.8));
    for (int i = 0; i < METRICS_MOMENTS; i++) {
        assert_true(m.ring[i].steal >= 0 && m.ring[i].steal <= 1);
        assert_true(m.ring[i].faults >= 0 && m.ring[i].switches >= 0);
    }
}

// The slowest there is.
static struct latency_moment slowest(const struct bench *b) {
    struct latency_moment most = {0};
    for (int i = 0; i < METRICS_MOMENTS; i++)
        if (b->metrics.moments.ring[i].seconds > most.seconds) most = b->metrics.moments.ring[i];
    return most;
}

static void run_until_it_decodes(struct bench *b, uint64_t id) {
    while (b->answers[id].n < 3) assert_true(scheduler_step(b->scheduler));
}

// A prompt beside it makes the steps longer: the slowest token is of such a step, and says whose prompt it was.
static void test_names_the_prompt_that_was_read(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 64, .context = 512});
    bench_submit(b, 1, 10, 0, 200);
    run_until_it_decodes(b, 1);
    b->metrics.moments = (struct moments){0};
    toy.step_delay = 20000;
    bench_submit(b, 2, 60, 0, 1);
    assert_true(scheduler_step(b->scheduler));
    toy.step_delay = 0;
    const struct latency_moment m = slowest(b);
    assert_true(m.seconds >= 0.02f);
    assert_int_equal(m.conversation, 1);
    assert_int_equal(m.reader, 2);
    assert_int_equal(m.n_readers, 1);
    assert_true(m.prompt_rows > 0 && m.rows == m.prompt_rows + 1);
    assert_false(m.preempted);
    bench_run(b);
    bench_close(b);
}

// An answer that gave its pages away and waited for them.
static void test_names_a_preemption(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 8, .context = 256});
    bench_submit(b, 1, 60, 0, 100);
    bench_submit(b, 2, 60, 0, 100);
    bool preempted = false;
    while (!scheduler_idle(b->scheduler)) {
        toy.step_delay = b->metrics.preemptions && !preempted ? 3000 : 0; // so that it waits longer than any other
        assert_true(scheduler_step(b->scheduler));
        const struct latency_moment m = slowest(b);
        if (m.preempted) preempted = true, assert_int_equal(m.conversation, 2);
    }
    toy.step_delay = 0;
    assert_true(b->metrics.preemptions > 0);
    assert_true(preempted);
    bench_close(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_quarter_has_its_slowest_token),
        cmocka_unit_test(test_names_the_prompt_that_was_read),
        cmocka_unit_test(test_names_a_preemption),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
