// Ollama's API over HTTP.
#include "app/models/models.h"
#include "tests/unit/server_fixture.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
#define HELLO     "\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]"

static void test_a_chat_is_a_stream_of_lines(void **state) {
    (void)state;
    int fd = post("/api/chat", "{\"model\":\"guide:latest\"," HELLO ",\"unknown\":1,\"keep_alive\":\"5m\",\"options\":"
                               "{\"num_predict\":9,\"top_k\":3,\"seed\":-1,\"repeat_last_n\":32,\"num_ctx\":4096,"
                               "\"stop\":[\"a\"]}}");
    assert_string_equal(engine.prompt, "user: Hi|");
    assert_string_equal(engine.stops, "a|");
    assert_int_equal(engine.max_tokens, 9);
    assert_int_equal(engine.sampling.top_k, 3);
    assert_int_equal(engine.sampling.seed, 0);
    assert_int_equal(engine.sampling.penalty_window, 32);
    tell_text(0, CHANNEL_THINKING, 5, "Hm.");
    assert_says(hear(fd, "Hm."), "Content-Type: application/x-ndjson");
    assert_says(heard, "\"message\":{\"role\":\"assistant\",\"content\":\"\",\"thinking\":\"Hm.\"}}\n");
    tell_text(0, CHANNEL_ANSWER, 6, "Hello");
    assert_says(hear(fd, "Hello"), "\"done\":false,\"message\":{\"role\":\"assistant\",\"content\":\"Hello\"}}\n");
    tell_end(0, REQUEST_FINISHED, FINISH_END, "");
    const char *rest = hear(fd, NULL);
    assert_says(rest, "\"done\":true,\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done_reason\":\"stop\"");
    assert_says(rest, "\"prompt_eval_count\":7");
    assert_says(rest, "\"eval_count\":2");
    close(fd);
}

static void test_generating_whole(void **state) {
    (void)state;
    int fd = post("/api/generate", "{\"model\":\"guide\",\"prompt\":\"Hi\",\"system\":\"Be brief.\",\"stream\":false}");
    assert_string_equal(engine.prompt, "system: Be brief.|user: Hi|");
    tell_text(0, CHANNEL_ANSWER, 6, "Hello");
    tell_end(0, REQUEST_FINISHED, FINISH_LENGTH, "");
    const char *reply = hear(fd, NULL);
    assert_int_equal(status_of(reply), 200);
    assert_says(reply, "\"response\":\"Hello\",\"done_reason\":\"length\"");
    close(fd);
    fd =
        post("/api/generate", "{\"model\":\"guide\",\"prompt\":\"Hi\",\"raw\":true,\"format\":{\"type\":\"integer\"}}");
    await_requests(2);
    assert_string_equal(engine.prompt, "Hi");
    assert_true(engine.held);
    close(fd);
}

static void test_without_a_prompt_the_model_is_loaded(void **state) {
    (void)state;
    static const char *const paths[] = {"/api/chat", "/api/generate"};
    for (int i = 0; i < 2; i++) {
        int fd = post(paths[i], "{\"model\":\"guide\"}");
        const char *reply = hear(fd, NULL);
        assert_int_equal(status_of(reply), 200);
        assert_says(reply, "\"done_reason\":\"load\"");
        close(fd);
    }
    assert_int_equal(engine.n_requests, 0);
}

static void test_what_is_told_of_models(void **state) {
    (void)state;
    assert_says(exchange(GET("/")), "Ollama is running");
    assert_says(exchange("HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"), "200 OK");
    assert_says(exchange(GET("/api/version")), "{\"version\":\"");
    assert_says(exchange(GET("/api/tags")), "{\"name\":\"guide\",\"model\":\"guide\",\"size\":");
    assert_says(exchange(GET("/api/ps")), "\"expires_at\"");
    int fd = post("/api/show", "{\"model\":\"guide\"}");
    assert_says(hear(fd, NULL), "\"llama.context_length\":512");
    assert_says(heard, "\"capabilities\":[\"completion\"]");
    close(fd);
}

static void test_errors_in_its_own_form(void **state) {
    (void)state;
    static const struct {
        const char *path, *body, *text;
        int status;
    } cases[] = {
        {"/api/chat", "{\"model\":\"nosuch\"," HELLO "}", "no model 'nosuch'", 404},
        {"/api/chat", "{\"model\":\"guidelatest\"," HELLO "}", "no model", 404},
        {"/api/show", "{}", "model: is missing", 400},
        {"/api/chat", "{" HELLO ",\"options\":{\"temperature\":9}}", "options.temperature: 9 is out of range (0 to 5)",
         400},
        {"/api/chat", "{" HELLO ",\"options\":{\"num_predict\":-3}}", "options.num_predict: -3 is out of range", 400},
        {"/api/chat", "{" HELLO ",\"options\":{\"num_ctx\":-1}}", "options.num_ctx: -1 is out of range", 400},
        {"/api/chat", "{" HELLO ",\"keep_alive\":\"soon\"}", "keep_alive: expected a number of seconds", 400},
        {"/api/chat", "{" HELLO ",\"keep_alive\":\"5x\"}", "keep_alive: expected a number of seconds", 400},
        {"/api/chat", "{" HELLO ",\"keep_alive\":\"\"}", "keep_alive: expected a number of seconds", 400},
        {"/api/chat", "{" HELLO ",\"keep_alive\":true}", "keep_alive: expected a number of seconds", 400},
        {"/api/chat", "{" HELLO ",\"keep_alive\":1e12}", "keep_alive: 1e+12 seconds are out of range", 400},
        {"/api/chat", "{" HELLO ",\"options\":7}", "options: expected an object", 400},
        {"/api/chat", "{" HELLO ",\"think\":true}", "think: the model does not offer a choice", 400},
        {"/api/chat", "{" HELLO ",\"format\":\"xml\"}", "format: expected json, or a schema", 400},
        {"/api/chat", "{" HELLO ",\"tools\":[{}]}", "tools: not supported", 400},
        {"/api/chat", "{\"messages\":[{\"role\":\"user\",\"content\":\"x\",\"images\":[\"\"]}]}",
         "messages[0].images: not supported", 400},
        {"/api/pull", "{\"model\":\"sha256:../../x\"}", "/api/pull is not supported", 400},
        {"/api/nosuch", "{}", "no such path", 404},
        {"/api/copy", "{}", "source: is missing", 400},
        {"/api/copy", "{\"source\":\"other\"}", "destination: is missing", 400},
        {"/api/copy", "{\"source\":\"nosuch\",\"destination\":\"x\"}", "no model 'nosuch'", 404},
        {"/api/copy", "{\"source\":\"../other\",\"destination\":\"x\"}", "no model '../other'", 404},
        {"/api/copy", "{\"source\":\"other\",\"destination\":\"../x\"}", "destination: expected a name of", 400},
        {"/api/copy", "{\"source\":\"other\",\"destination\":\"guide\"}", "destination: already exists", 400},
        {"/api/copy", "{\"source\":\"guide\",\"destination\":\"x\"}", "it is built in", 400},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int fd = post(cases[i].path, cases[i].body);
        const char *reply = hear(fd, NULL);
        if (status_of(reply) != cases[i].status || !strstr(reply, "{\"error\":\"") || !strstr(reply, cases[i].text))
            fail_msg("%s %s: %s", cases[i].path, cases[i].body, reply);
        close(fd);
    }
    assert_int_equal(engine.n_requests, 0);
}

// ---- copies, and what is deleted ----

static const char *send_delete(const char *name) {
    char *body = xasprintf("{\"model\":\"%s\"}", name);
    char *request = xasprintf("DELETE /api/delete HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: "
                              "%zu\r\n\r\n%s",
                              strlen(body), body);
    const char *reply = exchange(request);
    free(body), free(request);
    return reply;
}

static bool is_listed(const char *name) {
    char *quoted = xasprintf("{\"name\":\"%s\"", name);
    const bool listed = strstr(exchange(GET("/api/tags")), quoted);
    free(quoted);
    return listed;
}

static void test_models_are_copied_and_deleted(void **state) {
    (void)state;
    int fd = post("/api/copy", "{\"source\":\"other\",\"destination\":\"mine:latest\"}");
    assert_int_equal(status_of(hear(fd, NULL)), 200);
    close(fd);
    assert_true(is_listed("mine") && is_listed("other"));
    fd = post("/api/chat", "{\"model\":\"mine\"," HELLO "}"); // is loaded
    await_requests(1);
    assert_int_equal(status_of(send_delete("mine")), 403);
    assert_says(heard, "'mine' is in use");
    tell_end(0, REQUEST_FINISHED, FINISH_END, "");
    hear(fd, NULL);
    close(fd);
    assert_int_equal(status_of(send_delete("mine:latest")), 200); // is unloaded
    assert_true(!is_listed("mine") && is_listed("other"));
    assert_int_equal(status_of(send_delete("mine")), 404);
}

static void test_a_model_in_use_is_not_deleted_however_it_was_named(void **state) {
    (void)state;
    struct status st = {0};
    const struct server_params params = server_params();
    close_server();
    settings.model = xasprintf("%s/confab/./models/other.gguf", folder);
    server = server_open(&params, &st);
    char *name = models_name(settings.model);
    assert_true(server && server_load(server, name, &st));
    assert_string_equal(name, "other");
    assert_int_equal(status_of(send_delete("other")), 403);
    assert_says(heard, "'other' is in use");
    assert_true(is_listed("other") && !access(settings.model, F_OK));
    free(name);
}

static void test_what_is_not_deleted(void **state) {
    (void)state;
    assert_int_equal(status_of(send_delete("guide")), 403);
    assert_says(heard, "'guide' is not in confab's own folder of models");
    assert_int_equal(status_of(send_delete("/etc/passwd")), 404);
    assert_int_equal(status_of(send_delete("")), 404);
    assert_true(is_listed("other"));
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, start_server, stop_server)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_SERVER(test_a_chat_is_a_stream_of_lines),
        WITH_SERVER(test_generating_whole),
        WITH_SERVER(test_without_a_prompt_the_model_is_loaded),
        WITH_SERVER(test_what_is_told_of_models),
        WITH_SERVER(test_errors_in_its_own_form),
        WITH_SERVER(test_models_are_copied_and_deleted),
        WITH_SERVER(test_a_model_in_use_is_not_deleted_however_it_was_named),
        WITH_SERVER(test_what_is_not_deleted),
    };
    return cmocka_run_group_tests(tests, make_home, remove_home);
}
