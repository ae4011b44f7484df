// Vulkan context: an open device with one queue, its memory, its compute pipelines, and commands for it.
//
// Shaders reach all memory by device addresses that are handed over as push constants, so there are no descriptors: a
// command is a pipeline, at most VULKAN_PUSH_BYTES of constants, and a number of work groups.
#ifndef CONFAB_VULKAN_CONTEXT_H
#define CONFAB_VULKAN_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/vulkan/functions.h"

enum { VULKAN_PUSH_BYTES = 128, VULKAN_MOST_CONSTANTS = 8, VULKAN_MOST_PIPELINES = 256 };

enum vulkan_memory {
    VULKAN_MEMORY_DEVICE,   // the device's own
    VULKAN_MEMORY_UPLOAD,   // mapped; the host writes, the device reads
    VULKAN_MEMORY_READBACK, // mapped; the device writes, the host reads
};

struct vulkan_buffer {
    VkBuffer buffer;
    VkDeviceMemory memory;
    VkDeviceAddress address;
    void *mapped; // or NULL
    uint64_t size;
};

struct vulkan_pipeline { // a shader with its specialisation constants
    const char *shader;
    uint32_t constants[VULKAN_MOST_CONSTANTS];
    int n_constants;
    VkPipeline handle;
};

struct vulkan_context {
    struct vulkan_device_functions call;
    VkPhysicalDevice physical;
    VkDevice device;
    VkQueue queue;
    VkPhysicalDeviceMemoryProperties memory;
    VkDeviceSize largest_allocation;
    VkPipelineLayout layout;
    VkCommandPool pool;
    VkCommandBuffer commands; // the one that is being recorded
    VkFence fence;
    struct vulkan_pipeline pipelines[VULKAN_MOST_PIPELINES];
    int n_pipelines;
};

// The devices that can compute, by the loader's order, CPUs last; at most `most`. Returns how many.
int vulkan_physical_devices(VkPhysicalDevice *out, int most);

bool vulkan_open(struct vulkan_context *c, VkPhysicalDevice physical, struct status *st);
void vulkan_close(struct vulkan_context *c); // also a partly opened one, or a zeroed one

bool vulkan_buffer_open(struct vulkan_context *c, struct vulkan_buffer *b, uint64_t size, enum vulkan_memory kind,
                        const char *what, struct status *st);
void vulkan_buffer_close(struct vulkan_context *c, struct vulkan_buffer *b);

// Built when it is first asked for; NULL with a status where that fails. `shader` is a name of shaders/.
VkPipeline vulkan_pipeline(struct vulkan_context *c, const char *shader, const uint32_t *constants, int n,
                           struct status *st);

// ---- commands: begin, any of the others, then run ----

bool vulkan_begin(struct vulkan_context *c, struct status *st);
void vulkan_dispatch(struct vulkan_context *c, VkPipeline pipeline, const void *push, size_t size, uint32_t x,
                     uint32_t y, uint32_t z);
void vulkan_copy(struct vulkan_context *c, const struct vulkan_buffer *from, uint64_t from_offset,
                 const struct vulkan_buffer *to, uint64_t to_offset, uint64_t size);
// Zeros.
void vulkan_fill(struct vulkan_context *c, const struct vulkan_buffer *b);
void vulkan_barrier(struct vulkan_context *c); // what follows sees what commands before it have written
// Submits the commands and waits for them; false where the device fails.
bool vulkan_run(struct vulkan_context *c, struct status *st);

// Names what failed.
bool vulkan_fail(struct status *st, VkResult result, const char *what);

#endif
