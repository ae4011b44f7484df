// For kernels compiled for several widths: INLINE and UNROLL expand loops over the width before register allocation, so
// that arrays of accumulators live in registers.
#ifndef CONFAB_BASE_UNROLL_H
#define CONFAB_BASE_UNROLL_H

#define INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define UNROLL _Pragma("clang loop unroll(disable)") // instrumented and unrolled, a file takes clang ten minutes
#else
#define UNROLL _Pragma("clang loop unroll(full)")
#endif
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#endif
