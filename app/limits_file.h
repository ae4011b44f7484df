// Limits file: what this machine can do at most, as it was measured some time ago, for every processor and engine.
//
// One line each: "SECONDS READ-BYTES INT8-OPERATIONS PROCESSOR, ENGINE", seconds since 1970, the others a second.
#ifndef CONFAB_APP_LIMITS_FILE_H
#define CONFAB_APP_LIMITS_FILE_H

#include "app/machine_limits.h"

#define LIMITS_DAYS 7 // that they count

// `engine`: its kernels and threads, as in struct engine_figures. False: there are none, or they are too old.
bool limits_file_read(const char *path, const char *engine, struct machine_limits *out);
// A file that cannot be written is no reason to disturb: then they are measured again.
void limits_file_write(const char *path, const char *engine, const struct machine_limits *limits);

#endif
