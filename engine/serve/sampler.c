#include "engine/serve/sampler.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <sys/random.h>

#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/serve/front.h"

struct sampler_scratch {
    struct front_scratch fronts;
    float *block_max; // [row_blocks(n_vocab)]
    uint16_t *counts; // [n_vocab], all 0 between calls
    int n_touched;
    struct {
        int32_t id;
        float logit; // before penalties
    } touched[SAMPLER_WINDOW];
};

struct sampler_scratch *sampler_scratch_open(int n_vocab) {
    size_t n = (size_t)n_vocab, n_blocks = (size_t)row_blocks(n_vocab);
    struct sampler_scratch *x = xcalloc(1, sizeof *x);
    x->fronts.kernels = row_kernels_for(instruction_set_choose());
    x->fronts.block_weight = xcalloc(n_blocks, sizeof *x->fronts.block_weight);
    x->fronts.candidates = xcalloc(n, sizeof *x->fronts.candidates);
    x->block_max = xcalloc(n_blocks, sizeof *x->block_max);
    x->counts = xcalloc(n, sizeof *x->counts);
    return x;
}

void sampler_scratch_close(struct sampler_scratch *x) {
    free(x->fronts.block_weight);
    free(x->fronts.candidates);
    free(x->block_max);
    free(x->counts);
    free(x);
}

// ---- random numbers: splitmix64 ----

#define RANDOM_STEP 0x9e3779b97f4a7c15u

static uint64_t random_next(uint64_t *state) {
    uint64_t z = *state += RANDOM_STEP;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static double random_unit(uint64_t *state) { return (double)(random_next(state) >> 11) * 0x1p-53; }

static uint64_t random_start(uint32_t seed) {
    uint64_t state = seed;
    if (!seed && getrandom(&state, sizeof state, GRND_NONBLOCK) != (ssize_t)sizeof state) state = clock_ns();
    return state;
}

struct sampling sampler_for_answer(const struct sampling *s, int answer) {
    struct sampling own = *s;
    if (!answer || !s->seed) return own;
    uint64_t state = ((uint64_t)answer << 32) + s->seed;
    do own.seed = (uint32_t)random_next(&state);
    while (!own.seed); // which would mean any
    return own;
}

struct sampler sampler_start(const struct sampling *s) {
    struct sampler m = {.random = random_start(s->seed)};
    for (enum sampling_knob_id k = 0; k < KNOB_COUNT; k++) sampling_set(&m.sampling, k, sampling_get(s, k));
    return m;
}

void sampler_skip(struct sampler *m, int n) { m->random += (uint64_t)n * RANDOM_STEP; }

void sampler_change(struct sampler *m, const struct sampling *s) {
    uint64_t random = m->random;
    uint32_t seed = m->sampling.seed;
    *m = sampler_start(s);
    if (m->sampling.seed == seed) m->random = random;
}

// ---- what is reported ----

// The model's own distribution; `sum`: of all e^(logit − max).
static void report(const struct row *r, struct front_scratch *x, struct sample *out, double *sum) {
    struct row_sums sums = x->kernels->sums(r);
    double entropy = (front_log(sums.weight) - sums.weighted / sums.weight) / M_LN2;
    out->entropy = entropy > 0 ? (float)entropy : 0;
    out->n_alternatives = r->n < SAMPLING_TOP ? r->n : SAMPLING_TOP;
    front_list(r, x, out->n_alternatives);
    while (x->candidates[out->n_alternatives - 1].logit == -INFINITY) out->n_alternatives--;
    for (int i = 0; i < out->n_alternatives; i++) {
        out->alternatives[i].id = x->candidates[i].id;
        out->alternatives[i].probability = (float)((double)row_exp(x->candidates[i].logit - r->max) / sums.weight);
    }
    *sum = sums.weight;
}

// ---- penalties ----

static float bounded(float v) { return v < -FLT_MAX ? -FLT_MAX : v > FLT_MAX ? FLT_MAX : v; }

// A masked token stays masked, all others stay finite.
static float penalised(const struct sampling *s, float logit, int count) {
    if (logit == -INFINITY) return logit;
    logit = logit > 0 ? logit / s->repeat_penalty : logit * s->repeat_penalty;
    return bounded(logit - s->presence_penalty - s->frequency_penalty * (float)count);
}

static void refresh_maxima(struct row *r, const struct sampler_scratch *x) {
    for (int i = 0; i < x->n_touched; i++) {
        int block = x->touched[i].id / ROW_BLOCK, first = block * ROW_BLOCK;
        int size = r->n - first < ROW_BLOCK ? r->n - first : ROW_BLOCK;
        x->fronts.kernels->maxima(r->logits + first, size, r->block_max + block);
    }
    if (x->n_touched) r->max = row_largest(r->block_max, row_blocks(r->n));
}

// Changes the logits of recent tokens, remembering them.
static void penalise(const struct sampling *s, struct sampler_scratch *x, const struct sampler_input *in) {
    bool off = s->repeat_penalty == 1 && s->presence_penalty == 0 && s->frequency_penalty == 0;
    int window = off ? 0 : s->penalty_window < in->n_tokens ? s->penalty_window : in->n_tokens;
    const int32_t *recent = in->tokens + in->n_tokens - window;
    x->n_touched = 0;
    for (int i = 0; i < window; i++) x->counts[recent[i]]++;
    for (int i = 0; i < window; i++) {
        int32_t id = recent[i];
        if (!x->counts[id]) continue;
        x->touched[x->n_touched].id = id;
        x->touched[x->n_touched++].logit = in->logits[id];
        in->logits[id] = penalised(s, in->logits[id], x->counts[id]);
        x->counts[id] = 0;
    }
}

static void unpenalise(const struct sampler_scratch *x, const struct sampler_input *in) {
    for (int i = 0; i < x->n_touched; i++) in->logits[x->touched[i].id] = x->touched[i].logit;
}

// ---- the draw ----

static int32_t likeliest(const struct row *r) { return row_equal_to(r, r->max, 0); }

// What is left after each filter but the temperature's.
struct fronts {
    struct front after[FILTER_TEMPERATURE];
};

static struct fronts filter(const struct sampling *s, const struct row *r, struct front_scratch *x) {
    struct front front = front_all();
    struct fronts all;
    bool cuts = s->top_k > 0 && s->top_k < r->n;
    if (cuts) front = front_top(r, x, s->top_k);
    all.after[FILTER_TOP_K] = front;
    if (s->top_p < 1) front = cuts ? front_share_of(r, x, s->top_k, s->top_p) : front_share(r, x, s->top_p);
    all.after[FILTER_TOP_P] = front;
    all.after[FILTER_MIN_P] = s->min_p > 0 ? front_shorter(front, front_near(r, s->min_p)) : front;
    return all;
}

static float weight_of(const struct row *r, int i, float sharpness) {
    return row_exp((r->logits[i] - r->max) * sharpness);
}

// The token of a block's logits above `least` at which their weights exceed the target.
static int32_t draw_in_block(const struct row *r, int block, float sharpness, float least, double target) {
    int32_t last = -1; // should rounding leave a crumb
    for (int i = block * ROW_BLOCK; i < r->n && i < (block + 1) * ROW_BLOCK; i++) {
        if (r->logits[i] <= least) continue;
        last = i;
        if ((target -= (double)weight_of(r, i, sharpness)) < 0) break;
    }
    return last;
}

// Whose weights count, and what they come to: those above the least, by blocks, and of each tie with it.
struct weights {
    float sharpness, tie;
    double total;
};

static struct weights weigh(const struct sampling *s, const struct row *r, struct front_scratch *x,
                            struct front front) {
    struct weights w = {.sharpness = fminf(1 / s->temperature, FLT_MAX)};
    w.tie = front.ties ? row_exp((front.least - r->max) * w.sharpness) : 0;
    w.total = x->kernels->weigh(r, w.sharpness, front.least, x->block_weight) + front.ties * (double)w.tie;
    return w;
}

static int32_t draw(struct sampler *m, const struct row *r, struct front_scratch *x) {
    struct front front = filter(&m->sampling, r, x).after[FILTER_MIN_P];
    const struct weights w = weigh(&m->sampling, r, x, front);
    double target = random_unit(&m->random) * w.total;
    for (int b = 0; b < row_blocks(r->n); b++) {
        if (target < (double)x->block_weight[b]) return draw_in_block(r, b, w.sharpness, front.least, target);
        target -= (double)x->block_weight[b];
    }
    if (!(w.tie > 0)) return likeliest(r); // rounding left a crumb
    double number = target / (double)w.tie;
    return row_equal_to(r, front.least, number < front.ties ? (int)number : front.ties - 1);
}

// m is NULL: the token is known.
static struct sample sample(struct sampler *m, struct sampler_scratch *x, const struct sampler_input *in,
                            int32_t token) {
    struct sample out = {.token = token};
    struct row r = {.logits = in->logits, .n = in->n_vocab, .block_max = x->block_max};
    if (!x->fronts.kernels->maxima(r.logits, r.n, r.block_max)) return out;
    double sum;
    float max = r.max = row_largest(r.block_max, row_blocks(r.n));
    if (max == -INFINITY) return out;
    report(&r, &x->fronts, &out, &sum);
    if (m) {
        penalise(&m->sampling, x, in);
        refresh_maxima(&r, x);
        out.token = m->sampling.temperature > 0 ? draw(m, &r, &x->fronts) : likeliest(&r);
        unpenalise(x, in);
    }
    out.probability = (float)((double)row_exp(in->logits[out.token] - max) / sum);
    out.ok = true;
    return out;
}

struct sample sampler_score(struct sampler_scratch *x, const struct sampler_input *in, int32_t token) {
    return sample(NULL, x, in, token);
}

struct sample sampler_next(struct sampler *m, struct sampler_scratch *x, const struct sampler_input *in) {
    return sample(m, x, in, -1);
}

// ---- what knobs make of it ----

static int front_size(const struct row *r, struct front front) {
    int n = front.ties;
    for (int b = 0; b < row_blocks(r->n); b++) {
        if (r->block_max[b] <= front.least) continue;
        for (int i = b * ROW_BLOCK; i < r->n && i < (b + 1) * ROW_BLOCK; i++) n += r->logits[i] > front.least;
    }
    return n;
}

// `weights`: NULL where the likeliest is taken. `rank`: among the candidates, the likeliest is the first.
static float chance(const struct weights *weights, const struct row *r, int32_t id, int rank, int left) {
    if (rank >= left) return 0;
    return weights ? (float)((double)weight_of(r, id, weights->sharpness) / weights->total) : 1;
}

static int rank_of(const struct row *r, int32_t id) {
    int rank = 0;
    for (int i = 0; i < r->n; i++) rank += r->logits[i] > r->logits[id] || (r->logits[i] == r->logits[id] && i < id);
    return rank;
}

void sampler_explain(const struct sampling *s, struct sampler_scratch *x, const struct sampler_input *in, int32_t drawn,
                     struct distribution *out) {
    struct row r = {.logits = in->logits, .n = in->n_vocab, .block_max = x->block_max};
    *out = (struct distribution){.drawn.id = drawn};
    if (!x->fronts.kernels->maxima(r.logits, r.n, r.block_max)) return;
    const float max = r.max = row_largest(r.block_max, row_blocks(r.n));
    if (max == -INFINITY) return;
    const double sum = x->fronts.kernels->sums(&r).weight;
    out->n_tokens = front_size(&r, front_all());
    penalise(s, x, in);
    refresh_maxima(&r, x);
    const struct fronts fronts = filter(s, &r, &x->fronts);
    for (int i = 0; i < FILTER_TEMPERATURE; i++) out->left[i] = front_size(&r, fronts.after[i]);
    const bool greedy = !(s->temperature > 0);
    const int left = out->left[FILTER_TEMPERATURE] = greedy ? 1 : out->left[FILTER_MIN_P];
    const struct weights drawn_by = greedy ? (struct weights){0} : weigh(s, &r, &x->fronts, fronts.after[FILTER_MIN_P]);
    const struct weights *weights = greedy ? NULL : &drawn_by;
    out->n = out->n_tokens < DISTRIBUTION_TOP ? out->n_tokens : DISTRIBUTION_TOP;
    front_list(&r, &x->fronts, out->n);
    for (int i = 0; i < out->n; i++) {
        const int32_t id = x->fronts.candidates[i].id;
        out->candidates[i] = (struct distribution_candidate){.id = id, .after = chance(weights, &r, id, i, left)};
    }
    out->drawn.after = chance(weights, &r, drawn, rank_of(&r, drawn), left);
    unpenalise(x, in);
    out->n_penalised = x->n_touched;
    for (int i = -1; i < out->n; i++) {
        struct distribution_candidate *c = i < 0 ? &out->drawn : &out->candidates[i];
        c->before = (float)((double)row_exp(in->logits[c->id] - max) / sum);
        for (int k = 0; k < x->n_touched; k++) c->penalised |= x->touched[k].id == c->id;
    }
}
