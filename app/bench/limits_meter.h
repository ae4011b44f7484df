// Limits meter: measures the limits of the machine or of a device on threads of its own while the engine is idle.
#ifndef CONFAB_APP_LIMITS_METER_H
#define CONFAB_APP_LIMITS_METER_H

#include "app/bench/machine_limits.h"

struct limits_meter;

// `device` and n_threads as of machine_limits_open_on. Writes to the eventfd when done, after about a quarter of a
// second. NULL: could not start a thread.
struct limits_meter *limits_meter_start(const char *device, int n_threads, int notify_fd, struct status *st);
// Takes effect within about a millisecond, on a device after the sample; does not wait.
void limits_meter_stop(struct limits_meter *m);
bool limits_meter_done(const struct limits_meter *m);
// Waits for the end and frees m. False: it was stopped, or there was not enough memory or threads.
bool limits_meter_take(struct limits_meter *m, struct machine_limits *out);

#endif
