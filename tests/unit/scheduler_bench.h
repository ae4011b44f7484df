// Scheduler bench: a scheduler over the toy backend, requests for it, and what became of each.
#ifndef CONFAB_TESTS_SCHEDULER_BENCH_H
#define CONFAB_TESTS_SCHEDULER_BENCH_H

#include "engine/serve/scheduler.h"
#include "tests/unit/toy_backend.h"

enum { VOCAB = 97, MOST_REQUESTS = 200, MOST_TOKENS = 2048 };

struct bench_answer {
    enum request_state state;
    enum finish_reason reason;
    int32_t tokens[MOST_TOKENS];
    int n, n_accepted, n_prompt, n_reused, times_pending;
    int started, answered, ended; // at which event
    int32_t scored[MOST_TOKENS];  // tokens of the prompt, and how likely they are
    float scores[MOST_TOKENS];
    int n_scored;
    char message[512];
};

struct bench {
    struct model model, small;
    struct metrics metrics;
    struct scheduler *scheduler;
    struct bench_answer answers[MOST_REQUESTS]; // of request + answer
    int events;
    int32_t end_token; // −1: none
    int stops;         // so many steps are given up
    char moved[512];   // why the model went on elsewhere, and how often it did
    int n_moved;
    void (*in_step)(struct bench *b);
};

struct bench_options {
    int n_pages, context, chunk, n_vocab, places; // but for the pages 0 stands for a usual value
    bool drafts;
    const struct backend_ops *drafter; // of a small model that writes ahead, over the same model; NULL: none
    int draft_pages, draft_vocab;
    const struct model *model;       // NULL: the toy's
    struct placement_plan placement; // of that model
    struct placement_plan fallback;
    struct hibernation_params hibernation;
    struct backend_options backend;
};

struct bench *bench_open(struct bench_options o);
void bench_close(struct bench *b);
// A prompt of n tokens, to be freed: the first `common` are everybody's, the rest belongs to `id`.
int32_t *bench_prompt(uint64_t id, int n, int common);
struct sampling bench_greedy(void);
// A greedy request for n_answer tokens after such a prompt; its conversation has the same number.
struct scheduler_request bench_ask(uint64_t id, int n_prompt, int common, int n_answer);
void bench_submit(struct bench *b, uint64_t id, int n_prompt, int common, int n_answer); // and asks it
void bench_check(struct bench *b); // the scheduler's own invariants
void bench_run(struct bench *b);   // until it is idle, checked after every step
// What stands at `at` is the text that the prompt of bench_ask(id, …) has alone; and the same of its first answer.
void bench_assert_answer(const struct bench *b, uint64_t at, uint64_t id, int n_prompt, int common, int n_answer);
void bench_assert_text_alone(const struct bench *b, uint64_t id, int n_prompt, int common, int n_answer);

#endif
