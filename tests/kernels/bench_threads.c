// Benchmarks the thread pool with 1, 2, 4 … threads up to twice the machine's processors: an empty barrier, an empty
// run of workers that are awake or asleep, and a step like one token of a model of 22 layers, whose work items all take
// the same time, as a share of the ideal.
//     bench_threads [THREADS]     with this number only
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/thread_pool.h"

enum { BARRIERS = 20000, RUNS = 200, STEPS = 40, LAYERS = 22 };
#define PIECE_SECONDS 3e-6

// Work of a layer: queries, keys and values; attention; output; gate and up; down.
static const int layer_pieces[] = {80, 4, 64, 176, 64};
enum { PRODUCTS = sizeof layer_pieces / sizeof *layer_pieces };

static double turns_a_second;

static void work_turns(double n) {
    for (volatile int i = 0; i < (int)n; i++) {
    }
}

static void calibrate(void) {
    enum { TURNS = 20 << 20 };
    const double start = clock_seconds();
    work_turns(TURNS);
    turns_a_second = TURNS / (clock_seconds() - start);
}

static void pass_barriers(struct worker *w, void *argument) {
    (void)argument;
    for (int i = 0; i < BARRIERS; i++) worker_barrier(w);
}

static void do_nothing(struct worker *w, void *argument) { (void)w, (void)argument; }

static void do_step(struct worker *w, void *argument) {
    (void)argument;
    for (int i = 0; i < LAYERS * PRODUCTS; i++) {
        for (int first, end; worker_take(w, layer_pieces[i % PRODUCTS], &first, &end);)
            work_turns((end - first) * PIECE_SECONDS * turns_a_second);
        worker_barrier(w);
    }
}

// Returns the median of n runs, each after a pause.
static double middle_seconds(struct thread_pool *p, void (*work)(struct worker *, void *), int n, int pause_us) {
    double seconds[RUNS];
    for (int i = 0; i < n; i++) {
        if (pause_us) usleep((useconds_t)pause_us);
        const double start = clock_seconds();
        thread_pool_run(p, work, NULL);
        const double took = clock_seconds() - start;
        int at = i;
        for (; at > 0 && seconds[at - 1] > took; at--) seconds[at] = seconds[at - 1];
        seconds[at] = took;
    }
    return seconds[n / 2];
}

static void bench(int n_threads, int n_processors) {
    struct thread_pool *p = thread_pool_open(n_threads, NULL);
    double pieces = 0;
    for (int i = 0; i < PRODUCTS; i++) pieces += LAYERS * layer_pieces[i];
    const double ideal = pieces * PIECE_SECONDS / (n_threads < n_processors ? n_threads : n_processors);
    const double barrier = middle_seconds(p, pass_barriers, 5, 0) / BARRIERS;
    const double awake = middle_seconds(p, do_nothing, RUNS, 0), asleep = middle_seconds(p, do_nothing, RUNS, 2000);
    const double step = middle_seconds(p, do_step, STEPS, 0);
    printf("%3d threads: barrier %7.3f us, run %7.2f us awake, %7.2f us asleep, step %6.2f ms, %5.1f %% of ideal\n",
           n_threads, barrier * 1e6, awake * 1e6, asleep * 1e6, step * 1e3, 100 * ideal / step);
    thread_pool_close(p);
}

int main(int argc, char **argv) {
    const int n_processors = thread_pool_default_size();
    calibrate();
    if (argc > 1) bench(atoi(argv[1]), n_processors);
    else
        for (int n = 1; n <= 2 * n_processors; n *= 2) bench(n, n_processors);
    return 0;
}
