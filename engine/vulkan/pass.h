// A pass in the making, between pass.c, which has its rows, its commands and their runs, and forward.c and matmuls.c,
// which say what is computed.
#ifndef CONFAB_VULKAN_PASS_H
#define CONFAB_VULKAN_PASS_H

#include "engine/vulkan/vulkan.h"

struct pass {
    struct backend *b;
    const struct batch *batch;
    struct status *st;
    bool ok;
    struct pass_shape shape;
    struct recorded_pass *record; // what is recorded; NULL: pipelines are only listed
    struct pipeline_list *list;
    struct stage_work work; // recorded since the last stage ended
    double list_operations; // recorded since the list began
    // What is in the workspace until the next barrier: the rows whose halves are there, or 0, and the bytes of widened
    // matrices that are read.
    VkDeviceAddress halved;
    uint64_t widened_begin, widened_end;
};

// forward.c: all stages, by the functions below.
void pass_stages(struct pass *p);

// pass.c: do nothing once something has failed, or no work groups are asked for.
void pass_run(struct pass *p, const char *shader, const uint32_t *constants, int n, const void *push, size_t size,
              uint32_t x, uint32_t y, uint32_t z);
#define RUN(p, shader, push, x, y, z, ...)                                                                             \
    pass_run(p, shader, (const uint32_t[]){__VA_ARGS__}, sizeof(uint32_t[]){__VA_ARGS__} / sizeof(uint32_t), &(push),  \
             sizeof(push), x, y, z)
void pass_barrier(struct pass *p); // what follows sees what was written before
void pass_end_stage(struct pass *p, enum backend_stage stage);

// Of work groups, each of which has so many of n.
static inline uint32_t groups(uint32_t n, uint32_t each) { return (n + each - 1) / each; }

#endif
