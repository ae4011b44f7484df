// Instruction sets: detects which of those that kernels are compiled for this processor supports.
//
// Files named *_avx2.c, *_avxvnni.c and *_avx512.c are compiled for that instruction set (see the Makefile); modules
// with such kernels have a table indexed by enum instruction_set. All give the same results to the last bit.
#ifndef CONFAB_BASE_INSTRUCTION_SET_H
#define CONFAB_BASE_INSTRUCTION_SET_H

#include <stdbool.h>

// X(enumerator, name in CONFAB_CPU), slowest first
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
// INSTRUCTION_SET_COUNT if there is no such name.
enum instruction_set instruction_set_named(const char *name);
// The best supported one, or the one in CONFAB_CPU if supported.
enum instruction_set instruction_set_choose(void);

#endif
