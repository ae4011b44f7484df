// OpenAI's completions of plain text over HTTP.
#include "tests/unit/server_fixture.h"

#define PATH "/v1/completions"

static void test_a_text_is_continued(void **state) {
    (void)state;
    int fd = post(PATH, "{\"model\":\"guide\",\"prompt\":\"One, two\",\"echo\":true,\"stop\":\"x\"}");
    assert_string_equal(engine.prompt, "One, two");
    assert_string_equal(engine.stops, "x|");
    assert_int_equal(engine.max_tokens, 16);
    tell_text(0, CHANNEL_ANSWER, 6, ", three");
    tell_end(0, REQUEST_FINISHED, FINISH_LENGTH, "");
    const char *reply = hear(fd, NULL);
    assert_int_equal(status_of(reply), 200);
    assert_says(reply, "\"object\":\"text_completion\"");
    assert_says(reply, "{\"index\":0,\"text\":\"One, two, three\",\"logprobs\":null,\"finish_reason\":\"length\"}");
    close(fd);
}

static void test_a_stream_echoes_once(void **state) {
    (void)state;
    int fd = post(PATH, "{\"prompt\":[\"One\"],\"echo\":true,\"stream\":true,\"max_tokens\":3}");
    tell_text(0, CHANNEL_ANSWER, 6, ", two");
    assert_says(hear(fd, "two"), "\"text\":\"One, two\",\"logprobs\":null,\"finish_reason\":null");
    tell_text(0, CHANNEL_ANSWER, 6, ", three");
    assert_says(hear(fd, "three"), "\"text\":\", three\"");
    tell_end(0, REQUEST_FINISHED, FINISH_END, "");
    assert_says(hear(fd, NULL), "\"text\":\"\",\"logprobs\":null,\"finish_reason\":\"stop\"");
    assert_says(heard, "data: [DONE]\n\n");
    close(fd);
}

static void test_token_ids(void **state) {
    (void)state;
    int fd = post(PATH, "{\"prompt\":[5,6,7]}");
    assert_string_equal(engine.prompt, "5|6|7|");
    close(fd);
    fd = post(PATH, "{\"prompt\":[[5,6]]}");
    assert_string_equal(engine.prompt, "5|6|");
    close(fd);
}

static void test_an_answer_that_goes_on_behind_its_end(void **state) {
    (void)state;
    int fd = post(PATH, "{\"prompt\":\"One\",\"ignore_eos\":true}");
    assert_true(engine.ignore_end);
    close(fd);
    fd = post(PATH, "{\"prompt\":\"One\"}");
    assert_false(engine.ignore_end);
    close(fd);
}

// To one of several prompts, of which each is a request.
static void tell_answer(uint64_t request, int answer, const char *text) {
    const uint64_t latest = engine.n_requests;
    engine.n_requests = request;
    tell_text(answer, CHANNEL_ANSWER, 6, text);
    tell_end(answer, REQUEST_FINISHED, FINISH_END, "");
    engine.n_requests = latest;
}

static void test_several_prompts(void **state) {
    (void)state;
    int fd = post(PATH, "{\"prompt\":[\"One\",\"Two\",\"Three\"],\"n\":2,\"echo\":true}");
    assert_int_equal(engine.n_requests, 3);
    assert_string_equal(engine.prompt, "Three");
    assert_int_equal(engine.n_answers, 2);
    tell_answer(3, 1, " f"), tell_answer(1, 0, " a"), tell_answer(2, 1, " d");
    tell_answer(1, 1, " b"), tell_answer(3, 0, " e"), tell_answer(2, 0, " c");
    const char *reply = hear(fd, NULL);
    assert_int_equal(status_of(reply), 200);
    static const char *const texts[] = {"One a", "One b", "Two c", "Two d", "Three e", "Three f"};
    for (int i = 0; i < 6; i++) {
        char *choice = xasprintf("{\"index\":%d,\"text\":\"%s\",", i, texts[i]);
        assert_says(reply, choice);
        free(choice);
    }
    assert_says(reply, "\"prompt_tokens\":21,\"completion_tokens\":12");
    assert_says(reply, "\"cached_tokens\":12");
    close(fd);
}

static void test_several_prompts_of_ids(void **state) {
    (void)state;
    int fd = post(PATH, "{\"prompt\":[[5,6],[7]],\"stream\":true,\"best_of\":1}");
    assert_int_equal(engine.n_requests, 2);
    assert_string_equal(engine.prompt, "7|");
    tell_answer(2, 0, "b"), tell_answer(1, 0, "a");
    const char *reply = hear(fd, NULL);
    assert_says(reply, "{\"index\":1,\"text\":\"b\",\"logprobs\":null,\"finish_reason\":null}");
    assert_says(reply, "{\"index\":0,\"text\":\"a\",\"logprobs\":null,\"finish_reason\":null}");
    close(fd);
}

static void test_a_client_that_leaves_cancels_all_prompts(void **state) {
    (void)state;
    int fd = post(PATH, "{\"prompt\":[\"One\",\"Two\"]}");
    assert_int_equal(engine.n_requests, 2);
    close(fd);
    for (int turns = 0; engine.n_cancelled < 2 && turns < 3000; turns++) turn(1);
    assert_int_equal(engine.n_cancelled, 2);
    tell_answer(1, 0, ""), tell_answer(2, 0, "");
}

static const json_t *first_choice(const json_t *object) {
    return json_array_get(json_object_get(object, "choices"), 0);
}

static void test_logprobs(void **state) {
    (void)state;
    int fd = post(PATH, "{\"prompt\":\"One\",\"logprobs\":2}");
    tell_text(0, CHANNEL_ANSWER, 70, "a");
    tell_text(0, CHANNEL_ANSWER, 71, "b");
    tell_end(0, REQUEST_FINISHED, FINISH_END, "");
    json_t *object = json_of(hear(fd, NULL));
    const json_t *logprobs = json_object_get(first_choice(object), "logprobs");
    assert_int_equal(json_array_size(json_object_get(logprobs, "tokens")), 2);
    assert_int_equal(json_array_size(json_object_get(logprobs, "token_logprobs")), 2);
    assert_int_equal(json_object_size(json_array_get(json_object_get(logprobs, "top_logprobs"), 1)), 2);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(logprobs, "text_offset"), 0)), 0);
    assert_true(json_integer_value(json_array_get(json_object_get(logprobs, "text_offset"), 1)) > 0);
    json_decref(object);
    close(fd);
}

// The tokens of the prompt stand before those of the answer; of the first nobody knows how likely it is.
static void assert_scored(const json_t *choice, size_t n) {
    const json_t *logprobs = json_object_get(choice, "logprobs");
    const json_t *values = json_object_get(logprobs, "token_logprobs"),
                 *tops = json_object_get(logprobs, "top_logprobs");
    assert_int_equal(json_array_size(json_object_get(logprobs, "tokens")), n);
    assert_int_equal(json_array_size(values), n);
    assert_true(json_is_null(json_array_get(values, 0)));
    assert_true(json_is_null(json_array_get(tops, 0)));
    assert_float_equal(json_real_value(json_array_get(values, 1)), log(0.125), 1e-6);
    assert_int_equal(json_object_size(json_array_get(tops, 1)), 3); // itself, which is none of the two likeliest
    assert_int_equal(json_integer_value(json_array_get(json_object_get(logprobs, "text_offset"), 0)), 0);
}

static void test_an_echo_is_scored(void **state) {
    (void)state;
    int fd = post(PATH, "{\"prompt\":\"One\",\"echo\":true,\"logprobs\":2}");
    assert_true(engine.score_prompt);
    tell_prompt(0, 72, NAN), tell_prompt(0, 73, 0.125f);
    tell_text(0, CHANNEL_ANSWER, 70, "a");
    tell_end(0, REQUEST_FINISHED, FINISH_LENGTH, "");
    json_t *object = json_of(hear(fd, NULL));
    assert_scored(first_choice(object), 3);
    assert_string_equal(json_string_value(json_object_get(first_choice(object), "text")), "Onea");
    json_decref(object);
    close(fd);
    fd = post(PATH, "{\"prompt\":\"One\",\"logprobs\":2}");
    assert_false(engine.score_prompt);
    close(fd);
}

static void test_an_echo_is_scored_in_a_stream(void **state) {
    (void)state;
    int fd = post(PATH, "{\"prompt\":\"One\",\"echo\":true,\"logprobs\":2,\"stream\":true}");
    tell_prompt(0, 72, NAN), tell_prompt(0, 73, 0.125f);
    tell_text(0, CHANNEL_ANSWER, 70, "a");
    const char *chunk = strstr(hear(fd, "Onea"), "data: ");
    json_t *object = json_loads(chunk + strlen("data: "), JSON_DISABLE_EOF_CHECK, NULL);
    assert_scored(first_choice(object), 3);
    json_decref(object);
    close(fd);
}

// The token that is drawn all the same is not told, nor counted.
static void test_only_an_echo(void **state) {
    (void)state;
    int fd = post(PATH, "{\"prompt\":[72,73],\"echo\":true,\"logprobs\":2,\"max_tokens\":0}");
    assert_int_equal(engine.max_tokens, 1);
    tell_prompt(0, 72, NAN), tell_prompt(0, 73, 0.125f);
    tell_text(0, CHANNEL_ANSWER, 70, "a");
    tell_end(0, REQUEST_FINISHED, FINISH_LENGTH, "");
    json_t *object = json_of(hear(fd, NULL));
    assert_scored(first_choice(object), 2);
    const json_t *tokens = json_object_get(json_object_get(first_choice(object), "logprobs"), "tokens");
    char *text =
        xasprintf("%s%s", json_string_value(json_array_get(tokens, 0)), json_string_value(json_array_get(tokens, 1)));
    assert_string_equal(json_string_value(json_object_get(first_choice(object), "text")), text);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(object, "usage"), "completion_tokens")), 0);
    free(text);
    json_decref(object);
    close(fd);
    fd = post(PATH, "{\"prompt\":\"One\",\"echo\":true,\"max_tokens\":0,\"stream\":true}");
    tell_text(0, CHANNEL_ANSWER, 70, "a");
    tell_end(0, REQUEST_FINISHED, FINISH_LENGTH, "");
    assert_says(hear(fd, NULL), "\"text\":\"One\",\"logprobs\":null,\"finish_reason\":\"length\"");
    close(fd);
}

static void tell_prompt_tokens(uint64_t request, int n) {
    told_engine_say((struct engine_event){
        .kind = EVENT_STATE, .request = request, .at = clock_ns(), .state = REQUEST_PENDING, .n_prompt = n});
}

static void test_too_much_to_score(void **state) {
    (void)state;
    int fd = post(PATH, "{\"prompt\":[\"One\",\"Two\"],\"n\":2,\"echo\":true,\"logprobs\":2}");
    tell_prompt_tokens(1, 20000);
    tell_prompt_tokens(2, 20000);
    const char *reply = hear(fd, NULL);
    assert_int_equal(status_of(reply), 400);
    assert_says(reply, "\"param\":\"logprobs\"");
    assert_int_equal(engine.n_cancelled, 2);
    close(fd);
    fd = post(PATH, "{\"prompt\":\"One\",\"echo\":true}");
    tell_prompt_tokens(3, 100000);
    tell_end(0, REQUEST_FINISHED, FINISH_LENGTH, "");
    assert_int_equal(status_of(hear(fd, NULL)), 200);
    close(fd);
}

static void test_wrong_values_are_refused_by_name(void **state) {
    (void)state;
    static const struct {
        const char *body, *field;
    } refused[] = {
        {"{}", "prompt"},
        {"{\"prompt\":[]}", "prompt"},
        {"{\"prompt\":7}", "prompt"},
        {"{\"prompt\":[\"a\",7]}", "prompt"},
        {"{\"prompt\":[\"a\",[]]}", "prompt"},
        {"{\"prompt\":[[1],[999999999]]}", "prompt"},
        {"{\"prompt\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\",\"i\"],\"n\":64}", "n"},
        {"{\"prompt\":\"a\",\"best_of\":2}", "best_of"},
        {"{\"prompt\":[1,\"b\"]}", "prompt"},
        {"{\"prompt\":[-1]}", "prompt"},
        {"{\"prompt\":[999999999]}", "prompt"},
        {"{\"prompt\":[99999999999999]}", "prompt"},
        {"{\"prompt\":\"a\",\"max_tokens\":0}", "max_tokens"},
        {"{\"prompt\":\"a\",\"echo\":true,\"max_tokens\":-1}", "max_tokens"},
        {"{\"prompt\":\"a\",\"max_tokens\":\"1\"}", "max_tokens"},
        {"{\"prompt\":\"a\",\"ignore_eos\":1}", "ignore_eos"},
        {"{\"prompt\":\"a\",\"logprobs\":9}", "logprobs"},
        {"{\"prompt\":\"a\",\"logprobs\":true}", "logprobs"},
        {"{\"prompt\":\"a\",\"suffix\":\"b\"}", "suffix"},
        {"{\"prompt\":\"a\",\"messages\":[]}", "messages"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        int fd = post(PATH, refused[i].body);
        const char *reply = hear(fd, NULL);
        json_t *object = json_of(reply);
        const char *field = json_string_value(json_object_get(json_object_get(object, "error"), "param"));
        if (status_of(reply) != 400 || !field || strcmp(field, refused[i].field))
            fail_msg("%s: %s", refused[i].body, reply);
        json_decref(object);
        close(fd);
    }
    assert_int_equal(engine.n_requests, 0);
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, start_server, stop_server)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_SERVER(test_a_text_is_continued),
        WITH_SERVER(test_a_stream_echoes_once),
        WITH_SERVER(test_token_ids),
        WITH_SERVER(test_an_answer_that_goes_on_behind_its_end),
        WITH_SERVER(test_several_prompts),
        WITH_SERVER(test_several_prompts_of_ids),
        WITH_SERVER(test_a_client_that_leaves_cancels_all_prompts),
        WITH_SERVER(test_logprobs),
        WITH_SERVER(test_an_echo_is_scored),
        WITH_SERVER(test_an_echo_is_scored_in_a_stream),
        WITH_SERVER(test_only_an_echo),
        WITH_SERVER(test_too_much_to_score),
        WITH_SERVER(test_wrong_values_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, make_home, remove_home);
}
