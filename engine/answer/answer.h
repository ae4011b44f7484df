// Answer: from drawn tokens to events with text.
//
// Characters that are split across tokens are held back until they are whole, and so is a text that may be the
// beginning of a stop text or of a mark between thinking and answer. What leaves is valid UTF-8, and each token is
// reported once. On the engine thread.
#ifndef CONFAB_ENGINE_ANSWER_H
#define CONFAB_ENGINE_ANSWER_H

#include "engine/answer/splitter.h"
#include "engine/base/queue.h"
#include "engine/engine.h"

struct answer_params {
    const struct tokenizer *tokenizer;     // borrowed
    const struct channel_scheme *channels; // borrowed: how the model's answers mark thinking
    struct queue *events;                  // borrowed: of struct engine_event
    uint64_t request, conversation;
    int answer; // which of the request's
    bool ignore_end;
    const char *const *stops; // copied
    int n_stops;
    const char *template_stop; // the text that ends the turns of the prompt's template; NULL: none
    bool chat;                 // the prompt was made with a template: the file's marks of thinking count
    bool inside;               // and it has opened the thinking
};

struct answer;
struct answer *answer_open(const struct answer_params *p);
void answer_close(struct answer *a);
// True when the token ends the answer; otherwise its text is sent.
bool answer_token(struct answer *a, const struct sample *sample);
// At the end: sends what was held back.
void answer_finish(struct answer *a);

#endif
