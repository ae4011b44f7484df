// Vulkan calls that fail, once or from some call on, while an engine opens or answers: answers come all the same, from
// the processor, with the text that they have there, and nothing is left behind. On the first Vulkan device there is.
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifdef CONFAB_VULKAN

#include "engine/backend.h"
#include "engine/engine_ops.h"
#include "engine/local_engine.h"
#include "engine/metrics.h"
#include "engine/vulkan/functions.h"
#include "tests/unit/temporary_folder.h"
#include "tests/unit/tiny_model.h"
#include "tests/unit/vulkan_validation.h"

enum { CONVERSATIONS = 3, TOKENS = 8, PROMPT = 40, PATIENCE = 60000 };

// ---- the shim ----

// X(name, parameters, arguments): what can fail.
#define CALLS(X)                                                                                                       \
    X(AllocateCommandBuffers, (VkDevice d, const VkCommandBufferAllocateInfo *i, VkCommandBuffer *o), (d, i, o))       \
    X(AllocateMemory, (VkDevice d, const VkMemoryAllocateInfo *i, const VkAllocationCallbacks *a, VkDeviceMemory *o),  \
      (d, i, a, o))                                                                                                    \
    X(BeginCommandBuffer, (VkCommandBuffer c, const VkCommandBufferBeginInfo *i), (c, i))                              \
    X(BindBufferMemory, (VkDevice d, VkBuffer b, VkDeviceMemory m, VkDeviceSize o), (d, b, m, o))                      \
    X(CreateBuffer, (VkDevice d, const VkBufferCreateInfo *i, const VkAllocationCallbacks *a, VkBuffer *o),            \
      (d, i, a, o))                                                                                                    \
    X(CreateCommandPool,                                                                                               \
      (VkDevice d, const VkCommandPoolCreateInfo *i, const VkAllocationCallbacks *a, VkCommandPool *o), (d, i, a, o))  \
    X(CreateComputePipelines,                                                                                          \
      (VkDevice d, VkPipelineCache c, uint32_t n, const VkComputePipelineCreateInfo *i,                                \
       const VkAllocationCallbacks *a, VkPipeline *o),                                                                 \
      (d, c, n, i, a, o))                                                                                              \
    X(CreateFence, (VkDevice d, const VkFenceCreateInfo *i, const VkAllocationCallbacks *a, VkFence *o), (d, i, a, o)) \
    X(CreatePipelineCache,                                                                                             \
      (VkDevice d, const VkPipelineCacheCreateInfo *i, const VkAllocationCallbacks *a, VkPipelineCache *o),            \
      (d, i, a, o))                                                                                                    \
    X(CreatePipelineLayout,                                                                                            \
      (VkDevice d, const VkPipelineLayoutCreateInfo *i, const VkAllocationCallbacks *a, VkPipelineLayout *o),          \
      (d, i, a, o))                                                                                                    \
    X(CreateQueryPool, (VkDevice d, const VkQueryPoolCreateInfo *i, const VkAllocationCallbacks *a, VkQueryPool *o),   \
      (d, i, a, o))                                                                                                    \
    X(CreateShaderModule,                                                                                              \
      (VkDevice d, const VkShaderModuleCreateInfo *i, const VkAllocationCallbacks *a, VkShaderModule *o),              \
      (d, i, a, o))                                                                                                    \
    X(EndCommandBuffer, (VkCommandBuffer c), (c))                                                                      \
    X(GetPipelineCacheData, (VkDevice d, VkPipelineCache c, size_t * n, void *o), (d, c, n, o))                        \
    X(GetQueryPoolResults,                                                                                             \
      (VkDevice d, VkQueryPool q, uint32_t f, uint32_t n, size_t s, void *o, VkDeviceSize t, VkQueryResultFlags l),    \
      (d, q, f, n, s, o, t, l))                                                                                        \
    X(MapMemory, (VkDevice d, VkDeviceMemory m, VkDeviceSize o, VkDeviceSize s, VkMemoryMapFlags f, void **p),         \
      (d, m, o, s, f, p))                                                                                              \
    X(QueueSubmit, (VkQueue q, uint32_t n, const VkSubmitInfo *i, VkFence f), (q, n, i, f))                            \
    X(ResetFences, (VkDevice d, uint32_t n, const VkFence *f), (d, n, f))                                              \
    X(WaitForFences, (VkDevice d, uint32_t n, const VkFence *f, VkBool32 a, uint64_t t), (d, n, f, a, t))

enum call {
#define X(name, parameters, arguments) CALL_##name,
    CALLS(X)
#undef X
        CALL_CreateDevice,
    CALL_COUNT
};

static const char *const call_names[] = {
#define X(name, parameters, arguments) "vk" #name,
    CALLS(X)
#undef X
        "vkCreateDevice"};

static struct {
    enum call call;
    int first; // call that fails, from 1 on; 0: none does
    bool for_good;
    VkResult result;
} fault;
static atomic_int made[CALL_COUNT];
static struct vulkan_device_functions real;
static PFN_vkCreateDevice real_create;
static PFN_vkGetPhysicalDeviceProperties2 real_properties;

static bool fails(enum call call) {
    const int n = atomic_fetch_add(&made[call], 1) + 1;
    return fault.first && fault.call == call && (fault.for_good ? n >= fault.first : n == fault.first);
}

// A fence is waited for all the same, so that what follows is about the report alone.
#define X(name, parameters, arguments)                                                                                 \
    static VkResult VKAPI_PTR shim_##name parameters {                                                                 \
        if (!fails(CALL_##name)) return real.name arguments;                                                           \
        if (CALL_##name == CALL_WaitForFences) real.name arguments;                                                    \
        return fault.result;                                                                                           \
    }
CALLS(X)
#undef X

static VkResult VKAPI_PTR shim_CreateDevice(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
                                            const VkAllocationCallbacks *allocator, VkDevice *out) {
    return fails(CALL_CreateDevice) ? fault.result : real_create(physical, info, allocator, out);
}

// As a card of its own, whose memory is not the host's.
static void VKAPI_PTR shim_GetPhysicalDeviceProperties2(VkPhysicalDevice physical, VkPhysicalDeviceProperties2 *out) {
    real_properties(physical, out);
    out->properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
}

static void wrap(struct vulkan_device_functions *call) {
    real = *call;
#define X(name, parameters, arguments) call->name = shim_##name;
    CALLS(X)
#undef X
}

// ---- answers ----

static void *model_bytes;
static struct model_file *file;

struct answers {
    int32_t tokens[CONVERSATIONS][TOKENS];
    int n[CONVERSATIONS];
    int n_notices;
};

static struct engine_client *open_engine(const char *device, struct status *st) {
    struct engine_params p = {.n_threads = 1, .kv_tokens = 512, .options.device = device};
    struct engine *e = local_engine_open(file, &p, st);
    struct engine_client *c = e ? engine_client_open(e, st) : NULL;
    if (e && !c) engine_close(e);
    return c;
}

// With prompts that have their beginning in common, so that a page is copied.
static struct answers answer(struct engine_client *c) {
    struct answers all = {0};
    uint64_t first = 0;
    for (int i = 0; i < CONVERSATIONS; i++) {
        int32_t ids[PROMPT];
        for (int k = 0; k < PROMPT; k++) ids[k] = (k * 7 + (k < PROMPT - 4 ? 1 : i)) % model_file_info(file)->n_vocab;
        struct request_params p = {.conversation = (uint64_t)i + 1,
                                   .ids = ids,
                                   .n_ids = PROMPT,
                                   .sampling = sampling_default(),
                                   .max_tokens = TOKENS,
                                   .ignore_end = true};
        p.sampling.temperature = 0;
        const uint64_t id = engine_submit(c, &p);
        if (!i) first = id;
    }
    for (int open = CONVERSATIONS; open;) {
        struct engine_event event;
        if (!engine_wait(c, &event, PATIENCE)) fail_msg("no event");
        const uint64_t i = event.request - first;
        all.n_notices += event.kind == EVENT_NOTICE;
        if (event.kind == EVENT_TEXT && event.token >= 0) all.tokens[i][all.n[i]++] = event.token;
        if (event.kind != EVENT_STATE || event.state < REQUEST_FINISHED) continue;
        if (event.state != REQUEST_FINISHED) fail_msg("%s", event.text);
        open--;
    }
    return all;
}

static void close_engine(struct engine_client *c) {
    struct engine *e = c->engine;
    engine_client_close(c);
    engine_close(e);
}

static struct answers expected;

// What was asked for is answered, by the device or, where it fails, by the processor. Returns whether it was asked to.
static bool check_answers(const char *what) {
    struct status st;
    memset(made, 0, sizeof made);
    struct engine_client *c = open_engine("vulkan0", &st);
    const bool opened = c != NULL;
    if (!opened) {
        if (st.code != STATUS_DEVICE && st.code != STATUS_MEMORY) fail_msg("%s: %s", what, st.text);
        c = open_engine("cpu", &st);
    }
    if (!c) fail_msg("%s: %s", what, st.text);
    const struct answers got = answer(c);
    close_engine(c);
    if (memcmp(got.tokens, expected.tokens, sizeof got.tokens)) fail_msg("%s: another text", what);
    vulkan_validation_check(what);
    return !opened || got.n_notices;
}

// ---- tests ----

// How often each call is made: until the engine is open, and in all.
static int while_opening[CALL_COUNT], in_all[CALL_COUNT];

static void test_without_faults(void **state) {
    (void)state;
    struct status st;
    struct engine_client *c = open_engine("cpu", &st);
    assert_non_null(c);
    expected = answer(c);
    close_engine(c);
    memset(made, 0, sizeof made);
    c = open_engine("vulkan0", &st);
    if (!c) fail_msg("%s", st.text);
    for (int i = 0; i < CALL_COUNT; i++) while_opening[i] = made[i];
    const struct answers got = answer(c);
    close_engine(c);
    for (int i = 0; i < CALL_COUNT; i++) {
        in_all[i] = made[i];
        if (!in_all[i]) fail_msg("%s is never called", call_names[i]);
    }
    assert_memory_equal(got.tokens, expected.tokens, sizeof got.tokens);
    assert_int_equal(got.n_notices, 0);
    vulkan_validation_check("without faults");
}

static void fail_at(enum call call, int first, bool for_good, VkResult result) {
    char what[128];
    fault.call = call, fault.first = first, fault.for_good = for_good, fault.result = result;
    snprintf(what, sizeof what, "%s, call %d%s: %d", call_names[call], first, for_good ? " and after" : "", result);
    check_answers(what);
    fault.first = 0;
}

static void test_calls_that_fail_while_opening(void **state) {
    (void)state;
    for (int call = 0; call < CALL_COUNT; call++) {
        if (!while_opening[call]) continue;
        fail_at((enum call)call, 1, false, VK_ERROR_OUT_OF_DEVICE_MEMORY);
        fail_at((enum call)call, while_opening[call] / 2 + 1, true, VK_ERROR_OUT_OF_HOST_MEMORY);
    }
}

static void test_calls_that_fail_in_answers(void **state) {
    (void)state;
    for (int call = 0; call < CALL_COUNT; call++) {
        const int opening = while_opening[call], n = in_all[call] - opening;
        if (!n) continue;
        fail_at((enum call)call, opening + 1, true, VK_ERROR_OUT_OF_DEVICE_MEMORY);
        fail_at((enum call)call, opening + n / 2 + 1, false, VK_ERROR_OUT_OF_HOST_MEMORY);
    }
}

static void test_device_lost_in_mid_answer(void **state) {
    (void)state;
    const enum call calls[] = {CALL_QueueSubmit, CALL_WaitForFences};
    for (int i = 0; i < 2; i++) {
        const int opening = while_opening[calls[i]], n = in_all[calls[i]] - opening;
        fault.call = calls[i], fault.first = opening + n / 2 + 1, fault.for_good = true;
        fault.result = VK_ERROR_DEVICE_LOST;
        assert_true(check_answers("lost"));
        fault.first = 0;
    }
    assert_false(check_answers("another device after one that was lost"));
}

// Last: a device that hangs is left as it is, and so are the answers of whoever waited for it.
static void test_driver_that_hangs(void **state) {
    (void)state;
    fault.call = CALL_WaitForFences, fault.first = while_opening[CALL_WaitForFences] + 3, fault.for_good = true;
    fault.result = VK_TIMEOUT;
    assert_true(check_answers("hung"));
    fault.first = 0;
    assert_false(check_answers("another device after one that hung"));
}

static int open_model(void **state) {
    (void)state;
    struct status st;
    size_t size;
    model_bytes = tiny_model_bytes((struct tiny_model_options){.n_layer = 2}, &size);
    file = model_file_open_memory("tiny.gguf", model_bytes, size, NULL, &st);
    struct vulkan_instance_functions *call = (struct vulkan_instance_functions *)&vulkan_instance(NULL)->call;
    real_create = call->CreateDevice;
    call->CreateDevice = shim_CreateDevice; // the only one of them that can fail
    real_properties = call->GetPhysicalDeviceProperties2;
    call->GetPhysicalDeviceProperties2 = shim_GetPhysicalDeviceProperties2;
    vulkan_wrap_functions = wrap;
    return file ? 0 : -1;
}

static int close_model(void **state) {
    model_file_close(file);
    free(model_bytes);
    return temporary_folder_teardown(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_faults),
        cmocka_unit_test(test_calls_that_fail_while_opening),
        cmocka_unit_test(test_calls_that_fail_in_answers),
        cmocka_unit_test(test_device_lost_in_mid_answer),
        cmocka_unit_test(test_driver_that_hangs),
    };
    struct device device;
    const char *home = temporary_folder_make_home();
    if (home) vulkan_validation_start(home);
    if (!vulkan_backend.devices(&device, 1)) {
        printf("no Vulkan device: skipped\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, open_model, close_model);
}

#else

int main(void) {
    printf("built without Vulkan: skipped\n");
    return 0;
}

#endif
