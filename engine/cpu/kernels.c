#include "engine/cpu/kernels.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

static bool has_f16c(void) { // not all compilers' __builtin_cpu_supports know it
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
static bool has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c(); }
static bool has_avxvnni(void) { // leaf 7, subleaf 1: nor do they know this
    enum { EAX_AVX_VNNI = 1 << 4 };
    unsigned a, b, c, d;
    return has_avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & EAX_AVX_VNNI);
}
static bool has_avx512(void) {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni");
}
#endif
static bool has_any(void) { return true; }

static const struct {
    const char *name; // in CONFAB_CPU
    const struct cpu_kernels *kernels;
    bool (*runs)(void);
} choices[] = {
    // best first
#if defined(__x86_64__)
    {"avx512", &kernels_avx512, has_avx512},
    {"avxvnni", &kernels_avxvnni, has_avxvnni},
    {"avx2", &kernels_avx2, has_avx2},
#endif
    {"scalar", &kernels_scalar, has_any},
};
enum { N_CHOICES = sizeof choices / sizeof *choices };

const struct cpu_kernels *kernels_find(const char *name) {
    for (int i = 0; i < N_CHOICES; i++)
        if (!strcmp(choices[i].name, name)) return choices[i].runs() ? choices[i].kernels : NULL;
    return NULL;
}

const struct cpu_kernels *kernels_choose(void) {
    const char *wanted = getenv("CONFAB_CPU");
    const struct cpu_kernels *found = wanted ? kernels_find(wanted) : NULL;
    for (int i = 0; !found; i++)
        if (choices[i].runs()) found = choices[i].kernels;
    return found;
}
