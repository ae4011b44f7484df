// OpenAI's responses and Anthropic's messages over HTTP: both are streams of named events.
#include "tests/unit/server_fixture.h"

#define HELLO "\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]"

// These come in this order.
static void assert_order(const char *text, const char *const *parts) {
    const char *at = text;
    for (; *parts; parts++) {
        const char *found = strstr(at, *parts);
        if (!found) fail_msg("no %s behind: %s\nin: %s", *parts, at == text ? "the beginning" : at, text);
        at = found + 1;
    }
}

static void tell_both(void) {
    tell_text(0, CHANNEL_THINKING, 5, "Hm.");
    tell_text(0, CHANNEL_ANSWER, 6, "Hel");
    tell_text(0, CHANNEL_ANSWER, 6, "lo");
    tell_end(0, REQUEST_FINISHED, FINISH_END, "");
}

// ---- responses ----

static void test_a_whole_response(void **state) {
    (void)state;
    int fd =
        post("/v1/responses",
             "{\"model\":\"guide\",\"instructions\":\"Be brief.\",\"max_output_tokens\":9,\"input\":["
             "{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"Hi\"}]},"
             "{\"type\":\"reasoning\",\"summary\":[]},{\"role\":\"assistant\",\"content\":\"a\"},"
             "{\"role\":\"user\",\"content\":\"b\"}],\"store\":true,\"text\":{\"format\":{\"type\":\"json_schema\","
             "\"name\":\"x\",\"schema\":{\"type\":\"integer\"}}}}");
    await_requests(1);
    assert_string_equal(engine.prompt, "system: Be brief.|user: Hi|assistant: a|user: b|");
    assert_int_equal(engine.max_tokens, 9);
    assert_true(engine.held);
    tell_both();
    const char *reply = hear(fd, NULL);
    assert_int_equal(status_of(reply), 200);
    assert_order(reply, (const char *[]){"\"object\":\"response\"", "\"status\":\"completed\"",
                                         "\"type\":\"reasoning\"", "\"text\":\"Hm.\"", "\"type\":\"message\"",
                                         "\"type\":\"output_text\"", "\"text\":\"Hello\"", "\"input_tokens\":7",
                                         "\"cached_tokens\":4", "\"output_tokens\":2", NULL});
    close(fd);
}

static void test_a_streamed_response(void **state) {
    (void)state;
    int fd = post("/v1/responses", "{\"input\":\"Hi\",\"stream\":true}");
    assert_string_equal(engine.prompt, "user: Hi|");
    tell_both();
    static const char *const order[] = {"event: response.created\ndata: ",
                                        "\"sequence_number\":0}",
                                        "event: response.in_progress\n",
                                        "event: response.output_item.added\n",
                                        "\"type\":\"reasoning\"",
                                        "event: response.content_part.added\n",
                                        "event: response.reasoning_text.delta\n",
                                        "\"delta\":\"Hm.\"",
                                        "event: response.reasoning_text.done\n",
                                        "event: response.content_part.done\n",
                                        "event: response.output_item.done\n",
                                        "event: response.output_item.added\n",
                                        "\"output_index\":1",
                                        "\"delta\":\"Hel\"",
                                        "\"delta\":\"lo\"",
                                        "event: response.output_text.done\n",
                                        "\"text\":\"Hello\"",
                                        "event: response.output_item.done\n",
                                        "event: response.completed\n",
                                        "\"status\":\"completed\"",
                                        NULL};
    assert_order(hear(fd, NULL), order);
    close(fd);
}

static void test_a_response_that_is_cut_or_fails(void **state) {
    (void)state;
    int fd = post("/v1/responses", "{\"input\":\"Hi\",\"stream\":true}");
    tell_end(0, REQUEST_FINISHED, FINISH_LENGTH, "");
    assert_order(hear(fd, NULL), (const char *[]){"event: response.created\n", "event: response.output_item.added\n",
                                                  "event: response.output_item.done\n", "event: response.incomplete\n",
                                                  "{\"reason\":\"max_output_tokens\"}", NULL});
    close(fd);
    fd = post("/v1/responses", "{\"input\":\"Hi\",\"stream\":true}");
    tell_text(0, CHANNEL_ANSWER, 6, "Hel");
    hear(fd, "Hel");
    tell_end(0, REQUEST_FAILED, FINISH_ERROR, "broken");
    assert_order(hear(fd, NULL),
                 (const char *[]){"event: error\n", "\"message\":\"broken\"", "\"type\":\"error\"", NULL});
    close(fd);
}

// ---- messages ----

static void test_a_whole_message(void **state) {
    (void)state;
    int fd = post("/v1/messages",
                  "{\"model\":\"guide\",\"max_tokens\":9,\"system\":[{\"type\":\"text\",\"text\":\"Be brief.\"}],"
                  "\"stop_sequences\":[\"x\"],\"metadata\":{},\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"},"
                  "{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"t\"},{\"type\":\"text\","
                  "\"text\":\"a\"}]},{\"role\":\"user\",\"content\":\"b\"}]}");
    assert_string_equal(engine.prompt, "system: Be brief.|user: Hi|assistant: a|user: b|");
    assert_string_equal(engine.stops, "x|");
    tell_both();
    const char *reply = hear(fd, NULL);
    assert_int_equal(status_of(reply), 200);
    assert_order(reply, (const char *[]){
                            "\"type\":\"message\"", "{\"type\":\"thinking\",\"thinking\":\"Hm.\",\"signature\":\"\"}",
                            "{\"type\":\"text\",\"text\":\"Hello\"}", "\"stop_reason\":\"end_turn\"",
                            "\"input_tokens\":3,\"cache_read_input_tokens\":4", "\"output_tokens\":2", NULL});
    close(fd);
}

static void test_a_streamed_message(void **state) {
    (void)state;
    int fd = post("/v1/messages", "{\"max_tokens\":9,\"stream\":true," HELLO "}");
    tell_both();
    static const char *const order[] = {"event: message_start\ndata: ",
                                        "\"stop_reason\":null",
                                        "event: content_block_start\n",
                                        "\"index\":0,\"content_block\":{\"type\":\"thinking\"",
                                        "\"thinking_delta\",\"thinking\":\"Hm.\"",
                                        "event: content_block_stop\n",
                                        "event: content_block_start\n",
                                        "\"index\":1,\"content_block\":{\"type\":\"text\"",
                                        "\"text_delta\",\"text\":\"Hel\"",
                                        "\"text_delta\",\"text\":\"lo\"",
                                        "event: content_block_stop\n",
                                        "event: message_delta\n",
                                        "\"stop_reason\":\"end_turn\"",
                                        "\"output_tokens\":2",
                                        "event: message_stop\n",
                                        NULL};
    assert_order(hear(fd, NULL), order);
    close(fd);
}

static void test_a_message_names_what_stopped_it(void **state) {
    (void)state;
    static const char *const forms[] = {"", "\"stream\":true,"};
    for (int i = 0; i < 2; i++) {
        char *body = xasprintf("{%s\"max_tokens\":9,\"stop_sequences\":[\"one\",\"two\"]," HELLO "}", forms[i]);
        int fd = post("/v1/messages", body);
        tell_text(0, CHANNEL_ANSWER, 5, "Hel");
        tell_stop(0, 2);
        assert_says(hear(fd, NULL), "\"stop_reason\":\"stop_sequence\",\"stop_sequence\":\"two\"");
        free(body);
        close(fd);
    }
    int fd = post("/v1/messages", "{\"max_tokens\":9,\"stop_sequences\":[\"one\"]," HELLO "}");
    tell_stop(0, 0);
    assert_says(hear(fd, NULL), "\"stop_reason\":\"end_turn\",\"stop_sequence\":null");
    close(fd);
}

static void test_errors_of_messages(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"{\"model\":\"nosuch\"," HELLO "}",
         "{\"type\":\"error\",\"error\":{\"type\":\"not_found_error\",\"message\":\""},
        {"{}", "\"invalid_request_error\",\"message\":\"messages: "},
        {"{" HELLO ",\"stop_sequences\":\"x\"}", "stop_sequences: expected a list"},
        {"{" HELLO ",\"thinking\":{\"type\":\"x\"}}", "thinking.type: expected"},
        {"{" HELLO ",\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":5}}", "thinking: the model does not"},
        {"{" HELLO ",\"tools\":[{}]}", "tools: not supported"},
        {"{" HELLO ",\"system\":7}", "system: expected"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int fd = post("/v1/messages", cases[i][0]);
        assert_says(hear(fd, NULL), cases[i][1]);
        close(fd);
    }
    int fd = post("/v1/messages", "{\"stream\":true," HELLO "}");
    tell_text(0, CHANNEL_ANSWER, 6, "Hel");
    hear(fd, "Hel");
    tell_end(0, REQUEST_FAILED, FINISH_ERROR, "broken");
    assert_says(hear(fd, NULL), "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\"");
    close(fd);
}

static void test_wrong_inputs_are_refused_by_name(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"{}", "\"param\":\"input\""},
        {"{\"input\":7}", "\"param\":\"input\""},
        {"{\"input\":[]}", "\"param\":\"input\""},
        {"{\"input\":[{\"type\":\"function_call_output\"}]}", "\"param\":\"input\""},
        {"{\"input\":[{\"role\":\"x\",\"content\":\"a\"}]}", "\"param\":\"input[0].role\""},
        {"{\"input\":\"a\",\"previous_response_id\":\"x\"}", "\"param\":\"previous_response_id\""},
        {"{\"input\":\"a\",\"truncation\":\"auto\"}", "\"param\":\"truncation\""},
        {"{\"input\":\"a\",\"reasoning\":{\"effort\":\"x\"}}", "\"param\":\"reasoning.effort\""},
        {"{\"input\":\"a\",\"text\":{\"format\":{\"type\":\"x\"}}}", "\"param\":\"text.format.type\""},
        {"{\"input\":\"a\",\"max_output_tokens\":0}", "\"param\":\"max_output_tokens\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int fd = post("/v1/responses", cases[i][0]);
        assert_says(hear(fd, NULL), cases[i][1]);
        close(fd);
    }
    assert_int_equal(engine.n_requests, 0);
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, start_server, stop_server)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_SERVER(test_a_whole_response),
        WITH_SERVER(test_a_streamed_response),
        WITH_SERVER(test_a_response_that_is_cut_or_fails),
        WITH_SERVER(test_a_whole_message),
        WITH_SERVER(test_a_streamed_message),
        WITH_SERVER(test_a_message_names_what_stopped_it),
        WITH_SERVER(test_errors_of_messages),
        WITH_SERVER(test_wrong_inputs_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, make_home, remove_home);
}
