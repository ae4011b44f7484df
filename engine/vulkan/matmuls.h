// Matrices times rows of activations, in the stages of a pass: by which shader and in what pieces, and what has to be
// written before. A few rows are multiplied as they are (matvec.comp, gated.comp), many in tiles (matmul.comp), on
// devices with cooperative matrices of halves (cooperative.comp).
#ifndef CONFAB_VULKAN_MATMULS_H
#define CONFAB_VULKAN_MATMULS_H

#include "engine/vulkan/pass.h"

struct rows { // of activations
    VkDeviceAddress address;
    uint32_t stride, n;
    VkDeviceAddress codes; // the same quantised; or 0
};

struct matmul {
    const struct device_matrix *matrix;
    const struct rows *from, *to; // to->n rows
    VkDeviceAddress bias;         // or 0
    float scale, softcap;
    bool add;
    VkDeviceAddress choices; // of the experts whose matrices these are, one for each row of `to`; or 0
    int share;               // rows of `to` for each of `from`; 0: one
};
// Several products of the same rows. What they write is there behind the next barrier.
void matmuls_run(struct pass *p, const struct matmul *all, int n);

// The first half of a feed-forward network: activation(gate · in) · (up · in), or without a gate activation(up · in),
// into `middle`.
struct gated {
    const struct device_matrix *gate, *up;
    VkDeviceAddress gate_bias, up_bias;
    const struct rows *in, *middle;
    VkDeviceAddress scratch; // like middle
    VkDeviceAddress choices; // as of struct matmul
    int share;
};
void matmuls_gated(struct pass *p, const struct gated *g); // with a barrier behind it

// Brings rows in the order of their experts, before the products with these where they are multiplied in tiles.
// `slots`: their rows of `to`.
void matmuls_group(struct pass *p, uint32_t slots);

#endif
