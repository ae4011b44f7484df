// The committed manual pages match the templates and the program's tables; `make manuals` updates them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "app/commands/man.h"
#include "engine/base/panic.h"
#include "engine/base/reader.h"

static void test_pages_match_the_tables(void **state) {
    (void)state;
    static const char *const pages[] = {"man/confab.1", "man/confab.5", "man/confab-keys.7"};
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        struct status st = {0};
        char *template = xasprintf("%s.in", pages[i]), *made = NULL;
        size_t made_size, size;
        FILE *out = open_memstream(&made, &made_size);
        if (!man_write(out, template, &st)) fail_msg("%s", st.text);
        fclose(out);
        char *committed = file_read(pages[i], 1 << 20, &size, &st);
        if (!committed) fail_msg("%s", st.text);
        assert_string_equal(committed, made);
        free(committed);
        free(made);
        free(template);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pages_match_the_tables)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
