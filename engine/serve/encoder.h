// Encoder: the thread on which prompts become tokens, in the order in which they come, but persons' before programs'.
// Templates are rendered and texts tokenized here alone, so that a long one delays neither the tokens of others nor
// whoever submits it.
#ifndef CONFAB_SERVE_ENCODER_H
#define CONFAB_SERVE_ENCODER_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/base/queue.h"
#include "engine/serve/prompt_source.h"

struct encoding { // of a prompt; part of whatever it belongs to
    struct prompt_source source;
    struct token_list tokens; // with the outcome, once it is done
    struct prompt_outcome outcome;
    atomic_bool unwanted; // it is done without tokens
    bool background;      // a program's
    struct encoding *next;
};

struct encoder {
    const struct model_file *file;
    void (*done)(void *context, struct encoding *e); // called on the encoder's thread
    void *context;
    struct queue queue;   // of struct encoding *; NULL: the end
    atomic_int n_waiting; // that are not done
    pthread_t thread;
    bool running;
};

// Opens *e, whose file, done and context are set. encoder_close also takes one that is zeroed, or failed to open.
bool encoder_open(struct encoder *e, struct status *st);
void encoder_close(struct encoder *e); // all that is waiting is done first

void encoder_push(struct encoder *e, struct encoding *encoding); // borrowed until it is done
bool encoder_idle(const struct encoder *e);                      // everything pushed is done
bool encoder_is_last(const struct encoder *e);                   // asked by `done`: nothing else waits

// On the caller's thread: for what takes no time.
void encoding_run(struct encoding *e, const struct model_file *file);
void encoding_free(struct encoding *e);

#endif
