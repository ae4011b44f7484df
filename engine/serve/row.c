#include "engine/serve/row.h"

const struct row_kernels *row_kernels_for(enum instruction_set set) {
    static const struct row_kernels *const tables[INSTRUCTION_SET_COUNT] = {
        [INSTRUCTION_SET_SCALAR] = &row_kernels_scalar,
#if defined(__x86_64__)
        [INSTRUCTION_SET_AVX2] = &row_kernels_avx2,
        [INSTRUCTION_SET_AVXVNNI] = &row_kernels_avx2, // brings nothing for floats
        [INSTRUCTION_SET_AVX512] = &row_kernels_avx512,
#endif
    };
    return tables[set];
}
