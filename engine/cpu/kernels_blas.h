// OpenBLAS as kernels, for processors that have none of ours: matmuls in f32 of weights as the file has them,
// everything else as the scalar kernels do it. A result may depend on the rows it is computed with in its last bits.
#ifndef CONFAB_CPU_KERNELS_BLAS_H
#define CONFAB_CPU_KERNELS_BLAS_H

#include "engine/cpu/kernels.h"

// Opens the library at the first call, from any thread. NULL without it, or if confab is built without it.
const struct cpu_kernels *kernels_blas(void);

#endif
