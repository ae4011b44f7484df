// Limits meter: measures the machine's limits on threads of its own while the engine is idle.
#ifndef CONFAB_APP_LIMITS_METER_H
#define CONFAB_APP_LIMITS_METER_H

#include "app/bench/machine_limits.h"

struct limits_meter;

// Writes to the eventfd when done, after about a quarter of a second. NULL: could not start a thread.
struct limits_meter *limits_meter_start(int n_threads, int notify_fd, struct status *st);
void limits_meter_stop(struct limits_meter *m); // takes effect within about a millisecond; does not wait
bool limits_meter_done(const struct limits_meter *m);
// Waits for the end and frees m. False: it was stopped, or there was not enough memory or threads.
bool limits_meter_take(struct limits_meter *m, struct machine_limits *out);

#endif
