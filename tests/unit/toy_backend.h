// Toy backend: a model without weights, to test what surrounds one.
//
// A KV slot holds the token and position stored there; the logits of a row are a hash of all slots from 0 to its
// position, read through the page table. A wrong table, a missing copy or a stale page changes the text.
#ifndef CONFAB_TESTS_TOY_BACKEND_H
#define CONFAB_TESTS_TOY_BACKEND_H

#include <stdatomic.h>

#include "engine/backend.h"

extern const struct backend_ops toy_backend;

// What the tests ask for and what they find; shared with the engine thread.
struct toy_controls {
    atomic_int poison;     // a token after which logits are NaN; −1: none
    atomic_int fail_runs;  // so many runs fail as if the device were lost
    atomic_int step_delay; // microseconds a run takes
    atomic_int patience;   // milliseconds that a run which may be given up waits for that
    atomic_int allowed;    // runs from this one on, counted from 0, wait; −1: none
    atomic_int likely;     // a token that is by far the likeliest everywhere; −1: none
    atomic_int habit;      // one token in so many is any, the others follow the one before; 0: all are any
    atomic_int run_ns;     // nanoseconds that a run takes by the frozen clock,
    atomic_int row_ns;     // and each of its rows
    atomic_int runs, given_up, copies, most_rows, most_segments;
};
extern struct toy_controls toy;
void toy_reset(void); // the clock is not frozen

// What the backend must find after tokens [0 .. n).
void toy_logits(const int32_t *tokens, int n, int n_vocab, float *logits);
// The greedy continuation, computed without any cache, into out [count].
void toy_continue(const int32_t *prompt, int n, int n_vocab, int32_t *out, int count);

#endif
