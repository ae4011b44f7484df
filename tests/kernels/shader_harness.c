#include "tests/kernels/shader_harness.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifndef CONFAB_VULKAN

static void test_nothing(void **state) {
    (void)state;
    print_message("built without Vulkan: skipped\n");
    skip();
}

int shader_tests_skip(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

#include "engine/base/panic.h"
#include "engine/vulkan/context.h"
#include "tests/kernels/harness.h"

// ---- memory that the host and the device see ----

enum { MEMORY_BYTES = 16 << 20 };
static struct vulkan_context context;
static struct vulkan_buffer memory;
static size_t used;
uint64_t array_seed;

struct vulkan_device *shader_device(void) { return context.device; }

int array_begin(void **state) {
    (void)state;
    used = 0;
    array_seed = 11;
    return 0;
}

struct array array_reserve(size_t n, size_t size) {
    const struct array a = {{(char *)memory.mapped + used}, memory.address + used, n};
    used += (n * size + 255) / 256 * 256;
    if (used > MEMORY_BYTES) panic("the tests' memory is too small");
    return a;
}

struct array array_copy(const void *data, size_t n, size_t size) {
    const struct array a = array_reserve(n, size);
    memcpy(a.host, data, n * size);
    return a;
}

struct array array_random(size_t n) {
    const struct array a = array_reserve(n, sizeof(float));
    for (size_t i = 0; i < n; i++) a.f[i] = random_value(&array_seed);
    return a;
}

struct array array_random_rows(int n, int columns, int stride) {
    const struct array a = array_random((size_t)(n * stride));
    for (int i = 0; i < n * stride; i++)
        if (i % stride >= columns) a.f[i] = 0;
    return a;
}

struct array array_of_ints(int n, const int32_t *values) { return array_copy(values, (size_t)n, sizeof *values); }

double *array_expect(const struct array *a) {
    double *want = xmalloc(a->n * sizeof *want);
    for (size_t i = 0; i < a->n; i++) want[i] = a->f[i];
    return want;
}

void array_check(const char *what, const struct array *got, double *want, double tolerance) {
    for (size_t i = 0; i < got->n; i++)
        if (!(fabs(got->f[i] - want[i]) <= FLT_MIN + tolerance * (1 + fabs(want[i]))))
            fail_msg("%s: %g at %zu, expected %g", what, got->f[i], i, want[i]);
    free(want);
}

void shader_dispatch(const char *shader, const uint32_t *constants, int n_constants, const void *push, size_t size,
                     int x, int y, int z) {
    struct status st = {0};
    const VkPipeline pipeline = vulkan_pipeline(context.device, shader, constants, n_constants, &st);
    if (!pipeline || !vulkan_begin(&context, &context.once, &st)) fail_msg("%s", st.text);
    vulkan_dispatch(&context, pipeline, push, size, (uint32_t)x, (uint32_t)y, (uint32_t)z);
    if (!vulkan_run_once(&context, &st)) fail_msg("%s", st.text);
}

// ---- quantised activations ----

struct piece codes_piece(const struct array *codes, int stride, size_t i) {
    const size_t pieces = (size_t)stride / 32, k = i % pieces;
    const uint8_t *row = codes->u8 + i / pieces * pieces * 48;
    return (struct piece){{(const int8_t *)row + 16 * k, (const int8_t *)row + 16 * (pieces + k)},
                          (const float *)(row + 32 * pieces + 8 * k),
                          (const float *)(row + 40 * pieces + 4 * k)};
}

struct array codes_for(const struct array *x) { return array_random(x->n / 32 * 48 / sizeof(float)); }

struct array codes_quantized(const struct array *from, int stride) {
    const int n = (int)from->n;
    const struct array codes = codes_for(from);
    const struct {
        VkDeviceAddress from, to;
        int32_t n, stride;
    } push = {from->address, codes.address, n / 4, stride / 4};
    DISPATCH("quantize", push, groups(push.n, 256), 1, 1, 0);
    return codes;
}

void codes_check_piece(struct piece got, const float *x) {
    float top = 0, sum[2] = {0};
    for (int k = 0; k < 32; k++) top = fabsf(x[k]) > top ? fabsf(x[k]) : top;
    if (!(fabsf(*got.scale - top / 127) <= 1e-6f * top)) fail_msg("scale %g of at most %g", *got.scale, top);
    for (int k = 0; k < 32; k++) {
        const int code = got.code[k / 16][k % 16];
        if (!(fabsf((float)code * *got.scale - x[k]) <= 0.501f * *got.scale))
            fail_msg("%g becomes %d × %g", x[k], code, *got.scale);
        sum[k / 16] += (float)code;
    }
    for (int i = 0; i < 2; i++)
        if (!(fabsf(got.sum[i] - sum[i] * *got.scale) <= 1e-5f * top))
            fail_msg("sum %g, not %g", got.sum[i], sum[i] * *got.scale);
}

void codes_check(const struct array *codes, const struct array *x, int stride) {
    for (size_t i = 0; i < x->n / 32; i++) codes_check_piece(codes_piece(codes, stride, i), x->f + 32 * i);
}

void codes_decode(const struct array *codes, const struct array *to, int stride) {
    for (size_t i = 0; i < to->n; i++) {
        const struct piece p = codes_piece(codes, stride, i / 32);
        to->f[i] = (float)p.code[i / 16 % 2][i % 16] * *p.scale;
    }
}

// ---- what shaders compute ----

void plain_norm(double *x, int n, int kind, double epsilon) {
    double mean = 0, squares = 0;
    for (int i = 0; i < n && kind == NORM_LAYER; i++) mean += x[i] / n;
    for (int i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean) / n;
    for (int i = 0; i < n && kind != NORM_NONE; i++) x[i] = (x[i] - mean) / sqrt(squares + epsilon);
}

double plain_sigmoid(double x) { return 1 / (1 + exp(-x)); }

double plain_activation(int kind, bool gated, double g, double u) {
    if (!gated) g = u, u = 1;
    switch (kind) {
    case ACTIVATION_SILU: return g * plain_sigmoid(g) * u;
    case ACTIVATION_GELU: return 0.5 * g * (1 + tanh(sqrt(2 / M_PI) * (g + 0.044715 * g * g * g))) * u;
    default: return fmin(g, 7) * plain_sigmoid(1.702 * fmin(g, 7)) * (fmax(-7, fmin(u, 7)) + 1);
    }
}

// ---- every size of subgroups ----

static void test_device(void **state) {
    (void)state;
    if (memory.mapped) return;
    print_message("no Vulkan device: skipped\n");
    skip();
}

static bool open_device(void) {
    struct status st = {0};
    VkPhysicalDevice physical;
    if (!vulkan_physical_devices(&physical, 1)) return false;
    if (vulkan_context_open(&context, physical, &st) &&
        vulkan_buffer_open(context.device, &memory, MEMORY_BYTES, VULKAN_MEMORY_READBACK, "tests", &st))
        return true;
    panic("%s", st.text);
}

// The sizes that pipelines may ask for, from the least to the greatest; both 0 where they may not.
static void subgroup_sizes(uint32_t *least, uint32_t *most) {
    VkPhysicalDeviceSubgroupSizeControlPropertiesEXT sizes = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES_EXT};
    VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &sizes};
    *least = *most = 0;
    if (!context.device->sizes_subgroups) return;
    vulkan_instance(NULL)->call.GetPhysicalDeviceProperties2(context.device->physical, &properties);
    if (!(sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT)) return;
    *least = sizes.minSubgroupSize;
    *most = sizes.maxSubgroupSize;
}

int shader_tests_run(const struct CMUnitTest *tests, size_t n) {
    const struct CMUnitTest without[] = {cmocka_unit_test(test_device)};
    uint32_t size, most;
    int failed = 0;
    if (!open_device()) return cmocka_run_group_tests(without, NULL, NULL);
    for (subgroup_sizes(&size, &most); size <= most; size = size ? 2 * size : 1) {
        print_message("subgroups of %u\n", size ? size : context.device->subgroup_size);
        context.device->wanted_subgroup_size = size;
        failed += _cmocka_run_group_tests("shaders", tests, n, NULL, NULL);
    }
    vulkan_buffer_close(context.device, &memory);
    vulkan_context_close(&context);
    return failed;
}

#endif
