// What a screen is shown of clients, and cancelling their requests.
#include "tests/unit/server_fixture.h"

#include "app/server/server_state.h"
#include "app/server/snapshot.h"

#define ASK(model) "{\"model\":\"" model "\",\"n\":2,\"messages\":[{\"role\":\"user\",\"content\":\"a secret\"}]}"

static struct server_snapshot all;

// Sends it, and returns in the turn in which somebody is to reply.
static int ask(const char *path, const char *agent, const char *body) {
    char *request =
        xasprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s%s%sContent-Length: "
                  "%zu\r\n\r\n%s",
                  path, agent ? "User-Agent: " : "", agent ? agent : "", agent ? "\r\n" : "", strlen(body), body);
    const int before = all.n_clients, fd = dial();
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    free(request);
    for (int i = 0; i < 1000 && all.n_clients == before; i++) turn(1), server_snapshot(server, &all);
    assert_int_equal(all.n_clients, before + 1);
    return fd;
}

static void test_how_far_an_answer_is(void **state) {
    (void)state;
    int fd = ask("/v1/chat/completions", "OpenAI/Python 1.30.1", ASK("guide"));
    const struct server_client *c = &all.clients[0];
    assert_string_equal(c->name, "OpenAI");
    assert_string_equal(c->path, "/v1/chat/completions");
    assert_string_equal(c->model, "guide");
    assert_int_equal(c->state, REQUEST_PENDING);
    assert_int_equal(engine.disk_owner, 0); // nothing of it goes to the disk
    engine.metrics.n_requests = 2;
    for (int i = 0; i < 2; i++)
        engine.metrics.requests[i] = (struct request_metrics){
            .request = 1, .answer = i, .prefill_done = 3, .prefill_total = 7, .tokens_per_second = 10};
    tell_text(0, CHANNEL_ANSWER, 5, "one");
    tell_text(1, CHANNEL_THINKING, 5, "two");
    turn(3);
    server_snapshot(server, &all);
    assert_int_equal(c->state, REQUEST_DECODING);
    assert_int_equal(c->n_tokens, 2);
    assert_int_equal(c->prefill_done, 3);
    assert_int_equal(c->prefill_total, 7);
    assert_true(c->tokens_per_second > 19.9f && c->tokens_per_second < 20.1f);
    assert_true(c->first_token > 0);
    assert_null(memmem(&all, sizeof all, "secret", 6));
    assert_null(memmem(&all, sizeof all, "two", 3));
    tell_end(0, REQUEST_FINISHED, FINISH_END, ""), tell_end(1, REQUEST_FINISHED, FINISH_END, "");
    assert_int_equal(status_of(hear(fd, NULL)), 200);
    close(fd);
    server_snapshot(server, &all);
    assert_int_equal(all.n_clients, 0);
}

static void test_names_are_fit_for_a_terminal(void **state) {
    (void)state;
    static const char *const names[][2] = {
        {"curl/8.1", "curl"},  {"Zed 1.2", "Zed"},
        {NULL, "127.0.0.1"},   {"/1.0", "127.0.0.1"},
        {"a\x1b]0;x", "a␛]0"}, {"\xe2\x80\xaeover", "␦over"},
        {"\xff\xfe", "��"},    {"漢字漢字漢字漢字漢字漢字", "漢字漢字漢字漢字漢字"}, // cut at a character
    };
    int fds[sizeof names / sizeof *names];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        fds[i] = ask("/v1/chat/completions", names[i][0], ASK("guide"));
        assert_string_equal(all.clients[i].name, names[i][1]); // in the order in which they came
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) close(fds[i]);
    turn(5);
}

static void test_a_request_that_waits_is_cancelled(void **state) {
    (void)state;
    int fd = ask("/v1/chat/completions", "curl/8", ASK("other"));
    assert_string_equal(all.clients[0].model, "");
    assert_int_equal(all.clients[0].state, REQUEST_PENDING);
    assert_false(server_cancel(server, all.clients[0].number + 1));
    assert_true(server_cancel(server, all.clients[0].number));
    const char *reply = hear(fd, NULL);
    assert_int_equal(status_of(reply), 503);
    assert_says(reply, "the request was cancelled at the server");
    close(fd);
    all.n_clients = 0;
    fd = ask("/tokenize", "curl/8", "{\"content\":\"abc\"}"); // which has a job of the worker's
    assert_true(server_cancel(server, all.clients[0].number));
    assert_int_equal(status_of(hear(fd, NULL)), 503);
    close(fd);
    turn(20);
    assert_int_equal(engine.n_requests, 0);
}

static void test_an_answer_is_cancelled(void **state) {
    (void)state;
    int fd = ask("/v1/chat/completions", "curl/8", ASK("guide"));
    int stream = ask("/api/generate", "curl/8", "{\"model\":\"guide\",\"prompt\":\"a\"}");
    tell_text(0, CHANNEL_ANSWER, 5, "one");
    hear(stream, "one");
    assert_true(server_cancel(server, all.clients[0].number));
    assert_int_equal(status_of(hear(fd, NULL)), 503);
    assert_true(server_cancel(server, all.clients[1].number));
    assert_says(hear(stream, NULL), "{\"error\":\"the request was cancelled at the server\"}");
    assert_int_equal(engine.n_cancelled, 2);
    close(fd), close(stream);
    server_snapshot(server, &all);
    assert_int_equal(all.n_clients, 0);
}

static void test_there_may_be_more_than_are_listed(void **state) {
    (void)state;
    enum { CLIENTS = SNAPSHOT_CLIENTS + 6 };
    int fds[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) fds[i] = ask("/v1/chat/completions", NULL, ASK("guide"));
    assert_int_equal(all.n_listed, SNAPSHOT_CLIENTS);
    for (int i = 1; i < SNAPSHOT_CLIENTS; i++) assert_true(all.clients[i].number > all.clients[i - 1].number);
    for (int i = 0; i < CLIENTS; i++) engine.n_cancelled = 0, close(fds[i]), turn(1);
    engine.n_cancelled = 0;
    turn(20);
}

// Somebody waits for the end of the turn.
static void test_requests_are_refused_in_a_hurry(void **state) {
    (void)state;
    struct status st = {0};
    atomic_bool hurries = true;
    struct server_params params = server_params();
    params.hurries = &hurries;
    close_server();
    server = server_open(&params, &st);
    assert_true(server && server_load(server, "guide", &st));
    int fd = post("/v1/chat/completions", ASK("guide"));
    const char *reply = hear(fd, NULL);
    assert_int_equal(status_of(reply), 503);
    assert_says(reply, "Retry-After");
    assert_says(reply, "the model is being changed");
    close(fd);
    hurries = false;
    fd = ask("/v1/chat/completions", NULL, ASK("guide"));
    assert_int_equal(engine.n_requests, 1);
    close(fd);
    turn(3);
    close_server();
    serve();
}

static int setup(void **state) {
    memset(&all, 0, sizeof all);
    return start_server(state);
}

#define SNAPSHOT_TEST(test) cmocka_unit_test_setup_teardown(test, setup, stop_server)

int main(void) {
    const struct CMUnitTest tests[] = {
        SNAPSHOT_TEST(test_how_far_an_answer_is),
        SNAPSHOT_TEST(test_names_are_fit_for_a_terminal),
        SNAPSHOT_TEST(test_a_request_that_waits_is_cancelled),
        SNAPSHOT_TEST(test_an_answer_is_cancelled),
        SNAPSHOT_TEST(test_requests_are_refused_in_a_hurry),
        SNAPSHOT_TEST(test_there_may_be_more_than_are_listed),
    };
    return cmocka_run_group_tests(tests, make_home, remove_home);
}
