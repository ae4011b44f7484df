// Opening, closing and running the Vulkan backend, and its devices.
#include "engine/backend.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "engine/base/panic.h"
#include "engine/vulkan/vulkan.h"

// ---- devices ----

static VkPhysicalDevice physical_device(int index) {
    VkPhysicalDevice all[DEVICE_MOST];
    return index < vulkan_physical_devices(all, DEVICE_MOST) ? all[index] : VK_NULL_HANDLE;
}

static struct device device_of(VkPhysicalDevice physical, int index) {
    VkPhysicalDeviceDriverProperties driver = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                              .pNext = &driver};
    struct device device = {0};
    vulkan_instance(NULL)->call.GetPhysicalDeviceProperties2(physical, &properties);
    snprintf(device.name, sizeof device.name, "vulkan%d", index);
    snprintf(device.description, sizeof device.description, "%.80s, %.40s", properties.properties.deviceName,
             driver.driverInfo);
    device.emulated = properties.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    return device;
}

static int vulkan_devices(struct device *out, int most) {
    VkPhysicalDevice all[DEVICE_MOST];
    const int n = vulkan_physical_devices(all, most < DEVICE_MOST ? most : DEVICE_MOST);
    for (int i = 0; i < n; i++) out[i] = device_of(all[i], i);
    return n;
}

// At least 1: 0 means that it is not known.
static uint64_t free_bytes(VkDeviceSize budget, VkDeviceSize usage) { return budget > usage ? budget - usage : 1; }

static void vulkan_heaps(int device, struct device *out) {
    const VkPhysicalDevice physical = physical_device(device);
    if (!physical) return;
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    const bool told = vulkan_has_extension(physical, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    VkPhysicalDeviceMemoryProperties2 memory = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2,
                                                .pNext = told ? &budget : NULL};
    vulkan_instance(NULL)->call.GetPhysicalDeviceMemoryProperties2(physical, &memory);
    const VkPhysicalDeviceMemoryProperties *m = &memory.memoryProperties;
    const bool shared = vulkan_shares_memory(physical);
    const int most = (int)(sizeof out->heaps / sizeof *out->heaps);
    uint64_t largest = 0;
    for (int i = 0; i < (int)m->memoryHeapCount && i < most; i++) {
        const bool own = m->memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT;
        struct memory_heap *heap = &out->heaps[out->n_heaps++];
        *heap = (struct memory_heap){.bytes = m->memoryHeaps[i].size};
        if (told) heap->free = free_bytes(budget.heapBudget[i], budget.heapUsage[i]);
        snprintf(heap->name, sizeof heap->name, "%s", own ? "device" : "host");
        if (!own || shared || heap->bytes <= largest) continue;
        largest = heap->bytes;
        out->own_free = told ? heap->free : heap->bytes;
    }
}

static bool no_device(int index, struct status *st) {
    return status_fail(st, STATUS_DEVICE, "there is no device vulkan%d", index);
}

static bool device_limits_of(int device, struct device_limits *out, struct status *st) {
    const VkPhysicalDevice physical = physical_device(device);
    return physical ? vulkan_limits(physical, out, st) : no_device(device, st);
}

// ---- opening and closing ----

static void close_vulkan(struct backend *b) {
    if (!b) return;
    if (b->context.device) {
        pipelines_finish(b);
        passes_close(b);
        for (int i = 0; i < b->weights.n_chunks; i++) vulkan_buffer_close(b->context.device, &b->weights.chunks[i]);
        workspace_close(b);
        pages_close(b);
    }
    vulkan_context_close(&b->context);
    thread_pool_close(b->pool);
    arena_free(&b->arena);
    free(b);
}

// All that is known without a device.
static struct backend *prepare(const struct backend_params *params, struct status *st) {
    struct backend *b = xcalloc(1, sizeof *b);
    b->model = params->model;
    b->spec = &params->model->spec;
    b->first_layer = params->first_layer;
    b->end_layer = params->end_layer ? params->end_layer : b->spec->n_layer;
    b->n_pages = params->n_pages;
    b->max_rows = params->max_rows;
    b->max_logits = params->max_logits;
    b->max_hidden = params->max_hidden;
    b->asked_context = params->asked_context ? params->asked_context : b->spec->n_context;
    b->kv_type = params->options.kv_type;
    rope_tables_open(&b->weights.rope, b->model, b->first_layer, b->end_layer, b->asked_context, &b->arena);
    if (weights_place(b, st)) return b;
    close_vulkan(b);
    return NULL;
}

static uint64_t page_bytes(const struct backend *b) {
    uint64_t bytes = 0;
    for (int i = b->first_layer; i < b->end_layer; i++) bytes += layer_page_bytes(b, i);
    return bytes;
}

static void describe(struct backend *b, const struct device *device) {
    static const char *const layouts[KV_TYPES] = {"f16", "bf16", "q8_0", "q4_0"};
    b->info = (struct backend_info){.n_threads = 1, .page_bytes = page_bytes(b)};
    snprintf(b->info.description, sizeof b->info.description, "Vulkan, %.50s", device->description);
    snprintf(b->info.page_layout, sizeof b->info.page_layout, "vulkan %s", layouts[b->kv_type]);
}

static bool open_on(struct backend *b, const struct backend_params *params, struct status *st) {
    const VkPhysicalDevice physical = physical_device(params->device);
    if (!physical) return no_device(params->device, st);
    const struct device device = device_of(physical, params->device);
    describe(b, &device);
    const int n_threads = params->n_threads > 0 ? params->n_threads : thread_pool_default_size();
    if (!(b->pool = thread_pool_open(n_threads, st))) return false;
    b->info.n_workers = n_threads;
    const double begun = clock_seconds();
    if (!vulkan_context_open(&b->context, physical, st)) return false;
    const double opened = clock_seconds();
    workspace_bytes(b); // sizes that pipelines depend on
    pipelines_start(b);
    if (!pages_open(b, st)) return false;
    const double paged = clock_seconds();
    if (!weights_upload(b, &params->options, st) || !workspace_open(b, st)) return false;
    log_info("vulkan", "%s: opened in %.2f s, KV cache in %.2f s, weights and buffers in %.2f s", device.name,
             opened - begun, paged - opened, clock_seconds() - paged);
    return true;
}

static struct backend *vulkan_backend_open(const struct backend_params *params, struct status *st) {
    if (params->options.exact) {
        status_fail(st, STATUS_USAGE, "the exact path is computed on the device cpu only");
        return NULL;
    }
    enum { MOST_HEAD_SIZE = 512 }; // shaders/attention.comp has a thread for two dimensions
    const int head_size = params->model->spec.head_size;
    if (head_size > MOST_HEAD_SIZE) {
        status_fail(st, STATUS_UNSUPPORTED, "Vulkan: heads of %d dimensions, at most %d are possible", head_size,
                    MOST_HEAD_SIZE);
        return NULL;
    }
    struct backend *b = prepare(params, st);
    if (!b || open_on(b, params, st)) return b;
    close_vulkan(b);
    return NULL;
}

static bool vulkan_measure(const struct backend_params *params, struct backend_memory *out, struct status *st) {
    struct backend *b = prepare(params, st);
    if (!b) return false;
    *out = (struct backend_memory){
        .weights = b->weights.bytes, .buffers = workspace_bytes(b), .kv = page_bytes(b) * (uint64_t)b->n_pages};
    close_vulkan(b);
    return true;
}

static bool no_repack(struct backend *b) {
    (void)b;
    return false;
}

// ---- runs ----

static bool vulkan_run_batch(struct backend *b, const struct batch *batch, struct backend_result *out,
                             struct status *st) {
    assert(batch->n_rows >= 0 && batch->n_rows <= b->max_rows);
    *out = (struct backend_result){0};
    if (!pages_transfer(b, batch, st)) return false;
    return vulkan_forward(b, batch, out, st);
}

static void vulkan_for_each(struct backend *b, int n, void (*item)(void *context, int i, int worker), void *context) {
    thread_pool_for_each(b->pool, n, item, context);
}

static const struct backend_info *vulkan_info(const struct backend *b) { return &b->info; }

const struct backend_ops vulkan_backend = {
    .name = "vulkan",
    .devices = vulkan_devices,
    .heaps = vulkan_heaps,
    .limits = device_limits_of,
    .measure = vulkan_measure,
    .open = vulkan_backend_open,
    .close = close_vulkan,
    .repack = no_repack,
    .run = vulkan_run_batch,
    .for_each = vulkan_for_each,
    .info = vulkan_info,
};
