// Event loop: sources of things to do, each with a descriptor to wait for, a deadline, or both.
//
// One thread. A turn waits until a source is ready or due, and then gives each its turn, in the order in which they were
// added. Deadlines are of clock_ns(), so that tests with a frozen clock are exact.
#ifndef CONFAB_APP_LOOP_H
#define CONFAB_APP_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct loop;

struct loop_source {
    int (*fd)(void *context);       // −1: nothing to wait for now; NULL: never
    short events;                   // of poll()
    uint64_t (*due)(void *context); // clock_ns of its next turn, 0: none; NULL: never
    void (*turn)(void *context, bool ready); // ready: its descriptor is
    void *context;
};

struct loop *loop_open(void);
void loop_close(struct loop *l);
void loop_add(struct loop *l, const struct loop_source *source); // copied
void loop_turn(struct loop *l, int timeout_ms); // waits at most so long; < 0: as long as need be

#endif
