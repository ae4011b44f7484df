#include "app/bench/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"

enum {
    TRIAL_POSITIONS = 8, // tell how fast the exact path is; at least so many are compared
    MOST_POSITIONS = 128,
};

static const char text[] =
    "The lighthouse stood at the end of a long pier, and every evening at six the keeper walked out to light the "
    "lamp. In 1874 a storm took the last forty metres of planks, so he learned to row. \"It is only water,\" he used "
    "to say, \"and water goes where it wants.\" His daughter kept the books: oil, wicks, wages, the names of ships. "
    "When the new electric lamp came, twenty-three years later, she was the one who read the manual, changed the "
    "fuses and wrote to the ministry that the instructions for the switchboard had two mistakes on page 12.";

// ---- one row ----

struct row_figures {
    int top;
    double log_sum; // of the exponentials
};

static struct row_figures row_figures_of(const float *logits, int n) {
    struct row_figures r = {0};
    double sum = 0;
    for (int i = 1; i < n; i++)
        if (logits[i] > logits[r.top]) r.top = i;
    for (int i = 0; i < n; i++) sum += exp((double)logits[i] - logits[r.top]);
    r.log_sum = logits[r.top] + log(sum);
    return r;
}

void bench_distance_add(struct bench_distance *d, const float *exact, const float *other, int n_vocab) {
    const struct row_figures a = row_figures_of(exact, n_vocab), b = row_figures_of(other, n_vocab);
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

// Of the text in the model's own tokens, again from its start where it is too short.
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

// How many positions fit into the time, after a trial of a few; in *n.
static bool exact_positions(struct engine *e, const int32_t *ids, float *out, double budget, int *n,
                            struct status *st) {
    double seconds;
    if (!exact_logits(e, ids, TRIAL_POSITIONS, out, &seconds, st)) return false;
    const double most = budget / seconds * TRIAL_POSITIONS;
    *n = most >= *n ? *n : most > TRIAL_POSITIONS ? (int)most : TRIAL_POSITIONS;
    return true;
}

static bool measure(struct bench_accuracy *out, struct loaded_model *m, const struct settings *s, float *fast,
                    float *exact, int most, struct status *st) {
    int32_t ids[MOST_POSITIONS];
    double seconds;
    int n = most;
    choose_ids(m->file, ids, most);
    if (!engine_logits(m->engine, ids, most, fast, st)) return false;
    engine_close(m->engine);
    struct engine_params p = {.n_threads = s->threads, .kv_tokens = most, .options.exact = true};
    if (!(m->engine = engine_open(m->file, &p, st))) return false;
    if (!exact_positions(m->engine, ids, exact, s->accuracy_seconds, &n, st)) return false;
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
    const int room = m->info->n_context - 1, most = room < MOST_POSITIONS ? room : MOST_POSITIONS;
    if (most < TRIAL_POSITIONS) return true;
    const size_t size = (size_t)most * (size_t)m->info->n_vocab * sizeof(float);
    float *fast = region_alloc(size), *exact = region_alloc(size);
    const bool done = fast && exact ? measure(out, m, s, fast, exact, most, st)
                                    : status_fail(st, STATUS_MEMORY, "no memory for the logits of %d tokens", most);
    region_free(fast, size);
    region_free(exact, size);
    return done;
}
