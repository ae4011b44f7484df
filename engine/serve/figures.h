// Figures: what the engine measures about itself, always on.
//
// The engine thread writes: every step, token and latency in a few additions. Rates come from buckets of 50 ms over the
// last second; a step that lasted longer is spread over the buckets it covered. A rate divides by the time in which
// there was such work, so that a short answer has the rate of a long one. One thread writes. Snapshots are read by any
// number of threads: the writer fills one that nobody reads, then makes it the latest; a reader holds the latest while
// it copies it. Under the lock they only say which.
#ifndef CONFAB_SERVE_FIGURES_H
#define CONFAB_SERVE_FIGURES_H

#include "engine/backend.h"
#include "engine/engine.h"
#include "engine/metrics.h"

enum { FIGURES_BUCKETS = 24, FIGURES_SAMPLES = 256 };
#define FIGURES_WINDOW_SECONDS 1.0

// Whether a step reads prompts, beside what it decodes.
enum figures_phase { FIGURES_DECODE, FIGURES_PREFILL, FIGURES_PHASES };

// Tokens, and the time it took to compute them.
struct figures_flow {
    double tokens, seconds;
};

struct figures_bucket {
    int64_t number; // time ÷ bucket length
    struct figures_flow flows[FIGURES_PHASES];
    struct stage_work stages[STAGE_COUNT], steps[FIGURES_PHASES];
};

struct latency_ring {
    float samples[FIGURES_SAMPLES];
    int count, next;
};

struct figures_exchange; // the snapshots

struct figures {
    struct figures_bucket buckets[FIGURES_BUCKETS];
    double last_step; // end of it
    struct latency_ring first_token, next_token;
    uint64_t decode_tokens, prefill_tokens, reused_tokens, steps, preemptions;
    double stage_seconds[STAGE_COUNT];
    float decode_peak;
    uint64_t sequence;
    struct figures_exchange *exchange;
};

struct figures_step {
    double start, end;      // seconds, of clock_seconds()
    double pause;           // before it, in which requests had to wait for it
    int decoded, prefilled; // tokens that became part of an answer, prompt rows computed
    int decode_rows;        // tokens drawn but for the first ones of answers, which the prompt gives
    struct backend_work work;
};

void figures_open(struct figures *f);
void figures_close(struct figures *f);

void figures_add_step(struct figures *f, const struct figures_step *step);
void figures_add_latency(struct latency_ring *ring, double seconds);

// The back snapshot, with everything filled that is measured here; the caller adds requests and pages, then publishes.
struct engine_figures *figures_begin(struct figures *f, double now);
void figures_publish(struct figures *f);

// The readers' side: the latest snapshot into *out; false when it is there already.
bool figures_read(struct figures *f, struct engine_figures *out);

#endif
