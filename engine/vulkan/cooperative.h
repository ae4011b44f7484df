// Cooperative matrices, which the threads of a subgroup multiply together: on GPUs with units for that, many times as
// fast as floats. Whether a device has those that shaders/cooperative.comp wants, and how a work group divides a tile.
#ifndef CONFAB_VULKAN_COOPERATIVE_H
#define CONFAB_VULKAN_COOPERATIVE_H

#include "engine/format/block.h"
#include "engine/vulkan/device.h"

struct cooperative_features { // VkPhysicalDeviceCooperativeMatrixFeatures of KHR and of NV
    int32_t type;
    void *next;
    VkBool32 has, robust_access;
};

// Looks for the extension that the shaders are compiled for. With it: the features to create the device with, the
// extension's name, and d's shape. NULL: it is not to be had.
const char *cooperative_find(struct vulkan_device *d, const struct vulkan_instance *instance,
                             struct cooperative_features *features);

// Whether halves hold the format's values, and d multiplies them.
bool cooperative_holds(const struct vulkan_device *d, const struct block_format *format);

// Rows of the matrix and of the batch whose results a work group computes.
struct cooperative_tile {
    uint32_t rows, columns; // powers of two: rows 32 … 128, columns 16 … 128
};

// The shader's specialisation constants, in its order.
struct cooperative_constants {
    uint32_t rows, columns, experts, down, subgroup_size, m, n, k, threads, step;
};
// Of a tile, or of a smaller one where subgroups or shared memory do not suffice for it.
struct cooperative_constants cooperative_constants(const struct vulkan_device *d, struct cooperative_tile tile,
                                                   bool experts);
uint32_t cooperative_shared_bytes(const struct cooperative_constants *c);

// Rows of halves begin so many of them apart, and end with the columns of a step.
static inline uint32_t cooperative_stride(uint32_t columns) { return (columns + 63) / 64 * 64; }

#endif
