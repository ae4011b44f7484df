// Vulkan device: opened once for all backends of the program that compute on it, with its memory and its compute
// pipelines, which are kept in a file between runs of the program.
//
// Shaders reach all memory by device addresses that are handed over as push constants, so there are no descriptors.
#ifndef CONFAB_VULKAN_DEVICE_H
#define CONFAB_VULKAN_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/vulkan/functions.h"

enum { VULKAN_PUSH_BYTES = 128, VULKAN_MOST_CONSTANTS = 12, VULKAN_MOST_PIPELINES = 1024 };
enum { VULKAN_WIDENED_BYTES = 128 << 20, VULKAN_WIDENING_ROWS = 32 };

enum vulkan_memory {
    VULKAN_MEMORY_DEVICE,   // the device's own; mapped where that is the host's as well
    VULKAN_MEMORY_MAPPED,   // the device's own, mapped; there may be none, or little
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

// Memory that the host writes and shaders read. It is the device's own, so that no read goes over the bus: mapped, or
// with a copy.
struct vulkan_input {
    void *mapped;
    VkDeviceAddress address;
    uint64_t size;
    struct vulkan_buffer host, copy; // without a copy shaders read what the host writes
};

struct cooperative_shape { // of matrices [m, k] and [k, n]
    uint32_t m, n, k;
};

struct vulkan_pipeline { // a shader with its specialisation constants
    const char *shader;
    uint32_t constants[VULKAN_MOST_CONSTANTS];
    int n_constants;
    uint32_t subgroup_size; // 0: what the driver chooses
    VkPipeline handle;      // NULL: it is being built
};

struct vulkan_device {
    struct vulkan_device_functions call;
    VkPhysicalDevice physical;
    VkDevice handle;
    VkQueue queue;
    uint32_t queue_family;
    pthread_mutex_t queue_lock;
    VkPhysicalDeviceMemoryProperties memory;
    VkDeviceSize largest_allocation;
    uint32_t subgroup_size;
    bool sizes_subgroups;                 // pipelines can ask for another size
    uint32_t wanted_subgroup_size;        // of the pipelines that are built from now on; 0: any. For tests
    struct cooperative_shape cooperative; // zero: it has none that is of use
    uint32_t shared_bytes;                // of a work group
    uint64_t widened_bytes;               // of matrices as halves, in a workspace at most; others are for tests
    uint32_t widening_rows;               // of the batch, from which on matrices become halves; others are for tests
    bool shares_memory;                   // with the host
    bool maps_memory;                     // lets the host map its own; for tests
    double list_operations;               // about as many are handed over at a time: a fraction of a second
    double tick_seconds;                  // of timestamps; 0: it has none
    uint64_t tick_mask;
    atomic_bool lost; // or hung: whoever opens it from now on gets another one
    atomic_bool hung; // perhaps still computes: nothing of it can be closed

    VkPipelineLayout layout;
    VkPipelineCache cache;
    char *cache_path;
    pthread_mutex_t pipeline_lock;
    pthread_cond_t pipeline_built;
    struct vulkan_pipeline pipelines[VULKAN_MOST_PIPELINES];
    int n_pipelines, n_unsaved;

    int users;
    struct vulkan_device *next; // of those that are open
};

// The machine's devices in the loader's order, CPUs last; at most `most`. Returns how many.
int vulkan_physical_devices(VkPhysicalDevice *out, int most);

VkPhysicalDeviceType vulkan_type(VkPhysicalDevice physical);
// Whether its memory is the host's as well.
bool vulkan_shares_memory(VkPhysicalDevice physical);

bool vulkan_has_extension(VkPhysicalDevice physical, const char *name);

// The same for all who have it open. Any thread.
struct vulkan_device *vulkan_device_open(VkPhysicalDevice physical, struct status *st);
void vulkan_device_close(struct vulkan_device *d);
static inline bool vulkan_is_hung(const struct vulkan_device *d) { return atomic_load(&d->hung); }

bool vulkan_buffer_open(struct vulkan_device *d, struct vulkan_buffer *b, uint64_t size, enum vulkan_memory kind,
                        const char *what, struct status *st);
void vulkan_buffer_close(struct vulkan_device *d, struct vulkan_buffer *b); // also a zeroed one

bool vulkan_input_open(struct vulkan_device *d, struct vulkan_input *i, uint64_t size, const char *what,
                       struct status *st);
void vulkan_input_close(struct vulkan_device *d, struct vulkan_input *i); // also a zeroed or a partly opened one

// Built when it is first asked for; NULL with a status where that fails. `shader` is a name of shaders/. Any thread.
VkPipeline vulkan_pipeline(struct vulkan_device *d, const char *shader, const uint32_t *constants, int n,
                           struct status *st);
// Writes the pipelines that were built since the last time to the file, where there is a folder for it.
void vulkan_save_pipelines(struct vulkan_device *d);
// The device's own, while it is opened and closed.
bool vulkan_open_pipelines(struct vulkan_device *d, struct status *st);
void vulkan_close_pipelines(struct vulkan_device *d); // also partly opened ones

// Names what failed, and notes where the device is lost.
bool vulkan_fail(struct vulkan_device *d, struct status *st, VkResult result, const char *what);

#endif
