// System: threads and eventfds, with errors that name the system limit to raise.
#ifndef CONFAB_BASE_SYSTEM_H
#define CONFAB_BASE_SYSTEM_H

#include <pthread.h>

#include "engine/base/status.h"

bool system_start_thread(pthread_t *thread, void *(*main)(void *), void *argument, struct status *st);
// Non-blocking, close-on-exec; −1 on failure.
int system_open_eventfd(struct status *st);

#endif
