// Bench: measures, prints, saves and loads the results of `confab bench`, which are plain data.
//
// Every result is the median of several repetitions. The kinds of work take turns, and the machine's limits are sampled
// between any two of them, so that a result's limit was measured in the same minutes; those of devices are unknown.
// Prompts are random; decoding is timed after contexts that are in the KV cache already, with the sampling that the
// model recommends.
#ifndef CONFAB_APP_BENCH_H
#define CONFAB_APP_BENCH_H

#include <stdio.h>

#include "app/bench/machine_limits.h"
#include "app/models/model.h"
#include "engine/metrics.h"
#include "engine/stages.h"

enum { BENCH_MAX_RESULTS = 16 };
extern const char *const bench_stage_names[STAGE_COUNT];

struct bench_result {
    char name[32]; // "prefill512"; "decode4": 4 conversations; "decode1@8k": after a context of 8K tokens
    int conversations;
    int context;              // tokens of each conversation before the timed ones
    int tokens, repetitions;  // timed, in total
    double tokens_per_second; // of all conversations together; median of the repetitions
    double lowest, highest;   // of the repetitions
    double bytes_per_token;   // read from memory: weights, shared by all conversations, keys and values; prefill: 0
    double operations_per_token;
    double limit;               // tokens per second that the machine allows; 0: unknown, as for devices
    bool by_memory;             // the limit is memory bandwidth, not arithmetic
    double read_bytes;          // per second: the machine's limit at the time, median
    double int8_operations;     // likewise
    double float_operations;    // likewise
    double operations;          // per second: int8 and float mixed as in the model's matmuls
    double stages[STAGE_COUNT]; // shares of the time; the rest is scheduling and waiting
};

// Compared with the exact path, the scalar reference in 32-bit floats.
struct bench_accuracy {
    int positions;     // compared; 0: accuracy was not measured
    double same_top;   // share of positions with the same most likely token
    double divergence; // mean Kullback-Leibler divergence from the exact distribution, in nats
    double error;      // of the logits: mean squared error over mean square
};

struct bench_report {
    char model[128], backend[64], processor[96];
    char time[32];  // "2026-01-02T03:04:05+0100"
    char note[256]; // the user's; "": none
    double parameters, weight_bytes;
    int threads;
    int n_parts;
    struct part_metrics parts[METRICS_MAX_PARTS]; // of the model, a device each
    double load_seconds;
    double first_token_seconds; // from the start of loading, for a prompt of BENCH_FIRST_PROMPT tokens
    double peak_bytes;
    // The best of the whole run. Of a model on several devices those of the one with most of its layers, for want of a
    // limit that would be right for all of them.
    struct machine_limits limits;
    struct bench_accuracy accuracy;
    struct bench_result results[BENCH_MAX_RESULTS];
    int n_results;
};

#define BENCH_FIRST_PROMPT 16

// ---- measuring ----

// Measures the model that s names and fills in the whole report. s->bench_seconds, s->accuracy_seconds,
// s->long_contexts and s->only say how much is measured.
bool bench_measure(struct bench_report *out, const struct settings *s, struct status *st);
// Computes a result's limit from the machine's rates in it. kv_bytes: of a token in the KV cache.
void bench_limit(struct bench_result *r, const struct model_info *info, double kv_bytes, double cache_bytes);

double bench_median(const double *values, int n); // 0 if n is 0; does not reorder values

// ---- accuracy ----

// Sums over rows of logits; zero-initialised.
struct bench_distance {
    int rows, same_top;
    double divergence, squared_error, squares;
};
void bench_distance_add(struct bench_distance *d, const float *exact, const float *other, int n_vocab);
struct bench_accuracy bench_distance_mean(const struct bench_distance *d);

// Compares the logits of a sample text, of as many tokens as the exact path computes in about s->accuracy_seconds.
// Closes m->engine and opens one for the exact path in its place.
bool bench_accuracy_measure(struct bench_accuracy *out, struct loaded_model *m, const struct settings *s,
                            struct status *st);

// ---- showing ----

// other: an earlier report to compare with, or NULL; other_path: its file.
void bench_print(const struct bench_report *r, const struct bench_report *other, const char *other_path);
const struct bench_result *bench_find(const struct bench_report *r, const char *name); // NULL: not found

// Writes one JSON object. Members are added, never renamed. Returns whether everything was written.
bool bench_json_write(FILE *out, const struct bench_report *r, const struct bench_report *other);
// Reads what bench_json_write wrote, in earlier versions too: only the results' names and speeds are required.
bool bench_json_read(struct bench_report *out, const char *path, struct status *st);

#endif
