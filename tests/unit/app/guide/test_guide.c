// What the guide says about keys, numbers and names (app/guide/said.txt) agrees with the program's tables, and its chat
// template renders chats as in its training.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/guide/guide.h"
#include "engine/base/panic.h"
#include "engine/model_file.h"
#include "ui/keys.h"

static json_t *tables_load(void) {
    const char *program = getenv("CONFAB");
    char *command = xasprintf("'%s' help --json", program ? program : "./confab");
    FILE *output = popen(command, "r");
    assert_non_null(output);
    json_error_t error;
    json_t *tables = json_loadf(output, 0, &error);
    if (!tables) fail_msg("%s: %s", command, error.text);
    assert_int_equal(pclose(output), 0);
    free(command);
    return tables;
}

// Keys of both notations become one: C-p and Ctrl+P are "ctrl+p".
static void key_normalise(const char *key, char *out, size_t size) {
    static const char *const modifiers[][2] = {{"ctrl", "c"}, {"alt", "m"}, {"shift", "s"}};
    size_t n = 0;
    *out = '\0';
    for (const char *part = key; *part;) {
        size_t length = 1 + strcspn(part + 1, "-+");
        const char *name = part;
        int name_length = (int)length;
        for (size_t m = 0; part[length] && m < 3; m++)
            if (length == 1 && (part[0] | 0x20) == modifiers[m][1][0])
                name = modifiers[m][0], name_length = (int)strlen(name);
        n += (size_t)snprintf(out + n, size - n, "%s%.*s", n ? "+" : "", name_length, name);
        assert_true(n < size);
        part += length + (part[length] != '\0');
    }
    for (char *c = out; *c; c++) *c = (char)tolower((unsigned char)*c);
}

// Whether the column of a row says what the guide says.
static bool value_is(const json_t *value, const char *said) {
    char wanted[64], found[64];
    if (json_is_number(value)) return fabs(json_number_value(value) - strtod(said, NULL)) < 1e-9;
    if (!json_is_string(value)) return false;
    key_normalise(said, wanted, sizeof wanted);
    key_normalise(json_string_value(value), found, sizeof found);
    return !strcmp(wanted, found);
}

static bool list_has(const json_t *list, const char *name, const char *column, const char *said) {
    size_t i;
    json_t *row;
    json_array_foreach(list, i, row) {
        const json_t *row_name = json_is_string(row) ? row : json_object_get(row, "name");
        const json_t *old_name = json_object_get(row, "old_name"); // that is still understood
        if ((json_is_string(row_name) && !strcmp(json_string_value(row_name), name)) ||
            (json_is_string(old_name) && !strcmp(json_string_value(old_name), name)))
            return !column || value_is(json_object_get(row, column), said);
    }
    return false;
}

static bool any_command_has_option(const json_t *commands, const char *name) {
    size_t i;
    json_t *command;
    json_array_foreach(commands, i,
                       command) if (list_has(json_object_get(command, "options"), name, NULL, NULL)) return true;
    return false;
}

// A line of said.txt: KIND [NAME] [= VALUE].
static bool said_is_true(const json_t *tables, const char *line) {
    static const struct {
        const char *kind, *list, *column;
    } kinds[] = {
        {"key", "keys", "key"},        {"screen-command", "keys", NULL}, {"default", "knobs", "default"},
        {"low", "knobs", "low"},       {"high", "knobs", "high"},        {"command", "commands", NULL},
        {"setting", "settings", NULL}, {"state", "states", NULL},        {"theme", "themes", NULL},
        {"knob", "knobs", NULL},
    };
    char kind[32] = "", name[64] = "", value[64] = "";
    int read = sscanf(line, "%31s %63[^ =\n] = %63s", kind, name, value);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kind, kinds[i].kind) && read == (kinds[i].column ? 3 : 2))
            return list_has(json_object_get(tables, kinds[i].list), name, kinds[i].column, value);
    if (!strcmp(kind, "slot") && read == 2) {
        char *text = guide_slot(NULL, name);
        free(text);
        return text;
    }
    if (!strcmp(kind, "option")) return any_command_has_option(json_object_get(tables, "commands"), name);
    if (sscanf(line, "default-theme = %63s", value) == 1)
        return value_is(json_object_get(tables, "default_theme"), value);
    fail_msg("said.txt: unknown line: %s", line);
    return false;
}

static void test_what_the_guide_says_is_true(void **state) {
    (void)state;
    json_t *tables = tables_load();
    FILE *said = fopen("app/guide/said.txt", "r");
    assert_non_null(said);
    char line[256];
    int lines = 0, wrong = 0;
    while (fgets(line, sizeof line, said)) {
        if (*line == '#') continue;
        lines++;
        if (!said_is_true(tables, line)) wrong++, print_error("the guide says what is no longer true: %s", line);
    }
    fclose(said);
    json_decref(tables);
    assert_true(lines > 100);
    assert_int_equal(wrong, 0);
}

static void check_slot(const char *column, const json_t *row) {
    char *slot = xasprintf("%s:%s", column, json_string_value(json_object_get(row, "name")));
    const json_t *value = json_object_get(row, column);
    char *text = guide_slot(NULL, slot);
    if (!text) fail_msg("%s is not filled", slot);
    bool none = json_is_string(value) && !*json_string_value(value);
    char *typed = xasprintf("/%s", json_string_value(json_object_get(row, "name")));
    if (none ? strcmp(text, typed) : !value_is(value, text)) fail_msg("%s is filled with %s", slot, text);
    free(typed);
    free(text);
    free(slot);
}

static void test_slots_are_filled_from_the_tables(void **state) {
    (void)state;
    static const char *const others[] = {
        "fact:stop", "im_start", "unsure", "key:", "key:nothing", "default:nothing", "nothing:temp", ""};
    json_t *tables = tables_load(), *row;
    size_t i;
    json_array_foreach(json_object_get(tables, "keys"), i, row) check_slot("key", row);
    json_array_foreach(json_object_get(tables, "knobs"), i, row) {
        check_slot("default", row);
        check_slot("low", row);
        check_slot("high", row);
        check_slot("step", row);
    }
    json_array_foreach(json_object_get(tables, "settings"), i, row) if (json_object_get(row, "default"))
        check_slot("default", row);
    for (i = 0; i < sizeof others / sizeof *others; i++) assert_null(guide_slot(NULL, others[i]));
    char *themes = guide_slot(NULL, "themes"), *first = guide_slot(NULL, "theme:default"),
         *states = guide_slot(NULL, "states"), *key = guide_slot(NULL, "key:stop-all");
    assert_true(!strncmp(themes, first, strlen(first)));
    json_array_foreach(json_object_get(tables, "themes"), i, row)
        assert_non_null(strstr(themes, json_string_value(row)));
    assert_string_equal(states, "pending, prefilling, decoding, finished, failed and cancelled");
    assert_string_equal(key, "Shift+F5");
    free(themes);
    free(first);
    free(states);
    free(key);
    json_decref(tables);
}

static void test_slots_name_the_persons_own_keys(void **state) {
    (void)state;
    static const char *const lines[] = {"stop Alt+X", "quit none"};
    assert_true(keys_bind(lines, 2, NULL));
    char *stop = guide_slot(NULL, "key:stop"), *quit = guide_slot(NULL, "key:quit"),
         *help = guide_slot(NULL, "key:help");
    assert_string_equal(stop, "Alt+X");
    assert_string_equal(quit, "/quit");
    assert_string_equal(help, "F1");
    free(stop), free(quit), free(help);
    assert_true(keys_bind(NULL, 0, NULL));
}

// Whether there is a command, a setting, an option or a command of the chat screen of that name.
static bool anything_is_called(const json_t *tables, const char *name) {
    static const char *const lists[] = {"commands", "settings", "keys"};
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
        if (list_has(json_object_get(tables, lists[l]), name, NULL, NULL)) return true;
    return any_command_has_option(json_object_get(tables, "commands"), name);
}

static void test_what_confab_lacks_is_not_there(void **state) {
    (void)state;
    json_t *tables = tables_load();
    assert_true(n_guide_lacks > 5);
    for (int i = 0; i < n_guide_lacks; i++) {
        const struct guide_lack *lack = &guide_lacks[i];
        char *slot = xasprintf("lack:%s", lack->name), *said = guide_slot(NULL, slot), *names = xstrdup(lack->names);
        assert_string_equal(said, lack->says);
        for (char *rest = names, *name; (name = strtok_r(rest, " ", &rest));)
            if (anything_is_called(tables, name)) fail_msg("confab has '%s' now: take '%s' out", name, lack->name);
        free(names), free(said), free(slot);
    }
    assert_true(anything_is_called(tables, "serve") && anything_is_called(tables, "kv-disk"));
    assert_true(anything_is_called(tables, "tree") && anything_is_called(tables, "json-schema"));
    char *since = guide_slot(NULL, "lack:nothing");
    assert_non_null(strstr(since, "after I was trained"));
    free(since);
    json_decref(tables);
}

static void test_what_changed_is_found(void **state) {
    (void)state;
    json_t *tables = json_pack("{s:[{s:s, s:s}, {s:s, s:s}], s:[{s:s, s:f, s:i}], s:[{s:s, s:[{s:s}]}], s:[s], s:s}",
                               "keys", "name", "new", "key", "C-n", "name", "stop", "key", "Shift+F5", "knobs", "name",
                               "temp", "default", 0.7, "high", 5, "commands", "name", "run", "options", "name", "raw",
                               "themes", "ember", "default_theme", "ember");
    static const char *const right[] = {"key new = Ctrl+N",   "key stop = S-F5", "screen-command stop",
                                        "default temp = 0.7", "high temp = 5",   "command run",
                                        "option raw",         "theme ember",     "default-theme = ember"};
    static const char *const wrong[] = {"key new = Ctrl+M",   "key old = Ctrl+N",     "key stop = F5",
                                        "screen-command old", "high temp = 4",        "default temp = 0.8",
                                        "default top = 1",    "command walk",         "option temp",
                                        "theme fjord",        "default-theme = fjord"};
    assert_non_null(tables);
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        if (!said_is_true(tables, right[i])) fail_msg("held to be false: %s", right[i]);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (said_is_true(tables, wrong[i])) fail_msg("held to be true: %s", wrong[i]);
    json_decref(tables);
}

#define SAID(role, text) "{\"role\": \"" role "\", \"content\": \"" text "\"},"
#define READ(role, text) "<|im_start|>" role "\n" text "<|im_end|>"
#define TEN(text)        text text text text text text text text text text
#define LONG             TEN(TEN("abc"))
#define UNSURE           "I am not sure that I understood. It may be one of these:"

struct reading {
    const char *said, *read;
};

static void check_readings(const struct reading *cases, size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct status st = {0};
        size_t size;
        char *said = xasprintf("{\"messages\": [%.*s], \"add_generation_prompt\": true}",
                               (int)strlen(cases[i].said) - 1, cases[i].said);
        char *wanted = xasprintf("%s<|im_start|>assistant\n", cases[i].read);
        struct template_input in = {.name = "guide",
                                    .text = guide_template(),
                                    .size = strlen(guide_template()),
                                    .context_name = "context",
                                    .context = said,
                                    .context_size = strlen(said)};
        char *read = template_render(&in, &size, &st);
        if (!read) fail_msg("%s", st.text);
        assert_string_equal(read, wanted);
        free(read);
        free(wanted);
        free(said);
    }
}

static void test_guide_reads_the_last_exchange(void **state) {
    (void)state;
    static const struct reading cases[] = {
        {SAID("user", "a"), READ("user", "a")},
        {SAID("system", "s") SAID("user", "a"), READ("system", "s") READ("user", "a")},
        {SAID("user", "a") SAID("assistant", "b") SAID("user", "c"),
         READ("user", "a") READ("assistant", "b") READ("user", "c")},
        {SAID("system", "s") SAID("user", "a") SAID("assistant", "b") SAID("user", "c") SAID("assistant", "d")
             SAID("user", "e"),
         READ("system", "s") READ("user", "c") READ("assistant", "d") READ("user", "e")},
        {SAID("user", LONG) SAID("assistant", "b") SAID("user", "c"), READ("user", "c")},
        {SAID("user", "a") SAID("assistant", UNSURE "\\n1. b") SAID("user", "c"), READ("user", "c")},
    };
    check_readings(cases, sizeof cases / sizeof *cases);
}

static void test_guide_reads_no_capitals(void **state) {
    (void)state;
    static const struct reading cases[] = {
        {SAID("system", "Be KIND") SAID("user", "HOW DO I QUIT?"),
         READ("system", "Be KIND") READ("user", "how do i quit?")},
        {SAID("user", "Is it F5?") SAID("assistant", "Yes: F5") SAID("user", "Q4_K"),
         READ("user", "is it f5?") READ("assistant", "Yes: F5") READ("user", "q4_k")},
        {SAID("user", "ÄÖ 日本"), READ("user", "äö 日本")},
    };
    check_readings(cases, sizeof cases / sizeof *cases);
}

static void test_guide_is_asked_nothing(void **state) {
    (void)state;
    static const struct reading cases[] = {
        {SAID("user", "?"), READ("user", "what can you do?")},
        {SAID("user", " 1\\n!…"), READ("user", "what can you do?")},
        {SAID("user", "3 x"), READ("user", "3 x")},
        {SAID("user", "日"), READ("user", "日")},
    };
    check_readings(cases, sizeof cases / sizeof *cases);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_the_guide_says_is_true),     cmocka_unit_test(test_slots_are_filled_from_the_tables),
        cmocka_unit_test(test_slots_name_the_persons_own_keys), cmocka_unit_test(test_what_confab_lacks_is_not_there),
        cmocka_unit_test(test_what_changed_is_found),           cmocka_unit_test(test_guide_reads_the_last_exchange),
        cmocka_unit_test(test_guide_reads_no_capitals),         cmocka_unit_test(test_guide_is_asked_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
