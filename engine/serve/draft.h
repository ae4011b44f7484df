// Draft: how a text may go on, by what followed when its last tokens stood somewhere before, or by what a small model
// writes (drafter.h).
//
// Every run of DRAFT_LEAST tokens is found by its hash, the latest first, as in a compressor: of a few of them the one
// with the longest match before it is taken. What followed there is the guess. Guesses cost nothing until they are
// made rows of a step, and are compared with what is drawn in any case: so a draft knows how often one is right after
// a match of such a length, and what more rows would bring. A token costs constant time; memory only grows.
//
// Owned by a sequence, used on the engine's thread.
#ifndef CONFAB_SERVE_DRAFT_H
#define CONFAB_SERVE_DRAFT_H

#include "engine/serve/kv_cache.h"

enum {
    DRAFT_LEAST = 3,    // tokens in common, for a guess
    DRAFT_MOST = 15,    // tokens of a guess
    DRAFT_LONGEST = 16, // tokens compared; longer matches are as good
    DRAFT_MATCHES = 4,  // classes of matches, by their length,
    DRAFT_WRITTEN = 5,  // and of what a model writes, by its probability
    DRAFT_CLASSES = DRAFT_MATCHES + DRAFT_WRITTEN
};

struct draft {
    int32_t *text;     // what was said in other branches, and this one's own; −1 between texts
    int32_t *previous; // [n] by the token after a run: the one after the same hash before it; −1: none
    int32_t *newest;   // [n_newest] by hash
    int n, capacity, n_newest;
    int n_own; // tokens of the sequence that were added

    // The latest guess, which no row may have been given.
    int32_t guess[DRAFT_MOST];
    int8_t classes[DRAFT_MOST];
    int n_guess, match;         // match: 0 where a model wrote it
    float right[DRAFT_CLASSES]; // the share of guesses that were
    int tried[DRAFT_CLASSES];   // up to a bound: how sure that is

    // The drafter's: what it has read, the first n_read tokens of the sequence's and what it wrote after them.
    struct kv_sequence kv;
    int32_t written[DRAFT_MOST];
    int n_read, n_written;
};

struct draft *draft_open(void);
void draft_close(struct draft *d);

// Appends tokens, or −1 where another text begins.
void draft_add(struct draft *d, const int32_t *tokens, int n);
// Guesses how tokens [0 .. n) go on, from this draft's text.
void draft_guess(struct draft *d, const int32_t *tokens, int n);
// The same from another one's, where the match there is longer.
void draft_guess_from(struct draft *d, const struct draft *other, const int32_t *tokens, int n);
// Adds what a model wrote, and how likely it is there, to the guess.
void draft_write(struct draft *d, int32_t token, float probability);
// The chance that guess[i] is right where all before it are.
float draft_chance(const struct draft *d, int i);
// A guess turned out right or wrong.
void draft_learn(struct draft *d, int i, bool right);

#endif
