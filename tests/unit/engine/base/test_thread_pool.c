#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/thread_pool.h"

enum { MOST_THREADS = 19, STEPS = 200, ITEMS = 37 }; // of more than two groups of workers

struct tally {
    atomic_int runs[MOST_THREADS];
    int turn[MOST_THREADS]; // each worker's own step, read by the others after a barrier
    atomic_int errors;
    int taken[STEPS][ITEMS]; // by exactly one worker each
};

static void count_run(struct worker *w, void *argument) {
    struct tally *t = argument;
    atomic_fetch_add(&t->runs[w->index], 1);
}

static void test_every_worker_runs(void **state) {
    (void)state;
    for (int n = 1; n <= MOST_THREADS; n += n < 4 ? 1 : 5) {
        struct tally t = {0};
        struct thread_pool *p = thread_pool_open(n, NULL);
        assert_int_equal(thread_pool_size(p), n);
        for (int i = 1; i <= 50; i++) {
            thread_pool_run(p, count_run, &t);
            for (int k = 0; k < MOST_THREADS; k++) assert_int_equal(atomic_load(&t.runs[k]), k < n ? i : 0);
        }
        thread_pool_close(p);
    }
}

static void step_together(struct worker *w, void *argument) {
    struct tally *t = argument;
    for (int step = 1; step <= STEPS; step++) {
        t->turn[w->index] = step;
        worker_barrier(w);
        for (int k = 0; k < w->count; k++) atomic_fetch_add(&t->errors, t->turn[k] != step);
        worker_barrier(w);
    }
}

static void test_barrier_keeps_step(void **state) {
    (void)state;
    for (int n = 1; n <= MOST_THREADS; n = 2 * n + 1) {
        struct tally t = {0};
        struct thread_pool *p = thread_pool_open(n, NULL);
        thread_pool_run(p, step_together, &t);
        assert_int_equal(atomic_load(&t.errors), 0);
        thread_pool_close(p);
    }
}

static void take_items(struct worker *w, void *argument) {
    struct tally *t = argument;
    for (int step = 0; step < STEPS; step++) {
        for (int item; (item = worker_next(w, ITEMS)) >= 0;) t->taken[step][item]++;
        worker_barrier(w);
    }
}

static void test_items_are_taken_once(void **state) {
    (void)state;
    static struct tally t;
    struct thread_pool *p = thread_pool_open(3, NULL);
    for (int run = 1; run <= 3; run++) {
        thread_pool_run(p, take_items, &t);
        for (int step = 0; step < STEPS; step++)
            for (int i = 0; i < ITEMS; i++) assert_int_equal(t.taken[step][i], run);
    }
    thread_pool_close(p);
}

// Pieces of a worker that is alone follow each other.
static void take_pieces(struct worker *w, void *argument) {
    struct tally *t = argument;
    for (int step = 0; step < STEPS; step++) {
        int first, end, next = 0;
        for (bool alone = w->count == 1; worker_take(w, ITEMS, &first, &end); next = end) {
            atomic_fetch_add(&t->errors, first >= end || end > ITEMS || (alone && first != next));
            for (int i = first; i < end; i++) t->taken[step][i]++;
        }
        worker_barrier(w);
    }
}

static void test_pieces_are_taken_once(void **state) {
    (void)state;
    for (int n = 1; n <= MOST_THREADS; n = 2 * n + 1) {
        static struct tally t;
        struct thread_pool *p = thread_pool_open(n, NULL);
        t = (struct tally){0};
        thread_pool_run(p, take_pieces, &t);
        assert_int_equal(atomic_load(&t.errors), 0);
        for (int step = 0; step < STEPS; step++)
            for (int i = 0; i < ITEMS; i++) assert_int_equal(t.taken[step][i], 1);
        thread_pool_close(p);
    }
}

// Many items, so that a share counts them by several; worker 0 takes one piece and comes back when nothing is left.
struct crowd {
    int n_items;
    atomic_int n_taken, n_done;
    int kept; // by worker 0
};

static void take_around_a_sleeper(struct worker *w, void *argument) {
    struct crowd *c = argument;
    int first, end;
    if (w->index == 0) {
        if (worker_take(w, c->n_items, &first, &end)) c->kept = end - first;
        while (atomic_load(&c->n_done) < w->count - 1) usleep(100);
        if (worker_take(w, c->n_items, &first, &end)) c->kept = -1;
        return;
    }
    while (worker_take(w, c->n_items, &first, &end)) atomic_fetch_add(&c->n_taken, end - first);
    atomic_fetch_add(&c->n_done, 1);
}

static void test_others_take_what_a_worker_leaves(void **state) {
    (void)state;
    const int items[] = {1, 37, 65535, 65536, 1000003};
    for (int i = 0; i < 5; i++) {
        struct crowd c = {.n_items = items[i]};
        struct thread_pool *p = thread_pool_open(3, NULL);
        thread_pool_run(p, take_around_a_sleeper, &c);
        thread_pool_close(p);
        assert_in_range(c.kept, 0, (items[i] + 2) / 3);
        assert_int_equal(atomic_load(&c.n_taken), items[i] - c.kept);
    }
}

// What the last to arrive does is done once, after all that came before and before all that follows.
static void arrive_and_release(struct worker *w, void *argument) {
    struct tally *t = argument;
    for (int step = 1; step <= STEPS; step++) {
        t->turn[w->index] = step;
        if (worker_arrive(w)) {
            for (int k = 0; k < w->count; k++) atomic_fetch_add(&t->errors, t->turn[k] != step);
            t->taken[step - 1][0]++;
            worker_release(w);
        }
        atomic_fetch_add(&t->errors, t->taken[step - 1][0] != 1);
    }
}

static void test_last_to_arrive(void **state) {
    (void)state;
    for (int n = 1; n <= MOST_THREADS; n = 2 * n + 1) {
        static struct tally t;
        struct thread_pool *p = thread_pool_open(n, NULL);
        t = (struct tally){0};
        thread_pool_run(p, arrive_and_release, &t);
        assert_int_equal(atomic_load(&t.errors), 0);
        thread_pool_close(p);
    }
}

// Waits of all lengths around those after which workers fall asleep, in a barrier and between runs, so that some end
// just as a worker does.
static void dawdle(struct worker *w, void *argument) {
    struct tally *t = argument;
    for (int step = 1; step <= 20; step++) {
        if (w->index == step % w->count) usleep((useconds_t)(step * 13));
        t->turn[w->index] = step;
        worker_barrier(w);
        for (int k = 0; k < w->count; k++) atomic_fetch_add(&t->errors, t->turn[k] != step);
        worker_barrier(w);
    }
}

static void test_falling_asleep(void **state) {
    (void)state;
    const int sizes[] = {2, 3, 9};
    for (int i = 0; i < 3; i++) {
        struct tally t = {0};
        struct thread_pool *p = thread_pool_open(sizes[i], NULL);
        for (int run = 0; run < 20; run++) {
            thread_pool_run(p, dawdle, &t);
            usleep((useconds_t)(run * 17));
        }
        assert_int_equal(atomic_load(&t.errors), 0);
        thread_pool_close(p);
    }
}

// Workers that have gone to sleep wake up for the next run, and for the end.
static void test_sleepers_wake(void **state) {
    (void)state;
    struct tally t = {0};
    struct thread_pool *p = thread_pool_open(3, NULL);
    for (int i = 1; i <= 5; i++) {
        usleep(20000);
        thread_pool_run(p, count_run, &t);
        assert_int_equal(atomic_load(&t.runs[2]), i);
    }
    usleep(20000);
    thread_pool_close(p);
}

static void test_default_size(void **state) {
    (void)state;
    int n = thread_pool_default_size();
    assert_in_range(n, 1, sysconf(_SC_NPROCESSORS_CONF));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_worker_runs),
        cmocka_unit_test(test_barrier_keeps_step),
        cmocka_unit_test(test_items_are_taken_once),
        cmocka_unit_test(test_pieces_are_taken_once),
        cmocka_unit_test(test_others_take_what_a_worker_leaves),
        cmocka_unit_test(test_last_to_arrive),
        cmocka_unit_test(test_falling_asleep),
        cmocka_unit_test(test_sleepers_wake),
        cmocka_unit_test(test_default_size),
    };
    return cmocka_run_group_tests_name("thread pool", tests, NULL, NULL);
}
