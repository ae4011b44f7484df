#include "app/bench/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"

enum {
    TRIAL_POSITIONS = 8, // to time the exact path with; also the fewest that are compared
    MAX_POSITIONS = 128,
};

static const char text[] =
    "The lighthouse stood at the end of a long pier, and every evening at six the keeper walked out to light the "
    "lamp. In 1874 a storm took the last forty metres of planks, so he learned to row. \"It is only water,\" he used "
    "to say, \"and water goes where it wants.\" His daughter kept the books: oil, wicks, wages, the names of ships. "
    "When the new electric lamp came, twenty-three years later, she was the one who read the manual, changed the "
    "fuses and wrote to the ministry that the instructions for the switchboard had two mistakes on page 12.";

// ---- one row ----

struct row_stats {
    int top;
    double log_sum; // of the exponentials
};

static struct row_stats row_stats_of(const float *logits, int n) {
    struct row_stats r = {0};
    double sum = 0;
    for (int i = 1; i < n; i++)
        if (logits[i] > logits[r.top]) r.top = i;
    for (int i = 0; i < n; i++) sum += exp((double)logits[i] - logits[r.top]);
    r.log_sum = logits[r.top] + log(sum);
    return r;
}

void bench_distance_add(struct bench_distance *d, const float *exact, const float *other, int n_vocab) {
    const struct row_stats a = row_stats_of(exact, n_vocab), b = row_stats_of(other, n_vocab);
    for (int i = 0; i < n_vocab; i++) {
        const double x = exact[i], y = other[i];
        const double p = exp(x - a.log_sum);
        if (p > 0) d->divergence += p * (x - a.log_sum - (y - b.log_sum));
        d->squared_error += (x - y) * (x - y);
        d->squares += x * x;
    }
    d->same_top += a.top == b.top;
    d->rows++;
}

struct bench_accuracy bench_distance_mean(const struct bench_distance *d) {
    if (!d->rows) return (struct bench_accuracy){0};
    return (struct bench_accuracy){.positions = d->rows,
                                   .same_top = (double)d->same_top / d->rows,
                                   .divergence = d->divergence / d->rows,
                                   .error = d->squares > 0 ? d->squared_error / d->squares : 0};
}

// ---- both engines ----

// The text in the model's tokens, repeated if it is too short.
static void choose_ids(const struct model_file *file, int32_t *ids, int n) {
    const struct model_info *info = model_file_info(file);
    size_t count, used = 0;
    int first = 0;
    for (int i = 0; i < info->n_special; i++)
        if (info->adds_bos && !strcmp(info->special[i].role, "bos")) ids[first++] = info->special[i].id;
    int32_t *tokens = model_file_tokenize(file, text, strlen(text), false, &count);
    for (int i = first; i < n; i++) ids[i] = count ? tokens[used++ % count] : i % info->n_vocab;
    free(tokens);
}

static bool exact_logits(struct engine *e, const int32_t *ids, int n, float *out, double *seconds, struct status *st) {
    const double start = clock_seconds();
    const bool done = engine_logits(e, ids, n, out, st);
    *seconds = clock_seconds() - start;
    return done;
}

static bool measure(struct bench_accuracy *out, struct loaded_model *m, const struct settings *s, float *fast,
                    float *exact, int max, struct status *st) {
    int32_t ids[MAX_POSITIONS];
    double seconds;
    choose_ids(m->file, ids, max);
    if (!engine_logits(m->engine, ids, max, fast, st)) return false;
    model_close_engine(m);
    struct engine_params p = {.n_threads = s->threads, .kv_tokens = max, .options.exact = true};
    if (!(m->engine = local_engine_open(m->file, &p, st))) return false;
    if (!exact_logits(m->engine, ids, TRIAL_POSITIONS, exact, &seconds, st)) return false;
    const double affordable = s->accuracy_seconds / seconds * TRIAL_POSITIONS;
    const int n = affordable >= max ? max : affordable > TRIAL_POSITIONS ? (int)affordable : TRIAL_POSITIONS;
    if (n > TRIAL_POSITIONS && !exact_logits(m->engine, ids, n, exact, &seconds, st)) return false;
    struct bench_distance d = {0};
    const size_t n_vocab = (size_t)m->info->n_vocab;
    for (int i = 0; i < n; i++)
        bench_distance_add(&d, exact + (size_t)i * n_vocab, fast + (size_t)i * n_vocab, m->info->n_vocab);
    *out = bench_distance_mean(&d);
    return true;
}

bool bench_accuracy_measure(struct bench_accuracy *out, struct loaded_model *m, const struct settings *s,
                            struct status *st) {
    *out = (struct bench_accuracy){0};
    const int room = m->info->n_context - 1, max = room < MAX_POSITIONS ? room : MAX_POSITIONS;
    if (max < TRIAL_POSITIONS) return true;
    const size_t size = (size_t)max * (size_t)m->info->n_vocab * sizeof(float);
    float *fast = region_alloc(size), *exact = region_alloc(size);
    const bool done = fast && exact ? measure(out, m, s, fast, exact, max, st)
                                    : status_fail(st, STATUS_MEMORY, "out of memory for the logits of %d tokens", max);
    region_free(fast, size);
    region_free(exact, size);
    return done;
}
