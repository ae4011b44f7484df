// Script engine: an engine that computes nothing and lets a script say what happens: states, tokens, metrics, pages;
// and what opens it, with the models that it is opened over, in place of those of this machine.
//
// A cancelled request ends at once; everything else waits for the script.
#ifndef CONFAB_TESTS_SCRIPT_ENGINE_H
#define CONFAB_TESTS_SCRIPT_ENGINE_H

#include "app/models/model.h"
#include "engine/metrics.h"

#define SCRIPT_BACKEND "script, 2 threads"

extern const struct model_opener script_models;

// ---- models ----

// From now on a file of this name, without its ending, is such a model; `problem` (or NULL) says why it cannot run.
void script_engine_model(const char *name, const char *family, const char *format, uint64_t parameters, uint64_t need,
                         const char *problem);
void script_engine_memory(uint64_t bytes); // that are free; 1 TiB until said
// From now on whoever opens an engine waits for what the next three say.
void script_engine_hold(void);
void script_engine_progress(double done);        // told to whoever waits, once it does
void script_engine_release(const char *failure); // NULL: its engine is there
void script_engine_abort(void);                  // nobody waits any more

// What the script says is about the first answer of the latest request of a conversation, or about another one:
#define SCRIPT_ANSWER(conversation, answer) ((uint64_t)(answer) << 32 | (conversation))

// One piece of text of the running request of a conversation, as one token. False when nothing runs there.
bool script_engine_token(struct engine *e, uint64_t conversation, enum channel channel, const char *text, size_t size);
// The figures of the next token; texts and probabilities of alternatives, the likeliest first; accepted: it was a
// draft.
void script_engine_figures(struct engine *e, float probability, float entropy, const char *const *texts,
                           const float *probabilities, int n, bool accepted);
bool script_engine_notice(struct engine *e, uint64_t conversation, const char *text);
// A change of state; `text` is the message of a failure, or NULL.
bool script_engine_state(struct engine *e, uint64_t conversation, enum request_state state, enum finish_reason reason,
                         const char *text);
// Prompt tokens read so far, of how many.
bool script_engine_prefill(struct engine *e, uint64_t conversation, int done, int total);
void script_engine_found(struct engine *e, int tokens, int cached); // whenever the chat asks what is cached
bool script_engine_rate(struct engine *e, uint64_t conversation, float tokens_per_second);
bool script_engine_drafts(struct engine *e, uint64_t conversation, int drafted, int accepted);
// The next token of a conversation is drawn from these logits, of which this one was; a text each. Borrowed.
void script_engine_logits(struct engine *e, uint64_t conversation, int drawn, const char *const *texts,
                          const float *logits, int n);
// To be changed at will; the requests in it and `running` and `queue` are kept by the engine.
struct engine_metrics *script_engine_metrics(struct engine *e);

// What the chat asked for: NULL when nothing was submitted for that conversation.
const struct sampling *script_engine_sampling(const struct engine *e, uint64_t conversation);
// What its answer was to begin with: "3 1001 typed text".
const char *script_engine_begun(const struct engine *e, uint64_t conversation);
// "role: (thinking) text" of its messages, by line.
const char *script_engine_prompt(const struct engine *e, uint64_t conversation);

#endif
