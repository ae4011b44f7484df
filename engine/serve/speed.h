// Speed: what steps took lately, by their rows, from which the next one is planned.
//
// All in seconds; 0: not known. Used by the scheduler on the engine's thread.
#ifndef CONFAB_SERVE_SPEED_H
#define CONFAB_SERVE_SPEED_H

#include <stdbool.h>
#include <stdint.h>

enum { SPEED_ROWS = 64 }; // of a step that only decodes

struct speed_step {
    double seconds;
    uint64_t learned; // in which step
    int n;            // samples, up to a bound
};

struct speed {
    double prompt_row;                        // a row of steps with prompt rows alone
    double shared_row;                        // and of those in which others decode
    struct speed_step decode[SPEED_ROWS + 1]; // a step that only decodes, by its rows
    struct speed_step beside[SPEED_ROWS + 1]; // one of a few rows of persons, and any beside them
    uint64_t step;
};

// A step of so many rows, so many of them of prompts, took this long.
void speed_learn(struct speed *s, int n_rows, int prompt_rows, double seconds);

// A step that only decodes so many rows, or a few less, or more.
double speed_decode(const struct speed *s, int n_rows);
// The same as measured lately; for numbers of rows between those that were it is interpolated, and up to twice the most
// it is taken for no longer, since whoever does not try does not learn. 0: not known, or too many to try.
double speed_decode_lately(const struct speed *s, int n_rows);

// The same of steps of persons with other programs' rows beside theirs; but only one more row is tried than before, as
// persons see each step that takes too long.
void speed_learn_beside(struct speed *s, int n_rows, double seconds);
double speed_beside(const struct speed *s, int n_rows);

#endif
