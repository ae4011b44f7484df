// The devices there are, and what stands for one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/serve/registry.h"

static void test_every_device_is_found_by_its_name(void **state) {
    (void)state;
    struct device all[DEVICE_MOST];
    const int n = device_list(all);
    assert_true(n >= 1);
    for (int i = 0; i < n; i++) {
        struct placement_part found[REGISTRY_MOST];
        struct status st = {0};
        char name[16];
        int count = 0;
        assert_true(*all[i].description && registry_find(all[i].name, found, &count, &st));
        assert_int_equal(count, i > 0); // the first is the processor
        if (count) placement_part_name(&found[0], name);
        assert_string_equal(count ? name : "cpu", all[i].name);
        for (int k = 0; k < i; k++) assert_string_not_equal(all[i].name, all[k].name);
    }
}

static void test_the_processor_is_a_device_with_the_machines_memory(void **state) {
    (void)state;
    struct device all[DEVICE_MOST];
    int i = 0;
    for (const int n = device_list(all); strcmp(all[i].name, "cpu"); i++) assert_true(i < n - 1);
    assert_int_equal(all[i].n_heaps, 1);
    assert_true(all[i].heaps[0].bytes >= all[i].heaps[0].free && all[i].heaps[0].free > 1 << 20);
    assert_non_null(strchr(all[i].description, ',')); // the processor's name, and its instruction set
}

static void test_limits_are_those_of_the_named_device(void **state) {
    (void)state;
    struct device_limits limits;
    struct status st = {0};
    assert_false(device_limits("cpu", &limits, &st));
    assert_int_equal(st.code, STATUS_UNSUPPORTED);
    assert_false(device_limits("abacus", &limits, &st));
    assert_int_equal(st.code, STATUS_USAGE);
}

static void test_unknown_devices_are_refused_with_the_list(void **state) {
    (void)state;
    struct placement_part found[REGISTRY_MOST];
    struct status st = {0};
    int n;
    assert_false(registry_find("abacus", found, &n, &st));
    assert_int_equal(st.code, STATUS_USAGE);
    assert_non_null(strstr(st.text, "unknown device 'abacus' (expected auto"));
    assert_non_null(strstr(st.text, "cpu"));
    assert_true(registry_find(NULL, found, &n, &st) && registry_find("auto", found, &n, &st));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_device_is_found_by_its_name),
        cmocka_unit_test(test_the_processor_is_a_device_with_the_machines_memory),
        cmocka_unit_test(test_limits_are_those_of_the_named_device),
        cmocka_unit_test(test_unknown_devices_are_refused_with_the_list),
    };
    return cmocka_run_group_tests_name("registry", tests, NULL, NULL);
}
