#include "app/bench/peak_loops.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

// In assembly, so that no compiler drops or reorders it. Twelve independent results hide the latency; registers 14 and
// 15 are operands, 13 holds 16-bit ones, and the results start at zero.
#define TWELVE(one)                                                                                                    \
    one(0) one(1) one(2) one(3) one(4) one(5) one(6) one(7) one(8) one(9) one(10) one(11)
#define ZERO(n) "vxorps %%xmm" #n ", %%xmm" #n ", %%xmm" #n "\n"
#define REGISTERS                                                                                                      \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",         \
        "xmm13", "xmm14", "xmm15"

#define LOOP(name, width, turn)                                                                                        \
    static void name(long n, void *memory) {                                                                           \
        const float operand = 1.25f;                                                                                   \
        __asm__ volatile(TWELVE(ZERO) "vbroadcastss %[operand], %%" width "14\n"                                       \
                                      "vbroadcastss %[operand], %%" width "15\n"                                       \
                                      "vpcmpeqd %%ymm13, %%ymm13, %%ymm13\n"                                           \
                                      "vpsrlw $15, %%ymm13, %%ymm13\n"                                                 \
                                      "1:\n" turn "dec %[n]\n"                                                         \
                                      "jnz 1b\n"                                                                       \
                                      "vzeroupper\n"                                                                   \
                         : [n] "+r"(n)                                                                                 \
                         : [operand] "m"(operand), [memory] "r"(memory)                                                \
                         : REGISTERS, "cc", "memory");                                                                 \
    }

#define FMA(width, n)          "vfmadd231ps %%" width "15, %%" width "14, %%" width #n "\n"
#define DIVIDE(width, n)       "vdivps %%" width "15, %%" width "14, %%" width #n "\n"
#define READ(width, bytes, n)  "vmovups " #bytes "*" #n "(%[memory]), %%" width #n "\n"
#define WRITE(width, bytes, n) "vmovups %%" width #n ", " #bytes "*" #n "(%[memory])\n"

#define FMA_512(n)    FMA("zmm", n)
#define DIVIDE_512(n) DIVIDE("zmm", n)
#define READ_512(n)   READ("zmm", 64, n)
#define WRITE_512(n)  WRITE("zmm", 64, n)
#define VNNI_512(n)   "vpdpbusd %%zmm15, %%zmm14, %%zmm" #n "\n"
LOOP(multiply_512, "zmm", TWELVE(FMA_512))
LOOP(divide_512, "zmm", TWELVE(DIVIDE_512))
LOOP(read_512, "zmm", TWELVE(READ_512))
LOOP(write_512, "zmm", TWELVE(WRITE_512))
LOOP(int8_512_vnni, "zmm", TWELVE(VNNI_512))

#define FMA_256(n)    FMA("ymm", n)
#define DIVIDE_256(n) DIVIDE("ymm", n)
#define READ_256(n)   READ("ymm", 32, n)
#define WRITE_256(n)  WRITE("ymm", 32, n)
#define VEX_VNNI(n)   "%{vex%} vpdpbusd %%ymm15, %%ymm14, %%ymm" #n "\n"
#define EVEX_VNNI(n)  "%{evex%} vpdpbusd %%ymm15, %%ymm14, %%ymm" #n "\n"
LOOP(multiply_256, "ymm", TWELVE(FMA_256))
LOOP(divide_256, "ymm", TWELVE(DIVIDE_256))
LOOP(read_256, "ymm", TWELVE(READ_256))
LOOP(write_256, "ymm", TWELVE(WRITE_256))
LOOP(int8_256_vex, "ymm", TWELVE(VEX_VNNI))
LOOP(int8_256_evex, "ymm", TWELVE(EVEX_VNNI))

// Without VNNI three instructions multiply and add 32 bytes; n accumulates, t is scratch.
#define MADD(n, t)                                                                                                     \
    "vpmaddubsw %%ymm15, %%ymm14, %%ymm" #t "\n"                                                                       \
    "vpmaddwd %%ymm" #t ", %%ymm13, %%ymm" #t "\n"                                                                     \
    "vpaddd %%ymm" #t ", %%ymm" #n ", %%ymm" #n "\n"
LOOP(int8_256_madd, "ymm", MADD(0, 6) MADD(1, 7) MADD(2, 8) MADD(3, 9) MADD(4, 10) MADD(5, 11))

static bool has_avx512(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni");
}
static bool has_avx_vnni(void) {
    enum { EAX_AVX_VNNI = 1 << 4 };
    unsigned a, b, c, d;
    return __builtin_cpu_supports("avx2") && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & EAX_AVX_VNNI);
}
static bool has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

#define FLOATS_256                                                                                                     \
    [PEAK_MULTIPLY] = {multiply_256, 12 * 8 * 2}, [PEAK_DIVIDE] = {divide_256, 12 * 8},                                \
    [PEAK_READ] = {read_256, 12 * 32}, [PEAK_WRITE] = {write_256, 12 * 32}

static const struct {
    bool (*runs)(void);
    struct peak_loops set;
} sets[] = {
    // best first; 256-bit VNNI in the encoding that the processor has
    {has_avx512,
     {"avx512",
      "AVX-512 VNNI",
      {[PEAK_INT8] = {int8_512_vnni, 12 * 64 * 2},
       [PEAK_MULTIPLY] = {multiply_512, 12 * 16 * 2},
       [PEAK_DIVIDE] = {divide_512, 12 * 16},
       [PEAK_READ] = {read_512, 12 * 64},
       [PEAK_WRITE] = {write_512, 12 * 64}}}},
    {has_avx_vnni, {"avxvnni", "AVX-VNNI", {[PEAK_INT8] = {int8_256_vex, 12 * 32 * 2}, FLOATS_256}}},
    {has_avx512, {"avxvnni", "AVX-VNNI", {[PEAK_INT8] = {int8_256_evex, 12 * 32 * 2}, FLOATS_256}}},
    {has_avx2, {"avx2", "AVX2", {[PEAK_INT8] = {int8_256_madd, 6 * 32 * 2}, FLOATS_256}}},
};

const struct peak_loops *peak_loops_find(const char *cpu) {
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        if ((!cpu || !strcmp(cpu, sets[i].set.cpu)) && sets[i].runs()) return &sets[i].set;
    return NULL;
}

#else

const struct peak_loops *peak_loops_find(const char *cpu) { return (void)cpu, NULL; }

#endif

double peak_loops_run(const struct peak_loops *set, enum peak peak) {
    enum { TURNS = 500000 };
    alignas(64) uint8_t memory[PEAK_LOOP_BYTES] = {0};
    set->loops[peak].run(TURNS, memory);
    return TURNS * set->loops[peak].work;
}
