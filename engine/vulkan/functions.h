// Vulkan's loader, opened when it is first needed, so that a machine without it runs confab all the same; and the
// functions that are used of it.
#ifndef CONFAB_VULKAN_FUNCTIONS_H
#define CONFAB_VULKAN_FUNCTIONS_H

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include "engine/base/status.h"

// X(name without vk)
#define VULKAN_INSTANCE_FUNCTIONS(X)                                                                                   \
    X(EnumerateDeviceExtensionProperties)                                                                              \
    X(EnumeratePhysicalDevices)                                                                                        \
    X(GetPhysicalDeviceFeatures2)                                                                                      \
    X(GetPhysicalDeviceMemoryProperties2)                                                                              \
    X(GetPhysicalDeviceProperties2)                                                                                    \
    X(GetPhysicalDeviceQueueFamilyProperties)                                                                          \
    X(CreateDevice)                                                                                                    \
    X(GetDeviceProcAddr)
#define VULKAN_DEVICE_FUNCTIONS(X)                                                                                     \
    X(AllocateCommandBuffers)                                                                                          \
    X(AllocateMemory)                                                                                                  \
    X(BeginCommandBuffer)                                                                                              \
    X(BindBufferMemory)                                                                                                \
    X(CmdBindPipeline)                                                                                                 \
    X(CmdCopyBuffer)                                                                                                   \
    X(CmdDispatch)                                                                                                     \
    X(CmdFillBuffer)                                                                                                   \
    X(CmdPipelineBarrier)                                                                                              \
    X(CmdPushConstants)                                                                                                \
    X(CmdResetQueryPool)                                                                                               \
    X(CmdWriteTimestamp)                                                                                               \
    X(CreateBuffer)                                                                                                    \
    X(CreateCommandPool)                                                                                               \
    X(CreateComputePipelines)                                                                                          \
    X(CreateFence)                                                                                                     \
    X(CreatePipelineCache)                                                                                             \
    X(CreatePipelineLayout)                                                                                            \
    X(CreateQueryPool)                                                                                                 \
    X(CreateShaderModule)                                                                                              \
    X(DestroyBuffer)                                                                                                   \
    X(DestroyCommandPool)                                                                                              \
    X(DestroyDevice)                                                                                                   \
    X(DestroyFence)                                                                                                    \
    X(DestroyPipeline)                                                                                                 \
    X(DestroyPipelineCache)                                                                                            \
    X(DestroyPipelineLayout)                                                                                           \
    X(DestroyQueryPool)                                                                                                \
    X(DestroyShaderModule)                                                                                             \
    X(DeviceWaitIdle)                                                                                                  \
    X(EndCommandBuffer)                                                                                                \
    X(FreeCommandBuffers)                                                                                              \
    X(FreeMemory)                                                                                                      \
    X(GetBufferDeviceAddress)                                                                                          \
    X(GetBufferMemoryRequirements)                                                                                     \
    X(GetDeviceQueue)                                                                                                  \
    X(GetPipelineCacheData)                                                                                            \
    X(GetQueryPoolResults)                                                                                             \
    X(MapMemory)                                                                                                       \
    X(QueueSubmit)                                                                                                     \
    X(ResetFences)                                                                                                     \
    X(WaitForFences)

struct vulkan_instance_functions {
#define X(name) PFN_vk##name name;
    VULKAN_INSTANCE_FUNCTIONS(X)
#undef X
};

struct vulkan_device_functions {
#define X(name) PFN_vk##name name;
    VULKAN_DEVICE_FUNCTIONS(X)
#undef X
};

struct vulkan_instance {
    VkInstance handle;
    PFN_vkGetInstanceProcAddr find; // of what older headers do not declare
    struct vulkan_instance_functions call;
};

// The instance, which lives as long as the program; NULL with a status where there is no Vulkan 1.2. Any thread.
const struct vulkan_instance *vulkan_instance(struct status *st);

// A test may put its own in the place of a device's functions, as it is opened. NULL: nobody does.
extern void (*vulkan_wrap_functions)(struct vulkan_device_functions *call);
// Those of a device.
void vulkan_load_device(const struct vulkan_instance *instance, VkDevice device, struct vulkan_device_functions *out);

const char *vulkan_result_name(VkResult result); // "VK_ERROR_DEVICE_LOST"

#endif
