// The kernels of packed weights for AVX-512 with VNNI: weights are made unsigned bytes, and what that adds is taken
// off by where the sums begin. All rows of a strip are computed at once, so that h is 0 throughout.
#include "engine/cpu/packed.h"

#if defined(__x86_64__)
#include "engine/cpu/lines_avx512.h"

INLINE void nibble_dots(sums sum, const struct activation_block *a, int width, const uint8_t q[4][2][64], int h) {
    (void)h;
    UNROLL for (int g = 0; g < 8; g++) dot(sum, a, width, g, nibble_line(q, g, 0), nibble_line(q, g, 1));
}

INLINE void five_bit_dots(sums sum, const struct activation_block *a, int width, const uint8_t q[4][2][64],
                          const uint8_t high[2][64], int h) {
    (void)h;
    touch(high[0], 2);
    UNROLL for (int g = 0; g < 8; g++)
        dot(sum, a, width, g, five_bit_line(q, high, g, 0), five_bit_line(q, high, g, 1));
}

INLINE void pair_dots(sums sum, const struct activation_block *a, int width, const uint8_t q[2][2][64], int h,
                      int half) {
    (void)h;
    UNROLL for (int g = 4 * half; g < 4 * half + 4; g++) dot(sum, a, width, g, pair_line(q, g, 0), pair_line(q, g, 1));
}

INLINE void table_dots(sums sum, const struct activation_block *a, int width, const uint8_t q[4][2][64], __m512i table,
                       int h, int half) {
    (void)h;
    UNROLL for (int g = 4 * half; g < 4 * half + 4; g++)
        dot(sum, a, width, g, table_line(q, table, g, 0), table_line(q, table, g, 1));
}

INLINE void six_bit_dots(sums sum, const struct activation_block *a, int width, const uint8_t low[4][2][64],
                         const uint8_t high[2][2][64], int h, int half) {
    (void)h;
    if (half == 0) touch(high[0][0], 4);
    UNROLL for (int g = 4 * half; g < 4 * half + 4; g++)
        dot(sum, a, width, g, six_bit_line(low, high, g, 0), six_bit_line(low, high, g, 1));
}

INLINE void byte_dots(sums sum, const struct activation_block *a, int width, const uint8_t q[8][2][64], int h, int g) {
    (void)h;
    in_order();
    dot(sum, a, width, g, byte_line(q, g, 0), byte_line(q, g, 1));
}

INLINE int stride_of(const struct strip *s, const int width) {
    (void)s; // a panel is computed whole
    return width;
}

#define PACKED_ISA avx512
#include "engine/cpu/packed_kernels.h"
#endif
