// The AVX-VNNI kernels in the EVEX encoding, to test them on processors that have AVX-512 but not AVX-VNNI.
#define PACKED_ISA evex
#include "engine/cpu/packed_avxvnni.c"
