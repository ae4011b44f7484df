// Bench: what `confab bench` finds out, as plain data; who measures it, shows it, writes and reads it.
//
// Every figure is the median of several repetitions. The kinds of work take turns, and between any two of them the
// machine's limits are sampled, so that a figure's limit is that of its own minutes. Prompts are random; decoding is
// timed behind contexts that are in the KV cache already, with the sampling that the model recommends.
#ifndef CONFAB_APP_BENCH_H
#define CONFAB_APP_BENCH_H

#include <stdio.h>

#include "app/bench/machine_limits.h"
#include "app/models/model.h"
#include "engine/stages.h"

enum { BENCH_MAX_RESULTS = 16 };
extern const char *const bench_stage_names[STAGE_COUNT];

struct bench_result {
    char name[32]; // "prefill512"; "decode4": of 4 conversations; "decode1@8k": behind so many tokens
    int conversations;
    int context;                        // tokens of each conversation before those that are timed
    int tokens, repetitions;            // timed, in all
    double tokens_per_second;           // of all conversations; median of the repetitions
    double lowest, highest;             // of the repetitions
    double limit;                       // tokens a second that the machine would have allowed; 0: not known
    bool by_memory;                     // what sets it: reading the memory, or products
    double read_bytes;                  // a second: what the machine did in those minutes, the median
    double int8_operations, float_operations; // the same
    double operations;                        // of products of both kinds, as many of each as the model has
    double stages[STAGE_COUNT];         // shares of the time; what is missing to 1 went to scheduling and waiting
};

// Against the exact path: the scalar reference in 32-bit floats.
struct bench_accuracy {
    int positions;     // compared; 0: none were
    double same_top;   // share of the positions whose likeliest token is the same
    double divergence; // of the distributions, Kullback-Leibler, from the exact one, in nats; mean
    double error;      // of the logits: mean squared, over the mean square of the exact ones
};

struct bench_report {
    char model[128], backend[64], processor[96];
    char time[32];  // "2026-01-02T03:04:05+0100"
    char note[256]; // the person's own; "": none
    double parameters, weight_bytes;
    int threads;
    double load_seconds;
    double first_token_seconds; // from the start of loading to the first token behind a prompt of BENCH_FIRST_PROMPT
    double peak_bytes;
    struct machine_limits limits; // the best of the whole run
    struct bench_accuracy accuracy;
    struct bench_result results[BENCH_MAX_RESULTS];
    int n_results;
};

#define BENCH_FIRST_PROMPT 16

// ---- measuring ----

// The model that s names. Fills everything; s->bench_seconds, s->accuracy_seconds and s->long_contexts say how much is
// done.
bool bench_measure(struct bench_report *out, const struct settings *s, struct status *st);
// Its second half: what the results would be where nothing but the machine's limits held them up.
// kv_bytes: of a token in the KV cache.
void bench_limit(struct bench_result *r, const struct model_info *info, double kv_bytes, double cache_bytes);

double bench_median(const double *values, int n); // 0 for none; values stay as they are

// ---- accuracy ----

// Sums over rows of logits; zero-initialise.
struct bench_distance {
    int rows, same_top;
    double divergence, squared_error, squares;
};
void bench_distance_add(struct bench_distance *d, const float *exact, const float *other, int n_vocab);
struct bench_accuracy bench_distance_mean(const struct bench_distance *d);

// Logits of a text's first tokens, as many as the exact path computes in about so many seconds, from the engine, which
// is closed before the exact path's is opened.
bool bench_accuracy_measure(struct bench_accuracy *out, struct loaded_model *m, const struct settings *s,
                            struct status *st);

// ---- showing ----

// `other`: an earlier report to compare with, or NULL; its file's name.
void bench_print(const struct bench_report *r, const struct bench_report *other, const char *other_path);
const struct bench_result *bench_find(const struct bench_report *r, const char *name); // NULL: has none

// One JSON object. Names are never changed, only added. True when it was written.
bool bench_json_write(FILE *out, const struct bench_report *r, const struct bench_report *other);
// What bench_json_write wrote, also in earlier versions: only results with names and speeds are necessary.
bool bench_json_read(struct bench_report *out, const char *path, struct status *st);

#endif
