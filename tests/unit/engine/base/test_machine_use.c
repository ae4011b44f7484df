// Machine use: energy is the sum of the packages, and processor time is never more than there was.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/machine_use.h"
#include "engine/base/panic.h"

static char folder[] = "/tmp/confab-use-XXXXXX";

static void write_zone(const char *name, const char *text) {
    char *zone = xasprintf("%s/%s", folder, name), *path = xasprintf("%s/energy_uj", zone);
    mkdir(zone, 0700);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    free(zone), free(path);
}

static void remove_zone(const char *name) {
    char *zone = xasprintf("%s/%s", folder, name), *path = xasprintf("%s/energy_uj", zone);
    unlink(path), rmdir(zone);
    free(zone), free(path);
}

static void energy_is_that_of_the_packages(void **state) {
    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_true(isnan(machine_use_joules(folder)));
    write_zone("intel-rapl:0", "2500000\n");
    write_zone("intel-rapl:1", "1500000\n");
    write_zone("intel-rapl:0:0", "7000000\n"); // a part of the first
    assert_float_equal(machine_use_joules(folder), 4, 1e-9);
    write_zone("intel-rapl:1", "not a number\n");
    assert_float_equal(machine_use_joules(folder), 2.5, 1e-9);
    write_zone("intel-rapl:0", "");
    assert_true(isnan(machine_use_joules(folder)));
    remove_zone("intel-rapl:0"), remove_zone("intel-rapl:1"), remove_zone("intel-rapl:0:0");
    rmdir(folder);
}

static void processor_time_grows_with_work(void **state) {
    (void)state;
    const struct machine_use before = machine_use_now();
    volatile double sum = 0;
    struct machine_use now = before;
    while (now.own < before.own + 0.05) {
        for (int i = 0; i < 100000; i++) sum = sum + i;
        now = machine_use_now();
    }
    if (isnan(before.all)) skip();
    assert_true(now.all >= before.all);
    assert_true(now.busy <= now.all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(energy_is_that_of_the_packages),
        cmocka_unit_test(processor_time_grows_with_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
