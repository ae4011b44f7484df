#include "engine/vulkan/device.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/vulkan/cooperative.h"

bool vulkan_fail(struct vulkan_device *d, struct status *st, VkResult result, const char *what) {
    const bool memory = result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY;
    if (result == VK_ERROR_DEVICE_LOST) atomic_store(&d->lost, true);
    return status_fail(st, memory ? STATUS_MEMORY : STATUS_DEVICE, "Vulkan: %s: %s", what, vulkan_result_name(result));
}

// ---- devices ----

VkPhysicalDeviceType vulkan_type(VkPhysicalDevice physical) {
    VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    vulkan_instance(NULL)->call.GetPhysicalDeviceProperties2(physical, &properties);
    return properties.properties.deviceType;
}

bool vulkan_shares_memory(VkPhysicalDevice physical) {
    const VkPhysicalDeviceType type = vulkan_type(physical);
    return type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU || type == VK_PHYSICAL_DEVICE_TYPE_CPU;
}

bool vulkan_has_extension(VkPhysicalDevice physical, const char *name) {
    enum { MOST = 512 };
    uint32_t n = MOST;
    VkExtensionProperties *all = xcalloc(MOST, sizeof *all);
    bool found = false;
    if (vulkan_instance(NULL)->call.EnumerateDeviceExtensionProperties(physical, NULL, &n, all) == VK_SUCCESS)
        for (uint32_t i = 0; i < n && !found; i++) found = !strcmp(all[i].extensionName, name);
    free(all);
    return found;
}

int vulkan_physical_devices(VkPhysicalDevice *out, int most) {
    enum { ALL = 32 };
    VkPhysicalDevice all[ALL];
    uint32_t n = ALL;
    const struct vulkan_instance *instance = vulkan_instance(NULL);
    if (!instance) return 0;
    const VkResult result = instance->call.EnumeratePhysicalDevices(instance->handle, &n, all);
    if (result != VK_SUCCESS && result != VK_INCOMPLETE) return 0;
    int count = 0;
    for (int processors = 0; processors < 2; processors++)
        for (uint32_t i = 0; i < n && count < most; i++)
            if ((vulkan_type(all[i]) == VK_PHYSICAL_DEVICE_TYPE_CPU) == processors) out[count++] = all[i];
    return count;
}

// ---- opening ----

struct features {
    VkPhysicalDeviceFeatures2 core;
    VkPhysicalDeviceVulkan11Features v11;
    VkPhysicalDeviceVulkan12Features v12;
    VkPhysicalDeviceShaderIntegerDotProductFeatures dot;
};

static void chain(struct features *f) {
    *f = (struct features){.core = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &f->v11},
                           .v11 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, .pNext = &f->v12},
                           .v12 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, .pNext = &f->dot},
                           .dot = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES}};
}

static const char *missing_feature(const struct features *has) {
    const struct {
        VkBool32 has;
        const char *name;
    } needed[] = {
        {has->v12.bufferDeviceAddress, "buffer device addresses"},
        {has->v12.scalarBlockLayout, "the scalar block layout"},
        {has->v12.storageBuffer8BitAccess, "8-bit storage"},
        {has->v11.storageBuffer16BitAccess, "16-bit storage"},
        {has->dot.shaderIntegerDotProduct, "integer dot products"},
    };
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!needed[i].has) return needed[i].name;
    return NULL;
}

// With the properties that follow from the queue.
static bool find_queue(struct vulkan_device *d, const struct vulkan_instance *instance,
                       const VkPhysicalDeviceLimits *limits) {
    VkQueueFamilyProperties families[16];
    uint32_t n = 16;
    instance->call.GetPhysicalDeviceQueueFamilyProperties(d->physical, &n, families);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t bits = families[i].timestampValidBits;
        if (!(families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)) continue;
        d->queue_family = i;
        d->tick_seconds = bits ? limits->timestampPeriod * 1e-9 : 0;
        d->tick_mask = bits < 64 ? (1ull << bits) - 1 : UINT64_MAX;
        return true;
    }
    return false;
}

static bool create(struct vulkan_device *d, const struct vulkan_instance *instance, struct status *st) {
    struct features wanted;
    chain(&wanted);
    wanted.v12.bufferDeviceAddress = wanted.v12.scalarBlockLayout = wanted.v12.storageBuffer8BitAccess = VK_TRUE;
    wanted.v11.storageBuffer16BitAccess = wanted.dot.shaderIntegerDotProduct = VK_TRUE;
    const char *extensions[3];
    uint32_t n_extensions = 0;
    const char *const dot = VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME; // a part of Vulkan since 1.3
    const char *const sizes = VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME;
    if (vulkan_has_extension(d->physical, dot)) extensions[n_extensions++] = dot;
    VkPhysicalDeviceSubgroupSizeControlFeaturesEXT size_control = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT, .subgroupSizeControl = VK_TRUE};
    d->sizes_subgroups = vulkan_has_extension(d->physical, sizes);
    if (d->sizes_subgroups) {
        wanted.dot.pNext = &size_control;
        extensions[n_extensions++] = sizes;
    }
    struct cooperative_features cooperative;
    const char *const matrices = cooperative_find(d, instance, &cooperative);
    if (matrices) {
        extensions[n_extensions++] = matrices;
        size_control.pNext = &cooperative;
        size_control.computeFullSubgroups = wanted.v12.shaderFloat16 = VK_TRUE;
        wanted.v12.vulkanMemoryModel = wanted.v12.vulkanMemoryModelDeviceScope = VK_TRUE;
    }
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueFamilyIndex = d->queue_family,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .pNext = &wanted.core,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queue,
                                     .enabledExtensionCount = n_extensions,
                                     .ppEnabledExtensionNames = extensions};
    const VkResult result = instance->call.CreateDevice(d->physical, &info, NULL, &d->handle);
    if (result != VK_SUCCESS) return vulkan_fail(d, st, result, "opening the device");
    vulkan_load_device(instance, d->handle, &d->call);
    d->call.GetDeviceQueue(d->handle, d->queue_family, 0, &d->queue);
    if (vulkan_open_pipelines(d, st)) return true;
    vulkan_close_pipelines(d);
    d->call.DestroyDevice(d->handle, NULL);
    return false;
}

static bool open_device(struct vulkan_device *d, struct status *st) {
    VkPhysicalDeviceSubgroupProperties subgroups = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
    VkPhysicalDeviceMaintenance3Properties limits = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES, .pNext = &subgroups};
    VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                              .pNext = &limits};
    VkPhysicalDeviceMemoryProperties2 memory = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
    struct features has;
    const struct vulkan_instance *instance = vulkan_instance(st);
    if (!instance) return false;
    instance->call.GetPhysicalDeviceProperties2(d->physical, &properties);
    instance->call.GetPhysicalDeviceMemoryProperties2(d->physical, &memory);
    chain(&has);
    if (properties.properties.apiVersion >= VK_API_VERSION_1_2)
        instance->call.GetPhysicalDeviceFeatures2(d->physical, &has.core);
    const char *missing = missing_feature(&has);
    if (missing)
        return status_fail(st, STATUS_UNSUPPORTED, "%s: the driver has no %s", properties.properties.deviceName,
                           missing);
    if (!find_queue(d, instance, &properties.properties.limits))
        return status_fail(st, STATUS_UNSUPPORTED, "%s cannot compute", properties.properties.deviceName);
    d->memory = memory.memoryProperties;
    d->largest_allocation = limits.maxMemoryAllocationSize;
    d->subgroup_size = subgroups.subgroupSize;
    d->shared_bytes = properties.properties.limits.maxComputeSharedMemorySize;
    const VkPhysicalDeviceType type = properties.properties.deviceType;
    d->list_operations = type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU     ? 1e12
                         : type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ? 3e10
                                                                          : 1e9;
    d->shares_memory = vulkan_shares_memory(d->physical);
    d->maps_memory = true;
    d->widened_bytes = VULKAN_WIDENED_BYTES;
    d->widening_rows = VULKAN_WIDENING_ROWS;
    return create(d, instance, st);
}

// ---- those that are open ----

static struct {
    pthread_mutex_t lock;
    struct vulkan_device *first;
} devices = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct vulkan_device *find_open(VkPhysicalDevice physical) {
    struct vulkan_device *d = devices.first;
    while (d && (d->physical != physical || atomic_load(&d->lost))) d = d->next;
    return d;
}

static struct vulkan_device *open_new(VkPhysicalDevice physical, struct status *st) {
    struct vulkan_device *d = xcalloc(1, sizeof *d);
    d->physical = physical;
    pthread_mutex_init(&d->queue_lock, NULL);
    pthread_mutex_init(&d->pipeline_lock, NULL);
    pthread_cond_init(&d->pipeline_built, NULL);
    if (!open_device(d, st)) {
        free(d);
        return NULL;
    }
    d->next = devices.first;
    return devices.first = d;
}

struct vulkan_device *vulkan_device_open(VkPhysicalDevice physical, struct status *st) {
    pthread_mutex_lock(&devices.lock);
    struct vulkan_device *d = find_open(physical);
    if (!d) d = open_new(physical, st);
    if (d) d->users++;
    pthread_mutex_unlock(&devices.lock);
    return d;
}

static void close_last(struct vulkan_device *d) {
    struct vulkan_device **at = &devices.first;
    while (*at != d) at = &(*at)->next;
    *at = d->next;
    vulkan_save_pipelines(d);
    vulkan_close_pipelines(d);
    d->call.DestroyDevice(d->handle, NULL);
    pthread_mutex_destroy(&d->queue_lock);
    pthread_mutex_destroy(&d->pipeline_lock);
    pthread_cond_destroy(&d->pipeline_built);
    free(d);
}

// One that hangs would never come back from being closed: it stays as it is.
void vulkan_device_close(struct vulkan_device *d) {
    pthread_mutex_lock(&devices.lock);
    if (!--d->users && !vulkan_is_hung(d)) close_last(d);
    pthread_mutex_unlock(&devices.lock);
}
