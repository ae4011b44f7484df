// Instruction sets: which of those that inner loops are compiled for this processor runs.
//
// Files named *_avx2.c, *_avxvnni.c and *_avx512.c are compiled for theirs, see the Makefile; whoever has such loops
// keeps a table of them by enum instruction_set. All of them give the same results to the last bit.
#ifndef CONFAB_BASE_INSTRUCTION_SET_H
#define CONFAB_BASE_INSTRUCTION_SET_H

#include <stdbool.h>

// X(enumerator, name in CONFAB_CPU), the worst first
#define INSTRUCTION_SETS(X)                                                                                            \
    X(INSTRUCTION_SET_SCALAR, "scalar")                                                                                \
    X(INSTRUCTION_SET_AVX2, "avx2")                                                                                    \
    X(INSTRUCTION_SET_AVXVNNI, "avxvnni")                                                                              \
    X(INSTRUCTION_SET_AVX512, "avx512")
enum instruction_set {
#define X(id, name) id,
    INSTRUCTION_SETS(X)
#undef X
        INSTRUCTION_SET_COUNT
};

bool instruction_set_runs(enum instruction_set set);
// INSTRUCTION_SET_COUNT: nothing is called that.
enum instruction_set instruction_set_named(const char *name);
// The best that runs, or what CONFAB_CPU names if that runs.
enum instruction_set instruction_set_choose(void);

#endif
