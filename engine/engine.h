// Engine: the whole public interface of the inference engine.
//
// A model file is opened once, an engine over it owns weights, KV cache, scheduler and sampler on a thread of its own.
// Commands (submit, cancel, sampling, focus) go in through one queue, events come out through another with an eventfd,
// figures come out through a snapshot that never blocks. Nothing here prints, exits or knows about a screen.
#ifndef CONFAB_ENGINE_H
#define CONFAB_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/backend_options.h"
#include "engine/base/status.h"
#include "engine/stages.h"

// ---- sampling ----

#define SAMPLING_TOP 8 // alternatives reported with every token

enum sampling_kind { SAMPLING_FLOAT, SAMPLING_INT, SAMPLING_SEED };

// The knobs: X(field, option and configuration key, label on screen, kind, low, high, step, default, help)
#define SAMPLING_KNOBS(X)                                                                                              \
    X(temperature, "temp", "temp", SAMPLING_FLOAT, 0, 5, 0.05, 0.7, "randomness: 0 always takes the likeliest token")                                  \
    X(top_p, "top-p", "top-p", SAMPLING_FLOAT, 0, 1, 0.01, 0.95, "keep the likeliest tokens that together reach this probability; 1 = all")           \
    X(top_k, "top-k", "top-k", SAMPLING_INT, 0, 1000, 5, 40, "keep this many of the likeliest tokens; 0 = all")                                         \
    X(min_p, "min-p", "min-p", SAMPLING_FLOAT, 0, 1, 0.01, 0.05, "drop tokens less likely than this share of the likeliest; 0 = none")                 \
    X(repeat_penalty, "repeat", "repeat", SAMPLING_FLOAT, 0.1, 3, 0.01, 1, "divide the scores of tokens seen lately; 1 = off")                        \
    X(seed, "seed", "seed", SAMPLING_SEED, 0, 4294967295.0, 1, 0, "makes an answer repeatable; 0 = another one each time")                              \
    X(presence_penalty, "presence", "pres", SAMPLING_FLOAT, -2, 2, 0.05, 0, "subtract from tokens that occurred lately, once")                          \
    X(frequency_penalty, "frequency", "freq", SAMPLING_FLOAT, -2, 2, 0.05, 0, "subtract from tokens for every time they occurred lately")               \
    X(penalty_window, "window", "window", SAMPLING_INT, 0, 4096, 16, 64, "how many of the last tokens the penalties look at")

struct sampling {
    float temperature, top_p, min_p, repeat_penalty, presence_penalty, frequency_penalty;
    int32_t top_k, penalty_window;
    uint32_t seed;
};

enum sampling_knob_id {
#define X(field, ...) KNOB_##field,
    SAMPLING_KNOBS(X)
#undef X
        KNOB_COUNT
};

struct sampling_knob {
    const char *key, *label, *help;
    enum sampling_kind kind;
    double low, high, step, initial;
};
extern const struct sampling_knob sampling_knobs[KNOB_COUNT];

struct sampling sampling_default(void);
double sampling_get(const struct sampling *s, enum sampling_knob_id knob);
void sampling_set(struct sampling *s, enum sampling_knob_id knob, double value); // clamped to [low, high]
// "0.70", "40", "42"; for a seed of 0 "random". out has room for 16 bytes.
const char *sampling_format(const struct sampling *s, enum sampling_knob_id knob, char out[16]);

// ---- model file: what `show`, `tokenize` and `detokenize` need; no weights are touched ----

struct model_file;

struct format_share {
    const char *name; // "Q4_K"
    uint64_t tensors, bytes;
};

struct special_token {
    const char *role; // "bos"
    int32_t id;
    const char *text; // cleaned for display
};

struct rope_info {
    const char *pairs;    // which elements are rotated together: "adjacent" or "halves"
    int n_rot;            // rotated elements of a head
    float base, base_sliding; // the second: of layers with a window
    int n_layer;          // layers that rotate
    const char *scaling;  // "none", "linear", "yarn", "long", "by frequency"
    float factor;         // of scaling; 1: none
    int original_context; // that scaling begins from; 0: not said
};

struct expert_info {
    int count, used;      // of a layer; 0: none
    int n_ff, n_ff_shared;
    int n_layer;          // layers that have them
};

// What differs from layer to layer.
struct range_info {
    int least, most;
};

struct model_info {
    const char *path, *name, *family;    // name: general.name or the file's base name, cleaned for display
    uint64_t file_bytes, n_parameters, weight_bytes;
    int n_layer, n_embd, n_head, n_head_kv, head_size, n_ff, n_vocab, n_context;
    float rope_base;
    bool tied;
    bool has_weights;                    // false for a vocabulary-only file; weight_problem says why it cannot run
    const char *weight_problem;          // "" when has_weights
    const char *tokenizer, *pre_tokenizer, *chat_template; // names; chat_template is "none" when the file has none
    const struct format_share *formats;  // by bytes, descending
    int n_formats;
    uint64_t kv_bytes_per_token;         // in f16; 0 when it cannot run
    double float_share;                  // of the weights that a token is multiplied with, those that are floats: 0 to 1

    // Of a model that can run; otherwise 0, "" and NULL.
    struct rope_info rope;
    struct expert_info experts;
    struct range_info heads, kv_heads;
    int window, n_windowed;              // tokens that layers with a window see, and how many such layers there are

    // Of a file with a vocabulary that was read.
    bool template_own;                   // its own chat template is used; otherwise the one of this kind
    const char *template_kind;           // "chatml", "none"
    const char *template_problem;        // why its own is not used; "" when it is, or there is none
    bool adds_bos;
    const struct special_token *special;
    int n_special;

    // Of its answers.
    const char *thinking;                // what its answers mark thinking with: "harmony", "<think>" …; "" when they do not
    bool chooses_thinking, chooses_effort; // its template asks whether to think, and how much: see reasoning_fits
    struct sampling sampling;            // the knobs as the file recommends them, otherwise sampling_default()
    uint32_t sampling_given;             // bit k: knob k is the file's own
};

struct model_file *model_file_open(const char *path, struct status *st);
// Over memory that outlives it: the built-in model. `name` is shown to people; `template`, which outlives it too, is used
// instead of the file's own chat template, unless it is NULL.
struct model_file *model_file_open_memory(const char *name, const void *data, size_t size, const char *template,
                                          struct status *st);
// What keys and shapes tell, with nothing converted: no engine can be opened over it. Without `text` neither vocabulary nor
// template are read, and nothing can be tokenized: cheap, for lists of many models.
struct model_file *model_file_open_header(const char *path, bool text, struct status *st);
void model_file_close(struct model_file *m);
const struct model_info *model_file_info(const struct model_file *m); // owned by m
// Ids of a text, no BOS added; *count ids, the caller frees.
int32_t *model_file_tokenize(const struct model_file *m, const char *text, size_t size, bool special, size_t *count);
// The bytes of ids; ids out of range are a failure. The caller frees.
char *model_file_detokenize(const struct model_file *m, const int32_t *ids, size_t count, size_t *size, struct status *st);

// A chat template (Jinja) and what it is rendered over: one JSON object whose members are its variables. Errors name what
// is at fault. `now` is what strftime_now tells, like "2026-01-02T03:04:05"; NULL: the local time.
struct template_input {
    const char *name, *text;
    size_t size;
    const char *context_name, *context;
    size_t context_size;
    const char *now;
};
// The caller frees. STATUS_UNSUPPORTED: the template itself refused, and the text is the message of its raise_exception.
char *template_render(const struct template_input *in, size_t *size, struct status *st);

// ---- requests ----

// X(enumerator, name, mark on screen, mark in ASCII)
//
//   pending ──► prefilling ──► decoding ──► finished
//      ▲             │             │    ├──► failed
//      └─────────────┴─ pre-empted ┘    └──► cancelled      (failed and cancelled from every state)
#define REQUEST_STATES(X)                                                                                              \
    X(REQUEST_PENDING, "pending", "◌", ".")                                                                            \
    X(REQUEST_PREFILLING, "prefilling", "◐", "~")                                                                      \
    X(REQUEST_DECODING, "decoding", "●", "*")                                                                          \
    X(REQUEST_FINISHED, "finished", "○", "o")                                                                          \
    X(REQUEST_FAILED, "failed", "✗", "x")                                                                              \
    X(REQUEST_CANCELLED, "cancelled", "◇", "-")

enum request_state {
#define X(id, name, mark, ascii) id,
    REQUEST_STATES(X)
#undef X
        REQUEST_STATE_COUNT
};
const char *request_state_name(enum request_state s);

enum finish_reason { FINISH_NONE, FINISH_END, FINISH_LENGTH, FINISH_CONTEXT, FINISH_TIME, FINISH_CANCELLED, FINISH_ERROR };

struct engine_message {
    const char *role; // "system", "user", "assistant"
    const char *text;
    const char *thinking; // of an answer, for templates that want it back; NULL: none
};

// Parts of an answer: its text, and what a model thinks before it.
enum channel { CHANNEL_ANSWER, CHANNEL_THINKING };

// How much a model is to think, where its template lets one choose: "auto" leaves it to the template; "off" and "on"
// choose whether, the others whether and how much. In the order of enum reasoning.
#define REASONING_CHOICES "auto|off|on|low|medium|high"
enum reasoning {
    REASONING_AUTO,
    REASONING_OFF,
    REASONING_ON,
    REASONING_LOW,
    REASONING_MEDIUM,
    REASONING_HIGH,
    REASONING_COUNT
};
bool reasoning_fits(const struct model_info *info, enum reasoning r); // whether it makes a difference to its prompts

// What to generate from: messages through the file's chat template, or `raw` text continued as it is, or token ids. Exactly one.
struct request_params {
    uint64_t conversation; // whose it is (shown as owner of pages); chosen by the caller, not 0
    const struct engine_message *messages;
    int n_messages;
    const char *raw;
    const int32_t *ids;
    int n_ids;
    struct sampling sampling;
    enum reasoning reasoning;
    const char *const *stops; // texts that end the answer and do not become a part of it, whichever comes first
    int n_stops;
    int max_tokens;        // 0: until the end token or the context's end
    double time_limit;     // seconds, 0: none
    bool ignore_end;       // do not stop at end-of-generation tokens (bench)
};

struct token_alternative {
    int32_t id;
    float probability;
    char text[20]; // valid UTF-8, cut at a character
};

enum engine_event_kind {
    EVENT_STATE, // state (and reason, and message when failed) changed
    EVENT_TEXT,  // text, and the token it came from when token ≥ 0 (long pieces come as several events, the later with token −1)
    EVENT_NOTICE, // something about the request that a person should know, in text
};

struct engine_event {
    enum engine_event_kind kind;
    uint64_t request, conversation;
    uint64_t at; // clock_ns() when it happened; events wait until they are polled
    // EVENT_STATE
    enum request_state state;
    enum finish_reason reason;
    double time; // when, by clock_seconds()
    int n_prompt, n_reused, n_generated; // tokens: of the prompt, of those found in the KV cache, of the answer
    // EVENT_TEXT
    enum channel channel;
    int32_t token;
    float probability; // of the chosen token under the untempered distribution
    float entropy;     // of that distribution, in bits
    int n_alternatives;
    struct token_alternative alternatives[SAMPLING_TOP];
    size_t size;       // of text
    char text[512];    // EVENT_TEXT: whole UTF-8 characters; EVENT_NOTICE, EVENT_STATE failed: the message; NUL-terminated
};

// ---- engine ----

struct engine;

struct engine_params {
    int n_threads;     // 0: one a physical core, for a small model one alone
    int context;       // tokens a conversation may have, 0: the model's own, at most the arena
    int kv_tokens;     // KV arena in tokens, 0: chosen from the machine's memory
    int prefill_chunk; // prompt rows a step at most, 0: default
    struct backend_options options;
};

// Memory that an engine takes, as engine_open itself reckons it.
struct model_memory {
    uint64_t weights; // what is copied of them, at once or as the file was opened; what stays in the mapped file is
                      // none of ours
    uint64_t buffers; // activations and scratch
    uint64_t kv;      // the KV cache
    uint64_t total;
    int kv_tokens;    // that the KV cache holds
    int context;      // that a conversation may have
};
// On a machine with so many bytes free, beside what the file itself holds. False: no engine can be opened with these, however much were free.
bool model_file_memory(const struct model_file *m, const struct engine_params *p, uint64_t available,
                       struct model_memory *out, struct status *st);
// The tokens of KV cache that find room beside everything else; 0: not even the weights do.
int model_file_tokens_that_fit(const struct model_file *m, enum kv_type kv_type, uint64_t available);
// Bytes that a token takes in a KV cache of this type; 0 when the model cannot run.
uint64_t model_file_token_bytes(const struct model_file *m, enum kv_type kv_type);

struct engine *engine_open(struct model_file *m, const struct engine_params *p, struct status *st); // m outlives it
void engine_close(struct engine *e); // cancels what runs and waits, joins the thread

// Copies everything it needs. Never fails by itself: a request that cannot run ends in REQUEST_FAILED. Returns its id (≥ 1).
// Prefix reuse is automatic: pages of any earlier or running sequence that begins with the same tokens are shared
// (copy on write), so that the next turn, a fork, or a regenerated answer reads only what is new.
uint64_t engine_submit(struct engine *e, const struct request_params *p);
void engine_cancel(struct engine *e, uint64_t request);
void engine_set_sampling(struct engine *e, uint64_t request, const struct sampling *s); // from its next token on
void engine_focus(struct engine *e, uint64_t conversation);  // on screen: served first, pre-empted last
void engine_forget(struct engine *e, uint64_t conversation); // deleted: give back pages kept for it

bool engine_poll(struct engine *e, struct engine_event *out);                 // false when there is none
bool engine_wait(struct engine *e, struct engine_event *out, int timeout_ms); // < 0: for ever
int engine_event_fd(const struct engine *e);                                  // readable while events wait

// Logits [n, n_vocab] of every position, with no request running. Blocks; requests submitted meanwhile wait for it, and
// engine_close ends it with STATUS_CANCELLED.
bool engine_logits(struct engine *e, const int32_t *ids, int n, float *out, struct status *st);

// ---- figures ----

#define FIGURES_MAX_REQUESTS 64
#define FIGURES_MAX_PAGES 16384

struct request_figures {
    uint64_t request, conversation;
    enum request_state state;
    int prefill_done, prefill_total; // tokens
    int n_generated, n_context;      // tokens of the answer; tokens in the sequence
    float tokens_per_second;         // lately, of decoding
};

// Whether tokens over seconds make a rate worth showing: that of one or two fast ones is chance. Parts of tokens count.
static inline bool rate_is_steady(double tokens, double seconds) {
    return seconds >= 0.25 || (seconds > 0 && tokens > 2.5);
}

struct page_figures {
    uint64_t conversation; // of the first owner; 0: free
    uint16_t references;   // 0 free, 1 owned, more: shared
    uint16_t filled;       // tokens, ≤ page_tokens
    bool kept;             // held for reuse only, by no running request
};

struct latency_figures { float p50, p90, p99; int count; }; // seconds; over recent samples

struct engine_figures {
    uint64_t sequence;                 // grows with every published snapshot
    char backend[64];                  // "AVX-512 VNNI, 2 threads"
    int n_threads;
    // Tokens a second of the work of the last second, all requests together, over the time in which there was such
    // work. 0 when there was none or too little to tell.
    float decode_now, prefill_now;
    float decode_peak;                 // the highest decode_now so far
    uint64_t decode_tokens, prefill_tokens, reused_tokens; // in total
    struct latency_figures first_token, next_token;
    int queue;                         // requests pending
    int running;                       // prefilling or decoding
    int batch_rows, batch_decode_rows; // of the last step
    uint64_t steps, preemptions;
    double stage_seconds[STAGE_COUNT]; // in total
    // Of the last second in which there was work, which stays when there is none. Steps with prompt rows count as
    // prefill, those without as decode; what their seconds are more than those of all stages went elsewhere: planning,
    // handing tokens on.
    struct stage_work stages[STAGE_COUNT], decode, prefill;
    int page_tokens, n_pages, pages_used, pages_shared, pages_free, pages_kept; // used: by running requests; kept: for reuse
    uint64_t kv_bytes;
    bool preparing;                    // weights that a quick start put off, whenever nothing else runs
    int context;                       // tokens a conversation may have
    int n_requests;
    struct request_figures requests[FIGURES_MAX_REQUESTS]; // those pending or running
    struct page_figures pages[FIGURES_MAX_PAGES];          // of the first n_pages, as far as they fit
};

// The latest snapshot; valid until the next call. One reader thread. Never blocks.
const struct engine_figures *engine_figures(struct engine *e);

// ---- quantizing: a model in another weight format ----

// X(name, format of most matrices, value of general.file_type, mix, what it is)
#define QUANTIZE_TYPES(X)                                                                                              \
    X("Q8_0", BLOCK_Q8_0, 7, MIX_NONE, "8.5 bits a weight, next to no loss")                                           \
    X("Q6_K", BLOCK_Q6_K, 18, MIX_NONE, "6.6 bits")                                                                    \
    X("Q5_K_M", BLOCK_Q5_K, 17, MIX_Q5_K_M, "Q5_K, what matters most in Q6_K")                                         \
    X("Q5_K", BLOCK_Q5_K, 16, MIX_NONE, "5.5 bits")                                                                    \
    X("Q4_K_M", BLOCK_Q4_K, 15, MIX_Q4_K_M, "Q4_K, what matters most in Q6_K: the usual choice")                       \
    X("Q4_K_S", BLOCK_Q4_K, 14, MIX_Q4_K_S, "Q4_K, a little in Q5_K and Q6_K")                                         \
    X("Q4_K", BLOCK_Q4_K, 14, MIX_NONE, "4.5 bits")                                                                    \
    X("Q3_K", BLOCK_Q3_K, 11, MIX_NONE, "3.4 bits")                                                                    \
    X("Q2_K", BLOCK_Q2_K, 10, MIX_NONE, "2.6 bits")                                                                    \
    X("IQ4_NL", BLOCK_IQ4_NL, 25, MIX_NONE, "4.5 bits, finer steps near zero")                                         \
    X("IQ4_XS", BLOCK_IQ4_XS, 30, MIX_NONE, "4.25 bits, finer steps near zero")                                        \
    X("MXFP4", BLOCK_MXFP4, 38, MIX_NONE, "4.25 bits, 4-bit floats")                                                   \
    X("Q5_1", BLOCK_Q5_1, 9, MIX_NONE, "6 bits")                                                                       \
    X("Q5_0", BLOCK_Q5_0, 8, MIX_NONE, "5.5 bits")                                                                     \
    X("Q4_1", BLOCK_Q4_1, 3, MIX_NONE, "5 bits")                                                                       \
    X("Q4_0", BLOCK_Q4_0, 2, MIX_NONE, "4.5 bits, simplest")                                                           \
    X("BF16", BLOCK_BF16, 32, MIX_NONE, "floats of 16 bits, as most models are trained in")                            \
    X("F16", BLOCK_F16, 1, MIX_NONE, "floats of 16 bits, up to 65504")                                                 \
    X("F32", BLOCK_F32, 0, MIX_NONE, "floats of 32 bits")

struct quantize_tensor {
    const char *name;
    const char *from, *to;  // names of formats
    const char *note;       // why it is not in the type's own format, "" when it is
    int n_dims;
    uint64_t dims[4];       // innermost first
    uint64_t n_weights, bytes; // bytes: as written
    double squared_error, squares; // sums over the weights: (written − read)² and read²
};

struct quantize_report {
    const struct quantize_tensor *tensors; // in the order they are written
    uint64_t n_tensors, n_done;            // done: also written
    uint64_t bytes_read, bytes_written;    // of all weights
    uint64_t file_bytes;
    double seconds;
};

struct quantize_params {
    const char *in, *out, *type; // type: a name of QUANTIZE_TYPES, in either case
    int n_threads;               // 0: one a physical core
    bool requantize;             // take weights that are quantised already, too
    bool replace;                // of a file `out` that is there
    // Told how things stand, 0 to 1, whenever a tensor is done and in between, on the thread that called; false: stop
    // and fail with STATUS_CANCELLED. NULL: nobody cares.
    bool (*progress)(void *context, const struct quantize_report *report, double done);
    void *progress_context;
};

// Reads a model, writes a GGUF file. Vectors and what is small but matters stay in 32-bit floats; rows that are no whole
// number of the type's blocks go to a format of smaller blocks. `out` appears when all of it is written; on failure it
// does not, and NULL is returned. The bytes written depend on nothing but the model and the type.
struct quantize_report *quantize_model(const struct quantize_params *p, struct status *st);
void quantize_report_free(struct quantize_report *r);

#endif
