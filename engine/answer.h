// Answer: from drawn tokens to events with text.
//
// Characters that are split across tokens are held back until they are whole, and so is a text that may be the
// beginning of the template's stop text. What leaves is valid UTF-8. One answer a request, on the engine thread.
#ifndef CONFAB_ENGINE_ANSWER_H
#define CONFAB_ENGINE_ANSWER_H

#include "engine/base/queue.h"
#include "engine/model_file.h"
#include "engine/serve/sampler.h"

enum { ANSWER_STOP_SIZE = 64 };

struct answer {
    const struct model_file *file; // borrowed
    struct queue *events;          // borrowed: of struct engine_event
    uint64_t request, conversation;
    bool ignore_end;
    const char *stop;   // NULL: none
    int32_t stop_token; // the token that is the stop text, −1: none
    struct utf8_stream utf8;
    char held[ANSWER_STOP_SIZE]; // the beginning of the stop text, as far as it has come
    size_t n_held;
};

// `chat`: the prompt was made with the file's template, whose stop text counts.
void answer_start(struct answer *a, bool chat);
// True when the token ends the answer; otherwise its text is sent.
bool answer_token(struct answer *a, const struct sample *sample);
// At the end: sends what was held back.
void answer_finish(struct answer *a);

#endif
