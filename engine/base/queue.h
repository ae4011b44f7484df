// Queue: an unbounded FIFO of fixed-size items between threads, under a mutex, with an eventfd for whoever waits in poll().
// Capacity grows by doubling; steady state allocates nothing.
#ifndef CONFAB_BASE_QUEUE_H
#define CONFAB_BASE_QUEUE_H

#include <pthread.h>
#include <stddef.h>

#include "engine/base/status.h"

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    unsigned char *items; // ring
    size_t item_size, capacity, head, count;
    int fd; // eventfd: readable while the queue is not empty
};

bool queue_open(struct queue *q, size_t item_size, struct status *st); // false: no eventfd is to be had
void queue_close(struct queue *q);                                     // also one that is zero, or failed to open
void queue_push(struct queue *q, const void *item);
bool queue_empty(struct queue *q);
bool queue_pop(struct queue *q, void *item);                     // false when empty
// Whether `is` holds of an item; asked in order, with the queue locked, until it does.
bool queue_any(struct queue *q, bool (*is)(const void *item, void *context), void *context);
bool queue_wait(struct queue *q, void *item, int timeout_ms);    // like pop, but waits; timeout < 0 waits for ever

#endif
