// README, CONTRIBUTING and the manual name only what there is: keys, options, commands of the screen, files.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/commands/command.h"
#include "engine/base/panic.h"
#include "engine/base/reader.h"
#include "ui/commands.h"

// What is no row of a table all the same, and is read in the papers.
struct exception {
    const char *name, *why;
    int seen;
};

static bool is_excepted(struct exception *list, const char *name) {
    for (struct exception *e = list; e->name; e++)
        if (!strcmp(e->name, name)) return ++e->seen;
    return false;
}

static void assert_all_seen(const struct exception *list) {
    for (const struct exception *e = list; e->name; e++)
        if (!e->seen) fail_msg("'%s' (%s) is read nowhere any more", e->name, e->why);
}

static const char *reading; // the paper

// The text of a paper without roff's escapes: \- is a hyphen, \(aq a quote, \fR nothing.
static char *paper_read(const char *path) {
    struct status st = {0};
    size_t size;
    char *text = file_read(path, 1 << 20, &size, &st), *to = text;
    if (!text) fail_msg("%s", st.text);
    reading = path;
    const bool roff = strstr(path, "man/") != NULL;
    for (const char *from = text; *from; from++) {
        if (!roff || *from != '\\') *to++ = *from;
        else if (!strncmp(from, "\\(aq", 4)) *to++ = '\'', from += 3;
        else if (from[1] == 'f') from += 2;
        else *to++ = *++from;
    }
    *to = 0;
    return text;
}

static void each_paper(void (*check)(const char *text)) {
    glob_t pages;
    assert_int_equal(glob("man/*.in", 0, NULL, &pages), 0);
    for (size_t i = 0; i <= pages.gl_pathc; i++) {
        char *text = paper_read(i < pages.gl_pathc ? pages.gl_pathv[i] : "README.md");
        check(text);
        free(text);
    }
    globfree(&pages);
}

static bool begins_word(const char *text, const char *at) {
    return at == text || !(isalnum((unsigned char)at[-1]) || strchr("+-_/.", at[-1]));
}

// ---- keys ----

static struct exception keys_of_no_command[] = {
    {"Alt+X", "an example of a key of one's own", 0},
    {"Ctrl+U", "the cursor over text, as in vi", 0},
    {"Ctrl+D", "the cursor over text, as in vi", 0},
    {"Shift+Tab", "the cursor over tokens", 0},
    {NULL, NULL, 0},
};

static bool is_key(const char *name) {
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (!strcmp(ui_commands[i].key, name)) return true;
    return is_excepted(keys_of_no_command, name);
}

// "Ctrl+N", "Alt+Shift+V", "F5" at the beginning of `at`; returns its length, 0: there is none.
static size_t key_at(const char *at) {
    static const char *const modifiers[] = {"Ctrl+", "Alt+", "Shift+"};
    const char *end = at;
    for (size_t i = 0; i < 3; i++)
        if (!strncmp(end, modifiers[i], strlen(modifiers[i]))) end += strlen(modifiers[i]);
    const char *name = end;
    while (isalnum((unsigned char)*end)) end++;
    if (name > at) return (size_t)(end - at) + (end == name && *end != '\n');
    const long number = *at == 'F' ? strtol(at + 1, NULL, 10) : 0;
    return number >= 1 && number <= 12 && strspn(at + 1, "0123456789") == (size_t)(end - at) - 1 ? (size_t)(end - at)
                                                                                                 : 0;
}

static void check_keys(const char *text) {
    static const char *const arrows[] = {"Shift+Left", "Shift+Right", "Shift+Up", "Shift+Down"};
    for (const char *at = text; *at; at++) {
        const size_t size = begins_word(text, at) ? key_at(at) : 0;
        char *name = xstrndup(at, size);
        if (!strcmp(name, "Alt+comma")) strcpy(name, "Alt+,");
        if (!strcmp(name, "Shift+arrows"))
            for (int i = 0; i < 4; i++) assert_true(is_key(arrows[i]));
        else if (size && !is_key(name)) fail_msg("%s: no command has the key %s", reading, name);
        free(name);
        at += size ? size - 1 : 0;
    }
}

static void test_keys_are_those_of_the_table(void **state) {
    (void)state;
    each_paper(check_keys);
    assert_all_seen(keys_of_no_command);
}

// ---- options ----

static struct exception options_of_others[] = {
    {"help", "every command has it", 0},
    {"version", "stands in a command's place", 0},
    {"summary", "vulkaninfo's", 0},
    {NULL, NULL, 0},
};

static void check_options(const char *text) {
    for (const char *at = text; (at = strstr(at, "--")); at += 2) {
        const size_t size = strspn(at + 2, "abcdefghijklmnopqrstuvwxyz-");
        char *name = xstrndup(at + 2, size);
        if (isalpha((unsigned char)*name) && begins_word(text, at) && setting_find(name) < 0 &&
            !is_excepted(options_of_others, name))
            fail_msg("%s: there is no option --%s", reading, name);
        free(name);
        at += size;
    }
}

static void test_options_are_those_of_the_table(void **state) {
    (void)state;
    each_paper(check_options);
    assert_all_seen(options_of_others);
}

// ---- commands ----

// Of those in backquotes, quotes or bold: "confab run".
static void check_commands(const char *text) {
    for (const char *at = text; (at = strstr(at, "confab ")); at++) {
        const char *name = at + strlen("confab ");
        const bool bold = at - text >= 3 && !strncmp(at - 3, ".B ", 3);
        char word[16] = "";
        snprintf(word, 1 + strspn(name, "abcdefghijklmnopqrstuvwxyz") % sizeof word, "%s", name);
        if (*word && (bold || (at > text && strchr("`/\"", at[-1]))) && !command_find(word))
            fail_msg("%s: there is no command %s", reading, word);
    }
}

static void test_commands_are_those_of_the_table(void **state) {
    (void)state;
    each_paper(check_commands);
}

// ---- commands of the screen, as messages ----

static void check_slashes(const char *text) {
    for (const char *at = text; (at = strpbrk(at, "`\"")); at++) {
        const size_t size = at[1] == '/' ? strspn(at + 2, "abcdefghijklmnopqrstuvwxyz-") : 0;
        char *name = xstrndup(at + 2, size);
        if (size && !strchr("/`", at[2 + size]) && ui_command_find(name, size) < 0 && setting_find(name) < 0)
            fail_msg("%s: there is no command /%s", reading, name);
        free(name);
    }
}

static void test_messages_with_a_slash_are_commands(void **state) {
    (void)state;
    each_paper(check_slashes);
}

// ---- files ----

static bool exists(const char *pattern) {
    glob_t found;
    const bool any = !glob(pattern, 0, NULL, &found);
    globfree(&found);
    return any;
}

// "engine/cpu/", "session_answer.c", "tests/kernels/test_shader_*.c"; what is built is there as its source.
static bool file_exists(const char *name) {
    static const char *const places[] = {"%s", "*/%s", "*/*/%s", "*/*/*/%s", "*/*/*/*/%s", NULL};
    char *built = strstr(name, "build/release/") == name ? xasprintf("%s.c", name + strlen("build/release/")) : NULL;
    bool any = built && exists(built);
    for (int i = 0; places[i] && !any && !built; i++) {
        if (i && strchr(name, '/') && name[strlen(name) - 1] != '/') break; // a path is one from the top
        char *pattern = xasprintf("%.*s%s", (int)(strlen(places[i]) - 2), places[i], name);
        any = exists(pattern);
        free(pattern);
    }
    free(built);
    return any;
}

// Whether what stands in backquotes is a file's name, and not a key, an option or a name of the code.
static bool is_file_name(const char *word) {
    static const char *const ends[] = {".c", ".h", ".md", ".sh", ".txt", ".svg", ".comp"};
    const size_t size = strlen(word);
    if (strcspn(word, " =$(<@:,") != size || strstr(word, "MODULE") || strstr(word, "DATE")) return false;
    if (!strncmp(word, "build/", 6) && !strstr(word, "/tests/")) return false; // made, with no source of its own
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (size > strlen(ends[i]) && !strcmp(word + size - strlen(ends[i]), ends[i])) return true;
    return *word != '/' && *word != '~' && strchr(word, '/');
}

static struct exception files_made[] = {
    {"./confab", "made by make", 0},
    {"tests/bench/records", "made by the first bench with RECORD=1", 0},
    {"tests/draft2020-12", "of the JSON-Schema-Test-Suite", 0},
    {NULL, NULL, 0},
};

static void test_files_that_the_tour_names_exist(void **state) {
    (void)state;
    int n = 0;
    char *text = paper_read("CONTRIBUTING.md");
    for (char *at = strchr(text, '`'); at; at = strchr(at + 1, '`')) {
        char *end = strchr(at + 1, '`');
        if (!end) break;
        char *name = xstrndup(at + 1, (size_t)(end - at) - 1);
        if (is_file_name(name) && ++n && !is_excepted(files_made, name) && !file_exists(name))
            fail_msg("CONTRIBUTING.md: %s is not there", name);
        free(name);
        at = end;
    }
    assert_true(n > 50);
    assert_all_seen(files_made);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_are_those_of_the_table),
        cmocka_unit_test(test_options_are_those_of_the_table),
        cmocka_unit_test(test_commands_are_those_of_the_table),
        cmocka_unit_test(test_messages_with_a_slash_are_commands),
        cmocka_unit_test(test_files_that_the_tour_names_exist),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
