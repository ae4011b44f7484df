// How matmuls are divided for devices that this machine lacks, with a pass that records no commands.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#ifndef CONFAB_VULKAN

static void test_nothing(void **state) {
    (void)state;
    print_message("built without Vulkan: skipped\n");
    skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

#include "engine/vulkan/cooperative.h"
#include "engine/vulkan/matmuls.h"

// ---- a pass, in the place of engine/vulkan/pass.c ----

static struct {
    uint32_t grouped, cooperative, blocks; // columns of the tiles; 0: the shader was not run
} ran;

void pass_run(struct pass *p, const char *shader, const uint32_t *constants, int n, const void *push, size_t size,
              uint32_t x, uint32_t y, uint32_t z) {
    (void)p, (void)n, (void)push, (void)size, (void)x, (void)y, (void)z;
    if (!strcmp(shader, "group")) ran.grouped = constants[1];
    if (!strcmp(shader, "cooperative")) ran.cooperative = constants[1];
    if (!strncmp(shader, "matmul_", 7)) ran.blocks = 8 * constants[0];
}

void pass_barrier(struct pass *p) { (void)p; }

void pass_end_stage(struct pass *p, enum backend_stage stage) { (void)p, (void)stage; }

// ---- devices with cooperative matrices ----

static void for_each_device(void (*check)(struct vulkan_device *d)) {
    static const struct cooperative_shape shapes[] = {{4, 4, 8},  {8, 4, 8},   {8, 8, 8},    {8, 8, 16},  {8, 16, 16},
                                                      {16, 8, 8}, {16, 8, 16}, {16, 16, 16}, {16, 16, 32}};
    static struct vulkan_device d;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (uint32_t size = 4; size <= 128; size *= 2)
            for (uint32_t shared = 32 << 10; shared <= 64 << 10; shared += 16 << 10) {
                d = (struct vulkan_device){
                    .cooperative = shapes[i], .subgroup_size = size, .shared_bytes = shared, .widening_rows = 1};
                check(&d);
            }
}

static void check_constants(struct vulkan_device *d) {
    const struct cooperative_shape *s = &d->cooperative;
    for (uint32_t rows = 32; rows <= 128; rows *= 2)
        for (uint32_t columns = 16; columns <= 128; columns *= 2) {
            const struct cooperative_constants c =
                cooperative_constants(d, (struct cooperative_tile){rows, columns}, false);
            assert_true(c.rows <= rows && c.columns <= columns && c.columns >= 16);
            assert_true(cooperative_shared_bytes(&c) <= d->shared_bytes);
            assert_int_equal(c.threads % c.subgroup_size, 0);
            assert_in_range(c.threads, c.subgroup_size, 256);
            const uint32_t across = c.threads / c.subgroup_size / c.down;
            assert_int_equal(c.threads, c.down * across * c.subgroup_size);
            assert_int_equal(c.rows % (c.down * s->m), 0);
            assert_int_equal(c.columns % (across * s->n), 0);
            assert_in_range(c.rows / c.down / s->m, 1, 2);
            assert_in_range(c.columns / across / s->n, 1, 4);
        }
}

static void test_tiles_are_whole_fragments(void **state) {
    (void)state;
    for_each_device(check_constants);
}

static void run_experts(struct vulkan_device *d, const struct block_format *format, int n_slots) {
    enum { N_EXPERTS = 8, ROWS = 256, COLUMNS = 256 };
    static struct model_spec spec = {.experts = {.count = N_EXPERTS, .used = 2}};
    struct backend b = {.spec = &spec, .context.device = d, .work.widened_bytes = 8 << 20};
    struct pass p = {.b = &b, .ok = true};
    const struct device_matrix matrix = {format, 0, ROWS, COLUMNS};
    const struct rows rows = {0, COLUMNS, (uint32_t)n_slots, 0};
    memset(&ran, 0, sizeof ran);
    matmuls_group(&p, (uint32_t)n_slots);
    matmuls_run(&p, &(struct matmul){.matrix = &matrix, .from = &rows, .to = &rows, .scale = 1, .choices = 1}, 1);
}

// Slots that experts have few of, some and many of.
static void check_experts(struct vulkan_device *d) {
    for (int n_slots = 64; n_slots <= 1024; n_slots *= 2) {
        run_experts(d, &block_formats[BLOCK_Q8_0], n_slots);
        assert_true(ran.cooperative);
        assert_int_equal(ran.grouped, ran.cooperative);
        run_experts(d, &block_formats[BLOCK_F32], n_slots);
        assert_true(ran.blocks);
        assert_int_equal(ran.grouped, ran.blocks);
    }
}

static void test_experts_are_grouped_into_the_tiles_that_are_multiplied(void **state) {
    static struct vulkan_device none;
    (void)state;
    for_each_device(check_experts);
    run_experts(&none, &block_formats[BLOCK_Q8_0], 1024);
    assert_true(ran.blocks && !ran.cooperative);
    assert_int_equal(ran.grouped, ran.blocks);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiles_are_whole_fragments),
        cmocka_unit_test(test_experts_are_grouped_into_the_tiles_that_are_multiplied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
