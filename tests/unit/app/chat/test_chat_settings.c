// The chat controller: settings are changed on the screen, of the chat alone or of the program, and are kept.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/base/reader.h"
#include "tests/unit/chat_fixture.h"

enum { OF_CHAT = 0, OF_PROGRAM = 1, OF_EITHER = -1 };

static void assert_config(const char *expected) {
    struct status st = {0};
    size_t size;
    char *text = file_read(config_path, 1 << 20, &size, &st);
    assert_string_equal(text ? text : "", expected);
    free(text);
}

static const struct view_setting *shown(const char *key) {
    for (int i = 0; i < screen.view.n_settings; i++)
        if (!strcmp(screen.view.settings[i].key, key)) return &screen.view.settings[i];
    fail_msg("%s", key);
    return NULL;
}

static void test_a_chat_has_settings_of_its_own(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "q");
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    act(COMMAND_SETTINGS, OF_EITHER, "system Be brief.\nBe kind.");
    assert_string_equal(screen.status, "system is now Be brief.\nBe kind. in this chat, with the next answer");
    act(COMMAND_SETTINGS, OF_CHAT, "max-tokens 7");
    act(COMMAND_SETTINGS, OF_EITHER, "temp 0.25");
    act(COMMAND_SEND, -1, "r");
    assert_string_equal(engine.prompt, "system: Be brief.\nBe kind.|user: q\n\nr|");
    assert_int_equal(engine.max_tokens, 7);
    assert_true(engine.sampling.temperature < 0.26f);
    end(1, 2, REQUEST_FINISHED, FINISH_END, "");
    assert_config("");
    act(COMMAND_NEW, -1, NULL);
    act(COMMAND_SEND, -1, "s");
    assert_string_equal(engine.prompt, "user: s|");
    assert_int_equal(engine.max_tokens, 0);
    assert_true(engine.sampling.temperature > 0.6f);
    assert_true(close_chat()); // and keeps them
    open_chat();
    act(COMMAND_NEXT, 2, NULL);
    act(COMMAND_SEND, -1, "t");
    assert_int_equal(engine.max_tokens, 7);
}

// Its texts are one, as they are, whatever else the settings say.
static void test_a_chat_without_a_template_is_continued(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "q");
    act(COMMAND_PLAYGROUND, -1, NULL);
    assert_string_equal(screen.status, "template is now raw in this chat, with the next answer");
    assert_string_equal(screen.view.template, "raw");
    act(COMMAND_PLAYGROUND, -1, NULL); // it is one already
    act(COMMAND_SETTINGS, OF_CHAT, "system Be brief.");
    act(COMMAND_SEND, -1, "Once \n");
    assert_string_equal(engine.prompt, "Once \n");
    say(2, 2, "upon");
    end(2, 2, REQUEST_FINISHED, FINISH_END, "");
    act(COMMAND_SEND, -1, " a");
    assert_string_equal(engine.prompt, "Once \nupon a");
    end(2, 3, REQUEST_FINISHED, FINISH_END, "");
    act(COMMAND_NEW, -1, NULL);
    assert_null(screen.view.template);
    act(COMMAND_PLAYGROUND, -1, NULL);
    act(COMMAND_NEW, -1, NULL); // not that one, though it is empty
    assert_null(screen.view.template);
    act(COMMAND_SETTINGS, OF_CHAT, "template /some/where/x.jinja");
    assert_string_equal(screen.view.template, "x.jinja");
    act(COMMAND_SEND, -1, "r");
    assert_string_equal(engine.prompt, "user: r|");
    assert_string_equal(engine.template_file, "/some/where/x.jinja");
    act(COMMAND_SETTINGS, OF_CHAT, "template own");
    assert_null(screen.view.template);
    assert_true(close_chat()); // and keeps them
    open_chat();
    int raw = 0;
    for (int i = 0; i < 3; i++) {
        act(COMMAND_NEXT, i, NULL);
        raw += screen.view.template && !strcmp(screen.view.template, "raw");
    }
    assert_int_equal(raw, 1);
}

static void test_the_configuration_keeps_what_else_is_in_it(void **state) {
    (void)state;
    FILE *f = fopen(config_path, "w");
    fputs("# mine\nthreads = 2\n\n  # of models\nunknown = 1\ntemp=0.5\nstop = A\n# end", f);
    fclose(f);
    act(COMMAND_SETTINGS, OF_PROGRAM, "threads 3");
    assert_string_equal(screen.status, "threads is now 3, when a model is loaded (/reload)");
    act(COMMAND_SETTINGS, OF_PROGRAM, "temp 0.9");
    act(COMMAND_SETTINGS, OF_PROGRAM, "overflow ask");
    assert_string_equal(screen.status, "overflow is now ask");
    act(COMMAND_SETTINGS, OF_PROGRAM, "stop B");
    assert_config("# mine\nthreads = 3\n\n  # of models\nunknown = 1\ntemp = 0.9\n# end\noverflow = ask\nstop = B\n");
    assert_int_equal(settings.threads, 3);
    act(COMMAND_SETTINGS, OF_PROGRAM, "temp "); // as the model says
    assert_true(config_has("temp = default\n"));
    act(COMMAND_SETTINGS, OF_PROGRAM, "threads");
    assert_true(config_has("threads = 0\n"));
    act(COMMAND_SEND, -1, "q"); // new chats begin so
    assert_string_equal(engine.stops, "B|");
}

static void test_what_is_wrong_changes_nothing(void **state) {
    (void)state;
    act(COMMAND_SETTINGS, OF_PROGRAM, "threads many");
    assert_string_equal(screen.status, "threads: expected a whole number, got 'many'");
    act(COMMAND_SETTINGS, OF_PROGRAM, "theme none");
    assert_string_equal(screen.status, "no theme 'none'");
    act(COMMAND_SETTINGS, OF_CHAT, "temp 9");
    assert_string_equal(screen.status, "temp: 9 is out of range (0 to 5)");
    act(COMMAND_SETTINGS, OF_EITHER, "json yes"); // not one of the file's
    assert_config("");
    assert_int_equal(settings.threads, 0);
}

static void test_the_screen_is_shown_both_values(void **state) {
    (void)state;
    screen.settings = true;
    act(COMMAND_SETTINGS, OF_CHAT, "max-tokens 7");
    act(COMMAND_SETTINGS, OF_PROGRAM, "fan-out 3");
    act(COMMAND_SETTINGS, OF_PROGRAM, "key stop Alt+X");
    assert_string_equal(shown("max-tokens")->own, "7");
    assert_string_equal(shown("max-tokens")->value, "0");
    assert_string_equal(shown("max-tokens")->effect, "with the next answer");
    assert_null(shown("fan-out")->own);
    assert_string_equal(shown("fan-out")->value, "3");
    assert_string_equal(shown("fan-out")->initial, "4");
    assert_string_equal(shown("ascii")->choices, "no|yes");
    assert_string_equal(shown("key")->value, "stop Alt+X");
    assert_string_equal(shown("key")->effect, "when confab starts");
    assert_string_equal(shown("temp")->own, "0.7");
    assert_non_null(strstr(shown("theme")->choices, "fjord|"));
}

static void test_prompts_and_presets_are_kept_under_names(void **state) {
    (void)state;
    FILE *f = fopen(config_path, "w");
    fputs("# mine\nprompt = old Be old.\n", f);
    fclose(f);
    setting_parse(&settings, SETTING_prompts, "old Be old.", NULL);
    act(COMMAND_SETTINGS, OF_EITHER, "system Be brief.\nBe kind.");
    act(COMMAND_SAVE_PROMPT, -1, "brief");
    act(COMMAND_SETTINGS, OF_EITHER, "temp 0.25");
    act(COMMAND_SAVE_PRESET, -1, "cold");
    assert_string_equal(screen.status, "kept as cold");
    assert_true(config_has("# mine\n") && config_has("prompt = old Be old.\n"));
    assert_true(config_has("prompt = brief Be brief.\\nBe kind.\n"));
    assert_true(config_has("preset = cold temp=0.25 top-p=0.95 "));
    act(COMMAND_SETTINGS, OF_CHAT, "temp");
    act(COMMAND_SETTINGS, OF_EITHER, "system old");
    act(COMMAND_PRESET, -1, "cold");
    act(COMMAND_SEND, -1, "q");
    assert_string_equal(engine.prompt, "system: Be old.|user: q|");
    assert_true(engine.sampling.temperature < 0.26f);
    act(COMMAND_SETTINGS, OF_EITHER, "system old and grey"); // which is no name
    act(COMMAND_SAVE_PROMPT, -1, "old");
    assert_true(config_has("prompt = old old and grey\n"));
    assert_false(config_has("prompt = old Be old.\n"));
    act(COMMAND_PRESET, -1, "hot");
    assert_string_equal(screen.status, "no preset 'hot' (save-preset keeps one)");
    act(COMMAND_SAVE_PRESET, -1, "two words");
    assert_string_equal(screen.status, "'two words' is not a name (expected one word)");
    act(COMMAND_SETTINGS, OF_PROGRAM, "preset cold"); // a name alone takes it out
    assert_false(config_has("preset = "));
}

// The settings that take effect when a model is loaded do so without another one.
static void test_the_model_is_loaded_again(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "q");
    act(COMMAND_RELOAD, -1, NULL);
    for (int i = 0; i < 10000 && !strstr(screen.status, "loaded again"); i++) pass(0.01), usleep(1000);
    assert_string_equal(screen.status, "Tiny 1B Q4_0 is loaded again, with the settings as they are now");
    act(COMMAND_SEND, -1, "r");
    assert_string_equal(engine.prompt, "user: q\n\nr|");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CHAT_TEST(test_a_chat_without_a_template_is_continued),
        CHAT_TEST(test_a_chat_has_settings_of_its_own), CHAT_TEST(test_the_configuration_keeps_what_else_is_in_it),
        CHAT_TEST(test_what_is_wrong_changes_nothing),  CHAT_TEST(test_the_screen_is_shown_both_values),
        CHAT_TEST(test_prompts_and_presets_are_kept_under_names), CHAT_TEST(test_the_model_is_loaded_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
