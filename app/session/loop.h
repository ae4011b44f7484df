// Event loop: waits for sources, each with a descriptor, a deadline, or both.
//
// Single-threaded. A turn waits until a source is ready or due, then calls them all, in the order they were added.
// Deadlines use clock_ns(), so that tests with a frozen clock are exact.
#ifndef CONFAB_APP_LOOP_H
#define CONFAB_APP_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct loop;

struct loop_source {
    int (*fd)(void *context);       // −1: none at the moment; may be NULL
    short events;                   // of poll()
    uint64_t (*due)(void *context); // clock_ns; 0: none; may be NULL
    void (*turn)(void *context, bool ready); // ready: its descriptor
    void *context;
};

struct loop *loop_open(void);
void loop_close(struct loop *l);
void loop_add(struct loop *l, const struct loop_source *source); // copied
void loop_turn(struct loop *l, int timeout_ms); // waits timeout_ms at most; < 0: no limit

#endif
