// What the server tells of itself and of texts: metrics for Prometheus, properties, tokens.
#include "app/server/figures.h"
#include "tests/unit/server_fixture.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

static void test_requests_are_counted(void **state) {
    (void)state;
    int fd = post("/v1/completions", "{\"prompt\":\"Hi\"}");
    tell_text(0, CHANNEL_ANSWER, 6, "a");
    tell_text(0, CHANNEL_ANSWER, 6, "b");
    tell_end(0, REQUEST_FINISHED, FINISH_LENGTH, "");
    hear(fd, NULL);
    close(fd);
    const char *reply = exchange(GET("/metrics"));
    assert_says(reply, "Content-Type: text/plain; version=0.0.4");
    assert_says(reply, "\nvllm:request_success_total{model_name=\"guide\",finished_reason=\"length\"} 1\n");
    assert_says(reply, "\nvllm:request_success_total{model_name=\"guide\",finished_reason=\"stop\"} 0\n");
    assert_says(reply, "\nvllm:time_to_first_token_seconds_count{model_name=\"guide\"} 1\n");
    assert_says(reply, "\nvllm:inter_token_latency_seconds_count{model_name=\"guide\"} 1\n");
    assert_says(reply, "\nvllm:e2e_request_latency_seconds_bucket{model_name=\"guide\",le=\"+Inf\"} 1\n");
}

static void test_buckets_add_up(void **state) {
    (void)state;
    struct figures f = {0};
    struct engine_metrics *m = xcalloc(1, sizeof *m);
    size_t size;
    figures_token(&f, 1000000000, 0, 1030000000);          // 0.03 s
    figures_token(&f, 1000000000, 0, 1300000000);          // 0.3 s
    figures_token(&f, 1000000000, 0, 2000000000000000ull); // beyond all
    char *text = figures_write(&(struct figures_of){"a\"b", &f, m}, 1, &size);
    assert_int_equal(size, strlen(text));
    assert_says(text, "vllm:time_to_first_token_seconds_bucket{model_name=\"a\\\"b\",le=\"0.02\"} 0\n");
    assert_says(text, "le=\"0.04\"} 1\n");
    assert_says(text, "le=\"0.25\"} 1\n");
    assert_says(text, "le=\"0.5\"} 2\n");
    assert_says(text, "le=\"640\"} 2\n");
    assert_says(text, "le=\"+Inf\"} 3\n");
    free(text), free(m);
}

static void test_what_is_unknown_is_left_out(void **state) {
    (void)state;
    const struct figures f = {0};
    struct engine_metrics *m = xcalloc(1, sizeof *m);
    size_t size;
    metrics_set_unknown(m);
    m->running = 3;
    char *text = figures_write(&(struct figures_of){"x", &f, m}, 1, &size);
    assert_says(text, "vllm:num_requests_running{model_name=\"x\"} 3\n");
    assert_null(strstr(text, "num_requests_waiting"));
    assert_null(strstr(text, "kv_cache_usage_perc"));
    assert_null(strstr(text, "-1\n"));
    assert_null(strstr(text, "nan"));
    free(text), free(m);
}

static void test_properties(void **state) {
    (void)state;
    settings.sampling.temperature = 0.5f;
    assert_says(exchange(GET("/props")), "\"model_alias\":\"guide\"");
}

static void test_texts_become_tokens_and_texts_again(void **state) {
    (void)state;
    int fd = post("/tokenize", "{\"content\":\"ab a\"}");
    json_t *object = json_of(hear(fd, NULL)), *tokens = json_object_get(object, "tokens");
    assert_true(json_array_size(tokens) > 0);
    assert_int_equal(json_integer_value(json_object_get(object, "count")), json_array_size(tokens));
    char *list = json_dumps(tokens, 0), *body = xasprintf("{\"tokens\":%s}", list);
    close(fd);
    fd = post("/detokenize", body);
    assert_says(hear(fd, NULL), "ab a");
    json_decref(object);
    free(list), free(body);
    close(fd);
}

static void test_wrong_tokens_are_refused(void **state) {
    (void)state;
    static const char *const cases[][3] = {
        {"/tokenize", "{}", "content: is missing"},
        {"/tokenize", "{\"content\":7}", "content: expected a string"},
        {"/tokenize", "{\"content\":\"a\",\"model\":\"nosuch\"}", "no model"},
        {"/detokenize", "{}", "tokens: is missing"},
        {"/detokenize", "{\"tokens\":[-1]}", "item 0 is not a token id"},
        {"/detokenize", "{\"tokens\":[1,\"a\"]}", "item 1 is not a token id"},
        {"/detokenize", "{\"tokens\":[2147483647]}", "out of range"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int fd = post(cases[i][0], cases[i][1]);
        assert_says(hear(fd, NULL), cases[i][2]);
        close(fd);
    }
}

static void test_a_client_that_does_not_wait_for_tokens(void **state) {
    (void)state;
    int fd = dial();
    say(fd, "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 15\r\n\r\n{\"content\":\"a\"}");
    close(fd);
    turn(5);
    assert_int_equal(status_of(exchange(GET("/health"))), 200);
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, start_server, stop_server)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_SERVER(test_requests_are_counted),
        cmocka_unit_test(test_buckets_add_up),
        cmocka_unit_test(test_what_is_unknown_is_left_out),
        WITH_SERVER(test_properties),
        WITH_SERVER(test_texts_become_tokens_and_texts_again),
        WITH_SERVER(test_wrong_tokens_are_refused),
        WITH_SERVER(test_a_client_that_does_not_wait_for_tokens),
    };
    return cmocka_run_group_tests(tests, make_home, remove_home);
}
