// Run output: what `confab run` writes of the answers to a prompt.
//
// The first answer is streamed; the others are written when their turn comes, each under a line with its number. As
// JSON nothing is written before all have ended. The model's thinking goes to standard error.
#ifndef CONFAB_APP_RUN_OUTPUT_H
#define CONFAB_APP_RUN_OUTPUT_H

#include <stdbool.h>

#include "app/base/word_wrap.h"
#include "engine/engine.h"

struct run_answer {
    struct run_piece *pieces; // of one channel each, in their order
    int n_pieces;
    bool any[2];             // text so far, by channel
    struct engine_event end; // its last event; state is REQUEST_PENDING until then
};

struct run_output {
    struct run_answer *answers;
    int n_answers;
    bool json;
    bool shows_thinking, dims;
    int shown;                       // the answer that is written
    bool silent;                     // it was cancelled: what still comes is not written
    bool thinking;                   // the last text was thinking
    bool failed;                     // an answer did
    char last;                       // the last character written
    int error;                       // errno of standard output
    struct word_wrap text, thoughts; // of standard output and standard error
};

void run_output_open(struct run_output *o, int n_answers, bool json, bool thinking);
void run_output_close(struct run_output *o);
void run_output_take(struct run_output *o, const struct engine_event *event);
bool run_output_ended(const struct run_output *o); // all answers
void run_output_write_json(struct run_output *o);

#endif
