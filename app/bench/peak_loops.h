// Peak loops: for each instruction set with kernels, loops that do one kind of work as fast as a core can. Timing them
// gives the limits that no kernel can exceed.
#ifndef CONFAB_APP_PEAK_LOOPS_H
#define CONFAB_APP_PEAK_LOOPS_H

enum peak {
    PEAK_INT8,     // 8-bit multiplies and adds, each counted
    PEAK_MULTIPLY, // f32 fused multiply-adds, counted as two
    PEAK_DIVIDE,   // f32 divisions
    PEAK_READ,     // bytes loaded from the L1 cache
    PEAK_WRITE,    // bytes stored to it
    PEAK_COUNT
};

struct peak_loops {
    const char *cpu;  // the instruction set's name in CONFAB_CPU
    const char *name; // for display
    struct {
        void (*run)(long n, void *memory); // n iterations; memory: PEAK_LOOP_BYTES, aligned to 64
        double work;                       // per iteration
    } loops[PEAK_COUNT];
};

enum { PEAK_LOOP_BYTES = 1024 };

// cpu: NULL for the best instruction set. NULL: this processor does not support it.
const struct peak_loops *peak_loops_find(const char *cpu);
// Runs a loop on this thread for a few milliseconds; returns the work done.
double peak_loops_run(const struct peak_loops *set, enum peak peak);

#endif
