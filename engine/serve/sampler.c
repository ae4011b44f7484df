#include "engine/serve/sampler.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "engine/base/clock.h"
#include "engine/base/panic.h"

enum { LANES = 4, BLOCK = 64 }; // a block's maximum is kept, so that a search for the largest skips most blocks

typedef float float4 __attribute__((vector_size(16)));
typedef int32_t int4 __attribute__((vector_size(16)));

struct candidate {
    float logit, weight;
    int32_t id;
};

struct sampler_scratch {
    float *block_max;             // [⌈n_vocab / BLOCK⌉]
    uint16_t *counts;             // [n_vocab], all 0 between calls
    struct candidate *candidates; // [n_vocab]
    int n_touched;
    struct {
        int32_t id;
        float logit; // before penalties
    } touched[4096]; // as many as the penalties may look back
};

struct sampler_scratch *sampler_scratch_open(int n_vocab) {
    struct sampler_scratch *x = xcalloc(1, sizeof *x);
    x->block_max = xcalloc((size_t)(n_vocab + BLOCK - 1) / BLOCK, sizeof *x->block_max);
    x->counts = xcalloc((size_t)n_vocab, sizeof *x->counts);
    x->candidates = xcalloc((size_t)n_vocab, sizeof *x->candidates);
    return x;
}

void sampler_scratch_close(struct sampler_scratch *x) {
    free(x->block_max);
    free(x->counts);
    free(x->candidates);
    free(x);
}

// ---- random numbers: splitmix64 ----

static uint64_t random_next(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
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

struct sampler sampler_start(const struct sampling *s) {
    struct sampler m = {.random = random_start(s->seed)};
    for (enum sampling_knob_id k = 0; k < KNOB_COUNT; k++) sampling_set(&m.sampling, k, sampling_get(s, k));
    return m;
}

void sampler_change(struct sampler *m, const struct sampling *s) {
    uint64_t random = m->random;
    uint32_t seed = m->sampling.seed;
    *m = sampler_start(s);
    if (m->sampling.seed == seed) m->random = random;
}

// ---- exponentials and sums ----

// e^x = 2^n · e^r with |r| ≤ ln2/2; e^r by a polynomial of degree 6. n is rounded by adding 1.5·2^23.
static inline void exp4(float4 *x) {
    const float round = 12582912.0f;
    float4 v = *x;
    int4 alive = v > -87.0f;
    v = (float4)((int4)v & alive);
    float4 shifted = v * 1.44269504f + round;
    float4 n = shifted - round;
    float4 r = v - n * 0.693359375f + n * 2.12194440e-4f;
    float4 p = r * (1.0f / 720) + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    int4 bits = (int4)p + ((int4)shifted << 23);
    *x = (float4)(bits & alive);
}

float sampler_exp(float x) {
    float4 v = {x, x, x, x};
    exp4(&v);
    return v[0];
}

static inline float4 load4(const float *p) {
    float4 v;
    memcpy(&v, p, sizeof v);
    return v;
}

static float lane_max(float4 v) {
    float a = v[0] > v[1] ? v[0] : v[1], b = v[2] > v[3] ? v[2] : v[3];
    return a > b ? a : b;
}

static inline void float4_max(float4 *a, const float4 *b) {
    int4 greater = *b > *a;
    *a = (float4)(((int4)*b & greater) | ((int4)*a & ~greater));
}

static inline void scan_lanes(const float4 *v, float4 *top, int4 *broken) {
    const int32_t exponent = 0x7f800000;
    *broken |= ((int4)*v & exponent) == exponent;
    float4_max(top, v);
}

// The maximum of logits [n]; adds to *broken the lanes that hold NaN or infinity.
static float scan_block(const float *logits, int n, int4 *broken) {
    float4 top = {-FLT_MAX, -FLT_MAX, -FLT_MAX, -FLT_MAX};
    int i = 0;
    for (; i + LANES <= n; i += LANES) {
        float4 v = load4(logits + i);
        scan_lanes(&v, &top, broken);
    }
    for (; i < n; i++) scan_lanes(&(float4){logits[i], logits[i], logits[i], logits[i]}, &top, broken);
    return lane_max(top);
}

static int block_size(int n, int block) { return n - block * BLOCK < BLOCK ? n - block * BLOCK : BLOCK; }

static float largest(const float *block_max, int n_blocks) {
    float max = block_max[0];
    for (int i = 1; i < n_blocks; i++) max = block_max[i] > max ? block_max[i] : max;
    return max;
}

// Fills block_max and *max; false when a logit is NaN or infinite.
static bool scan_maxima(const float *logits, int n, float *block_max, float *max) {
    int n_blocks = (n + BLOCK - 1) / BLOCK;
    int4 broken = {0};
    for (int i = 0; i < n_blocks; i++) block_max[i] = scan_block(logits + i * BLOCK, block_size(n, i), &broken);
    *max = largest(block_max, n_blocks);
    return !(broken[0] | broken[1] | broken[2] | broken[3]);
}

// Σ e^d and Σ d·e^d over all logits, d = logit − max, at least −1000. Block sums in float, their sum in double.
static void scan_sums(const float *logits, int n, float max, double *sum, double *weighted) {
    const float4 lowest = {-1000, -1000, -1000, -1000};
    *sum = *weighted = 0;
    for (int at = 0, i = 0; at < n; at += BLOCK) {
        int end = at + BLOCK < n ? at + BLOCK : n;
        float4 s = {0}, w = {0};
        for (; i + LANES <= end; i += LANES) {
            float4 d = load4(logits + i) - max, e;
            float4_max(&d, &lowest);
            e = d;
            exp4(&e);
            s += e;
            w += d * e;
        }
        for (; i < end; i++) {
            float d = fmaxf(logits[i] - max, lowest[0]), e = sampler_exp(d);
            s[0] += e;
            w[0] += d * e;
        }
        *sum += (s[0] + s[1]) + (s[2] + s[3]);
        *weighted += (w[0] + w[1]) + (w[2] + w[3]);
    }
}

// ---- selection ----

static bool better(const struct candidate *a, const struct candidate *b) {
    return a->logit > b->logit || (a->logit == b->logit && a->id < b->id);
}

// Restores the heap (worst on top) below `at`.
static void heap_sink(struct candidate *heap, int n, int at) {
    struct candidate moving = heap[at];
    for (int child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && better(&heap[child], &heap[child + 1])) child++;
        if (!better(&moving, &heap[child])) break;
        heap[at] = heap[child];
    }
    heap[at] = moving;
}

// The k likeliest of the logits, likeliest first, into out [k]. A block whose maximum cannot enter the heap is skipped.
static void select_top(const float *logits, int n, const float *block_max, int k, struct candidate *out) {
    for (int i = 0; i < k; i++) out[i] = (struct candidate){.logit = logits[i], .id = i};
    for (int i = k / 2 - 1; i >= 0; i--) heap_sink(out, k, i);
    for (int at = k, end; at < n; at = end) {
        end = (at / BLOCK + 1) * BLOCK < n ? (at / BLOCK + 1) * BLOCK : n;
        if (block_max[at / BLOCK] <= out[0].logit) continue;
        for (int i = at; i < end; i++) {
            if (logits[i] <= out[0].logit) continue; // a tie loses: its id is higher
            out[0] = (struct candidate){.logit = logits[i], .id = i};
            heap_sink(out, k, 0);
        }
    }
    for (int left = k - 1; left > 0; left--) {
        struct candidate worst = out[0];
        out[0] = out[left];
        out[left] = worst;
        heap_sink(out, left, 0);
    }
}

static void swap(struct candidate *a, struct candidate *b) {
    struct candidate t = *a;
    *a = *b;
    *b = t;
}

// Moves those better than the median of three in [low, high) to its front, then the median; returns its place.
static int partition(struct candidate *c, int low, int high) {
    int middle = low + (high - low) / 2, last = high - 1;
    if (better(&c[middle], &c[low])) swap(&c[middle], &c[low]);
    if (better(&c[last], &c[low])) swap(&c[last], &c[low]);
    if (better(&c[last], &c[middle])) swap(&c[last], &c[middle]);
    swap(&c[middle], &c[last]);
    int at = low;
    for (int i = low; i < last; i++)
        if (better(&c[i], &c[last])) swap(&c[i], &c[at++]);
    swap(&c[at], &c[last]);
    return at;
}

// Moves the likeliest candidates whose weights together reach `mass` to the front; returns how many. Linear on average.
static int nucleus(struct candidate *c, int n, double mass) {
    int low = 0, high = n;
    while (low < high) {
        int pivot = partition(c, low, high);
        double left = 0;
        for (int i = low; i < pivot; i++) left += c[i].weight;
        if (left >= mass) high = pivot;
        else if (left + c[pivot].weight >= mass) return pivot + 1;
        else mass -= left + c[pivot].weight, low = pivot + 1;
    }
    return low < 1 ? 1 : low;
}

// ---- penalties ----

// The maxima of the touched blocks anew, and with them the largest of all.
static float refresh_maxima(struct sampler_scratch *x, const struct sampler_input *in) {
    int4 broken = {0};
    for (int i = 0; i < x->n_touched; i++) {
        int block = x->touched[i].id / BLOCK;
        x->block_max[block] = scan_block(in->logits + block * BLOCK, block_size(in->n_vocab, block), &broken);
    }
    return largest(x->block_max, (in->n_vocab + BLOCK - 1) / BLOCK);
}

static float bounded(float v) { return v < -FLT_MAX ? -FLT_MAX : v > FLT_MAX ? FLT_MAX : v; }

// Changes the logits of recent tokens, remembering them; returns the largest logit.
static float penalise(const struct sampling *s, struct sampler_scratch *x, const struct sampler_input *in) {
    bool off = s->repeat_penalty == 1 && s->presence_penalty == 0 && s->frequency_penalty == 0;
    int window = off ? 0 : s->penalty_window < in->n_tokens ? s->penalty_window : in->n_tokens;
    const int32_t *recent = in->tokens + in->n_tokens - window;
    x->n_touched = 0;
    for (int i = 0; i < window; i++) x->counts[recent[i]]++;
    for (int i = 0; i < window; i++) {
        int32_t id = recent[i];
        if (!x->counts[id]) continue;
        float logit = in->logits[id];
        x->touched[x->n_touched].id = id;
        x->touched[x->n_touched++].logit = logit;
        logit = logit > 0 ? logit / s->repeat_penalty : logit * s->repeat_penalty;
        in->logits[id] = bounded(logit - s->presence_penalty - s->frequency_penalty * (float)x->counts[id]);
        x->counts[id] = 0;
    }
    return refresh_maxima(x, in);
}

// Puts the logits back; returns the largest.
static float unpenalise(struct sampler_scratch *x, const struct sampler_input *in) {
    for (int i = 0; i < x->n_touched; i++) in->logits[x->touched[i].id] = x->touched[i].logit;
    return refresh_maxima(x, in);
}

// ---- the draw ----

static bool top_k_cuts(const struct sampling *s, int n_vocab) { return s->top_k > 0 && s->top_k < n_vocab; }

// The tokens that top-k and, roughly, min-p leave, into x->candidates; returns how many.
static int collect(const struct sampling *s, struct sampler_scratch *x, const struct sampler_input *in, float max) {
    int n = 0;
    if (top_k_cuts(s, in->n_vocab)) {
        select_top(in->logits, in->n_vocab, x->block_max, s->top_k, x->candidates);
        return s->top_k;
    }
    float least = s->min_p > 0 ? max + logf(s->min_p) - 0.01f : -FLT_MAX;
    for (int block = 0; block * BLOCK < in->n_vocab; block++) {
        if (x->block_max[block] < least) continue;
        int first = block * BLOCK, end = first + block_size(in->n_vocab, block);
        for (int i = first; i < end; i++)
            if (in->logits[i] >= least) x->candidates[n++] = (struct candidate){.logit = in->logits[i], .id = i};
    }
    return n;
}

// The tokens that all filters leave. Each filter keeps a front of the likeliest, so that their order only matters for
// what top-p's probabilities are shares of.
static int filter(const struct sampling *s, struct sampler_scratch *x, const struct sampler_input *in, float max) {
    struct candidate *c = x->candidates;
    int n = collect(s, x, in, max), kept = 0;
    double total = 0, weighted;
    for (int i = 0; i < n; i++) total += c[i].weight = sampler_exp(c[i].logit - max);
    if (s->top_p < 1) {
        if (!top_k_cuts(s, in->n_vocab) && s->min_p > 0) scan_sums(in->logits, in->n_vocab, max, &total, &weighted);
        n = nucleus(c, n, (double)s->top_p * total);
    }
    for (int i = 0; i < n; i++)
        if (c[i].weight >= s->min_p) c[kept++] = c[i];
    return kept;
}

static int32_t draw(struct sampler *m, struct sampler_scratch *x, const struct sampler_input *in, float max) {
    struct candidate *c = x->candidates;
    int n = filter(&m->sampling, x, in, max);
    double total = 0;
    for (int i = 0; i < n; i++) total += c[i].weight = sampler_exp((c[i].logit - max) / m->sampling.temperature);
    double target = random_unit(&m->random) * total;
    for (int i = 0; i < n; i++)
        if ((target -= c[i].weight) < 0) return c[i].id;
    return c[0].id; // rounding left a crumb
}

static int32_t likeliest(struct sampler_scratch *x, const struct sampler_input *in) {
    struct candidate best;
    select_top(in->logits, in->n_vocab, x->block_max, 1, &best);
    return best.id;
}

static void report(struct sampler_scratch *x, const struct sampler_input *in, float max, struct sample *out) {
    double sum, weighted;
    scan_sums(in->logits, in->n_vocab, max, &sum, &weighted);
    double entropy = (log(sum) - weighted / sum) / M_LN2;
    out->entropy = entropy > 0 ? (float)entropy : 0;
    out->n_alternatives = in->n_vocab < SAMPLING_TOP ? in->n_vocab : SAMPLING_TOP;
    struct candidate top[SAMPLING_TOP];
    select_top(in->logits, in->n_vocab, x->block_max, out->n_alternatives, top);
    for (int i = 0; i < out->n_alternatives; i++) {
        out->alternatives[i].id = top[i].id;
        out->alternatives[i].probability = (float)(sampler_exp(top[i].logit - max) / sum);
    }
    out->probability = (float)(sampler_exp(in->logits[out->token] - max) / sum);
}

struct sample sampler_next(struct sampler *m, struct sampler_scratch *x, const struct sampler_input *in) {
    struct sample out = {0};
    float max;
    if (!scan_maxima(in->logits, in->n_vocab, x->block_max, &max)) return out;
    max = penalise(&m->sampling, x, in);
    out.token = m->sampling.temperature > 0 ? draw(m, x, in, max) : likeliest(x, in);
    max = unpenalise(x, in);
    report(x, in, max, &out);
    out.ok = true;
    return out;
}
