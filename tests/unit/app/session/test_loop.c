// The event loop: who gets a turn, in which order, and what ends the waiting.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "app/session/loop.h"
#include "engine/base/clock.h"

struct source {
    int fd;
    uint64_t due;
    int turns, ready;
    int place; // in the order of the latest turns
};

static struct loop *loop;
static struct source a, b;
static int place;

static int source_fd(void *context) { return ((struct source *)context)->fd; }
static uint64_t source_due(void *context) { return ((struct source *)context)->due; }

static void source_turn(void *context, bool ready) {
    struct source *s = context;
    s->turns++;
    s->ready += ready;
    s->place = place++;
}

static int setup(void **state) {
    (void)state;
    a = (struct source){.fd = eventfd(0, EFD_NONBLOCK)};
    b = (struct source){.fd = -1};
    clock_freeze(1000000000);
    loop = loop_open();
    loop_add(loop, &(struct loop_source){source_fd, POLLIN, source_due, source_turn, &a});
    loop_add(loop, &(struct loop_source){NULL, 0, source_due, source_turn, &b});
    return 0;
}

static int teardown(void **state) {
    (void)state;
    loop_close(loop);
    return close(a.fd);
}

static void test_all_get_a_turn_in_order(void **state) {
    (void)state;
    loop_turn(loop, 0);
    assert_int_equal(a.turns, 1);
    assert_int_equal(b.turns, 1);
    assert_true(a.place < b.place);
    assert_int_equal(a.ready, 0);
}

static void test_a_descriptor_ends_the_waiting(void **state) {
    (void)state;
    eventfd_write(a.fd, 1);
    loop_turn(loop, -1);
    assert_int_equal(a.ready, 1);
    assert_int_equal(b.ready, 0);
    int fd = a.fd;
    a.fd = -1; // it does not care at the moment
    loop_turn(loop, 0);
    a.fd = fd;
    assert_int_equal(a.ready, 1);
}

static void test_a_deadline_ends_the_waiting(void **state) {
    (void)state;
    b.due = clock_ns(); // now; later ones do not prolong it
    a.due = clock_ns() + 3600000000000;
    loop_turn(loop, -1);
    assert_int_equal(b.turns, 1);
    b.due = clock_ns() + 1; // a millisecond at most
    loop_turn(loop, -1);
    assert_int_equal(b.turns, 2);
}

// In milliseconds it is more than poll takes.
static void test_a_deadline_far_ahead_changes_nothing(void **state) {
    (void)state;
    b.due = clock_ns() + 3000000 * NANOSECONDS;
    loop_turn(loop, 0);
    assert_int_equal(b.turns, 1);
    a.due = clock_ns() + 1;
    loop_turn(loop, -1);
    assert_int_equal(b.turns, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_get_a_turn_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_descriptor_ends_the_waiting, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_deadline_ends_the_waiting, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_deadline_far_ahead_changes_nothing, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
