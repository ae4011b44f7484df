// The committed manual pages match the templates and the program's tables; `make manuals` updates them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "app/commands/man.h"
#include "engine/base/panic.h"
#include "engine/base/reader.h"

static void test_pages_match_the_tables(void **state) {
    (void)state;
    glob_t templates;
    assert_int_equal(glob("man/*.in", 0, NULL, &templates), 0);
    for (size_t i = 0; i < templates.gl_pathc; i++) {
        struct status st = {0};
        char *template = templates.gl_pathv[i], *made = NULL;
        char *page = xstrndup(template, strlen(template) - strlen(".in"));
        size_t made_size, size;
        FILE *out = open_memstream(&made, &made_size);
        if (!man_write(out, template, &st)) fail_msg("%s", st.text);
        fclose(out);
        char *committed = file_read(page, 1 << 20, &size, &st);
        if (!committed) fail_msg("%s", st.text);
        assert_string_equal(committed, made);
        free(committed);
        free(made);
        free(page);
    }
    globfree(&templates);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pages_match_the_tables)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
