#include "engine/cpu/kernels.h"

#include "engine/base/instruction_set.h"

static const struct cpu_kernels *const tables[INSTRUCTION_SET_COUNT] = {
    [INSTRUCTION_SET_SCALAR] = &kernels_scalar,
#if defined(__x86_64__)
    [INSTRUCTION_SET_AVX2] = &kernels_avx2,
    [INSTRUCTION_SET_AVXVNNI] = &kernels_avxvnni,
    [INSTRUCTION_SET_AVX512] = &kernels_avx512,
#endif
};

const struct cpu_kernels *kernels_find(const char *name) {
    enum instruction_set set = instruction_set_named(name);
    return instruction_set_runs(set) ? tables[set] : NULL;
}

const struct cpu_kernels *kernels_choose(void) { return tables[instruction_set_choose()]; }
