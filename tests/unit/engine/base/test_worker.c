// The worker: jobs run in order on its thread, and are handed back on the caller's.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>

#include "engine/base/worker.h"

struct job {
    int number;
    pthread_t worked_on;
};

static struct worker *worker;
static int done[100], n_done;
static sem_t gate;

static void work(void *job) { ((struct job *)job)->worked_on = pthread_self(); }
static void hand_back(void *job) { done[n_done++] = ((struct job *)job)->number; }
static void wait_at_gate(void *job) { (void)job, sem_wait(&gate); }

static struct job second = {.number = 2};
static void follow_up(void *job) {
    hand_back(job);
    worker_do(worker, work, hand_back, &second);
}

static int setup(void **state) {
    (void)state;
    n_done = 0;
    sem_init(&gate, 0, 0);
    return !(worker = worker_open(NULL));
}

static int teardown(void **state) {
    (void)state;
    worker_close(worker);
    return sem_destroy(&gate);
}

static void test_jobs_keep_their_order(void **state) {
    (void)state;
    struct job jobs[100] = {0};
    for (int i = 0; i < 100; i++) {
        jobs[i].number = i;
        worker_do(worker, work, i % 2 ? hand_back : NULL, &jobs[i]);
    }
    assert_int_equal(n_done, 0); // nothing is handed back before it is collected
    assert_true(worker_wait(worker, -1));
    assert_int_equal(n_done, 50);
    for (int i = 0; i < 50; i++) assert_int_equal(done[i], 2 * i + 1);
    for (int i = 0; i < 100; i++) assert_false(pthread_equal(jobs[i].worked_on, pthread_self()));
}

static void test_the_descriptor_tells_what_to_collect(void **state) {
    (void)state;
    struct job job = {.number = 7};
    struct pollfd fd = {.fd = worker_fd(worker), .events = POLLIN};
    worker_do(worker, wait_at_gate, NULL, NULL);
    worker_do(worker, work, hand_back, &job);
    assert_int_equal(poll(&fd, 1, 0), 0);
    worker_collect(worker);
    assert_int_equal(n_done, 0);
    sem_post(&gate);
    while (!n_done) {
        assert_int_equal(poll(&fd, 1, 60000), 1);
        worker_collect(worker);
    }
    assert_int_equal(done[0], 7);
    assert_int_equal(poll(&fd, 1, 0), 0);
}

static void test_waiting_includes_what_follows(void **state) {
    (void)state;
    struct job first = {.number = 1};
    worker_do(worker, work, follow_up, &first);
    assert_true(worker_wait(worker, 60000));
    assert_int_equal(n_done, 2);
    assert_int_equal(done[1], 2);
    worker_do(worker, wait_at_gate, NULL, NULL);
    assert_false(worker_wait(worker, 1));
    sem_post(&gate);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_jobs_keep_their_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_descriptor_tells_what_to_collect, setup, teardown),
        cmocka_unit_test_setup_teardown(test_waiting_includes_what_follows, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
