// The AVX-VNNI kernels once more, in the encoding of processors with AVX-512: the harness tries these where it cannot
// run the product's.
#define PACKED_ISA evex
#include "engine/cpu/packed_avxvnni.c"
