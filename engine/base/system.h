// System: threads and eventfds. The system grants only so many: whoever asks for too many is told which limit to raise.
#ifndef CONFAB_BASE_SYSTEM_H
#define CONFAB_BASE_SYSTEM_H

#include <pthread.h>

#include "engine/base/status.h"

bool system_start_thread(pthread_t *thread, void *(*main)(void *), void *argument, struct status *st);
// Not blocking, closed on exec; −1 on failure.
int system_open_eventfd(struct status *st);

#endif
