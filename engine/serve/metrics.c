#include "engine/serve/metrics.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"

#define WINDOW_BUCKETS 20
#define BUCKET_SECONDS (METRICS_WINDOW_SECONDS / WINDOW_BUCKETS)

enum { FEW_SNAPSHOTS = 4 }; // allocated at a time

struct snapshot {
    struct engine_metrics metrics;
    int readers; // that copy it
};

struct metrics_exchange {
    pthread_mutex_t lock;
    struct snapshot **snapshots; // all; the writer's array
    int count;
    struct snapshot *back, *latest; // that the writer fills; that readers take
};

// One that nobody reads, beside the latest.
static struct snapshot *unread_snapshot(struct metrics_exchange *x) {
    for (int i = 0; i < x->count; i++)
        if (x->snapshots[i] != x->latest && !x->snapshots[i]->readers) return x->snapshots[i];
    if (x->count % FEW_SNAPSHOTS == 0)
        x->snapshots = xrealloc(x->snapshots, (size_t)(x->count + FEW_SNAPSHOTS) * sizeof *x->snapshots);
    return x->snapshots[x->count++] = xcalloc(1, sizeof(struct snapshot));
}

void metrics_open(struct metrics *f) {
    struct metrics_exchange *x = xcalloc(1, sizeof *x);
    *f = (struct metrics){.exchange = x, .last_step = -1e9};
    pthread_mutex_init(&x->lock, NULL);
    x->latest = unread_snapshot(x);
    x->back = unread_snapshot(x);
}

void metrics_close(struct metrics *f) {
    struct metrics_exchange *x = f->exchange;
    for (int i = 0; i < x->count; i++) free(x->snapshots[i]);
    free(x->snapshots);
    pthread_mutex_destroy(&x->lock);
    free(x);
}

static int64_t bucket_number(double time) { return (int64_t)(time / BUCKET_SECONDS); }

static struct metrics_bucket *bucket_at(struct metrics *f, int64_t number) {
    struct metrics_bucket *b = &f->buckets[number % METRICS_BUCKETS];
    if (b->number != number) *b = (struct metrics_bucket){.number = number};
    return b;
}

static void flow_add(struct metrics_flow *flow, int tokens, const struct metrics_step *s, double share) {
    if (!tokens) return;
    flow->tokens += tokens * share;
    flow->seconds += (s->end - s->start + s->pause) * share;
}

static void bucket_add(struct metrics_bucket *b, const struct metrics_step *s, double share) {
    flow_add(&b->flows[METRICS_DECODE], s->decode_rows, s, share);
    flow_add(&b->flows[METRICS_PREFILL], s->prefilled, s, share);
    b->drafted += s->drafted * share, b->accepted += s->accepted * share;
    struct stage_work *step = &b->steps[s->prefilled > 0 ? METRICS_PREFILL : METRICS_DECODE];
    step->seconds += (s->end - s->start) * share;
    for (int i = 0; i < STAGE_COUNT; i++) {
        stage_work_add(&b->stages[i], &s->work.stages[i], share);
        step->bytes += s->work.stages[i].bytes * share;
        step->operations += s->work.stages[i].operations * share;
    }
}

void metrics_add_step(struct metrics *f, const struct metrics_step *s) {
    f->steps++;
    f->decode_tokens += (uint64_t)s->decoded;
    f->prefill_tokens += (uint64_t)s->prefilled;
    f->drafted_tokens += (uint64_t)s->drafted;
    f->accepted_tokens += (uint64_t)s->accepted;
    for (int i = 0; i < STAGE_COUNT; i++) f->stage_seconds[i] += s->work.stages[i].seconds;
    f->last_step = s->end;
    struct latency_moment slowest = s->slowest;
    slowest.repacking = f->repacking, slowest.saving = f->saving, slowest.repacks = f->repacks;
    f->repacking = f->saving = 0;
    moments_add(&f->moments, &slowest, s->end);

    double length = s->end - s->start;
    int64_t first = bucket_number(s->start), last = bucket_number(s->end);
    int64_t from = last - first < METRICS_BUCKETS ? first : last - METRICS_BUCKETS + 1;
    for (int64_t n = from; n <= last; n++) {
        double begin = fmax(s->start, (double)n * BUCKET_SECONDS), end = fmin(s->end, (double)(n + 1) * BUCKET_SECONDS);
        bucket_add(bucket_at(f, n), s, length > 0 ? (end - begin) / length : 1);
    }
}

void metrics_add_latency(struct latency_ring *ring, double seconds) {
    ring->samples[ring->next] = (float)seconds;
    ring->next = (ring->next + 1) % METRICS_SAMPLES;
    if (ring->count < METRICS_SAMPLES) ring->count++;
}

static int compare_floats(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static struct latency_metrics latency_summary(const struct latency_ring *ring) {
    struct latency_metrics out = {.count = ring->count};
    if (!ring->count) return out;
    float sorted[METRICS_SAMPLES];
    memcpy(sorted, ring->samples, (size_t)ring->count * sizeof *sorted);
    qsort(sorted, (size_t)ring->count, sizeof *sorted, compare_floats);
    out.p50 = sorted[(ring->count - 1) * 50 / 100];
    out.p90 = sorted[(ring->count - 1) * 90 / 100];
    out.p99 = sorted[(ring->count - 1) * 99 / 100];
    return out;
}

// What lies in the second that ends with the bucket of this time.
static struct metrics_bucket last_second(const struct metrics *f, double end) {
    int64_t last = bucket_number(end), first = last - WINDOW_BUCKETS;
    struct metrics_bucket sum = {.number = first + 1};
    for (int i = 0; i < METRICS_BUCKETS; i++) {
        const struct metrics_bucket *b = &f->buckets[i];
        if (b->number <= first || b->number > last) continue;
        sum.drafted += b->drafted, sum.accepted += b->accepted;
        for (int j = 0; j < STAGE_COUNT; j++) stage_work_add(&sum.stages[j], &b->stages[j], 1);
        for (int j = 0; j < METRICS_PHASES; j++) {
            stage_work_add(&sum.steps[j], &b->steps[j], 1);
            sum.flows[j].tokens += b->flows[j].tokens, sum.flows[j].seconds += b->flows[j].seconds;
        }
    }
    return sum;
}

static float rate_of(const struct metrics_flow *flow) {
    return rate_is_steady(flow->tokens, flow->seconds) ? (float)(flow->tokens / flow->seconds) : 0;
}

static void fill_rates(struct metrics *f, struct engine_metrics *out, double now) {
    struct metrics_bucket sum = last_second(f, now);
    out->decode_now = rate_of(&sum.flows[METRICS_DECODE]);
    out->prefill_now = rate_of(&sum.flows[METRICS_PREFILL]);
    if (out->decode_now > f->decode_peak) f->decode_peak = out->decode_now;
    out->decode_peak = f->decode_peak;
}

static void fill_work(const struct metrics *f, struct engine_metrics *out) {
    struct metrics_bucket sum = last_second(f, f->last_step);
    memcpy(out->stages, sum.stages, sizeof out->stages);
    out->decode = sum.steps[METRICS_DECODE];
    out->prefill = sum.steps[METRICS_PREFILL];
    const double drawn = sum.flows[METRICS_DECODE].tokens;
    out->acceptance = sum.drafted > 0 ? (float)(sum.accepted / sum.drafted) : NAN;
    out->step_tokens = drawn > 0 ? (float)(drawn / (drawn - sum.accepted)) : NAN;
}

struct engine_metrics *metrics_begin(struct metrics *f, double now) {
    struct engine_metrics *out = &f->exchange->back->metrics;
    out->sequence = ++f->sequence;
    memcpy(out->stage_seconds, f->stage_seconds, sizeof out->stage_seconds);
    out->decode_tokens = (int64_t)f->decode_tokens;
    out->prefill_tokens = (int64_t)f->prefill_tokens;
    out->reused_tokens = (int64_t)f->reused_tokens;
    out->drafted_tokens = (int64_t)f->drafted_tokens;
    out->accepted_tokens = (int64_t)f->accepted_tokens;
    out->steps = (int64_t)f->steps;
    out->preemptions = (int64_t)f->preemptions;
    out->first_token = latency_summary(&f->first_token);
    out->next_token = latency_summary(&f->next_token);
    memcpy(out->moments, f->moments.ring, sizeof out->moments);
    fill_rates(f, out, now);
    fill_work(f, out);
    return out;
}

void metrics_publish(struct metrics *f) {
    struct metrics_exchange *x = f->exchange;
    pthread_mutex_lock(&x->lock);
    x->latest = x->back;
    x->back = unread_snapshot(x);
    pthread_mutex_unlock(&x->lock);
}

bool metrics_read(struct metrics *f, struct engine_metrics *out) {
    struct metrics_exchange *x = f->exchange;
    pthread_mutex_lock(&x->lock);
    struct snapshot *s = x->latest;
    s->readers++;
    pthread_mutex_unlock(&x->lock);
    const bool news = s->metrics.sequence != out->sequence;
    if (news) {
        const int pages = s->metrics.n_pages < METRICS_MAX_PAGES ? s->metrics.n_pages : METRICS_MAX_PAGES;
        memcpy(out, &s->metrics, offsetof(struct engine_metrics, pages) + (size_t)pages * sizeof *out->pages);
    }
    pthread_mutex_lock(&x->lock);
    s->readers--;
    pthread_mutex_unlock(&x->lock);
    return news;
}

_Static_assert(WINDOW_BUCKETS < METRICS_BUCKETS, "the buckets hold the window");
