// Units: formats numbers for people.
#ifndef CONFAB_APP_UNITS_H
#define CONFAB_APP_UNITS_H

#include <stdint.h>

const char *units_bytes(double bytes, char out[24]); // "608 MiB", "1.09 GiB"
const char *units_count(double count, char out[24]); // "1.10 B", "260 K": thousand, million, billion
const char *units_whole(uint64_t n, char out[32]);   // "1,048,576"

#endif
