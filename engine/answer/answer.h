// Answer: turns sampled tokens into events with text.
//
// Holds back incomplete characters, and text that may be the start of a stop text or of a mark between thinking and
// answer. Emits valid UTF-8 and reports each token once. Runs on the engine thread.
#ifndef CONFAB_ANSWER_ANSWER_H
#define CONFAB_ANSWER_ANSWER_H

#include "engine/answer/splitter.h"
#include "engine/base/queue.h"
#include "engine/engine.h"

struct answer_params {
    const struct tokenizer *tokenizer;     // borrowed
    const struct channel_scheme *channels; // borrowed
    struct queue *events;                  // borrowed: of struct engine_event
    uint64_t request, conversation;
    int answer; // which of the request's
    bool ignore_end;
    const char *const *stops; // copied
    int n_stops;
    const char *template_stop; // text that ends a turn in the prompt's template; NULL: none
    bool chat;                 // the prompt was made with a template, so marks of thinking apply
    bool inside;               // the prompt has opened the thinking
};

struct answer;
struct answer *answer_open(const struct answer_params *p);
void answer_close(struct answer *a);
// True if the token ends the answer; otherwise sends its text.
bool answer_token(struct answer *a, const struct sample *sample);
// Sends a token of the prompt, and how likely it is.
void answer_prompt(struct answer *a, const struct sample *sample);
// Of a token, as valid UTF-8, cut at a character to `size` with its NUL.
void answer_token_text(const struct tokenizer *t, int32_t id, char *out, size_t size);
// The same of several: characters that they share are put together.
void answer_tokens_text(const struct tokenizer *t, const int32_t *ids, int n, char *out, size_t size);
int answer_stop(const struct answer *a); // which of `stops` ended it, from 1; 0: none of them
// As splitter_is_answer, splitter_needs_header and splitter_held, of the next token.
bool answer_is_answer(const struct answer *a);
bool answer_needs_header(const struct answer *a);
struct span answer_held(const struct answer *a);
// At the end: sends the text held back.
void answer_finish(struct answer *a);

#endif
