// The chat controller: the message is edited in another program, files and what commands print come into it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/base/reader.h"
#include "tests/unit/chat_fixture.h"

// ---- the editor ----

static void edit_with(const char *editor) {
    unsetenv("VISUAL");
    setenv("EDITOR", editor, 1);
    act(COMMAND_EDITOR, -1, NULL);
    for (int i = 0; i < 10000 && chat->editor; i++) step(), usleep(1000);
    assert_null(chat->editor);
    assert_false(screen.lent);
    pass(0.1);
}

static void test_the_editor_edits_what_is_written(void **state) {
    (void)state;
    setenv("TMPDIR", folder, 1);
    type("one\ntwo");
    edit_with("sed -i s/two/three/");
    assert_string_equal(screen.composer, "one\nthree");
    setenv("VISUAL", "sed -i s/one/four/", 1); // before EDITOR
    act(COMMAND_EDITOR, -1, NULL);
    assert_true(screen.lent);
    for (int i = 0; i < 10000 && chat->editor; i++) step(), usleep(1000);
    assert_string_equal(screen.composer, "four\nthree");
    edit_with("true");
    assert_string_equal(screen.composer, "four\nthree");
}

static void test_an_editor_that_fails_changes_nothing(void **state) {
    (void)state;
    setenv("TMPDIR", folder, 1);
    type("one");
    edit_with("sh -c 'echo two > \"$0\"; exit 3'");
    assert_string_equal(screen.composer, "one");
    const char *saved = strstr(screen.status, "exit status 3; the message stays as it was, what was saved is in ");
    assert_non_null(saved);
    size_t size;
    char *kept = file_read(strrchr(saved, ' ') + 1, 100, &size, NULL);
    assert_string_equal(kept, "two\n");
    free(kept);
    edit_with("sh -c 'exit 4'");
    assert_string_equal(strstr(screen.status, "; the message"), "; the message stays as it was");
    edit_with("/nowhere/editor");
    assert_string_equal(screen.composer, "one");
    assert_string_equal(screen.status, "/nowhere/editor: not found (set EDITOR to your editor)");
    edit_with("rm");
    assert_string_equal(screen.composer, "one");
    setenv("TMPDIR", "/nowhere", 1);
    edit_with("true");
    assert_non_null(strstr(screen.status, "cannot be written"));
    setenv("TMPDIR", folder, 1);
}

static void test_the_editor_edits_any_message(void **state) {
    (void)state;
    setenv("TMPDIR", folder, 1);
    act(COMMAND_SEND, -1, "q");
    say(1, 1, "An answer.");
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    setenv("EDITOR", "sed -i s/An/The/", 1);
    unsetenv("VISUAL");
    act_on(1, COMMAND_EDITOR);
    for (int i = 0; i < 10000 && chat->editor; i++) step(), usleep(1000);
    assert_string_equal(screen.composer, "The answer.");
    assert_string_equal(screen.view.editing, "the answer");
    act(COMMAND_SEND, -1, "The answer.");
    assert_message(1, VIEW_MODEL, "The answer.");
    assert_int_equal(screen.messages[1].n_versions, 2);
}

static void test_the_editor_edits_a_long_setting(void **state) {
    (void)state;
    setenv("TMPDIR", folder, 1);
    setenv("EDITOR", "sed -i s/brief/kind/", 1);
    unsetenv("VISUAL");
    type("a draft");
    act(COMMAND_SETTINGS, 0, "system Be brief.\nAlways.");
    act(COMMAND_EDITOR, 0, "system");
    for (int i = 0; i < 10000 && chat->editor; i++) step(), usleep(1000);
    assert_string_equal(screen.composer, "a draft");
    act(COMMAND_SEND, -1, "q");
    assert_string_equal(engine.prompt, "system: Be kind.\nAlways.|user: q|");
}

// What is said meanwhile is not lost.
static void test_answers_go_on_while_the_editor_is_open(void **state) {
    (void)state;
    setenv("TMPDIR", folder, 1);
    act(COMMAND_SEND, -1, "q");
    char *editor = xasprintf("sh -c 'while [ ! -e %s/go ]; do sleep 0.01; done' --", folder);
    setenv("EDITOR", editor, 1);
    free(editor);
    act(COMMAND_EDITOR, -1, NULL);
    say(1, 1, "said");
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    assert_true(screen.lent);
    assert_message(1, VIEW_MODEL, "said");
    char *go = xasprintf("%s/go", folder);
    fclose(fopen(go, "w"));
    free(go);
    for (int i = 0; i < 10000 && chat->editor; i++) step(), usleep(1000);
    assert_false(screen.lent);
}

// ---- files and commands ----

static void attach(const char *name, const char *bytes, size_t size) {
    char *path = xasprintf("%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    fwrite(bytes, 1, size, f);
    fclose(f);
    act(COMMAND_ATTACH, -1, path);
    pass(0.1);
    free(path);
}

static void test_a_text_file_is_attached_as_a_block(void **state) {
    (void)state;
    type("See ");
    attach("a.py", "print('x')\n", 11);
    assert_string_equal(screen.composer, "See a.py:\n```py\nprint('x')\n```\n");
    assert_non_null(strstr(screen.status, "a.py: 11 B"));
    assert_non_null(strstr(screen.status, "about 7 tokens"));
    screen.composer[0] = 0;
    attach("b.md", "```\ncode\n```", 12); // its own fences do not end it, nor does it lack a newline
    assert_string_equal(screen.composer, "b.md:\n````md\n```\ncode\n```\n````\n");
    screen.composer[0] = 0;
    attach("häß.txt", "grün\n", 6);
    assert_non_null(strstr(screen.composer, "grün"));
}

static void test_what_is_no_text_is_refused(void **state) {
    (void)state;
    attach("binary", "ab\0cd", 5);
    assert_non_null(strstr(screen.status, "/binary: not a text"));
    attach("latin", "gr\xfcn\n", 5);
    assert_non_null(strstr(screen.status, "/latin: not a text"));
    attach("empty", "", 0);
    assert_non_null(strstr(screen.status, "/empty: is empty"));
    char *large = xcalloc(1, 2 << 20);
    memset(large, 'x', 2 << 20);
    attach("large", large, 2 << 20);
    free(large);
    assert_non_null(strstr(screen.status, "/large: too large"));
    act(COMMAND_ATTACH, -1, folder);
    pass(0.1);
    assert_non_null(strstr(screen.status, ": not a regular file"));
    act(COMMAND_ATTACH, -1, "/nowhere/x");
    pass(0.1);
    assert_string_equal(screen.status, "/nowhere/x: No such file or directory");
    assert_string_equal(screen.composer, "");
}

static void test_what_a_command_prints_is_inserted(void **state) {
    (void)state;
    act(COMMAND_INSERT, -1, "echo out; echo err >&2; cat");
    pass(0.1);
    assert_string_equal(screen.composer, "$ echo out; echo err >&2; cat:\n```\nout\nerr\n```\n");
    act(COMMAND_INSERT, -1, "true");
    pass(0.1);
    assert_string_equal(screen.status, "true: prints nothing");
    act(COMMAND_INSERT, -1, "yes");
    pass(0.1);
    assert_string_equal(screen.status, "yes: prints too much");
}

// It does not keep confab from ending, nor does it outlive it.
static void test_a_command_that_runs_is_stopped_at_the_end(void **state) {
    (void)state;
    press(COMMAND_INSERT, -1, "exec sleep 1000");
    step();
    assert_true(close_chat());
    open_chat();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CHAT_TEST(test_the_editor_edits_what_is_written),
        CHAT_TEST(test_an_editor_that_fails_changes_nothing),
        CHAT_TEST(test_the_editor_edits_any_message),
        CHAT_TEST(test_the_editor_edits_a_long_setting),
        CHAT_TEST(test_answers_go_on_while_the_editor_is_open),
        CHAT_TEST(test_a_text_file_is_attached_as_a_block),
        CHAT_TEST(test_what_is_no_text_is_refused),
        CHAT_TEST(test_what_a_command_prints_is_inserted),
        CHAT_TEST(test_a_command_that_runs_is_stopped_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
