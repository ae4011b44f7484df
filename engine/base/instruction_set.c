#include "engine/base/instruction_set.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

static bool has_f16c(void) { // not supported by all compilers' __builtin_cpu_supports
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
static bool has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c(); }
static bool has_avxvnni(void) { // likewise; leaf 7, subleaf 1
    enum { EAX_AVX_VNNI = 1 << 4 };
    unsigned a, b, c, d;
    return has_avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & EAX_AVX_VNNI);
}
static bool has_avx512(void) {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni");
}
#else
static bool has_avx2(void) { return false; }
static bool has_avxvnni(void) { return false; }
static bool has_avx512(void) { return false; }
#endif
static bool has_any(void) { return true; }

bool instruction_set_runs(enum instruction_set set) {
    static bool (*const runs[INSTRUCTION_SET_COUNT])(void) = {
        [INSTRUCTION_SET_SCALAR] = has_any,
        [INSTRUCTION_SET_AVX2] = has_avx2,
        [INSTRUCTION_SET_AVXVNNI] = has_avxvnni,
        [INSTRUCTION_SET_AVX512] = has_avx512,
    };
    return set < INSTRUCTION_SET_COUNT && runs[set]();
}

enum instruction_set instruction_set_named(const char *name) {
    static const char *const names[INSTRUCTION_SET_COUNT] = {
#define X(id, name_) [id] = name_,
        INSTRUCTION_SETS(X)
#undef X
    };
    int set = 0;
    while (set < INSTRUCTION_SET_COUNT && strcmp(names[set], name)) set++;
    return (enum instruction_set)set;
}

enum instruction_set instruction_set_choose(void) {
    const char *wanted = getenv("CONFAB_CPU");
    enum instruction_set named = wanted ? instruction_set_named(wanted) : INSTRUCTION_SET_COUNT;
    if (instruction_set_runs(named)) return named;
    int best = INSTRUCTION_SET_COUNT - 1;
    while (!instruction_set_runs((enum instruction_set)best)) best--;
    return (enum instruction_set)best;
}
