// Requests for several models: which one is loaded when, and who waits.
#include "tests/unit/server_fixture.h"

#define ASK(model) "{\"model\":\"" model "\",\"messages\":[{\"role\":\"user\",\"content\":\"" model "\"}]}"

static int ask(const char *body) { return post("/v1/chat/completions", body); }

// Until the engine has so many requests in all.
static void wait_for_requests(uint64_t n) {
    for (int turns = 0; turns < 3000 && engine.n_requests < n; turns++) turn(1);
    assert_int_equal(engine.n_requests, n);
}

static void answer(const char *text) {
    tell_text(0, CHANNEL_ANSWER, 6, text);
    tell_end(0, REQUEST_FINISHED, FINISH_END, "");
}

static void assert_answered(int fd, const char *model, const char *text) {
    char *name = xasprintf("\"model\":\"%s\"", model);
    const char *reply = hear(fd, NULL);
    assert_int_equal(status_of(reply), 200);
    assert_says(reply, name);
    assert_says(reply, text);
    free(name);
    close(fd);
}

static void test_another_model_is_loaded_for_who_asks(void **state) {
    (void)state;
    int fd = ask(ASK("other"));
    wait_for_requests(1);
    assert_string_equal(engine.prompt, "user: other|");
    assert_non_null(strstr(model_host_path(host), "/other.gguf"));
    answer("from the other");
    assert_answered(fd, "other", "from the other");
    fd = ask("{\"messages\":[{\"role\":\"user\",\"content\":\"any\"}]}"); // stays there
    wait_for_requests(2);
    answer("again");
    assert_answered(fd, "other", "again");
    fd = ask(ASK("guide"));
    wait_for_requests(3);
    assert_null(model_host_path(host));
    answer("back");
    assert_answered(fd, "guide", "back");
}

static void test_nobody_is_passed_over(void **state) {
    (void)state;
    int first = ask(ASK("guide"));
    wait_for_requests(1);
    int second = ask(ASK("other")), third = ask(ASK("guide"));
    turn(20);
    assert_int_equal(engine.n_requests, 1); // the third waits for the second
    assert_null(model_host_path(host));     // which waits for the first
    answer("one");
    assert_answered(first, "guide", "one");
    wait_for_requests(2);
    assert_string_equal(engine.prompt, "user: other|");
    answer("two");
    assert_answered(second, "other", "two");
    wait_for_requests(3);
    answer("three");
    assert_answered(third, "guide", "three");
}

static void test_who_leaves_while_waiting_holds_nobody_up(void **state) {
    (void)state;
    int first = ask(ASK("guide"));
    wait_for_requests(1);
    int second = ask(ASK("other"));
    turn(20);
    close(second);
    turn(5);
    int third = ask(ASK("guide"));
    wait_for_requests(2);
    answer("three");
    assert_answered(third, "guide", "three");
    engine.n_requests = 1;
    answer("one");
    assert_answered(first, "guide", "one");
}

static void test_who_finds_no_room_to_wait_holds_nobody_up(void **state) {
    (void)state;
    int fds[8];
    for (int i = 0; i < 8; i++) fds[i] = ask("{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"n\":64}");
    wait_for_requests(8);
    int refused = ask(ASK("other"));
    assert_int_equal(status_of(hear(refused, NULL)), 503);
    close(refused);
    for (int i = 1; i < 8; i++) close(fds[i]);
    turn(5);
    for (engine.n_requests = 2; engine.n_requests <= 8; engine.n_requests++)
        for (int k = 0; k < 64; k++) tell_end(k, REQUEST_CANCELLED, FINISH_CANCELLED, "");
    engine.n_requests = 8;
    turn(5);
    int last = ask(ASK("guide"));
    wait_for_requests(9);
    close(last), close(fds[0]);
}

static void test_a_model_that_cannot_be_loaded(void **state) {
    (void)state;
    int fd = ask(ASK("FAILS"));
    const char *reply = hear(fd, NULL);
    assert_int_equal(status_of(reply), 503);
    assert_says(reply, "does not fit");
    close(fd);
    fd = ask(ASK("guide")); // the one before stays
    wait_for_requests(1);
    answer("still here");
    assert_answered(fd, "guide", "still here");
    fd = ask(ASK("FAILS")); // it is tried again
    assert_int_equal(status_of(hear(fd, NULL)), 503);
    close(fd);
}

static void test_a_server_closes_while_somebody_waits(void **state) {
    (void)state;
    int first = ask(ASK("guide")), second = ask(ASK("other"));
    turn(20);
    close_server();
    close(first), close(second);
    serve();
}

static void test_models_are_described_without_loading(void **state) {
    (void)state;
    int fd = post("/api/show", "{\"model\":\"other\"}");
    assert_says(hear(fd, NULL), "\"llama.context_length\":512");
    close(fd);
    assert_null(model_host_path(host));
}

// The models of the machine are known: before, nobody can tell whether a name is one of them.
static int start_with_list(void **state) {
    start_server(state);
    exchange("GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    return 0;
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, start_server, stop_server)
#define WITH_LIST(test)   cmocka_unit_test_setup_teardown(test, start_with_list, stop_server)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_SERVER(test_another_model_is_loaded_for_who_asks),
        WITH_LIST(test_nobody_is_passed_over),
        WITH_LIST(test_who_leaves_while_waiting_holds_nobody_up),
        WITH_LIST(test_who_finds_no_room_to_wait_holds_nobody_up),
        WITH_SERVER(test_a_model_that_cannot_be_loaded),
        WITH_LIST(test_a_server_closes_while_somebody_waits),
        WITH_SERVER(test_models_are_described_without_loading),
    };
    return cmocka_run_group_tests(tests, make_home, remove_home);
}
