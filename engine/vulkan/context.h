// Vulkan context: commands for a device, of one thread. A command is a pipeline, at most VULKAN_PUSH_BYTES of
// constants, and a number of work groups; or a copy.
//
// Commands are recorded into a list, which runs as often as it is wanted, until it is recorded anew.
#ifndef CONFAB_VULKAN_CONTEXT_H
#define CONFAB_VULKAN_CONTEXT_H

#include "engine/vulkan/device.h"

struct vulkan_list { // of commands
    VkCommandBuffer commands;
    VkQueryPool times; // or NULL
    int most_times, n_times;
};

struct vulkan_context {
    struct vulkan_device *device;
    VkCommandPool pool;
    VkFence fence;
    bool submitted; // and not waited for
    struct vulkan_list *recording;
    struct vulkan_list once; // for what runs a single time
};

bool vulkan_context_open(struct vulkan_context *c, VkPhysicalDevice physical, struct status *st);
// Waits for what was handed over. Also a partly opened one, or a zeroed one. Its lists are closed before.
void vulkan_context_close(struct vulkan_context *c);

// With room for so many times; 0: none are taken.
bool vulkan_list_open(struct vulkan_context *c, struct vulkan_list *l, int most_times, struct status *st);
void vulkan_list_close(struct vulkan_context *c, struct vulkan_list *l); // also a zeroed one

// ---- recording: begin, any of the others, end ----

bool vulkan_begin(struct vulkan_context *c, struct vulkan_list *l, struct status *st);
void vulkan_dispatch(struct vulkan_context *c, VkPipeline pipeline, const void *push, size_t size, uint32_t x,
                     uint32_t y, uint32_t z);
void vulkan_copy(struct vulkan_context *c, const struct vulkan_buffer *from, uint64_t from_offset,
                 const struct vulkan_buffer *to, uint64_t to_offset, uint64_t size);
void vulkan_copy_input(struct vulkan_context *c, const struct vulkan_input *i, uint64_t offset,
                       uint64_t size);                // where shaders read a copy
void vulkan_barrier(struct vulkan_context *c);        // dispatches that follow see what those before it have written
void vulkan_barrier_copies(struct vulkan_context *c); // the same for copies too
void vulkan_time(struct vulkan_context *c);           // notes when all before it is done
bool vulkan_end(struct vulkan_context *c, struct status *st);

// Hands lists over, which run one after the other. Before the next are, or any of them is recorded anew: wait.
bool vulkan_submit(struct vulkan_context *c, const struct vulkan_list *const *lists, int n, struct status *st);
bool vulkan_wait(struct vulkan_context *c, struct status *st); // for what was handed over, if anything
// Both; false where the device fails.
bool vulkan_run(struct vulkan_context *c, const struct vulkan_list *const *lists, int n, struct status *st);
bool vulkan_run_once(struct vulkan_context *c, struct status *st); // ends c->once and runs it
// Writes zeros to all of a buffer, by c->once.
bool vulkan_clear(struct vulkan_context *c, const struct vulkan_buffer *b, struct status *st);
// Seconds between the times that a list took in its last run: n_times - 1; false where there are none.
bool vulkan_seconds(struct vulkan_context *c, const struct vulkan_list *l, double *out);

#endif
