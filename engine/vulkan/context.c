#include "engine/vulkan/context.h"

#include <inttypes.h>
#include <string.h>

#include "engine/vulkan/shaders.h"

bool vulkan_fail(struct status *st, VkResult result, const char *what) {
    const bool memory = result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY;
    return status_fail(st, memory ? STATUS_MEMORY : STATUS_DEVICE, "Vulkan: %s: %s", what, vulkan_result_name(result));
}

// ---- devices ----

static bool is_processor(const struct vulkan_instance *instance, VkPhysicalDevice device) {
    VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    instance->call.GetPhysicalDeviceProperties2(device, &properties);
    return properties.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
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
            if (is_processor(instance, all[i]) == processors) out[count++] = all[i];
    return count;
}

// ---- opening ----

struct features {
    VkPhysicalDeviceFeatures2 core;
    VkPhysicalDeviceVulkan11Features v11;
    VkPhysicalDeviceVulkan12Features v12;
};

static void chain(struct features *f) {
    *f = (struct features){.core = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &f->v11},
                           .v11 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, .pNext = &f->v12},
                           .v12 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES}};
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
    };
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!needed[i].has) return needed[i].name;
    return NULL;
}

static bool find_queue(const struct vulkan_instance *instance, VkPhysicalDevice physical, uint32_t *family) {
    VkQueueFamilyProperties families[16];
    uint32_t n = 16;
    instance->call.GetPhysicalDeviceQueueFamilyProperties(physical, &n, families);
    for (uint32_t i = 0; i < n; i++) {
        if (!(families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)) continue;
        *family = i;
        return true;
    }
    return false;
}

static bool open_device(struct vulkan_context *c, const struct vulkan_instance *instance, struct status *st) {
    VkPhysicalDeviceMaintenance3Properties limits = {.sType =
                                                         VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
    VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                              .pNext = &limits};
    VkPhysicalDeviceMemoryProperties2 memory = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
    struct features has, wanted;
    uint32_t family;
    instance->call.GetPhysicalDeviceProperties2(c->physical, &properties);
    instance->call.GetPhysicalDeviceMemoryProperties2(c->physical, &memory);
    chain(&has);
    chain(&wanted);
    if (properties.properties.apiVersion >= VK_API_VERSION_1_2)
        instance->call.GetPhysicalDeviceFeatures2(c->physical, &has.core);
    const char *missing = missing_feature(&has);
    if (missing)
        return status_fail(st, STATUS_UNSUPPORTED, "%s: the driver has no %s", properties.properties.deviceName,
                           missing);
    if (!find_queue(instance, c->physical, &family))
        return status_fail(st, STATUS_UNSUPPORTED, "%s cannot compute", properties.properties.deviceName);
    wanted.v12.bufferDeviceAddress = wanted.v12.scalarBlockLayout = wanted.v12.storageBuffer8BitAccess = VK_TRUE;
    wanted.v11.storageBuffer16BitAccess = VK_TRUE;
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueFamilyIndex = family,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .pNext = &wanted.core,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queue};
    const VkResult result = instance->call.CreateDevice(c->physical, &info, NULL, &c->device);
    if (result != VK_SUCCESS) {
        c->device = NULL;
        return vulkan_fail(st, result, "opening the device");
    }
    vulkan_load_device(instance, c->device, &c->call);
    c->call.GetDeviceQueue(c->device, family, 0, &c->queue);
    c->memory = memory.memoryProperties;
    c->largest_allocation = limits.maxMemoryAllocationSize;
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .queueFamilyIndex = family};
    const VkResult made = c->call.CreateCommandPool(c->device, &pool, NULL, &c->pool);
    return made == VK_SUCCESS || vulkan_fail(st, made, "making a command pool");
}

static bool open_commands(struct vulkan_context *c, struct status *st) {
    const VkCommandBufferAllocateInfo commands = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                                  .commandPool = c->pool,
                                                  .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                                  .commandBufferCount = 1};
    const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    const VkPushConstantRange push = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = VULKAN_PUSH_BYTES};
    const VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                               .pushConstantRangeCount = 1,
                                               .pPushConstantRanges = &push};
    VkResult result = c->call.AllocateCommandBuffers(c->device, &commands, &c->commands);
    if (result == VK_SUCCESS) result = c->call.CreateFence(c->device, &fence, NULL, &c->fence);
    if (result == VK_SUCCESS) result = c->call.CreatePipelineLayout(c->device, &layout, NULL, &c->layout);
    return result == VK_SUCCESS || vulkan_fail(st, result, "preparing commands");
}

bool vulkan_open(struct vulkan_context *c, VkPhysicalDevice physical, struct status *st) {
    *c = (struct vulkan_context){.physical = physical};
    const struct vulkan_instance *instance = vulkan_instance(st);
    if (instance && open_device(c, instance, st) && open_commands(c, st)) return true;
    vulkan_close(c);
    return false;
}

void vulkan_close(struct vulkan_context *c) {
    if (!c->device) return;
    c->call.DeviceWaitIdle(c->device);
    for (int i = 0; i < c->n_pipelines; i++) c->call.DestroyPipeline(c->device, c->pipelines[i].handle, NULL);
    c->call.DestroyPipelineLayout(c->device, c->layout, NULL);
    c->call.DestroyFence(c->device, c->fence, NULL);
    c->call.DestroyCommandPool(c->device, c->pool, NULL);
    c->call.DestroyDevice(c->device, NULL);
    *c = (struct vulkan_context){0};
}

// ---- memory ----

// The first type that has all of the first set of properties, or else of the second.
static int memory_type(const struct vulkan_context *c, uint32_t allowed, const VkMemoryPropertyFlags wishes[2]) {
    for (int wish = 0; wish < 2; wish++)
        for (uint32_t i = 0; i < c->memory.memoryTypeCount; i++)
            if (allowed >> i & 1 && (c->memory.memoryTypes[i].propertyFlags & wishes[wish]) == wishes[wish])
                return (int)i;
    return -1;
}

static bool bind_memory(struct vulkan_context *c, struct vulkan_buffer *b, enum vulkan_memory kind, const char *what,
                        struct status *st) {
    const VkMemoryPropertyFlags mapped = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    const VkMemoryPropertyFlags wishes[][2] = {
        [VULKAN_MEMORY_DEVICE] = {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0},
        [VULKAN_MEMORY_UPLOAD] = {mapped, mapped},
        [VULKAN_MEMORY_READBACK] = {mapped | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, mapped},
    };
    VkMemoryRequirements needs;
    c->call.GetBufferMemoryRequirements(c->device, b->buffer, &needs);
    const int type = memory_type(c, needs.memoryTypeBits, wishes[kind]);
    if (type < 0) return status_fail(st, STATUS_DEVICE, "Vulkan: no memory of the kind that %s needs", what);
    const VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                             .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    const VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                       .pNext = &flags,
                                       .allocationSize = needs.size,
                                       .memoryTypeIndex = (uint32_t)type};
    VkResult result = c->call.AllocateMemory(c->device, &info, NULL, &b->memory);
    if (result != VK_SUCCESS) b->memory = VK_NULL_HANDLE;
    if (result == VK_SUCCESS) result = c->call.BindBufferMemory(c->device, b->buffer, b->memory, 0);
    if (result == VK_SUCCESS && kind != VULKAN_MEMORY_DEVICE)
        result = c->call.MapMemory(c->device, b->memory, 0, VK_WHOLE_SIZE, 0, &b->mapped);
    if (result != VK_SUCCESS) return vulkan_fail(st, result, what);
    const VkBufferDeviceAddressInfo address = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                               .buffer = b->buffer};
    b->address = c->call.GetBufferDeviceAddress(c->device, &address);
    return true;
}

bool vulkan_buffer_open(struct vulkan_context *c, struct vulkan_buffer *b, uint64_t size, enum vulkan_memory kind,
                        const char *what, struct status *st) {
    *b = (struct vulkan_buffer){.size = size ? size : 4};
    if (b->size > c->largest_allocation)
        return status_fail(st, STATUS_LIMIT, "Vulkan: %s: %" PRIu64 " bytes, the driver gives at most %" PRIu64, what,
                           b->size, (uint64_t)c->largest_allocation);
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .size = b->size,
                                     .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                              VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                                              VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT};
    const VkResult result = c->call.CreateBuffer(c->device, &info, NULL, &b->buffer);
    if (result != VK_SUCCESS) {
        *b = (struct vulkan_buffer){0};
        return vulkan_fail(st, result, what);
    }
    if (bind_memory(c, b, kind, what, st)) return true;
    vulkan_buffer_close(c, b);
    return false;
}

void vulkan_buffer_close(struct vulkan_context *c, struct vulkan_buffer *b) {
    if (!b->buffer) return;
    c->call.DestroyBuffer(c->device, b->buffer, NULL);
    c->call.FreeMemory(c->device, b->memory, NULL);
    *b = (struct vulkan_buffer){0};
}

// ---- pipelines ----

static VkResult build_pipeline(struct vulkan_context *c, struct vulkan_pipeline *p, const struct shader *shader) {
    VkSpecializationMapEntry entries[VULKAN_MOST_CONSTANTS];
    for (uint32_t i = 0; i < (uint32_t)p->n_constants; i++)
        entries[i] = (VkSpecializationMapEntry){.constantID = i, .offset = 4 * i, .size = 4};
    const VkSpecializationInfo constants = {.mapEntryCount = (uint32_t)p->n_constants,
                                            .pMapEntries = entries,
                                            .dataSize = sizeof p->constants,
                                            .pData = p->constants};
    const VkShaderModuleCreateInfo code = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                           .codeSize = (size_t)((const char *)shader->end - (const char *)shader->code),
                                           .pCode = shader->code};
    VkShaderModule module;
    VkResult result = c->call.CreateShaderModule(c->device, &code, NULL, &module);
    if (result != VK_SUCCESS) return result;
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "main",
                  .pSpecializationInfo = &constants},
        .layout = c->layout,
    };
    result = c->call.CreateComputePipelines(c->device, VK_NULL_HANDLE, 1, &info, NULL, &p->handle);
    c->call.DestroyShaderModule(c->device, module, NULL);
    return result;
}

VkPipeline vulkan_pipeline(struct vulkan_context *c, const char *shader, const uint32_t *constants, int n,
                           struct status *st) {
    struct vulkan_pipeline wanted = {.shader = shader, .n_constants = n};
    memcpy(wanted.constants, constants, (size_t)n * sizeof *constants);
    for (int i = 0; i < c->n_pipelines; i++) {
        const struct vulkan_pipeline *p = &c->pipelines[i];
        if (!strcmp(p->shader, shader) && !memcmp(p->constants, wanted.constants, sizeof wanted.constants))
            return p->handle;
    }
    const struct shader *found = shader_find(shader);
    if (!found || c->n_pipelines == VULKAN_MOST_PIPELINES) {
        status_fail(st, STATUS_UNSUPPORTED, "Vulkan: no shader '%s'", shader);
        return VK_NULL_HANDLE;
    }
    wanted.shader = found->name;
    const VkResult result = build_pipeline(c, &wanted, found);
    if (result != VK_SUCCESS) {
        vulkan_fail(st, result, shader);
        return VK_NULL_HANDLE;
    }
    c->pipelines[c->n_pipelines++] = wanted;
    return wanted.handle;
}

// ---- commands ----

bool vulkan_begin(struct vulkan_context *c, struct status *st) {
    const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                           .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    VkResult result = c->call.ResetCommandPool(c->device, c->pool, 0);
    if (result == VK_SUCCESS) result = c->call.BeginCommandBuffer(c->commands, &info);
    return result == VK_SUCCESS || vulkan_fail(st, result, "recording commands");
}

void vulkan_dispatch(struct vulkan_context *c, VkPipeline pipeline, const void *push, size_t size, uint32_t x,
                     uint32_t y, uint32_t z) {
    c->call.CmdBindPipeline(c->commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    c->call.CmdPushConstants(c->commands, c->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, (uint32_t)size, push);
    c->call.CmdDispatch(c->commands, x, y, z);
}

void vulkan_copy(struct vulkan_context *c, const struct vulkan_buffer *from, uint64_t from_offset,
                 const struct vulkan_buffer *to, uint64_t to_offset, uint64_t size) {
    const VkBufferCopy region = {from_offset, to_offset, size};
    c->call.CmdCopyBuffer(c->commands, from->buffer, to->buffer, 1, &region);
}

void vulkan_fill(struct vulkan_context *c, const struct vulkan_buffer *b) {
    c->call.CmdFillBuffer(c->commands, b->buffer, 0, VK_WHOLE_SIZE, 0);
}

void vulkan_barrier(struct vulkan_context *c) {
    const VkPipelineStageFlags stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    const VkMemoryBarrier all = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                 .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
                                 .dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                                                  VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT};
    c->call.CmdPipelineBarrier(c->commands, stages, stages, 0, 1, &all, 0, NULL, 0, NULL);
}

// What the host reads afterwards is there.
static void host_barrier(struct vulkan_context *c) {
    const VkMemoryBarrier all = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                 .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
                                 .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
    c->call.CmdPipelineBarrier(c->commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                               VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &all, 0, NULL, 0, NULL);
}

bool vulkan_run(struct vulkan_context *c, struct status *st) {
    const uint64_t patience = 60000000000; // ns
    host_barrier(c);
    VkResult result = c->call.EndCommandBuffer(c->commands);
    if (result == VK_SUCCESS) result = c->call.ResetFences(c->device, 1, &c->fence);
    const VkSubmitInfo submit = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &c->commands};
    if (result == VK_SUCCESS) result = c->call.QueueSubmit(c->queue, 1, &submit, c->fence);
    if (result == VK_SUCCESS) result = c->call.WaitForFences(c->device, 1, &c->fence, VK_TRUE, patience);
    return result == VK_SUCCESS || vulkan_fail(st, result, "running commands");
}
