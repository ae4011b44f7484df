// Constraint: holds an answer to a grammar.
//
// The grammar is for the text of the answer: what comes before it, a model's thinking or a header, is free, but for the
// end of the answer, and tokens that would both close a thinking and begin the answer. Before a token is drawn its
// logits are masked: those that the grammar does not allow become −∞, so that all that is told of the draw belongs to
// the distribution that is left. One a sequence, owned by it; the masks come from a machine (engine/grammar/machine.h)
// that all answers to the same grammar share.
#ifndef CONFAB_SERVE_CONSTRAINT_H
#define CONFAB_SERVE_CONSTRAINT_H

#include "engine/answer/channel.h"
#include "engine/grammar.h"
#include "engine/text/tokenizer.h"

// The tokens of a model, for all its constraints. Immutable once open; sorting a large vocabulary takes some 50 ms.
struct constraint_vocabulary;
struct constraint_vocabulary *constraint_vocabulary_open(const struct tokenizer *t, const struct channel_scheme *c);
void constraint_vocabulary_close(struct constraint_vocabulary *v); // NULL: does nothing

// Makes what the first answer to the grammar needs at its beginning, as machine_prepare; from any thread.
void constraint_prepare(const struct constraint_vocabulary *v, struct grammar *g, bool (*go_on)(const void *context),
                        const void *context);

struct constraint;
struct constraint_params {
    const struct constraint_vocabulary *vocabulary; // borrowed
    struct grammar *grammar;                        // shared
    bool chat;                                      // the channels apply
    bool ignore_end;                                // no token ends the answer
    int32_t end_token;                              // ends it beside those that the vocabulary marks; −1: none
};
struct constraint *constraint_open(const struct constraint_params *p);
void constraint_close(struct constraint *c); // NULL: does nothing

// What the next token will be: text of the answer, or before it; then, whether a header has to begin, and what a mark
// that closes a thinking may have begun with, borrowed until the next call.
void constraint_follow(struct constraint *c, bool is_answer, bool needs_header, struct span held);
// Masks the logits [n] that the next token is drawn from. False: constraint_problem says why nothing can be drawn.
bool constraint_mask(struct constraint *c, float *logits, int n);
// The next token is this one. False: what may follow it is not known before constraint_follow.
bool constraint_take(struct constraint *c, int32_t token);
// How many of these tokens could follow one another before constraint_follow has to be asked.
int constraint_fits(const struct constraint *c, const int32_t *tokens, int n);
// The tokens of the text that has to follow, whatever the model wants, as they may be; up to `most`. Returns how many.
int constraint_forced(const struct constraint *c, int32_t *tokens, int most);
bool constraint_is_over(const struct constraint *c);        // the text is complete, and nothing can follow
const char *constraint_problem(const struct constraint *c); // NULL: none

#endif
