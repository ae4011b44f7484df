// For kernels that are compiled once for every width: inlined into each, their loops over the width unrolled before
// registers are given out, so that arrays of accumulators are registers.
#ifndef CONFAB_BASE_UNROLL_H
#define CONFAB_BASE_UNROLL_H

#define INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define UNROLL _Pragma("clang loop unroll(disable)") // checked at every access, unrolled ones take clang ten minutes a file
#else
#define UNROLL _Pragma("clang loop unroll(full)")
#endif
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#endif
