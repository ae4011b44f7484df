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

float row_largest(const float *block_max, int n_blocks) {
    float max = block_max[0];
    for (int i = 1; i < n_blocks; i++) max = block_max[i] > max ? block_max[i] : max;
    return max;
}

int32_t row_equal_to(const struct row *r, float value, int skip) {
    for (int b = 0; b < row_blocks(r->n); b++) {
        if (r->block_max[b] < value) continue;
        for (int i = b * ROW_BLOCK; i < r->n && i < (b + 1) * ROW_BLOCK; i++)
            if (r->logits[i] == value && skip-- == 0) return i;
    }
    return -1;
}
