// The table of settings, options parsed with it, and exit statuses for invalid command lines.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/commands/options.h"
#include "engine/base/paths.h"
#include "ui/panes.h"

struct read_result {
    struct settings settings;
    bool done, help;
    int first;
    struct status status;
};

static struct read_result read_line(const char *command, int argc, char **argv) {
    struct read_result r = {.settings = settings_default()};
    r.done = options_read(&r.settings, command_find(command), argc, argv, &r.first, &r.help, &r.status);
    return r;
}
#define READ(command, ...)                                                                                             \
    read_line(command, sizeof((char *[]){command, __VA_ARGS__}) / sizeof(char *),                                      \
              (char *[]){command, __VA_ARGS__, NULL})

static void test_every_knob_is_an_option(void **state) {
    (void)state;
    for (int knob = 0; knob < KNOB_COUNT; knob++) {
        char option[64];
        snprintf(option, sizeof option, "--%s", sampling_knobs[knob].key);
        double value = sampling_knobs[knob].low + sampling_knobs[knob].step;
        char text[32];
        snprintf(text, sizeof text, "%.10g", value);
        struct read_result r = READ("run", option, text, "prompt");
        assert_true(r.done);
        assert_int_equal(r.first, 3);
        assert_true(fabs(sampling_get(&r.settings.sampling, (enum sampling_knob_id)knob) - value) < 1e-6);
    }
}

static void test_arguments_and_options_may_be_mixed(void **state) {
    (void)state;
    char *line[] = {"run", "-m", "a.gguf", "Once upon", "--temp", "0", "-n", "100", "--raw", NULL};
    struct read_result r = read_line("run", 9, line);
    assert_true(r.done);
    assert_int_equal(r.first, 8);
    assert_string_equal(line[8], "Once upon");
    assert_string_equal(r.settings.model, "a.gguf");
    assert_int_equal(r.settings.max_tokens, 100);
    assert_true(r.settings.raw);
    assert_true(r.settings.sampling.temperature == 0);
    settings_free(&r.settings);
}

static void test_two_dashes_end_the_options(void **state) {
    (void)state;
    struct read_result r = READ("run", "--", "--temp");
    assert_true(r.done);
    assert_int_equal(r.first, 2);
}

static void test_invalid_options_are_reported(void **state) {
    (void)state;
    struct read_result r = READ("run", "--colour");
    assert_false(r.done);
    assert_int_equal(r.status.code, STATUS_USAGE);
    assert_non_null(strstr(r.status.text, "--colour"));
    r = READ("run", "-z");
    assert_false(r.done);
    assert_non_null(strstr(r.status.text, "-z"));
    r = READ("run", "--temp");
    assert_false(r.done);
    assert_non_null(strstr(r.status.text, "--temp"));
    r = READ("tokenize", "--raw"); // another command's option
    assert_false(r.done);
}

static void test_values_are_checked(void **state) {
    (void)state;
    static char *const wrong[][2] = {{"-t", "two"},      {"-t", "-1"},     {"-t", "1.5"},
                                     {"-t", ""},         {"--temp", "9"},  {"--temp", "nan"},
                                     {"--top-k", "4.5"}, {"--seed", "-1"}, {"--seed", "4294967296"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct read_result r = READ("run", wrong[i][0], wrong[i][1]);
        assert_false(r.done);
        assert_true(strstr(r.status.text, wrong[i][1]) != NULL);
    }
}

static void test_help_is_recognised(void **state) {
    (void)state;
    assert_true(READ("bench", "--help").help);
    assert_true(READ("bench", "-h").help);
}

static void test_every_setting_round_trips(void **state) {
    (void)state;
    struct settings s = settings_default();
    static const char *const samples[] = {
        [SETTING_FLAG] = "yes",  [SETTING_INT] = "7",     [SETTING_REAL] = "2.5",
        [SETTING_TEXT] = "a b",  [SETTING_PANES] = "13",  [SETTING_KNOB] = "1",
        [SETTING_TEXTS] = "a b", [SETTING_AUTO] = "auto", [SETTING_BYTES] = "300 MiB",
        [SETTING_SIZES] = "chats=0x12 left=30x0",
    };
    for (int id = 0; id < SETTING_COUNT; id++) {
        const bool choice = setting_table[id].kind == SETTING_CHOICE; // any choice will do; take the last
        const char *sample = choice ? strrchr(setting_table[id].argument, '|') + 1 : samples[setting_table[id].kind];
        struct status st = {0};
        if (!setting_parse(&s, id, sample, &st)) fail_msg("%s: %s", setting_table[id].key, st.text);
        char *text = setting_format(&s, id);
        assert_string_equal(text, sample);
        free(text);
        assert_int_equal(setting_find(setting_table[id].key), id);
    }
    struct settings copy = settings_copy(&s);
    assert_string_equal(copy.model, s.model);
    assert_ptr_not_equal(copy.model, s.model);
    settings_free(&copy);
    settings_free(&s);
}

static void test_sizes_have_units(void **state) {
    (void)state;
    static const struct {
        const char *text, *formatted;
    } good[] = {{"4 GiB", "4 GiB"}, {"4G", "4 GiB"},       {"512MiB", "512 MiB"}, {"1.5 GiB", "1536 MiB"},
                {"100", "100 MiB"}, {"1024 MiB", "1 GiB"}, {"2 TiB", "2048 GiB"}, {"off", "off"}};
    static const char *const bad[] = {"",  "4 Gib",   "4 GB", "GiB",     "-1 GiB",
                                      "0", "1e9 TiB", "nan",  "inf GiB", "4 GiB x"};
    struct settings s = settings_default();
    struct status st;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(setting_parse(&s, SETTING_kv_disk, good[i].text, &st));
        char *text = setting_format(&s, SETTING_kv_disk);
        assert_string_equal(text, good[i].formatted);
        free(text);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (setting_parse(&s, SETTING_kv_disk, bad[i], &st)) fail_msg("'%s' is accepted", bad[i]);
        assert_non_null(strstr(st.text, "kv-disk"));
    }
    assert_int_equal(s.kv_disk, 0); // unchanged
    settings_free(&s);
}

static void test_keys_and_letters_are_unique_in_a_command(void **state) {
    (void)state;
    for (int a = 0; a < SETTING_COUNT; a++) {
        for (int b = a + 1; b < SETTING_COUNT; b++) {
            assert_string_not_equal(setting_table[a].key, setting_table[b].key);
            if (setting_table[a].letter) assert_int_not_equal(setting_table[a].letter, setting_table[b].letter);
        }
    }
}

static void test_no_panes_is_not_the_default_panes(void **state) {
    (void)state;
    struct settings s = settings_default();
    assert_int_equal(s.panes, 0);
    assert_true(setting_parse(&s, SETTING_panes, "none", NULL));
    assert_int_equal(s.panes, 1);
    char *text = setting_format(&s, SETTING_panes);
    assert_string_equal(text, "none");
    free(text);
    assert_false(setting_parse(&s, SETTING_panes, "19", NULL));
    assert_true(setting_parse(&s, SETTING_panes, "", NULL)); // nobody chooses any more
    assert_int_equal(s.panes, 0);
}

static void test_panes_by_digit_and_by_name(void **state) {
    (void)state;
    static const struct {
        const char *text, *written;
    } cases[] = {{"31", "13"}, {"1, 3", "13"}, {"kv chats", "13"}, {"time,2", "25"}, {"latency 12", "124"}};
    struct settings s = settings_default();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct status st = {0};
        if (!setting_parse(&s, SETTING_panes, cases[i].text, &st)) fail_msg("%s", st.text);
        char *text = setting_format(&s, SETTING_panes);
        assert_string_equal(text, cases[i].written);
        free(text);
    }
    static const char *const wrong[] = {"0", "9", "chat", "kvx", "none 1", "1 none", "boxes"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (setting_parse(&s, SETTING_panes, wrong[i], NULL)) fail_msg("'%s' was taken for panes", wrong[i]);
        char *text = setting_format(&s, SETTING_panes);
        assert_string_equal(text, "124");
        free(text);
    }
}

static void test_old_names_of_settings_are_accepted(void **state) {
    (void)state;
    assert_int_equal(setting_find("panes"), SETTING_panes);
    assert_int_equal(setting_find("boxes"), SETTING_panes);
    struct read_result r = READ("chat", "--boxes", "12");
    assert_true(r.done);
    assert_int_equal(r.settings.panes, 1u << PANE_CHAT | 1u << PANE_CHATS | 1u << PANE_THROUGHPUT);
}

static int run_program(const char *const *words) {
    char *argv[16] = {"confab"};
    int argc = 1;
    while (words[argc - 1]) argv[argc] = (char *)words[argc - 1], argc++;
    return command_main(argc, argv, "");
}
#define RUN(...) run_program((const char *const[]){__VA_ARGS__, NULL})

static void test_exit_statuses(void **state) {
    (void)state;
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    assert_int_equal(RUN("--version"), EXIT_DONE);
    assert_int_equal(RUN("help", "run"), EXIT_DONE);
    assert_int_equal(RUN("run", "--help"), EXIT_DONE);
    assert_int_equal(RUN("frobnicate"), EXIT_USAGE);
    assert_int_equal(RUN("tokenize", "one"), EXIT_USAGE);
    assert_int_equal(RUN("tokenize", "one", "two", "three"), EXIT_USAGE);
    assert_int_equal(RUN("show", "--colour"), EXIT_USAGE);
    assert_int_equal(RUN("show", "/nonexistent/model.gguf"), EXIT_FAILED);
    assert_int_equal(RUN("run", "-m", "/nonexistent/model.gguf", "hello"), EXIT_FAILED);
    assert_int_equal(RUN("logits", "/nonexistent/model.gguf", "ids", "out"), EXIT_FAILED);
    assert_int_equal(RUN("help", "--json"), EXIT_DONE);
}

static void test_paths_follow_xdg(void **state) {
    (void)state;
    setenv("HOME", "/home/someone", 1);
    setenv("XDG_DATA_HOME", "/data", 1);
    char *path = path_data("confab.db");
    assert_string_equal(path, "/data/confab/confab.db");
    free(path);
    setenv("XDG_DATA_HOME", "relative", 1); // ignored
    path = path_data("confab.db");
    assert_string_equal(path, "/home/someone/.local/share/confab/confab.db");
    free(path);
    unsetenv("XDG_CONFIG_HOME");
    path = path_config("config");
    assert_string_equal(path, "/home/someone/.config/confab/config");
    free(path);
    unsetenv("HOME");
    assert_null(path_config("config"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_knob_is_an_option),
        cmocka_unit_test(test_arguments_and_options_may_be_mixed),
        cmocka_unit_test(test_two_dashes_end_the_options),
        cmocka_unit_test(test_invalid_options_are_reported),
        cmocka_unit_test(test_values_are_checked),
        cmocka_unit_test(test_help_is_recognised),
        cmocka_unit_test(test_every_setting_round_trips),
        cmocka_unit_test(test_sizes_have_units),
        cmocka_unit_test(test_keys_and_letters_are_unique_in_a_command),
        cmocka_unit_test(test_no_panes_is_not_the_default_panes),
        cmocka_unit_test(test_panes_by_digit_and_by_name),
        cmocka_unit_test(test_old_names_of_settings_are_accepted),
        cmocka_unit_test(test_exit_statuses),
        cmocka_unit_test(test_paths_follow_xdg),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
