// Reading the configuration file despite errors, and saving to it without losing anything.
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

#include "app/base/config.h"
#include "engine/base/panic.h"
#include "engine/base/reader.h"
#include "tests/unit/temporary_folder.h"

struct folder {
    char path[64], config[128];
};

static int folder_make(void **state) {
    struct folder *f = xcalloc(1, sizeof *f);
    strcpy(f->path, "/tmp/confab-test-XXXXXX");
    if (!mkdtemp(f->path)) return -1;
    snprintf(f->config, sizeof f->config, "%s/confab/config", f->path);
    *state = f;
    return 0;
}

static int folder_remove(void **state) {
    struct folder *f = *state;
    int result = temporary_folder_remove(f->path);
    free(f);
    return result;
}

static void write_text(const char *path, const char *text) {
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

static void no_warning(void *context, const char *message) {
    (void)context;
    fail_msg("%s", message);
}

static void assert_text(const char *path, const char *expected) {
    struct status st = {0};
    size_t size;
    char *text = file_read(path, 1 << 20, &size, &st);
    assert_non_null(text);
    assert_string_equal(text, expected);
    free(text);
}

struct warnings {
    int count;
    char last[512];
};

static void keep_warning(void *context, const char *message) {
    struct warnings *w = context;
    w->count++;
    snprintf(w->last, sizeof w->last, "%s", message);
}

static struct settings load(const char *path, struct warnings *w) {
    struct settings s = settings_default();
    *w = (struct warnings){0};
    config_load(&s, path, keep_warning, w);
    return s;
}

static void write_config(struct folder *f, const char *text) {
    struct status st = {0};
    struct settings s = settings_default();
    assert_true(config_save(&s, SETTING_threads, f->config, &st)); // makes the folder
    write_text(f->config, text);
}

static void test_a_missing_file_counts_as_empty(void **state) {
    struct folder *f = *state;
    struct warnings w;
    struct settings s = load(f->config, &w);
    assert_int_equal(w.count, 0);
    assert_null(s.model);
}

static void test_a_line_with_an_old_name_is_read_and_replaced(void **state) {
    struct folder *f = *state;
    struct warnings w;
    struct status st = {0};
    write_config(f, "boxes = 12\n# mine\n");
    struct settings s = load(f->config, &w);
    assert_int_equal(w.count, 0);
    assert_true(setting_parse(&s, SETTING_panes, "3", &st));
    assert_true(config_save(&s, SETTING_panes, f->config, &st));
    assert_text(f->config, "panes = 3\n# mine\n");
}

static void test_a_list_is_saved_as_a_whole(void **state) {
    struct folder *f = *state;
    struct warnings w;
    struct status st = {0};
    write_config(f, "# mine\nstop = a\n\n# between\n  stop=b\nkey = stop Alt+X\nnonsense\nstop = b");
    struct settings s = load(f->config, &w);
    assert_int_equal(s.stops.count, 3);
    assert_true(setting_parse(&s, SETTING_stops, "", &st));
    assert_true(setting_parse(&s, SETTING_stops, "b", &st));
    assert_true(setting_parse(&s, SETTING_stops, "c\nd", &st));
    assert_true(config_save(&s, SETTING_stops, f->config, &st));
    assert_text(f->config, "# mine\n\n# between\n  stop=b\nkey = stop Alt+X\nnonsense\nstop = c\\nd\n");
    settings_free(&s);
}

static void test_values_are_read(void **state) {
    struct folder *f = *state;
    struct warnings w;
    write_config(f, "# a comment\n\n  model =  /models/a b.gguf  \r\nthreads=3\ntemp = 0.25\nascii = yes\n"
                    "system = Be brief.\\nBe kind. # not a comment\n");
    struct settings s = load(f->config, &w);
    assert_int_equal(w.count, 0);
    assert_string_equal(s.model, "/models/a b.gguf");
    assert_int_equal(s.threads, 3);
    assert_true(s.ascii);
    assert_true(s.sampling.temperature == 0.25f);
    assert_string_equal(s.system, "Be brief.\nBe kind. # not a comment");
    settings_free(&s);
}

static void test_invalid_lines_are_reported_and_skipped(void **state) {
    struct folder *f = *state;
    static const char *const bad[] = {"colour = red", "threads = many", "just words", "= 3", "raw = yes", "temp = 99"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct warnings w;
        char *text = xasprintf("\n%s\ncontext = 4096\n", bad[i]), *place = xasprintf("%s:2:", f->config);
        write_config(f, text);
        struct settings s = load(f->config, &w);
        assert_int_equal(w.count, 1);
        assert_non_null(strstr(w.last, place));
        assert_int_equal(s.context, 4096);
        free(text);
        free(place);
        settings_free(&s);
    }
}

static void test_any_bytes_can_be_read(void **state) {
    struct folder *f = *state;
    struct warnings w;
    write_config(f, "");
    FILE *out = fopen(f->config, "w");
    uint32_t random = 7;
    for (int i = 0; i < 20000; i++) fputc((int)((random = random * 1664525u + 1013904223u) >> 24), out);
    fclose(out);
    struct settings s = load(f->config, &w);
    assert_true(w.count > 0);
    settings_free(&s);
}

static void test_saving_changes_one_line(void **state) {
    struct folder *f = *state;
    struct status st = {0};
    struct settings s = settings_default();
    write_config(f, "# mine\nthreads = 2\nunknown = stays\n\n  temp=0.9   \n# end");
    assert_true(setting_parse(&s, SETTING_FIRST_KNOB + KNOB_temperature, "0.35", &st));
    assert_true(config_save(&s, SETTING_FIRST_KNOB + KNOB_temperature, f->config, &st));
    assert_text(f->config, "# mine\nthreads = 2\nunknown = stays\n\ntemp = 0.35\n# end");
    assert_true(setting_parse(&s, SETTING_theme, "paper", &st));
    assert_true(config_save(&s, SETTING_theme, f->config, &st));
    assert_text(f->config, "# mine\nthreads = 2\nunknown = stays\n\ntemp = 0.35\n# end\ntheme = paper\n");
    settings_free(&s);
}

static void test_the_last_of_several_lines_counts_and_is_changed(void **state) {
    struct folder *f = *state;
    struct status st = {0};
    struct warnings w;
    write_config(f, "threads = 1\nthreads = 2\n");
    struct settings s = load(f->config, &w);
    assert_int_equal(s.threads, 2);
    s.threads = 5;
    assert_true(config_save(&s, SETTING_threads, f->config, &st));
    assert_text(f->config, "threads = 1\nthreads = 5\n");
}

static void test_texts_round_trip(void **state) {
    struct folder *f = *state;
    struct status st = {0};
    struct warnings w;
    struct settings s = settings_default();
    const char *text = "Two\nlines, a \\ and a \\n in one; # no comment";
    assert_true(setting_parse(&s, SETTING_system, text, &st));
    assert_true(config_save(&s, SETTING_system, f->config, &st));
    struct settings again = load(f->config, &w);
    assert_string_equal(again.system, text);
    settings_free(&again);
    settings_free(&s);
}

static void test_a_symbolic_link_is_kept(void **state) {
    struct folder *f = *state;
    struct status st = {0};
    struct settings s = settings_default();
    char *target = xasprintf("%s/dotfiles", f->path);
    write_config(f, "");
    write_text(target, "threads = 1\n");
    chmod(target, 0640);
    unlink(f->config);
    assert_int_equal(symlink(target, f->config), 0);
    assert_true(config_save(&s, SETTING_threads, f->config, &st));
    struct stat info;
    assert_int_equal(lstat(f->config, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_text(target, "threads = 0\n");
    assert_int_equal(stat(target, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0640);
    free(target);
}

static void test_a_write_error_names_the_file(void **state) {
    (void)state;
    struct status st = {0};
    struct settings s = settings_default();
    assert_false(config_save(&s, SETTING_threads, "/proc/nothing/confab/config", &st));
    assert_non_null(strstr(st.text, "/proc/nothing"));
}

static void test_stops_accumulate_and_knobs_may_follow_the_model(void **state) {
    struct folder *f = *state;
    struct settings s = settings_default();
    struct model_info info = {.sampling = sampling_default()};
    struct status st = {0};
    info.sampling.temperature = 0.25f, info.sampling.top_k = 7;
    assert_true(config_save(&s, SETTING_reasoning, f->config, &st)); // makes the folder
    write_text(f->config,
               "stop = <end>\nstop = \\nUser:\ntemp = 1.5\ntop-p = 0.5\ntop-p = default\nreasoning = high\n");
    config_load(&s, f->config, no_warning, NULL);
    assert_int_equal(s.stops.count, 2);
    assert_string_equal(s.stops.texts[0], "<end>");
    assert_string_equal(s.stops.texts[1], "\nUser:");
    assert_int_equal(s.reasoning, REASONING_HIGH);
    settings_follow_model(&s, &info);
    assert_true(s.sampling.temperature == 1.5f); // the user's
    assert_int_equal(s.sampling.top_k, 7);       // the model's
    assert_true(s.sampling.top_p == info.sampling.top_p);
    struct settings copy = settings_copy(&s);
    assert_true(setting_parse(&s, SETTING_stops, "", &st));
    assert_int_equal(s.stops.count, 0);
    assert_string_equal(copy.stops.texts[1], "\nUser:");
    settings_free(&copy);
    assert_false(setting_parse(&s, SETTING_reasoning, "hi", &st));
    assert_string_equal(st.text, "reasoning: unknown value 'hi' (expected auto, off, on, low, medium or high)");
    settings_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_missing_file_counts_as_empty, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(test_a_line_with_an_old_name_is_read_and_replaced, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(test_a_list_is_saved_as_a_whole, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(test_values_are_read, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(test_invalid_lines_are_reported_and_skipped, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(test_any_bytes_can_be_read, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(test_saving_changes_one_line, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(test_the_last_of_several_lines_counts_and_is_changed, folder_make,
                                        folder_remove),
        cmocka_unit_test_setup_teardown(test_texts_round_trip, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(test_a_symbolic_link_is_kept, folder_make, folder_remove),
        cmocka_unit_test(test_a_write_error_names_the_file),
        cmocka_unit_test_setup_teardown(test_stops_accumulate_and_knobs_may_follow_the_model, folder_make,
                                        folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
