// The tree: every message has one row, branches hang beside the path, pages are counted once where they are shared.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/xorshift.h"
#include "ui/tree.h"

enum { MOST = 200, PAGE = 16 };

static struct view_node nodes[MOST];
static int n_nodes;
static struct tree tree;

static int begin(void **state) {
    (void)state;
    n_nodes = 0;
    return 0;
}

static int end(void **state) {
    (void)state;
    tree_free(&tree);
    return 0;
}

// As the latest one is: chosen.
static int add(int parent, int tokens) {
    int before = parent >= 0 ? nodes[parent].tokens : 0;
    nodes[n_nodes] = (struct view_node){
        .id = (uint64_t)n_nodes + 1, .parent = parent, .chosen = -1, .on_path = parent < 0, .tokens = before + tokens};
    if (parent >= 0) nodes[parent].chosen = n_nodes;
    for (int i = 0; parent < 0 && i < n_nodes; i++) nodes[i].on_path = false;
    return n_nodes++;
}

static void assert_rows(const char *expected) {
    char text[4096] = "";
    tree_layout(&tree, nodes, n_nodes, PAGE);
    for (int i = 0; i < tree.n_rows; i++) {
        const struct tree_row *r = &tree.rows[i];
        sprintf(text + strlen(text), "%*s%s%d\n", 2 * r->lane, "", r->begins ? "+" : "", r->node);
    }
    assert_string_equal(text, expected);
}

static void test_a_path_is_a_straight_line(void **state) {
    (void)state;
    add(add(add(-1, 5), 5), 5);
    assert_rows("0\n1\n2\n");
    assert_int_equal(tree.branches, 1);
    assert_int_equal(tree.pages, 1);
    assert_int_equal(tree.unshared, 1);
}

static void test_versions_hang_beside_the_chosen_one(void **state) {
    (void)state;
    int question = add(-1, 5), one = add(question, 5);
    add(one, 5);
    add(question, 5);
    int three = add(question, 5);
    assert_rows("0\n  +1\n  2\n  +3\n4\n");
    nodes[question].chosen = one;
    assert_rows("0\n  +3\n  +4\n1\n2\n");
    add(three, 5), add(three, 5); // a branch of a branch
    assert_rows("0\n  +3\n  +4\n    +5\n  6\n1\n2\n");
}

static void test_first_messages_have_versions_too(void **state) {
    (void)state;
    add(add(-1, 5), 5);
    add(add(-1, 5), 5);
    assert_rows("  +0\n  1\n2\n3\n");
    assert_int_equal(tree.branches, 2);
}

static void test_an_empty_chat_has_an_empty_tree(void **state) {
    (void)state;
    tree_layout(&tree, NULL, 0, PAGE);
    assert_int_equal(tree.n_rows, 0);
}

static void test_what_is_pruned_has_no_row(void **state) {
    (void)state;
    int question = add(-1, 5), one = add(question, 5), reply = add(one, 5);
    add(question, 5);
    nodes[one].id = nodes[reply].id = 0;
    assert_rows("0\n3\n");
    nodes[0].id = 0;
    tree_layout(&tree, nodes, 1, PAGE);
    assert_int_equal(tree.n_rows, 0);
    tree_layout(&tree, nodes, 0, PAGE);
    assert_int_equal(tree.n_rows, 0);
}

static void test_pages_before_a_fork_are_shared(void **state) {
    (void)state;
    int question = add(-1, 40), one = add(question, 100); // 140 tokens are 9 pages, of 40 two are full
    add(one, 20);
    add(question, 8);
    tree_layout(&tree, nodes, n_nodes, PAGE);
    assert_int_equal(tree.rows[1].node, one);
    assert_int_equal(tree.rows[1].shared, 2);
    assert_int_equal(tree.rows[1].own, 10 - 2); // to the end of the branch
    assert_int_equal(tree.rows[3].shared, 2);
    assert_int_equal(tree.rows[3].own, 1);
    assert_int_equal(tree.pages, 3 + 8);
    assert_int_equal(tree.unshared, 3 + 10);
    tree_layout(&tree, nodes, n_nodes, 0); // in tokens
    assert_int_equal(tree.rows[1].own, 120);
    assert_int_equal(tree.rows[1].shared, 40);
}

static void check_random_tree(uint64_t *random) {
    n_nodes = 0;
    int n = 1 + (int)xorshift_below(random, MOST - 1), live = 0;
    for (int i = 0; i < n; i++) add((int)xorshift_below(random, (uint32_t)i + 1) - 1, (int)xorshift_below(random, 50));
    for (int i = 0; i < n; i++) {
        bool gone = nodes[i].parent >= 0 && !nodes[nodes[i].parent].id;
        if (gone || (!nodes[i].on_path && !xorshift_below(random, 8) && nodes[i].parent >= 0 &&
                     nodes[nodes[i].parent].chosen != i))
            nodes[i].id = 0;
        live += nodes[i].id != 0;
    }
    tree_layout(&tree, nodes, n_nodes, PAGE);
    assert_int_equal(tree.n_rows, live);
    int seen[MOST], ends = 0;
    memset(seen, -1, sizeof seen);
    for (int i = 0; i < live; i++) {
        const struct tree_row *r = &tree.rows[i];
        const struct view_node *m = &nodes[r->node];
        assert_int_equal(seen[r->node], -1);
        seen[r->node] = i;
        assert_true(r->own >= 0 && r->shared >= 0);
        ends += m->chosen < 0;
        if (m->parent < 0) continue;
        assert_true(seen[m->parent] >= 0); // below the one before it
        int lane = tree.rows[seen[m->parent]].lane;
        assert_int_equal(r->lane, nodes[m->parent].chosen == r->node ? lane : lane + 1);
        assert_int_equal(r->begins, nodes[m->parent].chosen != r->node);
    }
    assert_int_equal(ends, tree.branches);
    assert_int_equal(tree.rows[live - 1].lane, 0);
    assert_true(tree.pages <= tree.unshared);
}

static void test_random_trees_are_whole(void **state) {
    (void)state;
    uint64_t random = 2463534242u;
    for (int i = 0; i < 300; i++) check_random_tree(&random);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_path_is_a_straight_line, begin, end),
        cmocka_unit_test_setup_teardown(test_versions_hang_beside_the_chosen_one, begin, end),
        cmocka_unit_test_setup_teardown(test_first_messages_have_versions_too, begin, end),
        cmocka_unit_test_setup_teardown(test_an_empty_chat_has_an_empty_tree, begin, end),
        cmocka_unit_test_setup_teardown(test_what_is_pruned_has_no_row, begin, end),
        cmocka_unit_test_setup_teardown(test_pages_before_a_fork_are_shared, begin, end),
        cmocka_unit_test_setup_teardown(test_random_trees_are_whole, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
