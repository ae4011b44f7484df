// Memory of a device.
#include <inttypes.h>

#include "engine/vulkan/device.h"

// The first type that has all of the first set of properties, or else of the second.
static int memory_type(const struct vulkan_device *d, uint32_t allowed, const VkMemoryPropertyFlags wishes[2]) {
    for (int wish = 0; wish < 2; wish++)
        for (uint32_t i = 0; i < d->memory.memoryTypeCount; i++)
            if (allowed >> i & 1 && (d->memory.memoryTypes[i].propertyFlags & wishes[wish]) == wishes[wish])
                return (int)i;
    return -1;
}

static bool is_mappable(const struct vulkan_device *d, int type) {
    const VkMemoryPropertyFlags mapped = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    return (d->memory.memoryTypes[type].propertyFlags & mapped) == mapped;
}

static bool bind_memory(struct vulkan_device *d, struct vulkan_buffer *b, enum vulkan_memory kind, const char *what,
                        struct status *st) {
    const VkMemoryPropertyFlags mapped = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    const VkMemoryPropertyFlags wishes[][2] = {
        [VULKAN_MEMORY_DEVICE] = {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | (d->shares_memory ? mapped : 0),
                                  d->shares_memory ? VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT : 0},
        [VULKAN_MEMORY_MAPPED] = {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | mapped,
                                  VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | mapped},
        [VULKAN_MEMORY_UPLOAD] = {mapped, mapped},
        [VULKAN_MEMORY_READBACK] = {mapped | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, mapped},
    };
    VkMemoryRequirements needs;
    d->call.GetBufferMemoryRequirements(d->handle, b->buffer, &needs);
    const int type = memory_type(d, needs.memoryTypeBits, wishes[kind]);
    if (type < 0) return status_fail(st, STATUS_DEVICE, "Vulkan: no memory of the kind that %s needs", what);
    const VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                             .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    const VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                       .pNext = &flags,
                                       .allocationSize = needs.size,
                                       .memoryTypeIndex = (uint32_t)type};
    VkResult result = d->call.AllocateMemory(d->handle, &info, NULL, &b->memory);
    if (result != VK_SUCCESS) b->memory = VK_NULL_HANDLE;
    if (result == VK_SUCCESS) result = d->call.BindBufferMemory(d->handle, b->buffer, b->memory, 0);
    if (result == VK_SUCCESS && (kind != VULKAN_MEMORY_DEVICE || d->shares_memory) && is_mappable(d, type))
        result = d->call.MapMemory(d->handle, b->memory, 0, VK_WHOLE_SIZE, 0, &b->mapped);
    if (result != VK_SUCCESS) return vulkan_fail(d, st, result, what);
    const VkBufferDeviceAddressInfo address = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                               .buffer = b->buffer};
    b->address = d->call.GetBufferDeviceAddress(d->handle, &address);
    return true;
}

bool vulkan_buffer_open(struct vulkan_device *d, struct vulkan_buffer *b, uint64_t size, enum vulkan_memory kind,
                        const char *what, struct status *st) {
    *b = (struct vulkan_buffer){.size = size ? size : 4};
    if (b->size > d->largest_allocation)
        return status_fail(st, STATUS_LIMIT, "Vulkan: %s: %" PRIu64 " bytes, the driver gives at most %" PRIu64, what,
                           b->size, (uint64_t)d->largest_allocation);
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .size = b->size,
                                     .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                              VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                                              VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT};
    const VkResult result = d->call.CreateBuffer(d->handle, &info, NULL, &b->buffer);
    if (result != VK_SUCCESS) {
        *b = (struct vulkan_buffer){0};
        return vulkan_fail(d, st, result, what);
    }
    if (bind_memory(d, b, kind, what, st)) return true;
    vulkan_buffer_close(d, b);
    return false;
}

void vulkan_buffer_close(struct vulkan_device *d, struct vulkan_buffer *b) {
    if (!b->buffer || vulkan_is_hung(d)) return;
    d->call.DestroyBuffer(d->handle, b->buffer, NULL);
    d->call.FreeMemory(d->handle, b->memory, NULL);
    *b = (struct vulkan_buffer){0};
}

bool vulkan_input_open(struct vulkan_device *d, struct vulkan_input *i, uint64_t size, const char *what,
                       struct status *st) {
    const bool mapped = d->maps_memory && vulkan_buffer_open(d, &i->host, size, VULKAN_MEMORY_MAPPED, what, NULL);
    if (!mapped && (!vulkan_buffer_open(d, &i->host, size, VULKAN_MEMORY_UPLOAD, what, st) ||
                    !vulkan_buffer_open(d, &i->copy, size, VULKAN_MEMORY_DEVICE, what, st)))
        return false;
    i->mapped = i->host.mapped;
    i->address = mapped ? i->host.address : i->copy.address;
    i->size = i->host.size;
    return true;
}

void vulkan_input_close(struct vulkan_device *d, struct vulkan_input *i) {
    vulkan_buffer_close(d, &i->host);
    vulkan_buffer_close(d, &i->copy);
    *i = (struct vulkan_input){0};
}
