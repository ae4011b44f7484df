// Metrics of the engine at work, as a snapshot that never blocks.
//
// Any of them may be unknown: NaN where it is a floating-point number, METRIC_UNKNOWN where it is a count. What is
// known is not negative.
#ifndef CONFAB_ENGINE_METRICS_H
#define CONFAB_ENGINE_METRICS_H

#include "engine/engine.h"
#include "engine/stages.h"

#define METRIC_UNKNOWN (-1)
static inline bool metric_known(double value) { return value >= 0; } // neither NaN nor METRIC_UNKNOWN

#define METRICS_MAX_REQUESTS 64
#define METRICS_MAX_PAGES    16384

struct request_metrics {
    uint64_t request, conversation;
    int answer; // which of the request's
    enum request_state state;
    int prefill_done, prefill_total; // tokens
    int n_generated, n_context;      // tokens of the answer; tokens in the sequence
    int n_drafted, n_accepted;       // guessed tokens computed, and those that became a part of the answer
    float tokens_per_second;         // lately, of decoding
};

// Whether tokens over seconds make a rate worth showing: that of one or two fast ones is chance. Parts of tokens count.
static inline bool rate_is_steady(double tokens, double seconds) {
    return seconds >= 0.25 || (seconds > 0 && tokens > 2.5);
}

struct page_metrics {
    uint64_t conversation; // of the first owner; 0: free
    uint16_t references;   // 0 free, 1 owned, more: shared
    uint16_t filled;       // tokens, ≤ page_tokens
    bool kept;             // held for reuse only, by no running request
    bool on_disk;          // saved, too
    bool proposed;         // the last step had drafts in it
};

// What stands in a page.
struct page_text {
    int page;               // −1: none is looked at
    int position, n_tokens; // of its first token in the text; 0 tokens: the page is free, or begins to be filled
    char text[256];         // of these tokens, cut at a character; hostile
};

struct latency_metrics {
    float p50, p90, p99;
    int count;
}; // seconds; over recent samples

// The slowest token of a quarter of a second, and the step that brought it. What it did not wait for is 0.
#define METRICS_MOMENT_SECONDS 0.25
enum { METRICS_MOMENTS = 16 };
struct latency_moment {
    int64_t number;        // clock_seconds() ÷ METRICS_MOMENT_SECONDS
    float seconds;         // since the token before it
    float usual;           // that a step takes which only decodes as many rows
    uint64_t conversation; // whose
    int rows, prompt_rows; // of the step
    uint64_t reader;       // whose prompt had most of these
    int n_readers;         // prompts that had some
    bool preempted;        // it had to wait for pages
    int preemptions;       // in the step
    float repacking;       // seconds before the step in which weights were repacked
    bool repacks;          // so they may be in the step itself: not all are
    float saving;          // seconds before the step for saving pages
    int woken_tokens;      // that were read from the disk for the step
    float steal;           // of this quarter: the share of the processors' time that the host gave to others,
    int faults, switches;  // page faults that read a disk, and involuntary context switches, of this process
};

// Layers of the model on one device, and what they take of its memory.
struct part_metrics {
    char device[16];              // "vulkan0"
    char description[64];         // "Vulkan, NVIDIA H100"; as of a backend
    int first_layer, end_layer;   // [first, end)
    int64_t weights, kv, buffers; // bytes; weights: in the mapped file too
};
enum { METRICS_MAX_PARTS = 8 };

struct engine_metrics {
    uint64_t sequence; // grows with every published snapshot
    char backend[64];  // "AVX-512 VNNI, 2 threads"; "vulkan0 + cpu"; "": unknown
    int n_threads;
    int n_parts;                                  // 0: unknown
    struct part_metrics parts[METRICS_MAX_PARTS]; // in the order of their layers
    // Tokens a second of the work of the last second, all requests together, over the time in which there was such
    // work. 0 when there was none or too little to tell.
    float decode_now, prefill_now;
    float decode_peak;                                    // the highest decode_now so far
    int64_t decode_tokens, prefill_tokens, reused_tokens; // in total
    // Drafts: tokens that were guessed and computed, and those that were drawn then. In total; and in the last second
    // in which there was work the share of these, and the tokens that a step brings each answer, 1 without drafts.
    int64_t drafted_tokens, accepted_tokens;
    float acceptance, step_tokens;
    struct latency_metrics first_token, next_token;
    int queue;                         // requests pending
    int running;                       // prefilling or decoding
    int batch_rows, batch_decode_rows; // of the last step
    int64_t steps, preemptions;
    int64_t evictions;                 // cached pages that were given up for others
    double stage_seconds[STAGE_COUNT]; // in total
    // Of the last second in which there was work, which stays when there is none. Steps with prompt rows count as
    // prefill, those without as decode; what their seconds are more than those of all stages went elsewhere: planning,
    // handing tokens on.
    struct stage_work stages[STAGE_COUNT], decode, prefill;
    // Used: by running requests; kept: for reuse.
    int page_tokens, n_pages, pages_used, pages_shared, pages_free, pages_kept;
    int64_t kv_bytes;
    // Saved pages of conversations: bytes of files, the most that they may take (0: none are saved), and tokens that
    // were read instead of computed, in total.
    int64_t disk_bytes, disk_budget, woken_tokens;
    bool preparing; // weights that a quick start put off, whenever nothing else runs
    int context;    // tokens a conversation may have
    int n_requests; // that are listed
    struct request_metrics requests[METRICS_MAX_REQUESTS]; // those pending or running
    struct latency_moment moments[METRICS_MOMENTS];        // the last ones with tokens, in no order
    struct page_text page;                                 // that is looked at; of other clients' no text
    struct page_metrics pages[METRICS_MAX_PAGES];          // of the first n_pages, as far as they fit
};

void metrics_set_unknown(struct engine_metrics *f); // all of them; none is listed
// The part with the most layers; NULL: unknown.
const struct part_metrics *metrics_main_part(const struct engine_metrics *f);
// Whether any of them is on a device other than the processor.
bool metrics_on_devices(const struct part_metrics *parts, int n);

// The latest snapshot, the client's own until its next call: conversations of its own by their numbers, those of other
// clients by numbers beyond CONVERSATION_MOST. Never waits for the engine.
const struct engine_metrics *engine_metrics(struct engine_client *c);
// From one of the next snapshots on they have the text of this page; −1: of none. The latest word of any client holds.
void engine_look_at_page(struct engine_client *c, int page);

#endif
