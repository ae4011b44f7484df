// Peak loops: for every instruction set that kernels are written for, loops that do nothing but one kind of work, as
// fast as a core can. Whoever times them knows what nothing can exceed.
#ifndef CONFAB_APP_PEAK_LOOPS_H
#define CONFAB_APP_PEAK_LOOPS_H

enum peak {
    PEAK_INT8,     // 8-bit products, multiplies and adds counted apart
    PEAK_MULTIPLY, // f32 fused multiply-adds, counted as two
    PEAK_DIVIDE,   // f32 quotients
    PEAK_READ,     // bytes loaded from the first cache
    PEAK_WRITE,    // bytes stored there
    PEAK_COUNT
};

struct peak_loops {
    const char *cpu;  // what CONFAB_CPU calls the instruction set
    const char *name; // as people write it
    struct {
        void (*run)(long n, void *memory); // n turns; memory: PEAK_LOOP_BYTES, aligned to 64
        double work;                       // of a turn
    } loops[PEAK_COUNT];
};

enum { PEAK_LOOP_BYTES = 1024 };

// The loops of the named set, or of the best one (NULL); NULL if this processor runs none such.
const struct peak_loops *peak_loops_find(const char *cpu);
// Runs a loop for some milliseconds on this thread; returns the work it did.
double peak_loops_run(const struct peak_loops *set, enum peak peak);

#endif
