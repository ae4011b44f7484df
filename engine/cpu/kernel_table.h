// Kernel table: the value of a struct cpu_kernels in a file that has all kernels under the names below.
#ifndef CONFAB_CPU_KERNEL_TABLE_H
#define CONFAB_CPU_KERNEL_TABLE_H

#include "engine/cpu/packed.h"

// STRIP(format, packed block): the member of .strip for a format of packed blocks. Further members may follow.
#define KERNEL_TABLE(title, STRIP, ...)                                                                                \
    {                                                                                                                  \
        .name = title,                                                                                                 \
        .strip = {[BLOCK_F32] = strip_f32,                                                                             \
                  [BLOCK_F16] = strip_f16,                                                                             \
                  [BLOCK_BF16] = strip_bf16,                                                                           \
                  PACKED_FORMATS(STRIP)},                                                                              \
        .norm = {[NORM_RMS] = rms_norm, [NORM_LAYER] = layer_norm},                                                    \
        .quantize = quantize,                                                                                          \
        .activate = {[ACTIVATION_SILU] = silu, [ACTIVATION_GELU] = gelu, [ACTIVATION_SILU_CLAMPED] = silu_clamped},    \
        .softcap = softcap,                                                                                            \
        .accumulate = accumulate,                                                                                      \
        .to_half = {[KV_F16] = to_f16, [KV_BF16] = to_bf16},                                                           \
        .half_scores = {[KV_F16] = f16_scores, [KV_BF16] = bf16_scores},                                               \
        .weigh = {[KV_F16] = f16_weigh, [KV_BF16] = bf16_weigh, [KV_Q8_0] = q8_0_weigh, [KV_Q4_0] = q4_0_weigh},       \
        .softmax = softmax,                                                                                            \
        .softmax_merge = softmax_merge,                                                                                \
        .scale = scale,                                                                                                \
        __VA_ARGS__                                                                                                    \
    }

#endif
