// The loader of app/model.h: an engine opened on a thread of its own.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "app/model.h"

static void test_an_engine_comes(void **state) {
    (void)state;
    struct status st = {0};
    struct settings s = settings_default();
    s.threads = 1;
    struct model_file *file = model_open_file(NULL, &st);
    assert_non_null(file);
    struct model_loader *l = model_loader_start(file, &s);
    assert_true(model_loader_done(l, 60000));
    struct engine *engine = model_loader_take(l, &st);
    assert_non_null(engine);
    engine_close(engine);
    model_file_close(file);
    settings_free(&s);
}

static void test_a_failure_says_why(void **state) {
    (void)state;
    struct status st = {0};
    struct settings s = settings_default();
    s.threads = 1;
    s.kv_tokens = 16777216;
    struct model_file *file = model_open_file(NULL, &st);
    assert_null(model_loader_take(model_loader_start(file, &s), &st)); // which waits
    assert_string_not_equal(st.text, "");
    model_file_close(file);
    settings_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_engine_comes),
        cmocka_unit_test(test_a_failure_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
