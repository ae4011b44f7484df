// Limits meter: measures what the machine can do at most, on threads of its own, while the engine has nothing to do.
#ifndef CONFAB_APP_LIMITS_METER_H
#define CONFAB_APP_LIMITS_METER_H

#include "app/bench/machine_limits.h"

struct limits_meter;

// Takes about a quarter of a second; then the eventfd is written to. NULL: no thread is to be had.
struct limits_meter *limits_meter_start(int n_threads, int notify_fd, struct status *st);
void limits_meter_stop(struct limits_meter *m); // leaves the processor within a millisecond or so; does not wait
bool limits_meter_done(const struct limits_meter *m);
// Ends it, waiting when it is not done. False: it was stopped, or there was no memory or no thread for it.
bool limits_meter_take(struct limits_meter *m, struct machine_limits *out);

#endif
