// The server before hostile, slow and vanishing clients.
#include <poll.h>
#include <sys/stat.h>

#include "app/server/http.h"
#include "engine/base/clock.h"
#include "tests/unit/server_fixture.h"

#define CHAT   "/v1/chat/completions"
#define ASK    "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}"
#define GET    "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
#define STREAM "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"stream\":true}"

// ---- who may ask ----

static int status_for(const char *method, const char *path, const char *headers) {
    char *request = xasprintf("%s %s HTTP/1.1\r\nConnection: close\r\n%s\r\n", method, path, headers);
    const int status = status_of(exchange(request));
    free(request);
    return status;
}

static void test_other_hosts_and_origins_are_forbidden(void **state) {
    (void)state;
    static const struct {
        const char *headers;
        int status;
    } cases[] = {
        {"Host: localhost\r\n", 200},
        {"Host: localhost:8080\r\n", 200},
        {"Host: LOCALHOST\r\n", 200},
        {"Host: 127.0.0.1:1\r\n", 200},
        {"Host: [::1]:8080\r\n", 200},
        {"Host: me.example:80\r\n", 200}, // --allow-host
        {"Host: localhost:\r\n", 200},
        {"Host: localhost.\r\n", 403},
        {"Host: localhost:evil.example\r\n", 403},
        {"Host: [::1].evil.example\r\n", 403},
        {"Host: [::1\r\n", 403},
        {"Host: evil.example\r\n", 403},
        {"Host: localhost.evil.example\r\n", 403},
        {"Host: 10.0.0.1\r\n", 403},
        {"Host: localhost\r\nHost: evil.example\r\n", 403},
        {"Host:\r\n", 403},
        {"", 400},
        {"Host: localhost\r\nOrigin: http://evil.example\r\n", 403},
        {"Host: localhost\r\nOrigin: null\r\n", 403},
        {"Host: localhost\r\nOrigin: http://localhost:3000\r\n", 403},
        {"Host: localhost:8080\r\nOrigin: http://localhost:8080\r\n", 200}, // a page of its own
        {"Host: localhost\r\nOrigin: http://page.example\r\n", 200},        // --allow-origin
        {"Host: localhost\r\nOrigin: http://page.example.evil.example\r\n", 403},
        {"Host: localhost\r\nOrigin: http://page.example\r\nOrigin: http://evil.example\r\n", 403},
    };
    text_list_insert(&settings.allow_hosts, 0, "me.example");
    text_list_insert(&settings.allow_origins, 0, "http://page.example");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (status_for("GET", "/health", cases[i].headers) != cases[i].status)
            fail_msg("%s: %s", cases[i].headers, heard);
}

static void test_only_allowed_pages_may_read(void **state) {
    (void)state;
    text_list_insert(&settings.allow_origins, 0, "http://page.example");
    assert_int_equal(status_for("OPTIONS", CHAT,
                                "Host: localhost\r\nOrigin: http://page.example\r\n"
                                "Access-Control-Request-Headers: authorization, x-stainless-os\r\n"),
                     204);
    assert_says(heard, "Access-Control-Allow-Origin: http://page.example\r\n");
    assert_says(heard, "Access-Control-Allow-Headers: authorization, x-stainless-os\r\n");
    assert_int_equal(status_for("OPTIONS", CHAT, "Host: localhost\r\nOrigin: http://evil.example\r\n"), 403);
    assert_null(strstr(heard, "Access-Control"));
    status_for("GET", "/health", "Host: localhost\r\n");
    assert_null(strstr(heard, "Access-Control"));
}

static void open_with_keys(const char *name, mode_t mode, struct status *st) {
    struct settings own = settings_default();
    temporary_folder_write(folder, name, "first-key\nsecond-key\n");
    own.port = 0;
    own.api_keys = xasprintf("%s/%s", folder, name);
    chmod(own.api_keys, mode);
    struct server_params params = server_params();
    params.settings = &own;
    struct server *other = server_open(&params, st), *before = server;
    if (other) {
        server = other;
        assert_int_equal(status_for("GET", "/health", "Host: localhost\r\n"), 200);
        assert_int_equal(status_for("GET", "/v1/models", "Host: localhost\r\n"), 401);
        assert_says(heard, "WWW-Authenticate: Bearer");
        static const struct {
            const char *header;
            int status;
        } cases[] = {{"Authorization: Bearer first-key", 200},
                     {"Authorization: bearer second-key", 200},
                     {"X-Api-Key: second-key", 200},
                     {"Authorization: Bearer first-ke", 401},
                     {"Authorization: Bearer first-keyy", 401},
                     {"Authorization: Bearer first-keyfirst-key", 401},
                     {"Authorization: Bearer ", 401},
                     {"Authorization: first-key", 401},
                     {"Authorization: Basic first-key", 401}};
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            char *headers = xasprintf("Host: localhost\r\n%s\r\n", cases[i].header);
            if (status_for("GET", "/v1/models", headers) != cases[i].status) fail_msg("%s: %s", headers, heard);
            free(headers);
        }
        server_close(other);
        server = before;
    }
    settings_free(&own);
}

static void test_keys(void **state) {
    (void)state;
    struct status st = {0};
    open_with_keys("keys", 0600, &st);
    assert_int_equal(st.code, STATUS_OK);
    open_with_keys("readable", 0640, &st);
    assert_says(st.text, "others can read the keys");
}

static void test_paths_and_methods(void **state) {
    (void)state;
    assert_int_equal(status_for("GET", "/health", "Host: localhost\r\n"), 200);
    assert_int_equal(status_for("HEAD", "/health", "Host: localhost\r\n"), 200);
    assert_int_equal(status_for("GET", "/health?x=1", "Host: localhost\r\n"), 200);
    assert_int_equal(status_for("GET", CHAT, "Host: localhost\r\n"), 405);
    assert_int_equal(status_for("DELETE", CHAT, "Host: localhost\r\n"), 405);
    assert_int_equal(status_for("GET", "/../../etc/passwd", "Host: localhost\r\n"), 404);
    assert_int_equal(status_for("GET", "/%2e%2e/etc/passwd%00", "Host: localhost\r\n"), 404);
    assert_int_equal(status_for("GET", "/v1/models/..%2f..%2fetc%2fpasswd", "Host: localhost\r\n"), 404);
}

// ---- clients that leave ----

static void test_a_client_that_leaves_cancels_its_request_only(void **state) {
    (void)state;
    int stays = post(CHAT, ASK), leaves = post(CHAT, ASK);
    assert_int_equal(engine.n_requests, 2);
    close(leaves);
    turn(3);
    assert_int_equal(engine.n_cancelled, 1);
    assert_int_equal(engine.cancelled[0], 2);
    tell_end(0, REQUEST_CANCELLED, FINISH_CANCELLED, ""); // of the second
    engine.n_requests = 1;
    tell_text(0, CHANNEL_ANSWER, 6, "still here");
    tell_end(0, REQUEST_FINISHED, FINISH_END, "");
    assert_says(hear(stays, NULL), "still here");
    close(stays);
    assert_int_equal(engine.n_cancelled, 1);
}

static void test_a_client_that_leaves_a_stream_cancels_it(void **state) {
    (void)state;
    int fd = post(CHAT, STREAM);
    tell_text(0, CHANNEL_ANSWER, 6, "Hel");
    hear(fd, "Hel");
    assert_int_equal(engine.n_cancelled, 0);
    close(fd);
    turn(3);
    assert_int_equal(engine.n_cancelled, 1);
    tell_text(0, CHANNEL_ANSWER, 6, "lo"); // came before the engine obeyed
    tell_end(0, REQUEST_CANCELLED, FINISH_CANCELLED, "");
    turn(3);
}

static void test_a_client_that_does_not_read_is_given_up(void **state) {
    (void)state;
    char text[512];
    memset(text, 'x', sizeof text);
    text[500] = 0;
    int fd = post(CHAT, STREAM);
    for (int i = 0; i < 40000 && !engine.n_cancelled; i++) {
        tell_text(0, CHANNEL_ANSWER, 6, text);
        if (i % 100 == 0) turn(1);
    }
    assert_int_equal(engine.n_cancelled, 1);
    close(fd);
    turn(3);
}

static void test_a_server_closes_while_it_answers(void **state) {
    (void)state;
    int whole = post(CHAT, ASK), stream = post(CHAT, STREAM), half = dial();
    tell_text(0, CHANNEL_ANSWER, 6, "Hel");
    hear(stream, "Hel");
    say(half, "POST " CHAT " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{");
    close_server();
    assert_int_equal(engine.n_cancelled, 2);
    close(whole), close(stream), close(half);
    serve();
}

// ---- limits ----

static void test_slow_requests_end(void **state) {
    (void)state;
    const uint64_t begin = clock_ns();
    clock_freeze(begin);
    int silent = dial(), slow = dial(), answered = post(CHAT, ASK);
    say(slow, "POST " CHAT " HTTP/1.1\r\nHost: localhost\r\n");
    turn(2);
    clock_freeze(begin + (HTTP_SECONDS - 1) * NANOSECONDS);
    say(slow, "Content-Length: 5\r\n");
    clock_freeze(begin + (HTTP_SECONDS + 1) * NANOSECONDS);
    assert_string_equal(hear(silent, NULL), "");
    assert_string_equal(hear(slow, NULL), "");
    assert_int_equal(engine.n_cancelled, 0); // whoever waits for us may wait
    tell_end(0, REQUEST_FINISHED, FINISH_END, "");
    assert_int_equal(status_of(hear(answered, NULL)), 200);
    clock_freeze(0);
    close(silent), close(slow), close(answered);
}

static void test_the_next_request_of_a_connection_has_as_much_time(void **state) {
    (void)state;
    const uint64_t begin = clock_ns();
    clock_freeze(begin);
    int fd = dial();
    say(fd, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    hear(fd, "ok");
    turn(3);
    clock_freeze(begin + (HTTP_SECONDS - 1) * NANOSECONDS);
    say(fd, "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{");
    turn(3);
    clock_freeze(begin + (HTTP_SECONDS + 1) * NANOSECONDS);
    say(fd, "}");
    assert_int_equal(status_of(hear(fd, "content")), 400);
    clock_freeze(0);
    close(fd);
}

#define LONG_REPLY ((size_t)32 << 20) // more than the system takes for a client that does not read

static void admit(void *context, struct exchange *x) { (void)context, (void)x; }

static void reply_long(void *text, struct exchange *x) { http_reply(x, 200, "text/plain", text, LONG_REPLY); }

static size_t read_part(struct http *h, int fd, size_t most) {
    size_t size = 0;
    for (int turns = 0; turns < 1000 && size < most; turns++) {
        http_turn(h);
        const ssize_t n = recv(fd, heard, most - size, MSG_DONTWAIT);
        if (!n) break;
        if (n > 0) size += (size_t)n;
        else poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 1);
    }
    return size;
}

static void test_a_long_reply_takes_as_long_as_it_is_read(void **state) {
    (void)state;
    const uint64_t begin = clock_ns();
    char *text = xcalloc(1, LONG_REPLY);
    struct status st = {0};
    clock_freeze(begin);
    struct http *h = http_open(
        &(struct http_params){.host = "127.0.0.1", .admit = admit, .handle = reply_long, .context = text}, &st);
    assert_non_null(h);
    int fd = dial_port(http_port(h));
    assert_true(send(fd, GET, strlen(GET), 0) == strlen(GET));
    size_t size = 0;
    for (uint64_t second = 0; second < 70; second++) {
        clock_freeze(begin + second * NANOSECONDS);
        size += read_part(h, fd, LONG_REPLY / 64);
    }
    assert_true(size > LONG_REPLY); // its head, too
    clock_freeze(0);
    http_close(h);
    close(fd);
    free(text);
}

static void test_who_waits_long_for_a_stream_hears_something(void **state) {
    (void)state;
    static const struct {
        const char *path, *body, *sign, *first;
    } cases[] = {
        {CHAT, STREAM, "\n: waiting", "\"role\":\"assistant\",\"content\":\"late\""},
        {"/v1/responses", "{\"input\":\"Hi\",\"stream\":true}", "\n: waiting", "event: response.created"},
        {"/v1/messages", STREAM, "event: ping", "\"text\":\"late\""},
        {"/api/chat", ASK, "\"content\":\"\"}", "\"content\":\"late\""},
        {"/api/generate", "{\"prompt\":\"Hi\"}", "\"response\":\"\"}", "\"response\":\"late\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint64_t begin = clock_ns();
        int fd = post(cases[i].path, cases[i].body);
        clock_freeze(begin + 14 * NANOSECONDS);
        turn(3);
        assert_int_equal(recv(fd, heard, 1, MSG_DONTWAIT | MSG_PEEK), -1); // an error could still have its status
        for (int k = 1; k < 4; k++) {
            clock_freeze(begin + (uint64_t)(16 * k) * NANOSECONDS);
            hear(fd, cases[i].sign);
        }
        tell_text(0, CHANNEL_ANSWER, 6, "late");
        tell_end(0, REQUEST_FINISHED, FINISH_END, "");
        assert_says(hear(fd, NULL), cases[i].first);
        clock_freeze(0);
        close(fd);
    }
}

static void test_requests_are_limited_in_size(void **state) {
    (void)state;
    char *body = xcalloc(1, HTTP_BODY_BYTES + 100), *headers = xcalloc(1, 2 * HTTP_HEADER_BYTES);
    memset(body, '[', HTTP_BODY_BYTES);
    int fd = post(CHAT, body); // and as deep as it is long
    assert_int_equal(status_of(hear(fd, NULL)), 400);
    close(fd);
    memset(body, ' ', HTTP_BODY_BYTES + 1);
    fd = post(CHAT, body);
    assert_int_equal(status_of(hear(fd, NULL)), 413);
    close(fd);
    memset(headers, 'x', 2 * HTTP_HEADER_BYTES - 1);
    fd = dial();
    say(fd, "GET /health HTTP/1.1\r\nHost: localhost\r\nX-Endless: ");
    send(fd, headers, HTTP_HEADER_BYTES, MSG_NOSIGNAL | MSG_DONTWAIT);
    turn(3);
    assert_int_equal(status_of(hear(fd, "\r\n\r\n")), 431);
    close(fd);
    free(body), free(headers);
}

static void test_chunks_are_limited_too(void **state) {
    (void)state;
    int fd = dial();
    char chunk[4106] = "1000\r\n";
    memset(chunk + 6, ' ', 4096);
    strcpy(chunk + 6 + 4096, "\r\n");
    say(fd, "POST " CHAT " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (unsigned i = 0; i <= HTTP_BODY_BYTES / 4096; i++) say(fd, chunk);
    say(fd, "0\r\n\r\n");
    assert_int_equal(status_of(hear(fd, NULL)), 413);
    close(fd);
}

static void test_the_bodies_of_all_requests_are_limited(void **state) {
    (void)state;
    enum { CLIENTS = HTTP_BODIES_BYTES / HTTP_BODY_BYTES + 1 };
    char *body = xcalloc(1, HTTP_BODY_BYTES + 1), *head;
    int fds[CLIENTS];
    memset(body, ' ', HTTP_BODY_BYTES);
    head = xasprintf("POST " CHAT " HTTP/1.1\r\nHost: localhost\r\nContent-Length: %u\r\n\r\n", HTTP_BODY_BYTES);
    body[HTTP_BODY_BYTES - 10] = 0; // nobody's request is complete
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = dial();
        say(fds[i], head);
        say(fds[i], body);
    }
    turn(5);
    say(fds[CLIENTS - 1], "          ");
    assert_int_equal(status_of(hear(fds[CLIENTS - 1], "\r\n\r\n")), 503);
    assert_says(heard, "Retry-After: 1");
    for (int i = 0; i < CLIENTS; i++) close(fds[i]);
    turn(20);
    int fd = post(CHAT, ASK); // there is room again
    assert_int_equal(engine.n_requests, 1);
    close(fd);
    free(body), free(head);
}

static void test_too_many_requests_are_told_to_come_again(void **state) {
    (void)state;
    int fds[9];
    for (int i = 0; i < 9; i++) fds[i] = post(CHAT, "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"n\":64}");
    const char *reply = hear(fds[8], NULL);
    assert_int_equal(status_of(reply), 503);
    assert_says(reply, "Retry-After: 1");
    for (int i = 0; i < 9; i++) close(fds[i]);
    turn(3);
    assert_int_equal(engine.n_cancelled, 8);
}

static void test_a_connection_serves_several_requests(void **state) {
    (void)state;
    int fd = dial();
    say(fd, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    hear(fd, "\"ok\"");
    say(fd, "POST " CHAT " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}");
    assert_int_equal(status_of(hear(fd, "}}")), 400);
    say(fd, "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert_int_equal(status_of(hear(fd, NULL)), 200);
    close(fd);
}

static void test_a_port_that_is_taken(void **state) {
    (void)state;
    struct status st = {0};
    settings.port = server_port(server);
    const struct server_params params = server_params();
    struct engine_client *before = engine.client;
    assert_null(server_open(&params, &st));
    assert_says(st.text, "Address already in use");
    engine.client = before;
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, start_server, stop_server)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_SERVER(test_other_hosts_and_origins_are_forbidden),
        WITH_SERVER(test_only_allowed_pages_may_read),
        WITH_SERVER(test_keys),
        WITH_SERVER(test_paths_and_methods),
        WITH_SERVER(test_a_client_that_leaves_cancels_its_request_only),
        WITH_SERVER(test_a_client_that_leaves_a_stream_cancels_it),
        WITH_SERVER(test_a_client_that_does_not_read_is_given_up),
        WITH_SERVER(test_a_server_closes_while_it_answers),
        WITH_SERVER(test_slow_requests_end),
        WITH_SERVER(test_the_next_request_of_a_connection_has_as_much_time),
        WITH_SERVER(test_a_long_reply_takes_as_long_as_it_is_read),
        WITH_SERVER(test_who_waits_long_for_a_stream_hears_something),
        WITH_SERVER(test_requests_are_limited_in_size),
        WITH_SERVER(test_chunks_are_limited_too),
        WITH_SERVER(test_the_bodies_of_all_requests_are_limited),
        WITH_SERVER(test_too_many_requests_are_told_to_come_again),
        WITH_SERVER(test_a_connection_serves_several_requests),
        WITH_SERVER(test_a_port_that_is_taken),
    };
    return cmocka_run_group_tests(tests, make_home, remove_home);
}
