// OpenAI's chat completions over HTTP: what reaches the engine, what comes back, and what is refused.
#include "tests/unit/server_fixture.h"

#define CHAT  "/v1/chat/completions"
#define HELLO "\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]"

static const char *text_at(const json_t *object, const char *a, const char *b) {
    return json_string_value(json_object_get(json_object_get(object, a), b));
}

static const json_t *choice(const json_t *reply, size_t i) {
    return json_array_get(json_object_get(reply, "choices"), i);
}

static void test_a_whole_answer(void **state) {
    (void)state;
    int fd = post(CHAT, "{\"model\":\"guide\",\"messages\":[{\"role\":\"developer\",\"content\":\"Be brief.\"},"
                        "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Hi\"},"
                        "{\"type\":\"text\",\"text\":\" there\"}]}],\"temperature\":0.5,\"top_k\":7,\"min-p\":0.25,"
                        "\"seed\":11,\"max_tokens\":9,\"stop\":[\"a\",\"b\"],\"user\":\"me\",\"tools\":[]}");
    assert_string_equal(engine.prompt, "system: Be brief.|user: Hi there|");
    assert_string_equal(engine.stops, "a|b|");
    assert_int_equal(engine.max_tokens, 9);
    assert_int_equal(engine.n_answers, 1);
    assert_true(engine.sampling.temperature == 0.5f && engine.sampling.min_p == 0.25f);
    assert_int_equal(engine.sampling.top_k, 7);
    assert_int_equal(engine.sampling.seed, 11);
    assert_true(engine.background);
    tell_text(0, CHANNEL_THINKING, 5, "Hm.");
    tell_text(0, CHANNEL_ANSWER, 6, "Hello ");
    tell_text(0, CHANNEL_ANSWER, -1, "\"you\"");
    tell_end(0, REQUEST_FINISHED, FINISH_END, "");
    const char *reply = hear(fd, NULL);
    assert_int_equal(status_of(reply), 200);
    assert_says(reply, "Content-Type: application/json");
    json_t *object = json_of(reply);
    assert_string_equal(text_at(choice(object, 0), "message", "content"), "Hello \"you\"");
    assert_string_equal(text_at(choice(object, 0), "message", "reasoning_content"), "Hm.");
    assert_string_equal(json_string_value(json_object_get(choice(object, 0), "finish_reason")), "stop");
    assert_true(json_is_null(json_object_get(choice(object, 0), "logprobs")));
    assert_string_equal(json_string_value(json_object_get(object, "model")), "guide");
    assert_says(reply, "\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2,\"total_tokens\":9,"
                       "\"prompt_tokens_details\":{\"cached_tokens\":4},"
                       "\"completion_tokens_details\":{\"reasoning_tokens\":1}}");
    json_decref(object);
    close(fd);
}

static void test_a_stream_comes_as_it_is_generated(void **state) {
    (void)state;
    int fd = post(CHAT, "{" HELLO ",\"stream\":true,\"stream_options\":{\"include_usage\":true}}");
    tell_text(0, CHANNEL_THINKING, 5, "Hm.");
    assert_says(hear(fd, "Hm."), "Content-Type: text/event-stream");
    assert_says(heard, "\"delta\":{\"role\":\"assistant\",\"reasoning_content\":\"Hm.\"}");
    tell_text(0, CHANNEL_ANSWER, 6, "Hello");
    assert_says(hear(fd, "Hello"), "\"delta\":{\"content\":\"Hello\"},\"logprobs\":null,\"finish_reason\":null}");
    tell_end(0, REQUEST_FINISHED, FINISH_LENGTH, "");
    const char *rest = hear(fd, NULL);
    assert_says(rest, "\"delta\":{},\"logprobs\":null,\"finish_reason\":\"length\"}");
    assert_says(rest, "\"choices\":[],\"usage\":{\"prompt_tokens\":7");
    assert_says(rest, "data: [DONE]\n\n");
    close(fd);
}

static void test_an_empty_answer_is_one(void **state) {
    (void)state;
    int fd = post(CHAT, "{" HELLO ",\"stream\":true}");
    tell_end(0, REQUEST_FINISHED, FINISH_END, "");
    assert_says(hear(fd, NULL), "\"delta\":{\"role\":\"assistant\"},\"logprobs\":null,\"finish_reason\":\"stop\"");
    close(fd);
}

static void test_several_answers(void **state) {
    (void)state;
    int fd = post(CHAT, "{" HELLO ",\"n\":2}");
    assert_int_equal(engine.n_answers, 2);
    tell_text(1, CHANNEL_ANSWER, 6, "two");
    tell_text(0, CHANNEL_ANSWER, 6, "one");
    tell_end(1, REQUEST_FINISHED, FINISH_END, "");
    tell_end(0, REQUEST_FINISHED, FINISH_LENGTH, "");
    json_t *object = json_of(hear(fd, NULL));
    assert_string_equal(text_at(choice(object, 0), "message", "content"), "one");
    assert_string_equal(text_at(choice(object, 1), "message", "content"), "two");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(object, "usage"), "completion_tokens")), 4);
    json_decref(object);
    close(fd);
}

static void test_logprobs(void **state) {
    (void)state;
    int fd = post(CHAT, "{" HELLO ",\"logprobs\":true,\"top_logprobs\":1}");
    tell_text(0, CHANNEL_ANSWER, 70, "C");
    tell_end(0, REQUEST_FINISHED, FINISH_END, "");
    json_t *object = json_of(hear(fd, NULL));
    const json_t *list = json_object_get(json_object_get(choice(object, 0), "logprobs"), "content");
    const json_t *token = json_array_get(list, 0), *top = json_object_get(token, "top_logprobs");
    assert_int_equal(json_array_size(list), 1);
    assert_float_equal(json_real_value(json_object_get(token, "logprob")), -0.6931, 1e-4);
    assert_int_equal(json_array_size(top), 1);
    assert_string_equal(json_string_value(json_object_get(token, "token")),
                        json_string_value(json_object_get(json_array_get(top, 0), "token")));
    json_decref(object);
    close(fd);
}

static const struct {
    const char *body, *field;
    int status;
} refused[] = {
    {"", "", 400},
    {"nonsense", "", 400},
    {"[]", "", 400},
    {"{\"messages\":[],\"messages\":[]}", "", 400},
    {"{}", "messages", 400},
    {"{\"messages\":[]}", "messages", 400},
    {"{\"messages\":{}}", "messages", 400},
    {"{\"messages\":[1]}", "messages[0]", 400},
    {"{\"messages\":[{\"content\":\"x\"}]}", "messages[0].role", 400},
    {"{\"messages\":[{\"role\":\"tool\",\"content\":\"x\"}]}", "messages[0].role", 400},
    {"{\"messages\":[{\"role\":7,\"content\":\"x\"}]}", "messages[0].role", 400},
    {"{\"messages\":[{\"role\":\"user\"}]}", "messages[0].content", 400},
    {"{\"messages\":[{\"role\":\"user\",\"content\":7}]}", "messages[0].content", 400},
    {"{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}]}", "messages[0].content", 400},
    {"{\"messages\":[{\"role\":\"user\",\"content\":\"a\\u0000b\"}]}", "", 400},
    {"{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}", "", 400},
    {"{" HELLO ",\"model\":\"nosuch\"}", "model", 404},
    {"{" HELLO ",\"model\":\"../../etc/passwd\"}", "model", 404},
    {"{" HELLO ",\"model\":7}", "model", 400},
    {"{" HELLO ",\"temperature\":\"hot\"}", "temperature", 400},
    {"{" HELLO ",\"temperature\":5.5}", "temperature", 400},
    {"{" HELLO ",\"temp\":-1}", "temp", 400},
    {"{" HELLO ",\"temperature\":1e400}", "", 400},
    {"{" HELLO ",\"top_k\":1.5}", "top_k", 400},
    {"{" HELLO ",\"seed\":-1}", "seed", 400},
    {"{" HELLO ",\"seed\":4294967296}", "seed", 400},
    {"{" HELLO ",\"max_tokens\":0}", "max_tokens", 400},
    {"{" HELLO ",\"max_tokens\":true}", "max_tokens", 400},
    {"{" HELLO ",\"max_completion_tokens\":1e12}", "max_completion_tokens", 400},
    {"{" HELLO ",\"n\":0}", "n", 400},
    {"{" HELLO ",\"n\":65}", "n", 400},
    {"{" HELLO ",\"stream\":\"yes\"}", "stream", 400},
    {"{" HELLO ",\"stream_options\":{\"nosuch\":1}}", "stream_options.nosuch", 400},
    {"{" HELLO ",\"stop\":\"\"}", "stop", 400},
    {"{" HELLO ",\"stop\":[7]}", "stop", 400},
    {"{" HELLO ",\"top_logprobs\":2}", "top_logprobs", 400},
    {"{" HELLO ",\"logprobs\":true,\"top_logprobs\":9}", "top_logprobs", 400},
    {"{" HELLO ",\"reasoning_effort\":\"huge\"}", "reasoning_effort", 400},
    {"{" HELLO ",\"reasoning_effort\":\"high\"}", "reasoning_effort", 400},
    {"{" HELLO ",\"response_format\":7}", "response_format.type", 400},
    {"{" HELLO ",\"response_format\":{\"type\":\"xml\"}}", "response_format.type", 400},
    {"{" HELLO ",\"response_format\":{\"type\":\"json_schema\"}}", "response_format.json_schema", 400},
    {"{" HELLO ",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"schema\":{\"type\":\"x\"}}}}",
     "response_format.json_schema.schema", 400},
    {"{" HELLO ",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"json_schema\":{}}}}",
     "response_format.json_schema", 400},
    {"{" HELLO ",\"guided_regex\":7}", "guided_regex", 400},
    {"{" HELLO ",\"guided_regex\":\"(\"}", "guided_regex", 400},
    {"{" HELLO ",\"guided_regex\":\"a\",\"guided_choice\":[\"b\"]}", "guided_choice", 400},
    {"{" HELLO ",\"tools\":[{\"type\":\"function\"}]}", "tools", 400},
    {"{" HELLO ",\"logit_bias\":{\"999999999\":100}}", "logit_bias", 400},
    {"{" HELLO ",\"temprature\":1}", "temprature", 400},
};

static void test_wrong_values_are_refused_by_name(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        int fd = post(CHAT, refused[i].body);
        const char *reply = hear(fd, NULL);
        json_t *object = json_of(reply);
        const char *field = text_at(object, "error", "param"), *text = text_at(object, "error", "message");
        if (status_of(reply) != refused[i].status || strcmp(field ? field : "", refused[i].field) || !text || !*text)
            fail_msg("%s: %s", refused[i].body, reply);
        json_decref(object);
        close(fd);
    }
    assert_int_equal(engine.n_requests, 0);
}

static void test_long_names_of_fields_are_cut(void **state) {
    (void)state;
    char name[600] = "";
    for (int i = 0; i < 150; i++) strcat(name, "\xe2\x82\xac"); // cut between its bytes it would be no text
    for (int shift = 0; shift < 3; shift++) {
        char *body = xasprintf("{" HELLO ",\"%.*s%s\":1,\"stream_options\":{}}", shift, "ab", name);
        char *inner = xasprintf("{" HELLO ",\"stream_options\":{\"%.*s%s\":1}}", shift, "ab", name);
        const char *const bodies[] = {body, inner};
        for (int i = 0; i < 2; i++) {
            int fd = post(CHAT, bodies[i]);
            const char *reply = hear(fd, NULL);
            assert_int_equal(status_of(reply), 400);
            json_decref(json_of(reply));
            close(fd);
        }
        free(body), free(inner);
    }
}

static void test_answers_are_held_to_a_form(void **state) {
    (void)state;
    static const char *const forms[] = {
        "\"response_format\":{\"type\":\"json_object\"}",
        "\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"x\",\"strict\":true,\"schema\":{}}}",
        "\"guided_json\":{\"type\":\"integer\"}",
        "\"guided_json\":\"{\\\"type\\\":\\\"integer\\\"}\"",
        "\"guided_regex\":\"[0-9]+\"",
        "\"guided_choice\":[\"yes\",\"no\"]",
        "\"grammar\":\"root ::= [0-9]+\"",
    };
    int fd = post(CHAT, "{" HELLO ",\"response_format\":{\"type\":\"text\"}}");
    assert_false(engine.held);
    close(fd);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char *body = xasprintf("{" HELLO ",%s}", forms[i]);
        engine.held = false;
        fd = post(CHAT, body);
        await_requests(i + 2);
        if (!engine.held) fail_msg("%s", forms[i]);
        free(body);
        close(fd);
    }
}

// Of one that takes long nobody hears, and the engine only of what was compiled before the client had left.
static void test_a_client_may_leave_while_its_grammar_is_compiled(void **state) {
    (void)state;
    char *words = xmalloc(400001);
    for (int i = 0; i < 400000; i += 2) memcpy(words + i, "a?", 2);
    words[400000] = 0;
    char *body = xasprintf("{" HELLO ",\"guided_regex\":\"%s\"}", words);
    int fd = post(CHAT, body), other = post(CHAT, "{" HELLO "}");
    for (int turns = 0; !engine.n_requests && turns < 3000; turns++) turn(1);
    assert_false(engine.held);
    close(fd), close(other);
    for (int turns = 0; engine.n_cancelled < 1 && turns < 3000; turns++) turn(1);
    assert_int_equal(engine.n_requests, 1);
    fd = post(CHAT, body);
    assert_says(hear(fd, NULL), "\"param\":\"guided_regex\"");
    assert_says(heard, "too large");
    close(fd);
    free(body), free(words);
}

static void test_null_is_as_if_missing(void **state) {
    (void)state;
    int fd = post(CHAT, "{" HELLO ",\"temperature\":null,\"stop\":null,\"n\":null,\"response_format\":null,"
                        "\"tool_choice\":\"none\",\"stream_options\":null,\"logit_bias\":{}}");
    assert_int_equal(engine.n_requests, 1);
    assert_true(engine.sampling.temperature == sampling_default().temperature);
    close(fd);
}

// That of confab's own draws a new one; whoever names it wants the same answer each time.
static void test_a_seed_of_0_is_a_seed(void **state) {
    (void)state;
    int fd = post(CHAT, "{" HELLO ",\"seed\":0}");
    assert_int_not_equal(engine.sampling.seed, 0);
    close(fd);
}

static void test_a_prompt_that_is_too_long(void **state) {
    (void)state;
    int fd = post(CHAT, "{" HELLO ",\"stream\":true}");
    tell_end(0, REQUEST_FAILED, FINISH_CONTEXT, "the prompt has 9 tokens");
    const char *reply = hear(fd, NULL);
    assert_int_equal(status_of(reply), 400);
    assert_says(reply, "\"message\":\"the prompt has 9 tokens\"");
    assert_says(reply, "\"code\":\"context_length_exceeded\"");
    close(fd);
}

static void test_a_failure_in_the_middle_is_told(void **state) {
    (void)state;
    int fd = post(CHAT, "{" HELLO ",\"stream\":true,\"n\":2}");
    tell_text(0, CHANNEL_ANSWER, 6, "Hel");
    hear(fd, "Hel");
    tell_end(0, REQUEST_FAILED, FINISH_ERROR, "the logits are not finite");
    assert_says(hear(fd, NULL),
                "data: {\"error\":{\"message\":\"the logits are not finite\",\"type\":\"server_error\"");
    assert_null(strstr(heard, "[DONE]"));
    assert_int_equal(engine.n_cancelled, 1); // for the other answer
    close(fd);
    fd = post(CHAT, "{" HELLO "}");
    tell_end(0, REQUEST_FAILED, FINISH_ERROR, "the logits are not finite");
    assert_int_equal(status_of(hear(fd, NULL)), 500);
    close(fd);
}

static void test_models_are_listed(void **state) {
    (void)state;
    const char *reply = exchange("GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert_says(reply, "{\"id\":\"guide\",\"object\":\"model\",\"created\":");
    reply = exchange("GET /v1/models/guide HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert_int_equal(status_of(reply), 200);
    reply = exchange("GET /v1/models/nosuch HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert_int_equal(status_of(reply), 404);
    assert_says(reply, "\"code\":\"model_not_found\"");
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, start_server, stop_server)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_SERVER(test_a_whole_answer),
        WITH_SERVER(test_a_stream_comes_as_it_is_generated),
        WITH_SERVER(test_an_empty_answer_is_one),
        WITH_SERVER(test_several_answers),
        WITH_SERVER(test_logprobs),
        WITH_SERVER(test_wrong_values_are_refused_by_name),
        WITH_SERVER(test_long_names_of_fields_are_cut),
        WITH_SERVER(test_answers_are_held_to_a_form),
        WITH_SERVER(test_a_client_may_leave_while_its_grammar_is_compiled),
        WITH_SERVER(test_null_is_as_if_missing),
        WITH_SERVER(test_a_seed_of_0_is_a_seed),
        WITH_SERVER(test_a_prompt_that_is_too_long),
        WITH_SERVER(test_a_failure_in_the_middle_is_told),
        WITH_SERVER(test_models_are_listed),
    };
    return cmocka_run_group_tests(tests, make_home, remove_home);
}
