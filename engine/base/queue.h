// Queue: an unbounded FIFO of fixed-size items between threads, with a mutex, and an eventfd to wait for in poll().
// Capacity doubles as needed; the steady state allocates nothing.
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
    int fd;     // eventfd: readable while the queue is not empty
    bool quiet; // wakes nobody
};

bool queue_open(struct queue *q, size_t item_size, struct status *st); // false: cannot open an eventfd
void queue_close(struct queue *q);                                     // also if zeroed or if opening failed
void queue_push(struct queue *q, const void *item);
// Between the two nobody is woken, and the descriptor need not be readable: several items are told of at once.
void queue_hold(struct queue *q);
void queue_release(struct queue *q);
bool queue_empty(struct queue *q);
bool queue_pop(struct queue *q, void *item); // false if empty
// Whether `is` is true for any item; called in order with the queue locked.
bool queue_any(struct queue *q, bool (*is)(const void *item, void *context), void *context);
bool queue_wait(struct queue *q, void *item, int timeout_ms); // like queue_pop, but waits; timeout < 0: forever

#endif
