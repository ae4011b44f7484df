#include "engine/cpu/kernels.h"
const struct cpu_kernels kernels_avx2;
