// Clients that send requests without an end, several in one, or ones that a proxy would read otherwise, and very many
// clients.
#include <microhttpd.h>
#include <sys/resource.h>

#include "app/server/guard.h"
#include "app/server/http.h"
#include "tests/unit/server_fixture.h"

#define CHAT   "/v1/chat/completions"
#define HEALTH "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
#define POST   "POST " CHAT " HTTP/1.1\r\nHost: localhost\r\n"
#define ASK    "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}"

static int replies_in(const char *text) {
    int n = 0;
    while ((text = strstr(text, "HTTP/1.1 "))) text++, n++;
    return n;
}

static char *repeated(const char *before, const char *text, int n) {
    const size_t size = strlen(text);
    char *out = xmalloc(strlen(before) + size * (size_t)n + 1), *at = stpcpy(out, before);
    for (int i = 0; i < n; i++) at = stpcpy(at, text);
    return out;
}

// ---- who may ask ----

static void test_a_server_for_others_goes_by_its_addresses(void **state) {
    (void)state;
    static const struct {
        const char *host;
        bool allowed;
    } cases[] = {{"10.0.0.1:8080", true},
                 {"[fe80::1]:80", true},
                 {"[FE80::1]", true},
                 {"box.local:1", true},
                 {"localhost", true},
                 {"evil.example", false},
                 {"10.0.0.1.evil.ex", false},
                 {"[fe80::1", false},
                 {"[fe80::1].evil.ex", false},
                 {"10.0.0.1:80.evil", false},
                 {"10.0.0", false},
                 {"[evil.example]", false},
                 {"[]", false},
                 {":80", false},
                 {"", false}};
    struct text_list none = {0}, names = {0};
    text_list_insert(&names, 0, "box.local");
    text_list_insert(&names, 1, "");
    const struct guard g = {.hosts = &names, .origins = &none, .host = "0.0.0.0", .open = true};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (guard_allows_host(&g, cases[i].host) != cases[i].allowed) fail_msg("host '%s'", cases[i].host);
    text_list_clear(&names);
}

// ---- where a request ends ----

static void test_requests_that_others_would_read_otherwise(void **state) {
    (void)state;
    static const char *const headers[] = {"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
                                          "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
                                          "Content-Length: 0\r\nContent-Length: 36\r\n",
                                          "Content-Length: 2\r\nContent-Length: 2\r\n",
                                          "Transfer-Encoding: gzip, chunked\r\n",
                                          "Transfer-Encoding: identity\r\n",
                                          "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n"};
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        char *request = xasprintf(POST "%s\r\n0\r\n\r\n" HEALTH, headers[i]);
        const char *reply = exchange(request);
        if (status_of(reply) != 400 || replies_in(reply) != 1) fail_msg("%s: %s", headers[i], reply);
        assert_says(reply, "Connection: close");
        free(request);
    }
}

static void test_the_body_of_a_refused_request_is_no_request(void **state) {
    (void)state;
    static const char *const heads[] = {"POST /nowhere HTTP/1.1\r\nHost: localhost\r\n",
                                        "POST " CHAT " HTTP/1.1\r\nHost: evil.example\r\n",
                                        "POST /health HTTP/1.1\r\nHost: localhost\r\n"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        char *request = xasprintf("%sContent-Length: %zu\r\n\r\n" HEALTH, heads[i], strlen(HEALTH));
        const char *reply = exchange(request);
        if (status_of(reply) / 100 != 4 || replies_in(reply) != 1) fail_msg("%s: %s", heads[i], reply);
        free(request);
    }
}

static void test_requests_in_one_piece_are_answered_in_turn(void **state) {
    (void)state;
    int fd = dial();
    say(fd, POST "Content-Length: 45\r\n\r\n" ASK HEALTH "GET /nowhere HTTP/1.1\r\nHost: localhost\r\n"
                 "Connection: close\r\n\r\n");
    turn(5);
    assert_int_equal(engine.n_requests, 1);
    assert_int_equal(recv(fd, heard, sizeof heard, MSG_DONTWAIT), -1); // the first one comes first
    tell_text(0, CHANNEL_ANSWER, 6, "Hello");
    tell_end(0, REQUEST_FINISHED, FINISH_END, "");
    const char *reply = hear(fd, NULL), *hello = strstr(reply, "Hello"), *health = strstr(reply, "\"ok\"");
    assert_int_equal(replies_in(reply), 3);
    assert_true(hello && health && hello < health);
    assert_says(health, "HTTP/1.1 404");
    close(fd);
}

// ---- requests without an end ----

#define SINCE_1_0 (MHD_VERSION >= 0x01000000) // some of these libmicrohttpd refuses sooner since then

static void test_endless_lines_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *before, *text;
        int status, since_1_0; // 0: hangs up
    } cases[] = {{"", "G", 414, 0},
                 {"GET /", "a", 414, 414},
                 {"GET /health?", "a=b&", 414, 414},
                 {"GET /health HTTP/1.1\r\nHost: localhost\r\n", "A: b\r\n", 431, 431},
                 {"GET /health HTTP/1.1\r\nHost: localhost\r\nA: b\r\n", " c\r\n", 431, 400},
                 {POST "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n", "A: b\r\n", 431, 431}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = repeated(cases[i].before, cases[i].text, 2 * HTTP_HEADER_BYTES);
        const char *reply = exchange(text);
        const int status = *reply ? status_of(reply) : 0;
        if (status != (SINCE_1_0 ? cases[i].since_1_0 : cases[i].status)) fail_msg("%s…: %s", cases[i].before, reply);
        free(text);
    }
}

// Whether the connection ends when the time is up, or, if it ends early, before.
static void assert_expires(const char *head, const char *piece, bool early) {
    const uint64_t begin = clock_ns();
    clock_freeze(begin);
    int fd = dial();
    say(fd, head);
    for (int second = 1; second < HTTP_SECONDS; second++) {
        clock_freeze(begin + (uint64_t)second * NANOSECONDS);
        say(fd, piece);
    }
    turn(3);
    const bool ended = recv(fd, heard, sizeof heard, MSG_DONTWAIT | MSG_PEEK) >= 0;
    if (ended != early) fail_msg("%s…: %s", head, heard);
    clock_freeze(begin + (HTTP_SECONDS + 1) * NANOSECONDS);
    const char *rest = hear(fd, NULL);
    if (*rest && !(ended && status_of(rest) / 100 == 4)) fail_msg("%s…: %s", head, rest);
    clock_freeze(0);
    close(fd);
}

static void test_endless_bodies_end(void **state) {
    (void)state;
    char *piece = repeated("", "0", 4096);
    assert_expires(POST "Content-Length: 1000000000000\r\n\r\n", piece, false);
    assert_expires(POST "Content-Length: 18446744073709551615\r\n\r\n", piece, SINCE_1_0);
    assert_expires(POST "Transfer-Encoding: chunked\r\n\r\n", "1\r\n{\r\n", false);
    assert_expires(POST "Transfer-Encoding: chunked\r\n\r\n", piece, SINCE_1_0); // the size of a chunk
    assert_expires(POST "Transfer-Encoding: chunked\r\n\r\n1;", piece, SINCE_1_0);
    free(piece);
    assert_int_equal(engine.n_requests, 0);
}

// ---- very many clients ----

static bool can_open(rlim_t n) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit)) return false;
    if (limit.rlim_cur < n && n <= limit.rlim_max) limit.rlim_cur = n, setrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur >= n;
}

static void test_more_clients_than_connections_wait(void **state) {
    (void)state;
    static int silent[HTTP_CONNECTIONS];
    if (!can_open(2 * HTTP_CONNECTIONS + 100)) skip();
    for (int i = 0; i < HTTP_CONNECTIONS; i++) silent[i] = dial(), turn(1);
    int waits = dial();
    say(waits, "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    turn(5);
    assert_int_equal(recv(waits, heard, sizeof heard, MSG_DONTWAIT), -1);
    close(silent[0]);
    assert_int_equal(status_of(hear(waits, NULL)), 200);
    for (int i = 1; i < HTTP_CONNECTIONS; i++) close(silent[i]);
    close(waits);
    turn(5);
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, start_server, stop_server)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_server_for_others_goes_by_its_addresses),
        WITH_SERVER(test_requests_that_others_would_read_otherwise),
        WITH_SERVER(test_the_body_of_a_refused_request_is_no_request),
        WITH_SERVER(test_requests_in_one_piece_are_answered_in_turn),
        WITH_SERVER(test_endless_lines_are_refused),
        WITH_SERVER(test_endless_bodies_end),
        WITH_SERVER(test_more_clients_than_connections_wait),
    };
    return cmocka_run_group_tests(tests, make_home, remove_home);
}
