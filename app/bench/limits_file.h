// Limits file: remembers the measured limits of this machine, for each processor and engine. A busy machine measures
// too little, so the best of the last days counts; a measurement that was too high expires with its day.
//
// One line per measurement: "SECONDS READ-BYTES INT8-OPERATIONS FLOAT-OPERATIONS PROCESSOR, ENGINE"; SECONDS since
// 1970, the rates per second.
#ifndef CONFAB_APP_LIMITS_FILE_H
#define CONFAB_APP_LIMITS_FILE_H

#include "app/bench/machine_limits.h"
#include "engine/metrics.h"

#define LIMITS_DAYS 7 // until a measurement expires

// engine: its kernels and threads, as in struct engine_metrics; *age: seconds since the last measurement. False: there
// is none that has not expired.
bool limits_file_read(const char *path, const char *engine, struct machine_limits *out, long long *age);
// instead: replace all earlier ones. Failure to write is not reported: the limits are just measured again next time.
void limits_file_add(const char *path, const char *engine, const struct machine_limits *limits, bool instead);

#endif
