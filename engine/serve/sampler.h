// Sampler: from logits to the next token.
//
// Order: penalties over the last tokens of the sequence → top-k → top-p → min-p → temperature → draw. Top-p and min-p
// look at probabilities before the temperature; top-p at those among the top-k. Temperature 0 takes the likeliest token
// after penalties, ties to the lowest id. What is reported (probability, entropy, alternatives) belongs to the model's
// own distribution: no penalties, no temperature. The same state, logits and tokens give the same token, whatever else
// is in the batch, on every processor. Nothing is allocated per token, nothing is sorted.
#ifndef CONFAB_SERVE_SAMPLER_H
#define CONFAB_SERVE_SAMPLER_H

#include "engine/distribution.h"
#include "engine/sampling.h"

enum { SAMPLER_WINDOW = 4096 }; // tokens that penalties may look back

struct sampler { // of one sequence
    struct sampling sampling;
    uint64_t random; // state of the generator
};

struct sampler_scratch; // one a worker

struct sampler_input {
    float *logits; // [n_vocab]; changed while sampling and restored
    int n_vocab;
    const int32_t *tokens; // of the whole sequence: prompt and answer
    int n_tokens;
};

struct sampler_scratch *sampler_scratch_open(int n_vocab);
void sampler_scratch_close(struct sampler_scratch *x);

// For one of several answers to a prompt: a seed gives each its own, the first as it is.
struct sampling sampler_for_answer(const struct sampling *s, int answer);
// Seed 0 draws one from the system.
struct sampler sampler_start(const struct sampling *s);
// As after n draws with a temperature above 0.
void sampler_skip(struct sampler *m, int n);
// A changed seed starts the generator anew, everything else goes on with it.
void sampler_change(struct sampler *m, const struct sampling *s);
struct sample sampler_next(struct sampler *m, struct sampler_scratch *x, const struct sampler_input *in);
// The same of a token that is there already: nothing is drawn.
struct sample sampler_score(struct sampler_scratch *x, const struct sampler_input *in, int32_t token);
// What these knobs make of logits that a token was drawn from: all of *out but the conversation and the texts.
void sampler_explain(const struct sampling *s, struct sampler_scratch *x, const struct sampler_input *in, int32_t drawn,
                     struct distribution *out);

#endif
