// What a device can do at most, measured with loops that do nothing else, on a context and in memory of their own.
// Passes on the same queue wait for a sample, which takes some tens of milliseconds, and would slow it down.
#include "engine/base/clock.h"
#include "engine/vulkan/vulkan.h"

#define LEAST_SECONDS 0.008 // of a measurement, so that starting and ending it does not count

// As in shaders/limits.comp.
enum {
    THREADS = 256, // of a work group
    LOADS = 16,    // of 16 bytes, of a thread
    TURNS = 256,   // of 8 multiplies and adds
    GROUP_BYTES = THREADS * LOADS * 16,
    GROUP_OPERATIONS = THREADS * TURNS * 8 * 2, // of floats; dot products are of four bytes
};

// A loop of the shader, and what a work group does in it.
struct loop {
    uint32_t number; // its specialisation constant
    uint32_t groups; // at once
    double work;     // of a group: bytes, or operations
};
static const struct loop read_loop = {0, DEVICE_LIMITS_BYTES / GROUP_BYTES, GROUP_BYTES};
static const struct loop float_loop = {1, 1024, GROUP_OPERATIONS}, byte_loop = {2, 1024, 4.0 * GROUP_OPERATIONS};

struct meter {
    struct vulkan_context context;
    struct vulkan_list list;
    struct vulkan_buffer data;
};

static bool time_groups(struct meter *m, const struct loop *loop, VkPipeline pipeline, uint32_t groups, double *seconds,
                        struct status *st) {
    const struct {
        VkDeviceAddress data;
        float factor;
    } push = {m->data.address, 0.5f};
    const struct vulkan_list *const list = &m->list;
    if (!vulkan_begin(&m->context, &m->list, st)) return false;
    vulkan_time(&m->context);
    for (uint32_t at_once; groups; groups -= at_once) {
        at_once = groups < loop->groups ? groups : loop->groups;
        vulkan_dispatch(&m->context, pipeline, &push, sizeof push, at_once, 1, 1);
    }
    vulkan_time(&m->context);
    if (!vulkan_end(&m->context, st)) return false;
    const double start = clock_seconds();
    if (!vulkan_run(&m->context, &list, 1, st)) return false;
    if (!vulkan_seconds(&m->context, &m->list, seconds)) *seconds = clock_seconds() - start;
    return true;
}

// More and more work groups, until they take long enough: a slow device never gets as far as to read all of the data.
static bool measure_loop(struct meter *m, const struct loop *loop, double *rate, struct status *st) {
    const VkPipeline pipeline = vulkan_pipeline(m->context.device, "limits", &loop->number, 1, st);
    double seconds = 0;
    *rate = 0;
    if (!pipeline) return false;
    for (uint32_t groups = loop->groups / 64; groups <= loop->groups << 12 && seconds < LEAST_SECONDS; groups *= 4) {
        if (!time_groups(m, loop, pipeline, groups, &seconds, st)) return false;
        if (seconds > 0) *rate = groups * loop->work / seconds;
    }
    return true;
}

// Memory that nobody has written to may be none at all: so it is cleared.
static bool measure(struct meter *m, struct device_limits *out, struct status *st) {
    return vulkan_list_open(&m->context, &m->list, 2, st) &&
           vulkan_buffer_open(m->context.device, &m->data, DEVICE_LIMITS_BYTES, VULKAN_MEMORY_DEVICE,
                              "measuring the device", st) &&
           vulkan_clear(&m->context, &m->data, st) && measure_loop(m, &read_loop, &out->read_bytes, st) &&
           measure_loop(m, &float_loop, &out->float_operations, st) &&
           measure_loop(m, &byte_loop, &out->int8_operations, st);
}

bool vulkan_limits(VkPhysicalDevice physical, struct device_limits *out, struct status *st) {
    struct meter m = {0};
    if (!vulkan_context_open(&m.context, physical, st)) return false;
    const bool measured = measure(&m, out, st);
    vulkan_list_close(&m.context, &m.list);
    vulkan_buffer_close(m.context.device, &m.data);
    vulkan_context_close(&m.context);
    return measured;
}
