// `confab bench`: speed and memory of a model here, beside what the machine would allow.
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "app/command.h"
#include "app/machine_limits.h"
#include "app/model.h"
#include "app/model_name.h"
#include "app/units.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"

#define PREFILL_TOKENS     512
#define DECODE_PROMPT      16 // tokens before those that are timed
#define DECODE_TOKENS      64
#define DECODE_SECONDS     0.25 // a small model decodes often enough to fill this
#define DECODE_ROUNDS      200  // at most
#define MOST_CONVERSATIONS 16

struct bench_result {
    char name[24];
    int conversations, tokens;
    double tokens_per_second;
    double limit;           // tokens a second that the machine would allow; 0: not known
    const char *limited_by; // "memory" or "compute"
};

struct bench {
    const struct model_info *info;
    struct engine *engine;
    char backend[64];
    int n_threads;
    uint32_t random;
    double load_seconds, first_token_seconds;
    uint64_t peak_bytes;
    struct machine_limits limits;
    struct bench_result results[8];
    int n_results;
};

// ---- running requests ----

struct bench_times {
    double submitted, decoding, finished; // of the last request that got there
};

// Waits until all n requests end. False when one failed.
static bool bench_wait(struct bench *b, int n, struct bench_times *t, struct status *st) {
    struct engine_event event;
    while (n) {
        if (!engine_wait(b->engine, &event, -1) || event.kind != EVENT_STATE) continue;
        if (event.state == REQUEST_FAILED) return status_fail(st, STATUS_LIMIT, "%s", event.text);
        if (event.state == REQUEST_DECODING) t->decoding = event.time;
        if (event.state != REQUEST_FINISHED) continue;
        t->finished = event.time;
        n--;
    }
    return true;
}

// Prompts are of random tokens, so that nothing is found in the KV cache.
static void bench_submit(struct bench *b, int conversation, int n_prompt, int n_tokens) {
    int32_t *ids = xmalloc((size_t)n_prompt * sizeof *ids);
    for (int i = 0; i < n_prompt; i++) {
        b->random = b->random * 1664525u + 1013904223u;
        ids[i] = (int32_t)((b->random >> 8) % (uint32_t)b->info->n_vocab);
    }
    struct sampling greedy = sampling_default();
    sampling_set(&greedy, KNOB_temperature, 0);
    sampling_set(&greedy, KNOB_repeat_penalty, 1);
    engine_submit(b->engine, &(struct request_params){.conversation = (uint64_t)conversation,
                                                      .ids = ids,
                                                      .n_ids = n_prompt,
                                                      .sampling = greedy,
                                                      .max_tokens = n_tokens,
                                                      .ignore_end = true});
    free(ids);
}

// n conversations together: a prompt each, then n_tokens each. Their pages are given back.
static bool bench_batch(struct bench *b, int n, int n_prompt, int n_tokens, struct bench_times *t, struct status *st) {
    *t = (struct bench_times){.submitted = clock_seconds()};
    for (int i = 1; i <= n; i++) bench_submit(b, i, n_prompt, n_tokens);
    bool done = bench_wait(b, n, t, st);
    for (int i = 1; i <= n; i++) engine_forget(b->engine, (uint64_t)i);
    return done;
}

static struct bench_result *bench_result_add(struct bench *b, const char *kind, int number) {
    struct bench_result *r = &b->results[b->n_results++];
    snprintf(r->name, sizeof r->name, "%.10s%d", kind, number);
    return r;
}

static bool bench_prefill(struct bench *b, struct status *st) {
    struct bench_times t;
    int room = b->info->n_context - 2, tokens = PREFILL_TOKENS < room ? PREFILL_TOKENS : room;
    if (!bench_batch(b, 1, tokens, 1, &t, st)) return false;
    struct bench_result *r = bench_result_add(b, "prefill", PREFILL_TOKENS);
    r->conversations = 1;
    r->tokens = tokens;
    b->first_token_seconds = t.finished - t.submitted;
    r->tokens_per_second = tokens / b->first_token_seconds;
    return true;
}

// The first token of each comes out of the prompt; those after it, from the moment that all conversations decode, are
// timed.
static bool bench_decode(struct bench *b, int n, struct status *st) {
    struct bench_times t;
    struct bench_result *r = bench_result_add(b, "decode", n);
    double seconds = 0;
    r->conversations = n;
    for (int round = 0; round < DECODE_ROUNDS && seconds < DECODE_SECONDS; round++) {
        if (!bench_batch(b, n, DECODE_PROMPT, DECODE_TOKENS, &t, st)) return false;
        seconds += t.finished - t.decoding;
        r->tokens += n * (DECODE_TOKENS - 1);
    }
    r->tokens_per_second = r->tokens / seconds;
    return true;
}

static bool bench_engine(struct bench *b, struct status *st) {
    struct bench_times warm;
    bool done = bench_batch(b, 1, DECODE_PROMPT, 4, &warm, st) && bench_prefill(b, st);
    for (int n = 1; n <= MOST_CONVERSATIONS && done; n *= 2) done = bench_decode(b, n, st);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    b->peak_bytes = (uint64_t)usage.ru_maxrss * 1024;
    memcpy(b->backend, engine_figures(b->engine)->backend, sizeof b->backend);
    b->n_threads = engine_figures(b->engine)->n_threads;
    return done;
}

// ---- limits ----

// A token's products use every weight but the embedding's rows and the experts that were not chosen; in a prompt the
// output matrix is used once, not per token. Reading, all conversations of a step share the weights (of experts those
// that any of them chose, as if by chance); each reads its own keys and values.
static void bench_limit(const struct bench *b, struct bench_result *r) {
    const struct model_info *info = b->info;
    const struct expert_info *e = &info->experts;
    bool prefill = !strncmp(r->name, "prefill", 7);
    double experts = 3.0 * info->n_embd * e->n_ff * e->count * e->n_layer; // gate, up and down
    double idle = e->count ? 1 - (double)e->used / e->count : 0;           // of the experts, for one token
    double matrix = (double)info->n_vocab * info->n_embd, all = (double)info->n_parameters;
    double used = all - (info->tied ? 0 : matrix), bytes = (double)info->weight_bytes * used / all;
    double compute = b->limits.int8_operations / (2 * ((prefill ? used - matrix : used) - experts * idle));
    bytes *= 1 - experts / used * pow(idle, r->conversations);
    double keys = (DECODE_PROMPT + DECODE_TOKENS / 2.0) * (double)info->kv_bytes_per_token;
    double memory = b->limits.read_bytes * r->conversations / (bytes + keys * r->conversations);
    bool by_memory = !prefill && (memory < compute || compute <= 0);
    r->limit = by_memory ? memory : compute;
    r->limited_by = by_memory ? "memory" : "compute";
}

static bool bench_limits(struct bench *b, struct status *st) {
    if (!machine_limits_measure(&b->limits, b->n_threads, st)) return false;
    for (int i = 0; i < b->n_results; i++) bench_limit(b, &b->results[i]);
    return true;
}

// ---- output ----

static void bench_print(const struct bench *b) {
    char count[24], bytes[24], peak[24], int8[24], memory[24];
    char *title = model_title(b->info);
    printf("model    %s, %s parameters, weights of %s\n", title, units_count((double)b->info->n_parameters, count),
           units_bytes((double)b->info->weight_bytes, bytes));
    printf("engine   %s\n", b->backend);
    printf("machine  %d thread%s: memory %s/s", b->limits.n_threads, b->limits.n_threads == 1 ? "" : "s",
           units_bytes(b->limits.read_bytes, memory));
    if (*b->limits.int8_name)
        printf(", %s %s 8-bit operations/s", b->limits.int8_name, units_count(b->limits.int8_operations, int8));
    putchar('\n');
    printf("load     %.3f s    first token %.3f s (prompt of %d)    peak memory %s\n\n", b->load_seconds,
           b->first_token_seconds, b->results[0].tokens, units_bytes((double)b->peak_bytes, peak));
    printf("%-12s %10s %10s  %s\n", "", "tokens/s", "limit", "share");
    for (int i = 0; i < b->n_results; i++) {
        const struct bench_result *r = &b->results[i];
        printf("%-12s %10.1f ", r->name, r->tokens_per_second);
        if (r->limit > 0)
            printf("%10.1f  %.0f %% of %s\n", r->limit, 100 * r->tokens_per_second / r->limit, r->limited_by);
        else printf("%10s\n", "-");
    }
    free(title);
}

static json_t *bench_result_json(const struct bench_result *r) {
    return json_pack("{s:s, s:f, s:i, s:i, s:f, s:f, s:s}", "name", r->name, "tokens_per_second", r->tokens_per_second,
                     "conversations", r->conversations, "tokens", r->tokens, "limit_tokens_per_second", r->limit,
                     "share_of_limit", r->limit > 0 ? r->tokens_per_second / r->limit : 0, "limited_by", r->limited_by);
}

static void bench_print_json(const struct bench *b) {
    char *title = model_title(b->info);
    json_t *results = json_array();
    for (int i = 0; i < b->n_results; i++) json_array_append_new(results, bench_result_json(&b->results[i]));
    json_t *object =
        json_pack("{s:s, s:I, s:I, s:s, s:i, s:f, s:f, s:I, s:{s:s, s:f, s:f}, s:o}", "model", title, "parameters",
                  (json_int_t)b->info->n_parameters, "weight_bytes", (json_int_t)b->info->weight_bytes, "backend",
                  b->backend, "threads", b->limits.n_threads, "load_seconds", b->load_seconds, "first_token_seconds",
                  b->first_token_seconds, "peak_memory_bytes", (json_int_t)b->peak_bytes, "limits", "int8",
                  b->limits.int8_name, "int8_operations_per_second", b->limits.int8_operations, "read_bytes_per_second",
                  b->limits.read_bytes, "results", results);
    json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(object);
    free(title);
}

int command_bench(const struct settings *given, int n_arguments, char **arguments) {
    (void)n_arguments, (void)arguments;
    struct status st = {0};
    struct bench b = {.random = 1};
    struct loaded_model m;
    struct settings s = *given; // room for all conversations, whatever the configuration says; texts stay borrowed
    s.context = 0;
    s.kv_tokens = 2 * PREFILL_TOKENS + 2 * MOST_CONVERSATIONS * (DECODE_PROMPT + DECODE_TOKENS);
    double start = clock_seconds();
    if (!model_load(&m, &s, &st)) return command_fail(&st);
    b.load_seconds = clock_seconds() - start;
    b.info = m.info;
    b.engine = m.engine;
    bool done = bench_engine(&b, &st);
    engine_close(m.engine); // its threads and memory are out of the way of what comes
    m.engine = NULL;
    done = done && bench_limits(&b, &st);
    if (done && s.json) bench_print_json(&b);
    else if (done) bench_print(&b);
    model_unload(&m);
    return done ? EXIT_DONE : command_fail(&st);
}
