// Metrics: what the engine measures about itself, always on.
//
// The engine thread writes: every step, token and latency in a few additions. Rates come from buckets of 50 ms over the
// last second; a step that lasted longer is spread over the buckets it covered. A rate divides by the time in which
// there was such work, so that a short answer has the rate of a long one. One thread writes. Snapshots are read by any
// number of threads: the writer fills one that nobody reads, then makes it the latest; a reader holds the latest while
// it copies it. Under the lock they only say which.
#ifndef CONFAB_SERVE_METRICS_H
#define CONFAB_SERVE_METRICS_H

#include "engine/backend.h"
#include "engine/engine.h"
#include "engine/metrics.h"
#include "engine/serve/moments.h"

enum { METRICS_BUCKETS = 24, METRICS_SAMPLES = 256 };
#define METRICS_WINDOW_SECONDS 1.0

// Whether a step reads prompts, beside what it decodes.
enum metrics_phase { METRICS_DECODE, METRICS_PREFILL, METRICS_PHASES };

// Tokens, and the time it took to compute them.
struct metrics_flow {
    double tokens, seconds;
};

struct metrics_bucket {
    int64_t number; // time ÷ bucket length
    struct metrics_flow flows[METRICS_PHASES];
    struct stage_work stages[STAGE_COUNT], steps[METRICS_PHASES];
    double drafted, accepted; // tokens
};

struct latency_ring {
    float samples[METRICS_SAMPLES];
    int count, next;
};

struct metrics_exchange; // the snapshots

struct metrics {
    struct metrics_bucket buckets[METRICS_BUCKETS];
    double last_step; // end of it
    struct latency_ring first_token, next_token;
    uint64_t decode_tokens, prefill_tokens, reused_tokens, steps, preemptions;
    uint64_t drafted_tokens, accepted_tokens;
    double stage_seconds[STAGE_COUNT];
    float decode_peak;
    uint64_t sequence;
    struct moments moments;
    float repacking, saving; // seconds since the last step
    bool repacks;            // weights are still put off
    struct metrics_exchange *exchange;
};

struct metrics_step {
    double start, end;      // seconds, of clock_seconds()
    double pause;           // before it, in which requests had to wait for it
    int decoded, prefilled; // tokens that became part of an answer, prompt rows computed
    int decode_rows;        // tokens drawn but for the first ones of answers, which the prompt gives
    int drafted, accepted;  // guessed tokens computed, and those of them that were drawn
    struct backend_work work;
    struct latency_moment slowest; // token, as of struct moments
};

void metrics_open(struct metrics *f);
void metrics_close(struct metrics *f);

void metrics_add_step(struct metrics *f, const struct metrics_step *step);
void metrics_add_latency(struct latency_ring *ring, double seconds);

// The back snapshot, with everything filled that is measured here; the caller adds requests and pages, then publishes.
struct engine_metrics *metrics_begin(struct metrics *f, double now);
void metrics_publish(struct metrics *f);

// The readers' side: the latest snapshot into *out; false when it is there already.
bool metrics_read(struct metrics *f, struct engine_metrics *out);

#endif
