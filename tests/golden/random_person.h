// Random person: what somebody does at a terminal, by a seed: keys of all kinds, whole commands, messages, pastes, the
// mouse, other sizes of the window, and bytes that mean nothing.
#ifndef CONFAB_TESTS_RANDOM_PERSON_H
#define CONFAB_TESTS_RANDOM_PERSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/view.h"

uint32_t random_below(uint64_t *state, uint32_t n); // 0 to n − 1
int random_between(uint64_t *state, int low, int high);

#define ACT_BYTES 8192
struct random_act {
    char what[64];
    char bytes[ACT_BYTES];
    size_t size;
    int width, height; // of the window from now on; 0: as before
    bool pauses;       // long enough for an Esc to be one
};

struct random_person {
    uint64_t random;
    int messages;              // that were typed
    struct random_act todo[8]; // what belongs together, one after the other
    int n_todo, done;
};

// The frame as the person sees it, for what can be clicked.
const struct random_act *random_person_act(struct random_person *p, const struct view_frame *frame);

#endif
