// Programs that ask for one answer after the other, as many at once as a server meets, by a clock that moves with the
// rows of each step: none waits for its first token much longer than any other, none between two tokens for longer than
// prompts may take, and steps have many rows.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "tests/unit/scheduler_bench.h"
#include "tests/unit/xorshift.h"

enum {
    START = 1000000000, // nanoseconds
    RUN = 13 * 1000000, // of a step,
    ROW = 3 * 1000000,  // and of each of its rows: a model of 1B on two threads
    SHORTEST = 20,      // prompt
    LONGEST = 600,
    ANSWER = 64,
    REQUESTS = 190
};

struct load {
    struct bench *bench;
    int n_clients, n_asked, n_running;
    int n_tokens[MOST_REQUESTS]; // that have been seen
    double asked[MOST_REQUESTS], last[MOST_REQUESTS];
    double longest_wait, longest_pause; // seconds
    double start;
    uint64_t random;
};

static void ask(struct load *l) {
    const int id = ++l->n_asked;
    const int n = SHORTEST + (int)xorshift_below(&l->random, LONGEST - SHORTEST + 1);
    struct scheduler_request q = bench_ask((uint64_t)id, n, 0, ANSWER);
    q.background = true;
    l->asked[id] = l->last[id] = clock_seconds();
    l->n_running++;
    scheduler_submit(l->bench->scheduler, &q);
}

static void look(struct load *l, int id) {
    const struct bench_answer *a = &l->bench->answers[id];
    if (a->n == l->n_tokens[id]) return;
    const double now = clock_seconds(), waited = now - l->last[id];
    double *longest = l->n_tokens[id] ? &l->longest_pause : &l->longest_wait;
    if (waited > *longest) *longest = waited;
    l->n_tokens[id] = a->n;
    l->last[id] = now;
    l->n_running -= a->n == ANSWER;
}

static void run_load(struct load *l, int n_clients) {
    *l = (struct load){
        .bench = bench_open((struct bench_options){.n_pages = 2048}), .n_clients = n_clients, .random = 7};
    clock_freeze(START);
    toy.run_ns = RUN;
    toy.row_ns = ROW;
    l->start = clock_seconds();
    while (l->n_asked < REQUESTS || l->n_running) {
        while (l->n_running < n_clients && l->n_asked < REQUESTS) ask(l);
        scheduler_step(l->bench->scheduler);
        for (int id = 1; id <= l->n_asked; id++) look(l, id);
    }
}

static struct load load;

// Of a wait for the first token, in times of what an answer takes on average, of a pause between two tokens, in
// seconds, and of what steps take beside their rows, as a share of all.
static void check(int n_clients, double most_wait, double most_pause, double most_beside) {
    run_load(&load, n_clients);
    const double seconds = clock_seconds() - load.start, answer = seconds / REQUESTS * n_clients;
    const double beside = toy.runs * (RUN * 1e-9) / seconds;
    if (load.longest_wait > most_wait * answer || load.longest_pause > most_pause || beside > most_beside)
        fail_msg("waited %.2f times as long as an answer takes, then %.3f s; share beside rows: %.2f",
                 load.longest_wait / answer, load.longest_pause, beside);
    clock_freeze(0);
    bench_close(load.bench);
}

static void test_four_programs(void **state) { (void)state, check(4, 2, 0.1, 0.35); }
static void test_sixteen_programs(void **state) { (void)state, check(16, 1.4, 0.8, 0.1); }
static void test_sixty_four_programs(void **state) { (void)state, check(64, 1.5, 3, 0.05); }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_four_programs),
        cmocka_unit_test(test_sixteen_programs),
        cmocka_unit_test(test_sixty_four_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
