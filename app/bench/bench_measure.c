#include "app/bench/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "app/base/clean.h"
#include "app/base/progress.h"
#include "app/models/model_name.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/base/processor.h"
#include "engine/metrics.h"

#define SAMPLE_SECONDS 0.03   // for the machine's limits, between repetitions
#define SETTLE_NS      500000 // until the engine's threads sleep
enum {
    DECODE_CONTEXT = 64, // tokens of each conversation before the timed ones
    MAX_STEPS = 64,
    MIN_STEPS = 8,
    WARM_UP_STEPS = 4,
    MAX_CONVERSATIONS = 16,
    TARGET_REPETITIONS = 10, // of each kind of work in the given time
    MIN_REPETITIONS = 3,
    MAX_REPETITIONS = 64,
    TIMED_CONVERSATIONS = 1000, // a timed conversation's id, less that of the one whose context it shares
};

static const struct kind {
    const char *name;
    int conversations, prompt;
    bool prefill; // time the prompt; otherwise it is in the KV cache already
    bool is_long; // measured only if asked for
} kinds[] = {
    {"prefill512", 1, 512, true, false},
    {"prefill4096", 1, 4096, true, true},
    {"decode1", 1, DECODE_CONTEXT, false, false},
    {"decode2", 2, DECODE_CONTEXT, false, false},
    {"decode4", 4, DECODE_CONTEXT, false, false},
    {"decode8", 8, DECODE_CONTEXT, false, false},
    {"decode16", 16, DECODE_CONTEXT, false, false},
    {"decode1@8k", 1, 8192, false, true},
    {"decode1@32k", 1, 32768, false, true},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };
_Static_assert((int)N_KINDS <= BENCH_MAX_RESULTS, "");

// A kind of work and its measurements. A repetition is one or more batches, so that even small models run long enough
// to be timed.
struct work {
    const struct kind *kind;
    int prompt, steps; // steps: tokens of each conversation
    int tokens, repetitions;
    double rates[MAX_REPETITIONS];
    double read_bytes[MAX_REPETITIONS]; // the machine's limits around each repetition
    double int8_operations[MAX_REPETITIONS], float_operations[MAX_REPETITIONS];
    double seconds, stages[STAGE_COUNT]; // of all repetitions
};

struct bench {
    const struct model_info *info;
    double kv_bytes; // of a token in the KV cache
    struct engine_client *client;
    struct machine_limits_probe *probe; // NULL: the machine's limits do not apply
    uint32_t random;
    struct progress progress;
    struct work works[BENCH_MAX_RESULTS];
    int n_works;
};

// ---- requests ----

// Random tokens that depend on the seed only: a longer prompt begins with the shorter one.
static int32_t *random_ids(uint32_t seed, int n, int n_vocab) {
    int32_t *ids = xmalloc((size_t)n * sizeof *ids);
    for (int i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        ids[i] = (int32_t)((seed >> 8) % (uint32_t)n_vocab);
    }
    return ids;
}

static void submit(struct bench *b, int conversation, uint32_t seed, int n_prompt, int n_tokens) {
    int32_t *ids = random_ids(seed, n_prompt, b->info->n_vocab);
    struct sampling sampling = b->info->sampling;
    sampling_set(&sampling, KNOB_seed, conversation);
    engine_submit(b->client, &(struct request_params){.conversation = (uint64_t)conversation,
                                                      .ids = ids,
                                                      .n_ids = n_prompt,
                                                      .sampling = sampling,
                                                      .max_tokens = n_tokens,
                                                      .ignore_end = true});
    free(ids);
}

// Waits until n requests have ended. *end: when the last one did; *reused: the fewest cached tokens of any.
static bool wait_for(struct bench *b, int n, double *end, int *reused, struct status *st) {
    struct engine_event event;
    *reused = INT32_MAX;
    while (n) {
        if (!engine_wait(b->client, &event, -1) || event.kind != EVENT_STATE) continue;
        if (event.state == REQUEST_FAILED) return status_fail(st, STATUS_LIMIT, "%s", event.text);
        if (event.state != REQUEST_FINISHED) continue;
        if (event.n_reused < *reused) *reused = event.n_reused;
        *end = event.time;
        n--;
    }
    return true;
}

static void pause_ns(long ns) { nanosleep(&(struct timespec){.tv_nsec = ns}, NULL); }

// Waits for the metrics of the idle engine, which are published a moment after the last event.
static const struct engine_metrics *idle_metrics(struct bench *b, int64_t steps_before) {
    for (;;) {
        const struct engine_metrics *f = engine_metrics(b->client);
        if (!metric_known((double)f->steps) || (f->steps > steps_before && f->running <= 0 && f->queue <= 0)) return f;
        pause_ns(100000);
    }
}

// Computes the prompts of n conversations, which stay in the KV cache.
static bool fill_context(struct bench *b, int n, int n_prompt, struct status *st) {
    double end;
    int reused;
    for (int i = 1; i <= n; i++) submit(b, i, (uint32_t)i, n_prompt, 1);
    return wait_for(b, n, &end, &reused, st);
}

// ---- a batch and its time ----

// Times a batch from the first submission to the end of the last answer, and adds up the stages. A decoding
// conversation finds its context in the KV cache and computes one row per step from the first step on.
static bool run_batch(struct bench *b, struct work *w, double *seconds, struct status *st) {
    struct engine_metrics before = {0};
    const struct engine_metrics *f = engine_metrics(b->client);
    before.steps = f->steps;
    memcpy(before.stage_seconds, f->stage_seconds, sizeof before.stage_seconds);
    double start = clock_seconds(), end;
    int reused;
    for (int i = 1; i <= w->kind->conversations; i++)
        submit(b, TIMED_CONVERSATIONS + i, w->kind->prefill ? b->random++ : (uint32_t)i, w->prompt, w->steps);
    if (!wait_for(b, w->kind->conversations, &end, &reused, st)) return false;
    if (!w->kind->prefill && reused < w->prompt - 1)
        return status_fail(st, STATUS_LIMIT, "%s: only %d of %d tokens of context stayed in the KV cache",
                           w->kind->name, reused, w->prompt);
    *seconds = end - start;
    f = idle_metrics(b, before.steps);
    for (int i = 0; i < STAGE_COUNT; i++) w->stages[i] += f->stage_seconds[i] - before.stage_seconds[i];
    for (int i = 1; i <= w->kind->conversations; i++) engine_forget(b->client, (uint64_t)(TIMED_CONVERSATIONS + i), 0);
    return true;
}

static int batch_tokens(const struct work *w) {
    return w->kind->prefill ? w->prompt : w->kind->conversations * w->steps;
}

static struct machine_limits sample_limits(struct bench *b) {
    if (!b->probe) return (struct machine_limits){.int8_name = ""};
    pause_ns(SETTLE_NS);
    return machine_limits_sample(b->probe, SAMPLE_SECONDS);
}

static bool repeat(struct bench *b, struct work *w, double target, struct machine_limits *limits, struct status *st) {
    double seconds = 0, batch;
    int tokens = 0;
    do {
        if (!run_batch(b, w, &batch, st)) return false;
        seconds += batch;
        tokens += batch_tokens(w);
    } while (seconds < 0.7 * target);
    const struct machine_limits before = *limits;
    *limits = sample_limits(b);
    w->rates[w->repetitions] = tokens / seconds;
    w->read_bytes[w->repetitions] = (before.read_bytes + limits->read_bytes) / 2;
    w->int8_operations[w->repetitions] = (before.int8_operations + limits->int8_operations) / 2;
    w->float_operations[w->repetitions] = (before.float_operations + limits->float_operations) / 2;
    w->repetitions++;
    w->tokens += tokens;
    w->seconds += seconds;
    return true;
}

// ---- the plan ----

// Whether a list such as "prefill512,decode1" has this name.
static bool listed(const char *list, const char *name) {
    const size_t size = strlen(name);
    for (const char *end; *list; list = end + (*end == ',')) {
        end = strchrnul(list, ',');
        if ((size_t)(end - list) == size && !memcmp(list, name, size)) return true;
    }
    return false;
}

static bool is_chosen(const struct kind *k, const struct settings *s) {
    return s->only && *s->only ? listed(s->only, k->name) : !k->is_long || s->long_contexts;
}

static bool check_only(const struct settings *s, struct status *st) {
    char names[160] = "";
    size_t used = 0;
    for (const struct kind *k = kinds; k < kinds + N_KINDS; k++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? "," : "", k->name);
    for (const char *list = s->only ? s->only : "", *end; *list; list = end + (*end == ',')) {
        char name[32];
        end = strchrnul(list, ',');
        snprintf(name, sizeof name, "%.*s", (int)(end - list), list);
        if (!listed(names, name))
            return status_fail(st, STATUS_USAGE, "only: unknown name '%s' (expected some of %s)", name, names);
    }
    return true;
}

static bool plan(struct bench *b, const struct settings *s, struct status *st) {
    const int context = b->info->n_context;
    for (const struct kind *k = kinds; k < kinds + N_KINDS; k++) {
        const int room = k->prefill ? context - 2 : context / 2;
        if (!is_chosen(k, s) || (k->is_long && k->prompt + MAX_STEPS > context)) continue;
        b->works[b->n_works++] = (struct work){.kind = k,
                                               .prompt = k->prompt < room || k->is_long ? k->prompt : room,
                                               .steps = k->prefill ? 1 : WARM_UP_STEPS};
    }
    return b->n_works ? true
                      : status_fail(st, STATUS_LIMIT, "%s: the context of %d tokens is too small", s->only, context);
}

// The size of the KV cache: room, in whole pages, for the contexts that stay and for the timed conversations.
static int kv_tokens(const struct settings *s) {
    enum { PAGE = 64 };                                        // or less
    int tokens = MAX_CONVERSATIONS * (DECODE_CONTEXT + PAGE) + // the contexts
                 MAX_CONVERSATIONS * (DECODE_CONTEXT + MAX_STEPS + 2 * PAGE);
    for (const struct kind *k = kinds; k < kinds + N_KINDS; k++)
        if (k->is_long && is_chosen(k, s)) tokens += k->prompt + MAX_STEPS + 2 * PAGE;
    return tokens;
}

// The short contexts of all conversations.
static bool fill_contexts(struct bench *b, struct status *st) {
    int most = 0, prompt = 0;
    for (const struct work *w = b->works; w < b->works + b->n_works; w++) {
        if (w->kind->prefill || w->kind->is_long || w->kind->conversations <= most) continue;
        most = w->kind->conversations;
        prompt = w->prompt;
    }
    return !most || fill_context(b, most, prompt, st);
}

// Runs everything once, so that memory reaches its peak and code and weights are in place, and chooses how many steps a
// repetition takes.
static bool warm_up(struct bench *b, double target, struct status *st) {
    const int context = b->info->n_context;
    if (!fill_contexts(b, st)) return false;
    for (struct work *w = b->works; w < b->works + b->n_works; w++) {
        double seconds;
        progress_draw(&b->progress, 0, w->kind->name);
        if (w->kind->is_long && !w->kind->prefill && !fill_context(b, 1, w->prompt, st)) return false;
        if (!run_batch(b, w, &seconds, st)) return false;
        memset(w->stages, 0, sizeof w->stages);
        if (w->kind->prefill) continue;
        const double steps = fmax(MIN_STEPS, fmin(MAX_STEPS, target * w->steps / seconds));
        const int room = context - w->prompt - 1;
        w->steps = steps < room ? (int)steps : room > 1 ? room : 1;
    }
    return true;
}

// Returns the work that has been measured for the shortest time, NULL if all have been measured enough.
static struct work *next_work(struct bench *b, bool time_left) {
    struct work *next = NULL;
    for (struct work *w = b->works; w < b->works + b->n_works; w++) {
        if (w->repetitions >= (time_left ? MAX_REPETITIONS : MIN_REPETITIONS)) continue;
        if (!next || w->seconds < next->seconds) next = w;
    }
    return next;
}

static bool measure_all(struct bench *b, double seconds, double target, struct status *st) {
    const double start = clock_seconds();
    struct machine_limits limits = sample_limits(b);
    for (struct work *w; (w = next_work(b, clock_seconds() - start < seconds));) {
        progress_draw(&b->progress, fmin(1, (clock_seconds() - start) / fmax(seconds, 1e-3)), w->kind->name);
        if (!repeat(b, w, target, &limits, st)) return false;
    }
    return true;
}

// ---- results ----

static int compare_numbers(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(const double *values, int n) {
    if (n < 1) return 0;
    double *sorted = xmalloc((size_t)n * sizeof *sorted);
    memcpy(sorted, values, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, compare_numbers);
    const double median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
    free(sorted);
    return median;
}

// Compute: a token's matmuls use every weight except the embedding and the experts that were not routed to; a prompt
// uses the output matrix only once. Memory: all conversations of a step share the weights they read (of the experts,
// those that any of them is routed to, as if at random); each reads its own keys and values. What the last cache holds
// is not read from memory.
void bench_limit(struct bench_result *r, const struct model_info *info, double kv_bytes, double cache_bytes) {
    const struct machine_limits machine = {.int8_operations = r->int8_operations,
                                           .float_operations = r->float_operations};
    const struct expert_info *e = &info->experts;
    const bool prefill = !strncmp(r->name, "prefill", 7);
    const double experts = 3.0 * info->n_embd * e->n_ff * e->count * e->n_layer; // gate, up and down
    const double idle = e->count ? 1 - (double)e->used / e->count : 0;           // of the experts, for one token
    const double matrix = (double)info->n_vocab * info->n_embd, all = (double)info->n_parameters;
    const double used = all - (info->tied ? 0 : matrix);
    const double bytes = (double)info->weight_bytes * used / all * (1 - experts / used * pow(idle, r->conversations));
    const double keys = r->context * kv_bytes;
    r->bytes_per_token = prefill ? 0 : bytes / r->conversations + keys;
    r->operations_per_token = 2 * ((prefill ? used - matrix : used) - experts * idle);
    r->operations = machine_limits_operations(&machine, info->float_share);
    const double compute = r->operations / r->operations_per_token;
    const double memory = r->read_bytes * r->conversations / (bytes + keys * r->conversations);
    const double rate = r->tokens_per_second,
                 cached = machine_cache_share(bytes + keys * r->conversations, cache_bytes);
    r->by_memory = !prefill && rate <= cached * memory && cached > 0 && (memory < compute || compute <= 0);
    r->limit = r->by_memory ? memory : compute;
    if (r->limit <= 0 || rate <= r->limit) return;
    *(r->by_memory ? &r->read_bytes : &r->operations) *= rate / r->limit; // the machine evidently allows more
    r->limit = rate;
}

static void summarize(struct bench_result *r, const struct work *w, const struct bench *b, double cache_bytes) {
    *r = (struct bench_result){.conversations = w->kind->conversations,
                               .context = w->kind->prefill ? 0 : w->prompt + w->steps / 2,
                               .tokens = w->tokens,
                               .repetitions = w->repetitions,
                               .tokens_per_second = bench_median(w->rates, w->repetitions),
                               .lowest = w->rates[0],
                               .highest = w->rates[0],
                               .read_bytes = bench_median(w->read_bytes, w->repetitions),
                               .int8_operations = bench_median(w->int8_operations, w->repetitions),
                               .float_operations = bench_median(w->float_operations, w->repetitions)};
    snprintf(r->name, sizeof r->name, "%s", w->kind->name);
    for (int i = 1; i < w->repetitions; i++) {
        r->lowest = fmin(r->lowest, w->rates[i]);
        r->highest = fmax(r->highest, w->rates[i]);
    }
    for (int i = 0; i < STAGE_COUNT; i++) r->stages[i] = w->stages[i] / w->seconds;
    bench_limit(r, b->info, b->kv_bytes, cache_bytes);
}

static double peak_resident(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024;
}

// ---- machine, model and time ----

static void copy_line(char *to, size_t size, const char *from) {
    char *clean = clean_line(from, size - 1);
    snprintf(to, size, "%s", clean);
    free(clean);
}

static void describe_run(struct bench_report *out, const struct loaded_model *m, const struct settings *s) {
    char *title = model_title(m->info);
    const time_t now = time(NULL);
    struct tm local;
    copy_line(out->model, sizeof out->model, title);
    copy_line(out->note, sizeof out->note, s->note ? s->note : "");
    char processor[sizeof out->processor];
    processor_name(processor, sizeof processor);
    copy_line(out->processor, sizeof out->processor, processor);
    if (localtime_r(&now, &local)) strftime(out->time, sizeof out->time, "%Y-%m-%dT%H:%M:%S%z", &local);
    out->parameters = (double)m->info->n_parameters;
    out->weight_bytes = (double)m->info->weight_bytes;
    const struct engine_metrics *f = engine_metrics(m->client);
    copy_line(out->backend, sizeof out->backend, f->backend);
    out->threads = f->n_threads;
    out->n_parts = f->n_parts;
    memcpy(out->parts, f->parts, sizeof out->parts);
    free(title);
}

// ---- the whole benchmark ----

// loading: when loading began.
static bool measure_first_token(struct bench *b, struct bench_report *out, double loading, struct status *st) {
    const int room = b->info->n_context - 2, prompt = room < BENCH_FIRST_PROMPT ? room : BENCH_FIRST_PROMPT;
    double end;
    int reused;
    submit(b, TIMED_CONVERSATIONS, b->random++, prompt, 1);
    if (!wait_for(b, 1, &end, &reused, st)) return false;
    out->first_token_seconds = end - loading;
    engine_forget(b->client, TIMED_CONVERSATIONS, 0);
    return true;
}

static bool measure_speed(struct bench *b, struct bench_report *out, double seconds, struct status *st) {
    const double target = seconds / (b->n_works * TARGET_REPETITIONS);
    if (!warm_up(b, target, st)) return false;
    out->peak_bytes = peak_resident();
    const struct part_metrics *main = metrics_main_part(engine_metrics(b->client));
    if (!(b->probe = machine_limits_open_on(main ? main->device : "cpu", out->threads, NULL, st))) return false;
    const bool done = measure_all(b, seconds, target, st);
    const double since = peak_resident() - (double)machine_limits_memory(b->probe);
    if (since > out->peak_bytes) out->peak_bytes = since;
    out->limits = machine_limits_best(b->probe);
    machine_limits_close(b->probe);
    if (!done) return false;
    for (int i = 0; i < b->n_works; i++)
        summarize(&out->results[out->n_results++], &b->works[i], b, out->limits.cache_bytes);
    return true;
}

bool bench_measure(struct bench_report *out, const struct settings *given, struct status *st) {
    struct settings s = *given; // a shallow copy, with room for all conversations whatever the configuration says
    struct loaded_model m;
    s.context = 0;
    s.kv_tokens = kv_tokens(&s);
    *out = (struct bench_report){.limits = {.int8_name = ""}};
    if (!check_only(&s, st)) return false;
    const double loading = clock_seconds();
    if (!model_load(&m, &s, st)) return false;
    out->load_seconds = clock_seconds() - loading;
    struct bench *b = xcalloc(1, sizeof *b);
    const double kv_bytes = (double)local_engine_token_bytes(m.file, (enum kv_type)s.kv_type);
    *b = (struct bench){
        .info = m.info, .kv_bytes = kv_bytes, .client = m.client, .random = 1u << 20, .progress = progress_begin()};
    describe_run(out, &m, &s);
    bool done =
        plan(b, &s, st) && measure_first_token(b, out, loading, st) && measure_speed(b, out, s.bench_seconds, st);
    progress_clear(&b->progress);
    done = done && (s.accuracy_seconds <= 0 || bench_accuracy_measure(&out->accuracy, &m, &s, st));
    free(b);
    model_unload(&m);
    return done;
}
