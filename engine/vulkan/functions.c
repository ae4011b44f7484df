#include "engine/vulkan/functions.h"

#include <dlfcn.h>
#include <pthread.h>

static struct {
    struct vulkan_instance instance;
    struct status status;
} loaded;

static bool open_loader(struct vulkan_instance *out, struct status *st) {
    void *library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return status_fail(st, STATUS_UNSUPPORTED, "no Vulkan: %s", dlerror());
    PFN_vkGetInstanceProcAddr find;
    *(void **)&find = dlsym(library, "vkGetInstanceProcAddr");
    const PFN_vkCreateInstance create = find ? (PFN_vkCreateInstance)find(NULL, "vkCreateInstance") : NULL;
    const PFN_vkEnumerateInstanceVersion version =
        find ? (PFN_vkEnumerateInstanceVersion)find(NULL, "vkEnumerateInstanceVersion") : NULL;
    uint32_t available = 0;
    if (!create || !version || version(&available) != VK_SUCCESS || available < VK_API_VERSION_1_2)
        return status_fail(st, STATUS_UNSUPPORTED, "the loader of Vulkan is older than 1.2");
    const VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .pApplicationName = "confab", .apiVersion = VK_API_VERSION_1_2};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                       .pApplicationInfo = &application};
    const VkResult result = create(&info, NULL, &out->handle);
    if (result != VK_SUCCESS) return status_fail(st, STATUS_UNSUPPORTED, "no Vulkan: %s", vulkan_result_name(result));
    out->find = find;
#define X(name) out->call.name = (PFN_vk##name)find(out->handle, "vk" #name);
    VULKAN_INSTANCE_FUNCTIONS(X)
#undef X
    return true;
}

static void load(void) { open_loader(&loaded.instance, &loaded.status); }

const struct vulkan_instance *vulkan_instance(struct status *st) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (loaded.status.code == STATUS_OK) return &loaded.instance;
    if (st) *st = loaded.status;
    return NULL;
}

void (*vulkan_wrap_functions)(struct vulkan_device_functions *call);

void vulkan_load_device(const struct vulkan_instance *instance, VkDevice device, struct vulkan_device_functions *out) {
#define X(name) out->name = (PFN_vk##name)instance->call.GetDeviceProcAddr(device, "vk" #name);
    VULKAN_DEVICE_FUNCTIONS(X)
#undef X
    if (vulkan_wrap_functions) vulkan_wrap_functions(out);
}

const char *vulkan_result_name(VkResult result) {
    switch (result) {
#define CASE(name)                                                                                                     \
    case name: return #name;
        CASE(VK_SUCCESS)
        CASE(VK_NOT_READY)
        CASE(VK_TIMEOUT)
        CASE(VK_ERROR_OUT_OF_HOST_MEMORY)
        CASE(VK_ERROR_OUT_OF_DEVICE_MEMORY)
        CASE(VK_ERROR_INITIALIZATION_FAILED)
        CASE(VK_ERROR_DEVICE_LOST)
        CASE(VK_ERROR_MEMORY_MAP_FAILED)
        CASE(VK_ERROR_LAYER_NOT_PRESENT)
        CASE(VK_ERROR_EXTENSION_NOT_PRESENT)
        CASE(VK_ERROR_FEATURE_NOT_PRESENT)
        CASE(VK_ERROR_INCOMPATIBLE_DRIVER)
        CASE(VK_ERROR_TOO_MANY_OBJECTS)
        CASE(VK_ERROR_INVALID_SHADER_NV)
#undef CASE
    default: return "an unknown error";
    }
}
