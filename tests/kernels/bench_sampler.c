// Benchmarks the sampler on one thread: milliseconds per sequence by vocabulary and settings, including the
// alternatives reported with each token. Several rows take turns, so that each is in the same cache as after a backend.
//     bench_sampler [SETTINGS]     e.g. bench_sampler greedy
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/serve/sampler.h"

enum { ROWS = 8, ROUNDS = 40, HISTORY = 4096 };

static const int vocabularies[] = {32000, 151936, 200064};

static const struct {
    const char *name;
    struct sampling sampling;
} cases[] = {
    {"greedy", {.temperature = 0, .top_p = 1, .repeat_penalty = 1}},
    {"default", {.temperature = 0.7f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f, .repeat_penalty = 1}},
    {"penalties",
     {.temperature = 0.7f,
      .top_k = 40,
      .top_p = 0.95f,
      .repeat_penalty = 1.1f,
      .presence_penalty = 0.1f,
      .frequency_penalty = 0.1f,
      .penalty_window = 256}},
    {"top-k 1000", {.temperature = 0.7f, .top_k = 1000, .top_p = 1, .repeat_penalty = 1}},
    {"top-p 0.95", {.temperature = 0.7f, .top_p = 0.95f, .repeat_penalty = 1}},
    {"min-p 0.05", {.temperature = 0.7f, .top_p = 1, .min_p = 0.05f, .repeat_penalty = 1}},
    {"temperature", {.temperature = 1, .top_p = 1, .repeat_penalty = 1}},
};

static uint32_t roll_state = 1;
static float roll(void) { // in [0, 1)
    roll_state = roll_state * 1664525u + 1013904223u;
    return (float)(roll_state >> 8) * 0x1p-24f;
}

// About a normal distribution with a deviation of 2.5, as models' logits have; a few stand out unless the row is flat.
static void fill(float *logits, int n, bool flat) {
    for (int i = 0; i < n; i++) logits[i] = (roll() + roll() + roll() - 1.5f) * (flat ? 0.5f : 5);
    for (int i = 0; !flat && i < 20; i++) logits[(int)(roll() * (float)n)] = 14 + 8 * roll();
}

// Returns the seconds per row of the best round.
static double best_seconds(const struct sampling *sampling, float *logits, int n, const int32_t *tokens) {
    struct sampler_scratch *x = sampler_scratch_open(n);
    struct sampler m = sampler_start(sampling);
    double best = 1e9;
    for (int i = 0; i < ROUNDS; i++) {
        double start = clock_seconds();
        for (int row = 0; row < ROWS; row++) {
            struct sampler_input in = {logits + (size_t)row * (size_t)n, n, tokens, HISTORY};
            if (!sampler_next(&m, x, &in).ok) panic("invalid logits");
        }
        double seconds = (clock_seconds() - start) / ROWS;
        if (seconds < best) best = seconds;
    }
    sampler_scratch_close(x);
    return best;
}

static void bench_vocabulary(int n, bool flat, const char *only) {
    float *logits = xmalloc(ROWS * (size_t)n * sizeof *logits);
    int32_t tokens[HISTORY];
    for (int i = 0; i < HISTORY; i++) tokens[i] = (int32_t)(roll() * (float)n);
    for (int row = 0; row < ROWS; row++) fill(logits + (size_t)row * (size_t)n, n, flat);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sampling s = cases[i].sampling;
        if (only && strcmp(only, cases[i].name)) continue;
        s.seed = 1;
        printf("%-12s %-6s %6d tokens  %7.4f ms\n", cases[i].name, flat ? "flat" : "peaked", n,
               1e3 * best_seconds(&s, logits, n, tokens));
    }
    free(logits);
}

int main(int argc, char **argv) {
    for (int flat = 0; flat < 2; flat++)
        for (size_t i = 0; i < sizeof vocabularies / sizeof *vocabularies; i++)
            bench_vocabulary(vocabularies[i], flat, argc > 1 ? argv[1] : NULL);
    return 0;
}
