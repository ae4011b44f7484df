// Tables and facts on standard output are aligned, and no wider than the terminal.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <locale.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/base/table.h"
#include "ui/canvas.h"

static const struct table_column columns[] = {{"NAME", false, 0}, {"WHAT", false, 2}, {"SIZE", true, 1}};

static struct table make_table(void) {
    struct table t;
    table_open(&t, columns, 3);
    table_add(&t, TABLE_PLAIN, 3, (const char *[]){"short", "of one kind", "1 B"});
    table_add(&t, TABLE_DIM, 3, (const char *[]){"日本語の名前", "of another", "12.5 MiB"});
    table_add(&t, TABLE_PLAIN, 3, (const char *[]){"a name that is rather long", "", "-"});
    return t;
}

static void print_all(FILE *out) {
    struct table t = make_table();
    table_print(&t, out);
    table_close(&t);
    fact_print(out, "label", "a text of many words that is to be wrapped where the terminal ends");
    fact_print(out, "", "and more");
    heading_print(out, "heading");
}

// Returns the output on a terminal of so many columns, without colours. The caller frees.
static char *on_terminal(int width, bool *coloured) {
    struct winsize size = {.ws_col = (unsigned short)width, .ws_row = 24};
    int master, slave;
    char *text = calloc(1, 8192), *to = text;
    assert_int_equal(openpty(&master, &slave, NULL, NULL, &size), 0);
    FILE *out = fdopen(slave, "w");
    print_all(out);
    fclose(out);
    size_t n = 0; // a terminal returns what it has, and an error after the end
    for (ssize_t got; (got = read(master, text + n, 8000 - n)) > 0;) n += (size_t)got;
    assert_true(n > 0 && n < 8000);
    close(master);
    *coloured = false;
    for (const char *from = text; *from; from++) {
        if (*from == '\r') continue;
        if (*from == '\033') *coloured = true, from += strcspn(from, "m");
        else *to++ = *from;
    }
    *to = 0;
    return text;
}

static void test_output_to_a_pipe_is_never_cut(void **state) {
    (void)state;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    print_all(out);
    fclose(out);
    assert_string_equal(text, "NAME                        WHAT             SIZE\n"
                              "short                       of one kind       1 B\n"
                              "日本語の名前                of another   12.5 MiB\n"
                              "a name that is rather long                      -\n"
                              "  label      a text of many words that is to be wrapped where the terminal ends\n"
                              "             and more\n"
                              "heading\n");
    free(text);
}

static void test_no_line_is_wider_than_the_terminal(void **state) {
    (void)state;
    for (int width = 34; width <= 90; width += 7) {
        bool coloured;
        char *text = on_terminal(width, &coloured), *rest = NULL;
        assert_true(coloured);
        for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
            if (text_width(line, strlen(line)) > width) fail_msg("at %d: %s", width, line);
        free(text);
    }
}

static void test_columns_are_dropped_and_names_cut(void **state) {
    (void)state;
    bool coloured;
    char *text = on_terminal(40, &coloured);
    assert_int_equal(strncmp(text, "NAME                            SIZE\n", 37), 0);
    free(text);
    text = on_terminal(34, &coloured);
    assert_non_null(strstr(text, "a name that is rather l…"));
    assert_non_null(strstr(text, "  label      a text of many words\n             that is to be"));
    free(text);
}

static void test_colours_can_be_turned_off(void **state) {
    (void)state;
    bool coloured;
    setenv("NO_COLOR", "1", 1);
    free(on_terminal(80, &coloured));
    unsetenv("NO_COLOR");
    assert_false(coloured);
    setenv("TERM", "dumb", 1);
    free(on_terminal(80, &coloured));
    setenv("TERM", "xterm", 1);
    assert_false(coloured);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_output_to_a_pipe_is_never_cut),
        cmocka_unit_test(test_no_line_is_wider_than_the_terminal),
        cmocka_unit_test(test_columns_are_dropped_and_names_cut),
        cmocka_unit_test(test_colours_can_be_turned_off),
    };
    setlocale(LC_ALL, "C.UTF-8");
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
