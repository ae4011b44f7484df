#include "engine/cpu/kernels.h"

#include <stdlib.h>

#include "engine/base/instruction_set.h"
#include "engine/cpu/kernels_blas.h"

static const struct cpu_kernels *const tables[INSTRUCTION_SET_COUNT] = {
    [INSTRUCTION_SET_SCALAR] = &kernels_scalar,
#if defined(__x86_64__)
    [INSTRUCTION_SET_AVX2] = &kernels_avx2,
    [INSTRUCTION_SET_AVXVNNI] = &kernels_avxvnni,
    [INSTRUCTION_SET_AVX512] = &kernels_avx512,
#endif
};

const struct cpu_kernels *kernels_find(const char *name) {
    if (!strcmp(name, "blas")) return kernels_blas();
    enum instruction_set set = instruction_set_named(name);
    return instruction_set_runs(set) ? tables[set] : NULL;
}

const struct cpu_kernels *kernels_choose(void) {
    const char *name = getenv("CONFAB_CPU");
    const struct cpu_kernels *found = name ? kernels_find(name) : NULL;
    const enum instruction_set best = instruction_set_choose();
    if (!found && best == INSTRUCTION_SET_SCALAR) found = kernels_blas();
    return found ? found : tables[best];
}
