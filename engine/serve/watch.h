// Watch: the logits of the last token of the answer that a client looks at.
//
// The engine's thread notes them, the client's computes from them what knobs make of them. Nothing is kept where nobody
// watches; a watch costs one copy of a row of logits a token.
#ifndef CONFAB_SERVE_WATCH_H
#define CONFAB_SERVE_WATCH_H

#include "engine/distribution.h"
#include "engine/serve/sampler.h"
#include "engine/text/tokenizer.h"

struct watch;

struct watch *watch_open(int n_vocab);
void watch_close(struct watch *w); // NULL: does nothing

// What a token was drawn from; conversation: as the client calls it. Copies.
void watch_note(struct watch *w, uint64_t conversation, const struct sampler_input *in, int32_t drawn);
// As engine_distribution.
bool watch_explain(struct watch *w, const struct tokenizer *t, const struct sampling *s, struct distribution *out);

#endif
