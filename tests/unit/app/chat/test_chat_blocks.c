// The chat controller: messages and their blocks are copied, quoted and saved.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/panic.h"
#include "engine/base/reader.h"
#include "tests/unit/chat_fixture.h"

static void converse(void) {
    act(COMMAND_SEND, -1, "q");
    say(1, 1, "one\n\n```c\n// a.c\nint a;\n```\n\n| x | y |\n|---|---|\n| 1 | 2 |\n");
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
}

static void act_on_block(int message, int block, enum ui_command_id id, const char *text) {
    press(id, -1, text);
    screen.commands[0].message = screen.messages[message].id;
    screen.commands[0].block = block;
    pass(0.05);
}

static void check_file(const char *path, const char *expected) {
    struct status st = {0};
    size_t size;
    char *text = file_read_regular(path, 1000, &size, &st);
    assert_non_null(text);
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(text, expected, size);
    free(text);
}

static void test_a_block_is_copied_as_it_is_used(void **state) {
    (void)state;
    converse();
    act_on_block(1, 2, COMMAND_COPY, NULL);
    assert_string_equal(screen.status, "copied // a.c\nint a;\n");
    act_on_block(1, 3, COMMAND_COPY, NULL);
    assert_string_equal(screen.status, "copied x\ty\n1\t2\n");
    act_on_block(0, 1, COMMAND_COPY, NULL);
    assert_string_equal(screen.status, "copied q");
    act(COMMAND_COPY_ALL, -1, NULL);
    assert_non_null(strstr(screen.status, "int a;"));
    assert_non_null(strstr(screen.status, "q"));
}

static void test_a_message_or_block_is_quoted(void **state) {
    (void)state;
    converse();
    act_on_block(1, 1, COMMAND_QUOTE, NULL);
    assert_string_equal(screen.composer, "one");
    act_on_block(1, 2, COMMAND_QUOTE, NULL);
    assert_string_equal(screen.composer, "one```c\n// a.c\nint a;\n```"); // as it was written
}

static void test_code_is_saved_and_a_file_overwritten_only_when_asked(void **state) {
    (void)state;
    char path[128], said[160];
    snprintf(path, sizeof path, "%s/saved.c", folder);
    converse();
    act_on_block(1, 2, COMMAND_SAVE, NULL);
    assert_string_equal(screen.asked, "a.c");
    act_on_block(1, 2, COMMAND_SAVE, path);
    snprintf(said, sizeof said, "saved %s (14 B)", path);
    assert_string_equal(screen.status, said);
    check_file(path, "// a.c\nint a;\n");
    act_on_block(1, 3, COMMAND_SAVE, path);
    assert_true(screen.asks);
    check_file(path, "// a.c\nint a;\n");
    act(COMMAND_SAVE, -1, ""); // yes
    check_file(path, "x\ty\n1\t2\n");
    unlink(path);
    snprintf(path, sizeof path, "%s/none/saved.c", folder);
    act_on_block(1, 2, COMMAND_SAVE, path);
    assert_non_null(strstr(screen.status, "No such file"));
}

static void test_links_are_opened_by_the_desktops_program_alone(void **state) {
    (void)state;
    char program[128], opened[128], path[256], *before = getenv("PATH");
    snprintf(program, sizeof program, "%s/xdg-open", folder);
    snprintf(opened, sizeof opened, "%s/opened", folder);
    char *kept = before ? xstrdup(before) : NULL;
    FILE *f = fopen(program, "w");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\nprintf %%s \"$1\" > %s.part && mv %s.part %s\n", opened, opened, opened);
    assert_int_equal(fclose(f) || chmod(program, 0700), 0);
    snprintf(path, sizeof path, "%s:/usr/bin:/bin", folder);
    setenv("PATH", path, 1);
    act(COMMAND_LINKS, -1, "file:///etc/passwd");
    assert_non_null(strstr(screen.status, "not opened"));
    act(COMMAND_LINKS, -1, "https://a.org/'$(x)");
    assert_string_equal(screen.status, "opening https://a.org/'$(x)");
    for (int i = 0; i < 1000 && access(opened, F_OK); i++) usleep(10000);
    check_file(opened, "https://a.org/'$(x)");
    unlink(opened), unlink(program);
    setenv("PATH", "/nonexistent", 1);
    act(COMMAND_LINKS, -1, "https://a.org");
    assert_non_null(strstr(screen.status, "no xdg-open"));
    if (kept) setenv("PATH", kept, 1);
    free(kept);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CHAT_TEST(test_a_block_is_copied_as_it_is_used),
        CHAT_TEST(test_a_message_or_block_is_quoted),
        CHAT_TEST(test_links_are_opened_by_the_desktops_program_alone),
        CHAT_TEST(test_code_is_saved_and_a_file_overwritten_only_when_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
