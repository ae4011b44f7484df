// NUMA nodes from made-up system folders, since machines with several are rare.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/mempolicy.h>

#include <cmocka.h>

#include "engine/base/arena.h"
#include "engine/base/numa.h"
#include "tests/unit/temporary_folder.h"

// A folder with nodes of these processor lists; NULL: no such node.
static struct numa read_nodes(const char *name, const char *const *lists, int n, const cpu_set_t *allowed) {
    char folder[256], path[300];
    struct numa numa;
    static const char *base;
    if (!base) base = temporary_folder_make();
    assert_non_null(base);
    snprintf(folder, sizeof folder, "%s/%s", base, name);
    assert_int_equal(mkdir(folder, 0700), 0);
    for (int i = 0; i < n; i++) {
        if (!lists[i]) continue;
        snprintf(path, sizeof path, "%s/node%d", folder, i);
        assert_int_equal(mkdir(path, 0700), 0);
        snprintf(path, sizeof path, "%s/node%d/cpulist", folder, i);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs(lists[i], f);
        fclose(f);
    }
    numa_read(&numa, folder, allowed);
    return numa;
}

static cpu_set_t processors(int first, int end) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = first; i < end; i++) CPU_SET(i, &set);
    return set;
}

static void nodes_are_read(void **state) {
    (void)state;
    const char *lists[] = {"0-3,8-11\n", NULL, "4,5,6-7,12-15\n", "\n"};
    const cpu_set_t all = processors(0, 64);
    struct numa numa = read_nodes("read", lists, 4, &all);
    assert_int_equal(numa.n_nodes, 2); // node 3 has memory only
    assert_int_equal(numa.ids[0], 0);
    assert_int_equal(numa.ids[1], 2);
    for (int i = 0; i < 16; i++) {
        assert_int_equal(!!CPU_ISSET(i, &numa.processors[0]), i % 8 < 4);
        assert_int_equal(!!CPU_ISSET(i, &numa.processors[1]), i % 8 >= 4);
    }
    assert_int_equal(CPU_COUNT(&numa.processors[0]), 8);
}

static void invalid_lists_end_at_the_error(void **state) {
    (void)state;
    const struct {
        const char *list;
        int first, count;
    } cases[] = {
        {"1-", 0, 0},   {"3-2\n", 0, 0}, {"-5-6", 0, 0},    {"x", 0, 0},
        {"0,,4", 0, 1}, {"7 9", 7, 1},   {"2000000", 0, 0}, {"5-99999999\n", 5, 3},
    };
    enum { CASES = sizeof cases / sizeof *cases };
    const char *lists[CASES];
    const cpu_set_t all = processors(0, 8);
    for (int i = 0; i < CASES; i++) lists[i] = cases[i].list;
    struct numa numa = read_nodes("strange", lists, CASES, &all);
    int found = 0;
    for (int i = 0; i < CASES; i++) {
        if (!cases[i].count) continue;
        assert_in_range(found, 0, numa.n_nodes - 1);
        assert_int_equal(numa.ids[found], i);
        assert_true(CPU_ISSET(cases[i].first, &numa.processors[found]));
        assert_int_equal(CPU_COUNT(&numa.processors[found]), cases[i].count);
        found++;
    }
    assert_int_equal(found, numa.n_nodes);
}

static void one_node_changes_nothing(void **state) {
    (void)state;
    const char *lists[] = {"0-3", "4-7"};
    const cpu_set_t all = processors(0, 8), half = processors(4, 8);
    char memory[64];
    struct numa numa = read_nodes("half", lists, 2, &half); // confined to one of two
    assert_int_equal(numa.n_nodes, 1);
    assert_int_equal(numa.ids[0], 1);
    assert_null(numa_processors(&numa, 0, 2));
    assert_true(numa_spread(&numa, memory, sizeof memory));
    numa = read_nodes("none", lists, 0, &all);
    assert_int_equal(numa.n_nodes, 0);
    assert_null(numa_processors(&numa, 0, 2));
}

static void workers_are_placed(void **state) {
    (void)state;
    const char *lists[] = {"0-3", "4-15"};
    const cpu_set_t all = processors(0, 16);
    struct numa numa = read_nodes("placed", lists, 2, &all);
    const struct { int workers, first; } cases[] = {{16, 4}, {8, 2}, {4, 1}, {2, 0}, {1, 0}, {64, 16}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int k = 0; k < cases[i].workers; k++)
            assert_ptr_equal(numa_processors(&numa, k, cases[i].workers), &numa.processors[k >= cases[i].first]);
}

static void memory_is_interleaved(void **state) {
    (void)state;
    const char *lists[] = {"0-3", "4-7"};
    const cpu_set_t all = processors(0, 8);
    struct numa numa = read_nodes("spread", lists, 2, &all); // only node 0 exists
    enum { SIZE = 4 << 20 };
    char *memory = region_alloc(SIZE);
    int policy = -1;
    assert_non_null(memory);
    if (!numa_spread(&numa, memory, SIZE) ||
        syscall(SYS_get_mempolicy, &policy, NULL, 0, memory + SIZE / 2, MPOL_F_ADDR)) {
        print_message("no memory policies on this system: skipped\n");
        region_free(memory, SIZE);
        skip();
    }
    assert_int_equal(policy, MPOL_INTERLEAVE);
    memset(memory, 1, SIZE);
    region_free(memory, SIZE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_read),           cmocka_unit_test(invalid_lists_end_at_the_error),
        cmocka_unit_test(one_node_changes_nothing), cmocka_unit_test(workers_are_placed),
        cmocka_unit_test(memory_is_interleaved),
    };
    return cmocka_run_group_tests_name("memory nodes", tests, NULL, temporary_folder_teardown);
}
