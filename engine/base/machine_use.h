// Machine use: processor time and energy, as totals whose differences are rates.
#ifndef CONFAB_BASE_MACHINE_USE_H
#define CONFAB_BASE_MACHINE_USE_H

struct machine_use {
    double own;       // seconds of processors that this process took
    double busy, all; // seconds of all processors together: that any program took, and that went by
    double joules;    // that the processors took
};

struct machine_use machine_use_now(void); // what is not known is NaN
// Of the packages in a folder like /sys/class/powercap; NaN: it has none, or none may be read. Starts again from 0 when
// the counter of a package is full.
double machine_use_joules(const char *folder);

#endif
