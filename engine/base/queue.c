#include "engine/base/queue.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/panic.h"
#include "engine/base/system.h"

bool queue_open(struct queue *q, size_t item_size, struct status *st) {
    *q = (struct queue){.item_size = item_size, .capacity = 16, .fd = system_open_eventfd(st)};
    if (q->fd < 0) return false;
    q->items = xmalloc(q->capacity * item_size);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->filled, &attributes);
    pthread_condattr_destroy(&attributes);
    return true;
}

void queue_close(struct queue *q) {
    if (!q->items) return;
    close(q->fd);
    pthread_cond_destroy(&q->filled);
    pthread_mutex_destroy(&q->lock);
    free(q->items);
}

static void queue_grow(struct queue *q) {
    unsigned char *items = xmalloc(2 * q->capacity * q->item_size);
    for (size_t i = 0; i < q->count; i++)
        memcpy(items + i * q->item_size, q->items + (q->head + i) % q->capacity * q->item_size, q->item_size);
    free(q->items);
    q->items = items;
    q->capacity *= 2;
    q->head = 0;
}

static void make_readable(const struct queue *q) {
    const uint64_t one = 1;
    if (write(q->fd, &one, sizeof one) < 0 && errno != EAGAIN) panic("eventfd: %s", strerror(errno));
}

void queue_push(struct queue *q, const void *item) {
    pthread_mutex_lock(&q->lock);
    if (q->count == q->capacity) queue_grow(q);
    memcpy(q->items + (q->head + q->count) % q->capacity * q->item_size, item, q->item_size);
    const bool first = q->count++ == 0;
    if (first && !q->quiet) make_readable(q);
    if (!q->quiet) pthread_cond_signal(&q->filled);
    pthread_mutex_unlock(&q->lock);
}

void queue_hold(struct queue *q) {
    pthread_mutex_lock(&q->lock);
    q->quiet = true;
    pthread_mutex_unlock(&q->lock);
}

void queue_release(struct queue *q) {
    pthread_mutex_lock(&q->lock);
    q->quiet = false;
    if (q->count) make_readable(q);
    pthread_cond_broadcast(&q->filled);
    pthread_mutex_unlock(&q->lock);
}

static bool queue_take(struct queue *q, void *item) {
    if (!q->count) return false;
    memcpy(item, q->items + q->head * q->item_size, q->item_size);
    q->head = (q->head + 1) % q->capacity;
    uint64_t drained;
    if (--q->count == 0 && read(q->fd, &drained, sizeof drained) < 0 && errno != EAGAIN)
        panic("eventfd: %s", strerror(errno));
    return true;
}

bool queue_empty(struct queue *q) {
    pthread_mutex_lock(&q->lock);
    bool empty = !q->count;
    pthread_mutex_unlock(&q->lock);
    return empty;
}

bool queue_pop(struct queue *q, void *item) {
    pthread_mutex_lock(&q->lock);
    bool taken = queue_take(q, item);
    pthread_mutex_unlock(&q->lock);
    return taken;
}

bool queue_any(struct queue *q, bool (*is)(const void *item, void *context), void *context) {
    bool found = false;
    pthread_mutex_lock(&q->lock);
    for (size_t i = 0; i < q->count && !found; i++)
        found = is(q->items + (q->head + i) % q->capacity * q->item_size, context);
    pthread_mutex_unlock(&q->lock);
    return found;
}

bool queue_wait(struct queue *q, void *item, int timeout_ms) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += timeout_ms % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000L) until.tv_sec++, until.tv_nsec -= 1000000000L;
    pthread_mutex_lock(&q->lock);
    bool taken;
    while (!(taken = queue_take(q, item))) {
        if (timeout_ms < 0) pthread_cond_wait(&q->filled, &q->lock);
        else if (pthread_cond_timedwait(&q->filled, &q->lock, &until) == ETIMEDOUT) {
            taken = queue_take(q, item);
            break;
        }
    }
    pthread_mutex_unlock(&q->lock);
    return taken;
}
