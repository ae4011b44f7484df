// Drafter: a small model of the same vocabulary, which writes ahead of the one that answers.
//
// It reads what a text has, on pages of its own, and goes on by its likeliest tokens. What it read of one text others
// find, by a prefix index of its own; where its pages are short it writes nothing. In a call it reads a bounded number
// of tokens, so that a long prompt is read over several. Owns its backend; used by the scheduler on the engine's
// thread.
#ifndef CONFAB_SERVE_DRAFTER_H
#define CONFAB_SERVE_DRAFTER_H

#include "engine/serve/draft.h"
#include "engine/serve/placement.h"
#include "engine/serve/prefix.h"

enum { DRAFTER_TEXTS = 64 }; // of a call

struct drafter_params {
    struct placement_plan placement;
    const struct model *model;
    int n_threads, n_pages, context, asked_context;
    struct backend_options options;
    int n_vocab; // of the model that answers: no token from there on is written
};

struct drafter_text {
    struct draft *draft;   // into whose guess it writes; what was read is remembered there, too
    const int32_t *tokens; // [n]
    int n;
};

struct drafter;
struct drafter *drafter_open(const struct drafter_params *p, struct status *st);
void drafter_close(struct drafter *w);

// Writes up to `most` tokens to go on with each text, fewer where they are unlikely, in place of what was looked up;
// where it writes none that stays. False where its device failed: then it is of no more use.
bool drafter_write(struct drafter *w, const struct drafter_text *texts, int n, int most, struct status *st);
// What it had read for a text is not needed any more; others may find it unless it is to be forgotten.
void drafter_leave(struct drafter *w, struct draft *draft, const int32_t *tokens, int n, bool publish);
void drafter_forget(struct drafter *w, uint64_t owner);

#endif
