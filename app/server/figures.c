#include "app/server/figures.h"

#include <math.h>
#include <stdio.h>

#include "engine/base/clock.h"
#include "engine/base/panic.h"

static const double bounds[FIGURES_BUCKETS] = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
                                               1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640};

// ---- counting ----

static void add(struct histogram *h, uint64_t from, uint64_t to) {
    const double seconds = to > from ? (double)(to - from) * 1e-9 : 0;
    int i = 0;
    while (i < FIGURES_BUCKETS && seconds > bounds[i]) i++;
    h->counts[i]++;
    h->sum += seconds;
}

void figures_token(struct figures *f, uint64_t submitted, uint64_t last, uint64_t at) {
    if (last) add(&f->next_token, last, at);
    else add(&f->first_token, submitted, at);
}

void figures_end(struct figures *f, uint64_t submitted, const struct engine_event *end) {
    f->ended[end->state == REQUEST_FAILED ? FINISH_ERROR : end->reason]++;
    if (end->state == REQUEST_FINISHED) add(&f->whole, submitted, end->at);
}

// ---- writing ----

// X(name, type, help, value of *m)
#define FIGURES(X)                                                                                                     \
    X("vllm:num_requests_running", "gauge", "requests in progress", m->running)                                        \
    X("vllm:num_requests_waiting", "gauge", "requests that wait", m->queue)                                            \
    X("vllm:kv_cache_usage_perc", "gauge", "share of the KV cache's pages that requests use", share(m))                \
    X("vllm:prompt_tokens_total", "counter", "prompt tokens, cached ones included",                                    \
      sum(m->prefill_tokens, m->reused_tokens))                                                                        \
    X("vllm:prompt_tokens_cached_total", "counter", "prompt tokens found in the KV cache", m->reused_tokens)           \
    X("vllm:generation_tokens_total", "counter", "tokens that were generated", m->decode_tokens)                       \
    X("vllm:prefix_cache_queries_total", "counter", "prompt tokens looked for in the KV cache",                        \
      sum(m->prefill_tokens, m->reused_tokens))                                                                        \
    X("vllm:prefix_cache_hits_total", "counter", "prompt tokens found there", m->reused_tokens)                        \
    X("vllm:num_preemptions_total", "counter", "requests that had to give up their pages", m->preemptions)             \
    X("vllm:spec_decode_num_draft_tokens_total", "counter", "tokens that were guessed", m->drafted_tokens)             \
    X("vllm:spec_decode_num_accepted_tokens_total", "counter", "guessed tokens that were drawn", m->accepted_tokens)   \
    X("confab_decode_tokens_per_second", "gauge", "tokens generated in the last second of work", m->decode_now)        \
    X("confab_prefill_tokens_per_second", "gauge", "prompt tokens read in the last second of work", m->prefill_now)    \
    X("confab_draft_acceptance", "gauge", "share of guessed tokens that were drawn, lately", m->acceptance)            \
    X("confab_steps_total", "counter", "steps of the engine", m->steps)                                                \
    X("confab_batch_rows", "gauge", "rows of the last step", m->batch_rows)                                            \
    X("confab_kv_bytes", "gauge", "bytes of the KV cache", m->kv_bytes)                                                \
    X("confab_evictions_total", "counter", "cached pages given up for others", m->evictions)                           \
    X("confab_context_tokens", "gauge", "tokens that a conversation may have", m->context)                             \
    X("confab_decode_bytes_per_second", "gauge", "bytes read per second while decoding", rate(&m->decode))             \
    X("confab_prefill_bytes_per_second", "gauge", "bytes read per second while prompts are read", rate(&m->prefill))

static double sum(int64_t a, int64_t b) { return metric_known((double)a) && metric_known((double)b) ? a + b : NAN; }
static double share(const struct engine_metrics *m) {
    return m->n_pages > 0 && metric_known(m->pages_used) ? (double)m->pages_used / m->n_pages : NAN;
}
static double rate(const struct stage_work *w) { return w->seconds > 0 ? w->bytes / w->seconds : NAN; }

static void begin(FILE *out, const char *name, const char *type, const char *help) {
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

// A label's value: quotes and backslashes are escaped; names of models have no line ends.
static void write_label(FILE *out, const char *name, const char *value) {
    fprintf(out, "%s=\"", name);
    for (; *value; value++) fprintf(out, "%s%c", *value == '"' || *value == '\\' ? "\\" : "", *value);
    fputc('"', out);
}

static void write_value(FILE *out, const char *name, const char *model, const char *label, const char *is,
                        double value) {
    if (!metric_known(value)) return;
    fprintf(out, "%s{", name);
    write_label(out, "model_name", model);
    if (label) fputc(',', out), write_label(out, label, is);
    fprintf(out, "} %.15g\n", value);
}

static void write_histogram(FILE *out, const char *name, const char *model, const struct histogram *h) {
    char part[96], bound[24] = "+Inf";
    uint64_t count = 0;
    snprintf(part, sizeof part, "%s_bucket", name);
    for (int i = 0; i <= FIGURES_BUCKETS; i++) {
        count += h->counts[i];
        snprintf(bound, sizeof bound, i < FIGURES_BUCKETS ? "%g" : "+Inf", i < FIGURES_BUCKETS ? bounds[i] : 0);
        write_value(out, part, model, "le", bound, (double)count);
    }
    snprintf(part, sizeof part, "%s_sum", name);
    write_value(out, part, model, NULL, NULL, h->sum);
    snprintf(part, sizeof part, "%s_count", name);
    write_value(out, part, model, NULL, NULL, (double)count);
}

static void write_pages(FILE *out, const char *name, const char *model, const struct engine_metrics *m) {
    if (!m) return;
    const struct {
        const char *state;
        int n;
    } pages[] = {
        {"used", m->pages_used}, {"shared", m->pages_shared}, {"cached", m->pages_kept}, {"free", m->pages_free}};
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        write_value(out, name, model, "state", pages[i].state, pages[i].n);
}

static void write_stages(FILE *out, const char *name, const char *model, const struct engine_metrics *m) {
    static const char *const names[] = {
#define X(id, name) name,
        BACKEND_STAGES(X)
#undef X
    };
    if (!m) return;
    for (int i = 0; i < STAGE_COUNT; i++) write_value(out, name, model, "stage", names[i], m->stage_seconds[i]);
}

static void write_ends(FILE *out, const char *name, const char *model, const struct figures *f) {
    static const struct {
        enum finish_reason reason;
        const char *name;
    } reasons[] = {{FINISH_END, "stop"},  {FINISH_LENGTH, "length"},   {FINISH_CONTEXT, "context"},
                   {FINISH_TIME, "time"}, {FINISH_CANCELLED, "abort"}, {FINISH_ERROR, "error"}};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        write_value(out, name, model, "finished_reason", reasons[i].name, (double)f->ended[reasons[i].reason]);
}

// Those of several lines: X(name, type, help, what writes them, of what)
#define FIGURES_OF_LINES(X)                                                                                            \
    X("confab_pages", "gauge", "pages of the KV cache, by state; shared ones are among the used", write_pages, m)      \
    X("confab_stage_seconds_total", "counter", "time of each stage of a step", write_stages, m)                        \
    X("vllm:request_success_total", "counter", "answers that ended, by finished_reason", write_ends, f)                \
    X("vllm:time_to_first_token_seconds", "histogram", "from the request to the first token", write_histogram,         \
      &f->first_token)                                                                                                 \
    X("vllm:inter_token_latency_seconds", "histogram", "between two tokens", write_histogram, &f->next_token)          \
    X("vllm:e2e_request_latency_seconds", "histogram", "from the request to the answer's end", write_histogram,        \
      &f->whole)

char *figures_write(const struct figures_of *of, int n, size_t *size) {
    char *text = NULL;
    FILE *out = open_memstream(&text, size);
    if (!out) panic("out of memory");
#define X(name, type, help, value)                                                                                     \
    for (int i = 0, begun = 0; i < n; i++) {                                                                           \
        const struct engine_metrics *m = of[i].metrics;                                                                \
        if (!m || !metric_known((double)(value))) continue;                                                            \
        if (!begun++) begin(out, name, type, help);                                                                    \
        write_value(out, name, of[i].model, NULL, NULL, (double)(value));                                              \
    }
    FIGURES(X)
#undef X
#define X(name, type, help, write, what)                                                                               \
    begin(out, name, type, help);                                                                                      \
    for (int i = 0; i < n; i++) {                                                                                      \
        const struct engine_metrics *m = of[i].metrics;                                                                \
        const struct figures *f = of[i].counted;                                                                       \
        (void)m, (void)f;                                                                                              \
        write(out, name, of[i].model, what);                                                                           \
    }
    FIGURES_OF_LINES(X)
#undef X
    if (fclose(out)) panic("out of memory");
    return text;
}

const struct figure_info figure_table[] = {
#define X(name, type, help, ...) {name, type, help},
    FIGURES(X) FIGURES_OF_LINES(X)
#undef X
};
const int n_figures = sizeof figure_table / sizeof *figure_table;
