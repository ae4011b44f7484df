// Limits file: what this machine can do at most, as it was measured lately, for every processor and engine. A busy
// machine measures too little, so the best of some days counts; what was too much goes with its day.
//
// A line each time: "SECONDS READ-BYTES INT8-OPERATIONS FLOAT-OPERATIONS PROCESSOR, ENGINE", seconds since 1970, the
// others a second.
#ifndef CONFAB_APP_LIMITS_FILE_H
#define CONFAB_APP_LIMITS_FILE_H

#include "app/bench/machine_limits.h"
#include "engine/metrics.h"

#define LIMITS_DAYS 7 // that they count

// `engine`: its kernels and threads, as in struct engine_figures. False: there are none, or they are too old. `age`:
// seconds since the latest.
bool limits_file_read(const char *path, const char *engine, struct machine_limits *out, long long *age);
// `instead` of all earlier ones. A file that cannot be written is no reason to disturb: then they are measured again.
void limits_file_add(const char *path, const char *engine, const struct machine_limits *limits, bool instead);

#endif
