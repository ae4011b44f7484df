// Model files: deleting and copying those in confab's own folder.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/models/model.h"
#include "app/models/model_files.h"
#include "engine/base/panic.h"
#include "engine/base/paths.h"
#include "tests/unit/temporary_folder.h"
#include "tests/unit/tiny_model.h"

static const char *home;

static char *in_home(const char *name) { return xasprintf("%s/%s", home, name); }

static void put(const char *name) {
    char *path = in_home(name);
    struct status st = {0};
    if (!path_make_parents(path, &st)) fail_msg("%s", st.text);
    tiny_model_write(path, (struct tiny_model_options){0});
    free(path);
}

static bool is_there(const char *name) {
    char *path = in_home(name);
    struct stat file;
    const bool there = !lstat(path, &file);
    free(path);
    return there;
}

static int start(void **state) {
    static const char *const unset[] = {"HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME", "LLAMA_CACHE", "OLLAMA_MODELS"};
    (void)state;
    home = temporary_folder_make();
    for (size_t i = 0; i < sizeof unset / sizeof *unset; i++) unsetenv(unset[i]);
    char *data = in_home("data");
    const int failed = setenv("HOME", home, 1) || setenv("XDG_DATA_HOME", data, 1);
    free(data);
    return failed;
}

static const struct model_entry *entry(const struct model_list *list, const char *name) {
    for (int i = 0; i < list->count; i++)
        if (!strcmp(list->entries[i].name, name)) return &list->entries[i];
    fail_msg("no %s in the list", name);
    return NULL;
}

static bool copy(const char *name, const char *to, struct status *st) {
    struct model_list list;
    models_scan(&list, &local_models);
    *st = (struct status){0};
    const bool done = model_files_copy(entry(&list, name), to, st);
    models_free(&list);
    return done;
}

static bool delete (const char *name, struct status *st) {
    struct model_list list;
    models_scan(&list, &local_models);
    *st = (struct status){0};
    const bool done = model_files_delete(entry(&list, name), st);
    models_free(&list);
    return done;
}

static void test_a_copy_is_another_name(void **state) {
    (void)state;
    struct status st;
    put("data/confab/models/one.gguf");
    assert_true(copy("one", "two", &st));
    assert_true(copy("two", "three:7b", &st)); // both are in the list
    assert_true(delete ("one", &st));
    assert_false(is_there("data/confab/models/one.gguf"));
    assert_true(delete ("two", &st));
    assert_true(is_there("data/confab/models/three:7b.gguf"));
    assert_true(delete ("three:7b", &st));
    assert_false(is_there("data/confab/models/three:7b.gguf"));
}

static void test_all_parts_are_copied_and_deleted(void **state) {
    (void)state;
    struct status st;
    put("data/confab/models/big-00001-of-00002.gguf");
    put("data/confab/models/big-00002-of-00002.gguf");
    assert_true(copy("big", "large", &st));
    assert_true(is_there("data/confab/models/large-00001-of-00002.gguf"));
    assert_true(is_there("data/confab/models/large-00002-of-00002.gguf"));
    assert_true(delete ("big", &st));
    assert_false(is_there("data/confab/models/big-00001-of-00002.gguf"));
    assert_false(is_there("data/confab/models/big-00002-of-00002.gguf"));
    put("data/confab/models/some-00002-of-00002.gguf"); // one of the parts exists
    assert_false(copy("large", "some", &st));
    assert_string_equal(st.text, "already exists");
    assert_false(is_there("data/confab/models/some-00001-of-00002.gguf"));
    assert_true(delete ("large", &st));
}

static void test_names_are_checked(void **state) {
    (void)state;
    static const char *const names[] = {"",    "../up",       "a/b",  ".hidden",    "-x",
                                        "a b", "caf\xc3\xa9", "a\nb", "x-mmproj-y", "x-00001-of-00002",
                                        "..",  "/etc/passwd"};
    struct status st;
    put("data/confab/models/one.gguf");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (copy("one", names[i], &st)) fail_msg("%s", names[i]);
        assert_int_equal(st.code, STATUS_USAGE);
    }
    char *longest = xmalloc(102);
    memset(longest, 'a', 101), longest[101] = 0;
    assert_false(copy("one", longest, &st));
    assert_true(copy("one", longest + 1, &st));
    assert_false(copy("one", longest + 1, &st)); // it exists
    free(longest);
}

// Of other programs they stay as they are, and copies of them are confab's.
static void test_files_of_others_are_not_deleted(void **state) {
    (void)state;
    struct status st;
    put(".lmstudio/models/theirs.gguf");
    assert_false(delete ("theirs", &st));
    assert_int_equal(st.code, STATUS_USAGE);
    assert_non_null(strstr(st.text, "not in confab's own folder of models"));
    assert_true(copy("theirs", "ours", &st));
    assert_true(delete ("ours", &st));
    assert_true(is_there(".lmstudio/models/theirs.gguf"));
    assert_false(delete ("guide", &st));
    assert_non_null(strstr(st.text, "built in"));
    assert_false(copy("guide", "another", &st));
}

// A link to a folder elsewhere does not make what is in there confab's; a link to a file is its own.
static void test_links_lead_nowhere(void **state) {
    (void)state;
    struct status st;
    put("elsewhere/far.gguf");
    char *folder = in_home("elsewhere"), *link = in_home("data/confab/models/link");
    char *file = in_home("elsewhere/far.gguf"), *name = in_home("data/confab/models/linked.gguf");
    assert_int_equal(symlink(folder, link), 0);
    assert_false(delete ("far", &st));
    assert_true(is_there("elsewhere/far.gguf"));
    unlink(link);
    assert_int_equal(symlink(file, name), 0);
    assert_true(delete ("linked", &st));
    assert_true(is_there("elsewhere/far.gguf"));
    assert_false(is_there("data/confab/models/linked.gguf"));
    free(folder), free(link), free(file), free(name);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_copy_is_another_name), cmocka_unit_test(test_all_parts_are_copied_and_deleted),
        cmocka_unit_test(test_names_are_checked),      cmocka_unit_test(test_files_of_others_are_not_deleted),
        cmocka_unit_test(test_links_lead_nowhere),
    };
    return cmocka_run_group_tests(tests, start, temporary_folder_teardown);
}
