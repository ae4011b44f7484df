// Machine load: what others and the system took from this process.
#ifndef CONFAB_BASE_MACHINE_LOAD_H
#define CONFAB_BASE_MACHINE_LOAD_H

#include <stdint.h>

struct machine_load { // totals
    double processors; // seconds of all processors together since the machine started
    double stolen;     // of these, those that its host gave to others
    int64_t faults;    // of this process, for which a disk was read
    int64_t switches;  // of its threads, that the system made for others
};

// What is not known is 0.
struct machine_load machine_load_now(void);

#endif
