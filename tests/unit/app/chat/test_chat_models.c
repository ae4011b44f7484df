// The chat controller: which model answers, and with which settings.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "app/models/model_name.h"
#include "tests/unit/chat_fixture.h"

static void test_what_a_model_is_called(void **state) {
    (void)state;
    static const char *const names[][2] = {
        {"confab guide", "guide"},
        {"TinyLlama 1.1B Chat v1.0", "TinyLlama"},
        {"tinyllama-1.1b", "tinyllama"},
        {"Meta Llama 3.1 8B Instruct", "Llama 3.1"},
        {"Meta-Llama-3-8B-Instruct", "Llama-3"},
        {"Qwen2.5 0.5B Instruct", "Qwen2.5"},
        {"Mistral-7B-Instruct-v0.3", "Mistral"},
        {"Phi 3 Mini 4k Instruct", "Phi 3 Mini"},
        {"stories260K", "stories260K"},
        {"7B", "7B"},
        {"Google", "Google"},
        {"confab ", "confab "},
        {"--", "--"},
        {"", ""},
        {"日本語 7B", "日本語"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct model_info info = {.name = names[i][0]};
        char *name = model_short_name(&info);
        assert_string_equal(name, names[i][1]);
        free(name);
    }
}

static void write_model(const char *name, char path[128]) {
    snprintf(path, 128, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
}

static void test_answers_remember_their_model(void **state) {
    (void)state;
    char path[128];
    write_model("Other 2B.gguf", path);
    act(COMMAND_SEND, -1, "one");
    say(1, 1, "first");
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    assert_null(screen.messages[1].author);
    act(COMMAND_MODEL, -1, path);
    wait_for_model();
    assert_string_equal(screen.view.model_name, "Other 2B Q4_0");
    assert_int_equal(screen.view.n_messages, 2); // a command is no message
    assert_string_equal(screen.messages[1].author, "Tiny 1B Q4_0");
    assert_string_equal(settings.model, path);
    assert_true(config_has("model"));
    act(COMMAND_SEND, -1, "two");
    say(1, 2, "second");
    end(1, 2, REQUEST_FINISHED, FINISH_END, "");
    assert_string_equal(screen.messages[3].model, "Other 2B Q4_0"); // where it changes
    act(COMMAND_SEND, -1, "three");
    say(1, 3, "third");
    end(1, 3, REQUEST_FINISHED, FINISH_END, "");
    assert_null(screen.messages[5].author);
    assert_null(screen.messages[5].model);
    close_chat();
    open_chat();
    act(COMMAND_NEXT, 1, NULL);
    assert_string_equal(screen.messages[1].author, "Tiny 1B Q4_0"); // from the store
    assert_string_equal(screen.messages[3].model, "Other 2B Q4_0");
}

static void test_a_running_answer_is_stopped_for_another_model(void **state) {
    (void)state;
    char path[128];
    write_model("Other 2B.gguf", path);
    act(COMMAND_SEND, -1, "one");
    say(1, 1, "half an ans");
    act(COMMAND_MODEL, -1, path);
    wait_for_model();
    assert_false(screen.chats[0].busy);
    assert_message(1, VIEW_MODEL, "half an ans");
    assert_non_null(strstr(screen.messages[1].note, "stopped for another model"));
    assert_non_null(strstr(screen.status, "Other 2B Q4_0 answers from now on; 1 answer was stopped"));
}

static void test_a_model_that_fails_leaves_the_old(void **state) {
    (void)state;
    char path[128];
    write_model("FAILS.gguf", path);
    act(COMMAND_MODEL, -1, path);
    wait_for_model();
    assert_string_equal(screen.view.model_name, "Tiny 1B Q4_0");
    assert_non_null(strstr(screen.status, "does not fit"));
    assert_true(screen.view.status_bad);
    assert_null(settings.model);
    act(COMMAND_MODEL, -1, "no such model");
    assert_non_null(strstr(screen.status, "no file or model named"));
    act(COMMAND_MODEL, -1, "/nowhere/x.gguf");
    assert_non_null(strstr(screen.status, "/nowhere/x.gguf: no such "));
    assert_null(strstr(screen.status, "x.gguf: /nowhere")); // its path is said once
    act(COMMAND_SEND, -1, "one");
    assert_string_equal(engine.prompt, "user: one|");
}

static void test_a_draft_model_that_does_not_draft_is_told(void **state) {
    (void)state;
    char path[128];
    write_model("ALONE.gguf", path);
    act(COMMAND_MODEL, -1, path);
    wait_for_model();
    assert_string_equal(screen.status, "ALONE Q4_0 answers from now on; drafting by lookup alone: "
                                       "small: cannot draft for ALONE");
}

static void test_there_is_nothing_to_stop(void **state) {
    (void)state;
    act(COMMAND_MODEL_STOP, -1, NULL);
    assert_non_null(strstr(screen.status, "no model is being loaded"));
}

static void test_stops_and_reasoning_reach_the_engine(void **state) {
    (void)state;
    assert_true(setting_parse(&settings, SETTING_stops, "END", NULL));
    assert_true(setting_parse(&settings, SETTING_stops, "\nUser:", NULL));
    act(COMMAND_REASONING, -1, NULL);
    assert_non_null(strstr(screen.status, "lets nobody choose"));
    act(COMMAND_SEND, -1, "q");
    assert_string_equal(engine.stops, "END|\nUser:|");
    assert_int_equal(engine.reasoning, REASONING_AUTO);
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    described()->chooses_effort = true;
    act(COMMAND_REASONING, -1, NULL);
    assert_string_equal(screen.status, "reasoning is now low, from the next message on");
    assert_true(config_has("reasoning = low\n"));
    act(COMMAND_REGENERATE, -1, NULL);
    assert_int_equal(engine.reasoning, REASONING_LOW);
    described()->chooses_effort = false, described()->chooses_thinking = true;
    static const char *const words[] = {"auto", "off", "on", "auto"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        act(COMMAND_REASONING, -1, NULL);
        char *expected = xasprintf("reasoning is now %s, from the next message on", words[i]);
        assert_string_equal(screen.status, expected);
        free(expected);
    }
}

// The model's own values, not the program's; what is reset follows the next model too.
static void test_knobs_go_back_to_the_model(void **state) {
    (void)state;
    described()->sampling.temperature = 0.25f;
    act(COMMAND_KNOB_SET, -1, "1.5");
    assert_true(config_has("temp = 1.5\n"));
    act(COMMAND_KNOB_RESET, -1, NULL);
    assert_string_equal(screen.status, "temp is now 0.25");
    assert_true(config_has("temp = default\n"));
    act(COMMAND_KNOB_UP, -1, NULL);
    assert_true(config_has("temp = 0.3\n"));
    act(COMMAND_KNOB_SET, -1, "default");
    assert_string_equal(screen.status, "temp is now 0.25");
    assert_true(config_has("temp = default\n"));
    act(COMMAND_KNOB_UP, -1, NULL);
    act(COMMAND_KNOB_RESET_ALL, -1, NULL);
    assert_true(config_has("temp = default\n"));
    act(COMMAND_SEND, -1, "q");
    assert_true(engine.sampling.temperature == 0.25f);
}

static void test_a_knob_reaches_the_running_answer(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "q");
    act(COMMAND_KNOB_SET, -1, "1.5");
    assert_int_equal(engine.changed[0], 1);
    assert_true(engine.new_sampling.temperature == 1.5f);
    assert_string_equal(screen.status, "temp is now 1.50, from the next token on");
    assert_true(config_has("temp = 1.5\n"));
    act(COMMAND_KNOB_UP, -1, NULL);
    assert_true(engine.new_sampling.temperature > 1.54f && engine.new_sampling.temperature < 1.56f);
    act(COMMAND_KNOB_SET, -1, "hot");
    assert_true(screen.view.status_bad);
    act(COMMAND_KNOB_NEXT, -1, NULL);
    assert_int_equal(screen.view.knob, KNOB_top_p);
    act(COMMAND_KNOB_RESET_ALL, -1, NULL);
    assert_true(engine.new_sampling.temperature == sampling_default().temperature);
    act(COMMAND_KNOB_PREVIOUS, -1, NULL);
    act(COMMAND_KNOB_DOWN, -1, NULL);
    act(COMMAND_NEW, -1, NULL); // begins with what was set last
    act(COMMAND_SEND, -1, "q2");
    assert_true(engine.sampling.temperature == engine.new_sampling.temperature);
}

static void test_one_knob_of_an_old_chat_is_no_more_than_that(void **state) {
    (void)state;
    act(COMMAND_KNOB_SET, -1, "1.5");
    act(COMMAND_SEND, -1, "wild");
    act(COMMAND_NEW, -1, NULL);
    act(COMMAND_KNOB_SET, -1, "0.2");
    act(COMMAND_SEND, -1, "sober");
    act(COMMAND_NEXT, -1, NULL); // the wild one
    act(COMMAND_KNOB_NEXT, -1, NULL);
    act(COMMAND_KNOB_SET, -1, "0.8");
    act(COMMAND_NEW, -1, NULL);
    act(COMMAND_SEND, -1, "q");
    assert_true(engine.sampling.temperature == 0.2f);
    assert_true(engine.sampling.top_p == 0.8f);
}

static void test_settings_of_the_screen_are_saved(void **state) {
    (void)state;
    act(COMMAND_THEME, -1, NULL);
    assert_string_equal(screen.status, "theme ember");
    screen.panes.shown = 1u << PANE_CHAT | 1u << PANE_THROUGHPUT | 1u << PANE_LATENCY;
    act(COMMAND_TOGGLE_CHATS, -1, NULL);
    assert_string_equal(screen.status, "panes: throughput; no room for latency");
    screen.panes.arrangement = ARRANGE_TALL;
    act(COMMAND_PANES, -1, NULL);
    assert_string_equal(screen.status, "above the chat: throughput; no room for latency");
    screen.panes.sizes.of[SIZE_LEFT].columns = 33;
    act(COMMAND_WIDER, -1, NULL);
    act(COMMAND_ASCII, -1, NULL);
    assert_true(config_has("theme = ember\n"));
    assert_true(config_has("panes = 24\n"));
    assert_true(config_has("layout = tall\n"));
    assert_true(config_has("sizes = left=33x0\n"));
    assert_true(config_has("ascii = yes\n"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CHAT_TEST(test_what_a_model_is_called),
        CHAT_TEST(test_answers_remember_their_model),
        CHAT_TEST(test_a_running_answer_is_stopped_for_another_model),
        CHAT_TEST(test_a_model_that_fails_leaves_the_old),
        CHAT_TEST(test_there_is_nothing_to_stop),
        CHAT_TEST(test_a_draft_model_that_does_not_draft_is_told),
        CHAT_TEST(test_stops_and_reasoning_reach_the_engine),
        CHAT_TEST(test_knobs_go_back_to_the_model),
        CHAT_TEST(test_a_knob_reaches_the_running_answer),
        CHAT_TEST(test_one_knob_of_an_old_chat_is_no_more_than_that),
        CHAT_TEST(test_settings_of_the_screen_are_saved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
