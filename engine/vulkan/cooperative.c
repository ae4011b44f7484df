#include "engine/vulkan/cooperative.h"

#include <string.h>

// ---- what a device has ----

#if defined(CONFAB_COOPERATIVE_KHR) || defined(CONFAB_COOPERATIVE_NV)

// As in Vulkan's headers, of which older ones do not have KHR's.
enum { FLOAT16 = 0, FLOAT32 = 1, SCOPE_SUBGROUP = 3 };

struct shape {
    int32_t type;
    void *next;
    uint32_t m, n, k;
    int32_t left, right, sum, result;
#ifdef CONFAB_COOPERATIVE_KHR
    VkBool32 saturates;
#endif
    int32_t scope;
};

struct stages {
    int32_t type;
    void *next;
    VkShaderStageFlags stages;
};

#ifdef CONFAB_COOPERATIVE_KHR
enum { FEATURES = 1000506000, SHAPE = 1000506001, STAGES = 1000506002 };
static const char extension[] = "VK_KHR_cooperative_matrix";
static const char list_shapes[] = "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR";
static bool saturates(const struct shape *s) { return s->saturates; }
#else
enum { FEATURES = 1000249000, SHAPE = 1000249001, STAGES = 1000249002 };
static const char extension[] = "VK_NV_cooperative_matrix";
static const char list_shapes[] = "vkGetPhysicalDeviceCooperativeMatrixPropertiesNV";
static bool saturates(const struct shape *s) { return (void)s, false; }
#endif

typedef VkResult(VKAPI_PTR *list_function)(VkPhysicalDevice, uint32_t *, struct shape *);

static bool power_of_two(uint32_t x) { return x && !(x & (x - 1)); }

static bool suits(const struct shape *s) {
    return s->left == FLOAT16 && s->right == FLOAT16 && s->sum == FLOAT32 && s->result == FLOAT32 && !saturates(s) &&
           s->scope == SCOPE_SUBGROUP && power_of_two(s->m) && power_of_two(s->n) && power_of_two(s->k) && s->m >= 4 &&
           s->m <= 16 && s->n >= 4 && s->n <= 16 && s->k >= 8 && s->k <= 32;
}

static void find_shape(struct vulkan_device *d, const struct vulkan_instance *instance) {
    enum { MOST = 128 };
    struct shape all[MOST];
    uint32_t n = MOST, best = 0;
    const list_function list = (list_function)instance->find(instance->handle, list_shapes);
    for (int i = 0; i < MOST; i++) all[i] = (struct shape){.type = SHAPE};
    if (!list) return;
    const VkResult result = list(d->physical, &n, all);
    if (result != VK_SUCCESS && result != VK_INCOMPLETE) return;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t size = all[i].m * all[i].n * all[i].k;
        if (!suits(&all[i]) || size <= best) continue;
        best = size;
        d->cooperative = (struct cooperative_shape){all[i].m, all[i].n, all[i].k};
    }
}

// Subgroups must be full and of a known size. With the memory model, atomics of other shaders need its device scope.
const char *cooperative_find(struct vulkan_device *d, const struct vulkan_instance *instance,
                             struct cooperative_features *features) {
    VkPhysicalDeviceSubgroupSizeControlFeaturesEXT size_control = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT, .pNext = features};
    VkPhysicalDeviceVulkan12Features v12 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                            .pNext = &size_control};
    VkPhysicalDeviceFeatures2 core = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &v12};
    VkPhysicalDeviceSubgroupSizeControlPropertiesEXT sizes = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES_EXT};
    struct stages stages = {.type = STAGES, .next = &sizes};
    VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                              .pNext = &stages};
    *features = (struct cooperative_features){.type = FEATURES};
    if (!d->sizes_subgroups || !vulkan_has_extension(d->physical, extension)) return NULL;
    instance->call.GetPhysicalDeviceFeatures2(d->physical, &core);
    instance->call.GetPhysicalDeviceProperties2(d->physical, &properties);
    const uint32_t size = d->subgroup_size;
    const VkShaderStageFlags compute = VK_SHADER_STAGE_COMPUTE_BIT;
    if (!features->has || !size_control.subgroupSizeControl || !size_control.computeFullSubgroups ||
        !v12.vulkanMemoryModel || !v12.vulkanMemoryModelDeviceScope || !v12.shaderFloat16 ||
        !(stages.stages & compute) || !(sizes.requiredSubgroupSizeStages & compute) || size < sizes.minSubgroupSize ||
        size > sizes.maxSubgroupSize)
        return NULL;
    find_shape(d, instance);
    *features = (struct cooperative_features){.type = FEATURES, .has = VK_TRUE};
    return d->cooperative.m ? extension : NULL;
}

#else

const char *cooperative_find(struct vulkan_device *d, const struct vulkan_instance *instance,
                             struct cooperative_features *features) {
    (void)d, (void)instance, (void)features;
    return NULL;
}

#endif

// ---- tiles ----

bool cooperative_holds(const struct vulkan_device *d, const struct block_format *format) {
    return d->cooperative.m && format->id != BLOCK_F32 && format->id != BLOCK_BF16;
}

// As shaders/cooperative.comp declares it.
uint32_t cooperative_shared_bytes(const struct cooperative_constants *c) {
    const uint32_t staged = (c->rows + c->columns) * (c->step / 8 + 1) * 16;
    const uint32_t sums = c->threads / c->subgroup_size * c->m * c->n * 4;
    return (staged > sums ? staged : sums) + c->columns * 8;
}

// Subgroups have blocks of 2 × 4 fragments at most, the names that the shader has for sums: few loads for each
// multiplication. More threads hide waits better, so blocks are smaller in small tiles.
static struct cooperative_constants divide(const struct vulkan_device *d, struct cooperative_tile tile, bool experts) {
    enum { BLOCK_DOWN = 2, BLOCK_ACROSS = 4 };
    const struct cooperative_shape *s = &d->cooperative;
    const uint32_t most_threads = tile.rows * tile.columns > 64 * 64 ? 256 : 128;
    struct cooperative_constants c = {
        .rows = tile.rows,
        .columns = tile.columns,
        .experts = experts,
        .subgroup_size = d->wanted_subgroup_size ? d->wanted_subgroup_size : d->subgroup_size,
        .m = s->m,
        .n = s->n,
        .k = s->k,
        .step = 64,
    };
    while (c.rows / (BLOCK_DOWN * c.m) * c.subgroup_size > most_threads) c.rows /= 2;
    c.down = c.rows < BLOCK_DOWN * c.m ? 1 : c.rows / (BLOCK_DOWN * c.m);
    uint32_t across = 1;
    while (2 * c.down * across * c.subgroup_size <= most_threads && 2 * across * c.n <= c.columns) across *= 2;
    while (c.columns > BLOCK_ACROSS * across * c.n) c.columns /= 2;
    c.threads = c.down * across * c.subgroup_size;
    return c;
}

struct cooperative_constants cooperative_constants(const struct vulkan_device *d, struct cooperative_tile tile,
                                                   bool experts) {
    struct cooperative_constants c = divide(d, tile, experts);
    while (cooperative_shared_bytes(&c) > d->shared_bytes && tile.rows > 32) {
        tile.rows /= 2;
        c = divide(d, tile, experts);
    }
    return c;
}
