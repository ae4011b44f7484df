// Pipelines of a device, and the file that keeps what the driver made of them.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/log.h"
#include "engine/base/output_file.h"
#include "engine/base/panic.h"
#include "engine/base/paths.h"
#include "engine/base/reader.h"
#include "engine/vulkan/device.h"
#include "engine/vulkan/shaders.h"

// ---- the file ----

// A driver trusts what it is given: so the data come behind a checksum, and the device and driver are the file's name.
enum { MOST_CACHE_BYTES = 256 << 20 };

static uint64_t checksum(const unsigned char *data, size_t size) { // FNV-1a
    uint64_t sum = 0xcbf29ce484222325;
    for (size_t i = 0; i < size; i++) sum = (sum ^ data[i]) * 0x100000001b3;
    return sum;
}

static char *cache_path(VkPhysicalDevice physical) {
    VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    vulkan_instance(NULL)->call.GetPhysicalDeviceProperties2(physical, &properties);
    const VkPhysicalDeviceProperties *p = &properties.properties;
    char name[96], uuid[2 * VK_UUID_SIZE + 1];
    for (size_t i = 0; i < VK_UUID_SIZE; i++) snprintf(uuid + 2 * i, 3, "%02x", p->pipelineCacheUUID[i]);
    snprintf(name, sizeof name, "vulkan/%x-%x-%x-%s.pipelines", p->vendorID, p->deviceID, p->driverVersion, uuid);
    return path_cache(name);
}

// The data of the file, without the checksum; NULL where there are none that can be trusted. The caller frees *file.
static const void *read_cache(const char *path, char **file, size_t *size) {
    struct status st;
    *file = path ? file_read_regular(path, MOST_CACHE_BYTES, size, &st) : NULL;
    if (!*file) return NULL;
    struct reader r = reader_over(*file, *size);
    const uint64_t sum = reader_u64(&r);
    *size = reader_left(&r);
    const struct span data = reader_bytes(&r, *size);
    if (!reader_failed(&r) && checksum((const unsigned char *)data.data, *size) == sum) return data.data;
    log_warning("vulkan", "%s is damaged: pipelines are built afresh", path);
    return NULL;
}

bool vulkan_open_pipelines(struct vulkan_device *d, struct status *st) {
    const VkPushConstantRange push = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = VULKAN_PUSH_BYTES};
    const VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                               .pushConstantRangeCount = 1,
                                               .pPushConstantRanges = &push};
    size_t size = 0;
    char *file;
    d->cache_path = cache_path(d->physical);
    const void *data = read_cache(d->cache_path, &file, &size);
    const VkPipelineCacheCreateInfo cache = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                             .initialDataSize = data ? size : 0,
                                             .pInitialData = data};
    VkResult result = d->call.CreatePipelineCache(d->handle, &cache, NULL, &d->cache);
    free(file);
    if (result != VK_SUCCESS) d->cache = VK_NULL_HANDLE; // each run builds its pipelines, then
    result = d->call.CreatePipelineLayout(d->handle, &layout, NULL, &d->layout);
    if (result == VK_SUCCESS) return true;
    d->layout = VK_NULL_HANDLE;
    return vulkan_fail(d, st, result, "preparing pipelines");
}

void vulkan_close_pipelines(struct vulkan_device *d) {
    for (int i = 0; i < d->n_pipelines; i++) d->call.DestroyPipeline(d->handle, d->pipelines[i].handle, NULL);
    d->call.DestroyPipelineLayout(d->handle, d->layout, NULL);
    d->call.DestroyPipelineCache(d->handle, d->cache, NULL);
    free(d->cache_path);
}

static bool write_cache(const char *path, void *file, size_t size, struct status *st) {
    const uint64_t sum = checksum((unsigned char *)file + sizeof sum, size);
    memcpy(file, &sum, sizeof sum);
    return path_make_parents(path, st) && output_file_replace(path, file, sizeof sum + size, 0600, st);
}

void vulkan_save_pipelines(struct vulkan_device *d) {
    pthread_mutex_lock(&d->pipeline_lock);
    const bool unsaved = d->n_unsaved > 0;
    d->n_unsaved = 0;
    pthread_mutex_unlock(&d->pipeline_lock);
    size_t size = 0;
    if (!unsaved || !d->cache || !d->cache_path ||
        d->call.GetPipelineCacheData(d->handle, d->cache, &size, NULL) != VK_SUCCESS || size > MOST_CACHE_BYTES)
        return;
    struct status st;
    char *file = xmalloc(sizeof(uint64_t) + size);
    const VkResult result = d->call.GetPipelineCacheData(d->handle, d->cache, &size, file + sizeof(uint64_t));
    if (result == VK_SUCCESS && !write_cache(d->cache_path, file, size, &st))
        log_warning("vulkan", "pipelines are not kept for the next start: %s", st.text);
    free(file);
}

// ---- pipelines ----

static bool is_cooperative(const char *shader) { return !strcmp(shader, "cooperative"); }

static VkResult build(struct vulkan_device *d, struct vulkan_pipeline *p, const struct shader *shader) {
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
    VkResult result = d->call.CreateShaderModule(d->handle, &code, NULL, &module);
    if (result != VK_SUCCESS) return result;
    const VkPipelineShaderStageRequiredSubgroupSizeCreateInfoEXT size = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO_EXT,
        .requiredSubgroupSize = p->subgroup_size};
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .pNext = p->subgroup_size ? &size : NULL,
                  .flags =
                      is_cooperative(p->shader) ? VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT : 0,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "main",
                  .pSpecializationInfo = &constants},
        .layout = d->layout,
    };
    result = d->call.CreateComputePipelines(d->handle, d->cache, 1, &info, NULL, &p->handle);
    d->call.DestroyShaderModule(d->handle, module, NULL);
    return result;
}

static struct vulkan_pipeline *find(struct vulkan_device *d, const struct vulkan_pipeline *wanted) {
    for (int i = 0; i < d->n_pipelines; i++) {
        struct vulkan_pipeline *p = &d->pipelines[i];
        if (p->shader == wanted->shader && p->subgroup_size == wanted->subgroup_size &&
            !memcmp(p->constants, wanted->constants, sizeof p->constants))
            return p;
    }
    return NULL;
}

// Whoever asks for a pipeline while another thread builds it waits. One that could not be built leaves its place.
static VkResult find_or_build(struct vulkan_device *d, struct vulkan_pipeline *wanted, const struct shader *shader) {
    struct vulkan_pipeline *p;
    while ((p = find(d, wanted)) && !p->handle) pthread_cond_wait(&d->pipeline_built, &d->pipeline_lock);
    if (p) {
        wanted->handle = p->handle;
        return VK_SUCCESS;
    }
    if (d->n_pipelines == VULKAN_MOST_PIPELINES) return VK_ERROR_TOO_MANY_OBJECTS;
    d->pipelines[d->n_pipelines++] = *wanted;
    pthread_mutex_unlock(&d->pipeline_lock);
    const VkResult result = build(d, wanted, shader);
    pthread_mutex_lock(&d->pipeline_lock);
    p = find(d, wanted);
    if (result == VK_SUCCESS) p->handle = wanted->handle, d->n_unsaved++;
    else *p = d->pipelines[--d->n_pipelines];
    pthread_cond_broadcast(&d->pipeline_built);
    return result;
}

VkPipeline vulkan_pipeline(struct vulkan_device *d, const char *shader, const uint32_t *constants, int n,
                           struct status *st) {
    const struct shader *found = shader_find(shader);
    if (!found) {
        status_fail(st, STATUS_UNSUPPORTED, "Vulkan: no shader '%s'", shader);
        return VK_NULL_HANDLE;
    }
    struct vulkan_pipeline wanted = {.shader = found->name, .n_constants = n, .subgroup_size = d->wanted_subgroup_size};
    if (!wanted.subgroup_size && is_cooperative(shader)) wanted.subgroup_size = d->subgroup_size;
    memcpy(wanted.constants, constants, (size_t)n * sizeof *constants);
    pthread_mutex_lock(&d->pipeline_lock);
    const VkResult result = find_or_build(d, &wanted, found);
    pthread_mutex_unlock(&d->pipeline_lock);
    if (result == VK_SUCCESS) return wanted.handle;
    vulkan_fail(d, st, result, shader);
    return VK_NULL_HANDLE;
}
