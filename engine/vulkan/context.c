#include "engine/vulkan/context.h"

#include <assert.h>

// ---- opening ----

static void destroy(struct vulkan_context *c) {
    const struct vulkan_device *d = c->device;
    vulkan_list_close(c, &c->once);
    d->call.DestroyFence(d->handle, c->fence, NULL);
    d->call.DestroyCommandPool(d->handle, c->pool, NULL);
}

bool vulkan_context_open(struct vulkan_context *c, VkPhysicalDevice physical, struct status *st) {
    *c = (struct vulkan_context){.device = vulkan_device_open(physical, st)};
    struct vulkan_device *d = c->device;
    if (!d) return false;
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                          .queueFamilyIndex = d->queue_family};
    const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    VkResult result = d->call.CreateCommandPool(d->handle, &pool, NULL, &c->pool);
    if (result != VK_SUCCESS) c->pool = VK_NULL_HANDLE;
    else if ((result = d->call.CreateFence(d->handle, &fence, NULL, &c->fence)) != VK_SUCCESS)
        c->fence = VK_NULL_HANDLE;
    if (result != VK_SUCCESS) vulkan_fail(d, st, result, "preparing commands");
    else if (vulkan_list_open(c, &c->once, 0, st)) return true;
    vulkan_context_close(c);
    return false;
}

void vulkan_context_close(struct vulkan_context *c) {
    if (!c->device) return;
    vulkan_wait(c, NULL);
    if (!vulkan_is_hung(c->device)) destroy(c);
    vulkan_device_close(c->device);
    *c = (struct vulkan_context){0};
}

bool vulkan_list_open(struct vulkan_context *c, struct vulkan_list *l, int most_times, struct status *st) {
    struct vulkan_device *d = c->device;
    *l = (struct vulkan_list){.most_times = d->tick_seconds > 0 ? most_times : 0};
    const VkCommandBufferAllocateInfo commands = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                                  .commandPool = c->pool,
                                                  .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                                  .commandBufferCount = 1};
    const VkQueryPoolCreateInfo times = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                         .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                         .queryCount = (uint32_t)l->most_times};
    VkResult result = d->call.AllocateCommandBuffers(d->handle, &commands, &l->commands);
    if (result != VK_SUCCESS) l->commands = NULL;
    else if (l->most_times && (result = d->call.CreateQueryPool(d->handle, &times, NULL, &l->times)) != VK_SUCCESS)
        l->times = VK_NULL_HANDLE;
    if (result == VK_SUCCESS) return true;
    vulkan_list_close(c, l);
    return vulkan_fail(d, st, result, "making a list of commands");
}

void vulkan_list_close(struct vulkan_context *c, struct vulkan_list *l) {
    const struct vulkan_device *d = c->device;
    if (!l->commands || vulkan_is_hung(d)) return;
    d->call.FreeCommandBuffers(d->handle, c->pool, 1, &l->commands);
    d->call.DestroyQueryPool(d->handle, l->times, NULL);
    *l = (struct vulkan_list){0};
}

// ---- recording ----

bool vulkan_begin(struct vulkan_context *c, struct vulkan_list *l, struct status *st) {
    struct vulkan_device *d = c->device;
    const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    const VkResult result = d->call.BeginCommandBuffer(l->commands, &info);
    if (result != VK_SUCCESS) return vulkan_fail(d, st, result, "recording commands");
    c->recording = l;
    l->n_times = 0;
    if (l->most_times) d->call.CmdResetQueryPool(l->commands, l->times, 0, (uint32_t)l->most_times);
    return true;
}

void vulkan_dispatch(struct vulkan_context *c, VkPipeline pipeline, const void *push, size_t size, uint32_t x,
                     uint32_t y, uint32_t z) {
    const struct vulkan_device *d = c->device;
    const VkCommandBuffer commands = c->recording->commands;
    d->call.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    d->call.CmdPushConstants(commands, d->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, (uint32_t)size, push);
    d->call.CmdDispatch(commands, x, y, z);
}

void vulkan_copy(struct vulkan_context *c, const struct vulkan_buffer *from, uint64_t from_offset,
                 const struct vulkan_buffer *to, uint64_t to_offset, uint64_t size) {
    const VkBufferCopy region = {from_offset, to_offset, size};
    c->device->call.CmdCopyBuffer(c->recording->commands, from->buffer, to->buffer, 1, &region);
}

void vulkan_copy_input(struct vulkan_context *c, const struct vulkan_input *i, uint64_t offset, uint64_t size) {
    if (i->copy.buffer) vulkan_copy(c, &i->host, offset, &i->copy, offset, size);
}

static void barrier(struct vulkan_context *c, VkPipelineStageFlags before, VkAccessFlags written,
                    VkPipelineStageFlags after, VkAccessFlags access) {
    const VkMemoryBarrier all = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = written, .dstAccessMask = access};
    c->device->call.CmdPipelineBarrier(c->recording->commands, before, after, 0, 1, &all, 0, NULL, 0, NULL);
}

// Not for copies, of which a pass has hardly any: devices have more to flush for them.
void vulkan_barrier(struct vulkan_context *c) {
    const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
    barrier(c, stage, VK_ACCESS_SHADER_WRITE_BIT, stage, VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT);
}

static const VkPipelineStageFlags all_stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
static const VkAccessFlags all_writes = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;

void vulkan_barrier_copies(struct vulkan_context *c) {
    barrier(c, all_stages, all_writes, all_stages,
            all_writes | VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT);
}

void vulkan_time(struct vulkan_context *c) {
    struct vulkan_list *l = c->recording;
    if (l->n_times == l->most_times) return;
    c->device->call.CmdWriteTimestamp(l->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, l->times,
                                      (uint32_t)l->n_times++);
}

// What the lists after it and the host read is there.
bool vulkan_end(struct vulkan_context *c, struct status *st) {
    vulkan_barrier_copies(c);
    barrier(c, all_stages, all_writes, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    const VkResult result = c->device->call.EndCommandBuffer(c->recording->commands);
    return result == VK_SUCCESS || vulkan_fail(c->device, st, result, "recording commands");
}

// ---- running ----

static VkResult submit(struct vulkan_context *c, const VkSubmitInfo *info) {
    struct vulkan_device *d = c->device;
    pthread_mutex_lock(&d->queue_lock);
    const VkResult result = d->call.QueueSubmit(d->queue, 1, info, c->fence);
    pthread_mutex_unlock(&d->queue_lock);
    return result;
}

bool vulkan_submit(struct vulkan_context *c, const struct vulkan_list *const *lists, int n, struct status *st) {
    enum { MOST_AT_ONCE = 4 };
    struct vulkan_device *d = c->device;
    VkCommandBuffer commands[MOST_AT_ONCE];
    assert(n <= MOST_AT_ONCE);
    for (int i = 0; i < n; i++) commands[i] = lists[i]->commands;
    const VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = (uint32_t)n, .pCommandBuffers = commands};
    VkResult result = d->call.ResetFences(d->handle, 1, &c->fence);
    if (result == VK_SUCCESS) result = submit(c, &info);
    c->submitted = result == VK_SUCCESS;
    return c->submitted || vulkan_fail(d, st, result, "running commands");
}

bool vulkan_wait(struct vulkan_context *c, struct status *st) {
    const uint64_t patience = 60000000000; // ns
    struct vulkan_device *d = c->device;
    if (!c->submitted) return true;
    c->submitted = false;
    const VkResult result = d->call.WaitForFences(d->handle, 1, &c->fence, VK_TRUE, patience);
    if (result == VK_SUCCESS) return true;
    // Nobody knows whether the commands still run, unless the device is lost.
    if (result != VK_ERROR_DEVICE_LOST) atomic_store(&d->hung, true), atomic_store(&d->lost, true);
    return vulkan_fail(d, st, result, "waiting for the device");
}

bool vulkan_run(struct vulkan_context *c, const struct vulkan_list *const *lists, int n, struct status *st) {
    return vulkan_submit(c, lists, n, st) && vulkan_wait(c, st);
}

bool vulkan_run_once(struct vulkan_context *c, struct status *st) {
    const struct vulkan_list *const list = &c->once;
    return vulkan_end(c, st) && vulkan_run(c, &list, 1, st);
}

bool vulkan_clear(struct vulkan_context *c, const struct vulkan_buffer *b, struct status *st) {
    if (!vulkan_begin(c, &c->once, st)) return false;
    c->device->call.CmdFillBuffer(c->once.commands, b->buffer, 0, VK_WHOLE_SIZE, 0);
    return vulkan_run_once(c, st);
}

bool vulkan_seconds(struct vulkan_context *c, const struct vulkan_list *l, double *out) {
    enum { AT_ONCE = 256 };
    const struct vulkan_device *d = c->device;
    uint64_t ticks[AT_ONCE], last = 0;
    for (int first = 0; first < l->n_times; first += AT_ONCE) {
        const int n = l->n_times - first < AT_ONCE ? l->n_times - first : AT_ONCE;
        if (d->call.GetQueryPoolResults(d->handle, l->times, (uint32_t)first, (uint32_t)n, (size_t)n * sizeof *ticks,
                                        ticks, sizeof *ticks, VK_QUERY_RESULT_64_BIT) != VK_SUCCESS)
            return false;
        for (int i = 0; i < n; last = ticks[i++])
            if (first + i) out[first + i - 1] = (double)((ticks[i] - last) & d->tick_mask) * d->tick_seconds;
    }
    return l->n_times > 0;
}
