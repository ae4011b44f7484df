// A server on a thread of its own, over engines that are lent to it: real ones of small models, whose answers are held
// to a long text so that they stream for a while.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "app/server/server_thread.h"
#include "engine/base/panic.h"
#include "tests/unit/temporary_folder.h"
#include "tests/unit/tiny_model.h"

enum { PATIENCE_S = 60, STREAMS = 3, ROUNDS = 50 };

#define LONG  "{\"prompt\":\"a\",\"stream\":true,\"max_tokens\":16000,\"guided_regex\":\"([a-z]{100}){200}\"}"
#define SHORT "{\"prompt\":\"a\",\"max_tokens\":2}"

// ---- engines ----

static void *model_bytes;
static size_t model_size;

struct lent {
    struct model_file *file;
    struct engine *engine;
};

static struct lent engine_make(void) {
    struct status st = {0};
    if (!model_bytes)
        model_bytes = tiny_model_bytes((struct tiny_model_options){.n_layer = 8, .n_context = 16384}, &model_size);
    struct lent l = {.file = model_file_open_memory("tiny", model_bytes, model_size, NULL, &st)};
    if (l.file) l.engine = local_engine_open(l.file, &(struct engine_params){.n_threads = 1, .kv_tokens = 65536}, &st);
    if (!l.engine) fail_msg("%s", st.text);
    return l;
}

static void engine_free(struct lent *l) {
    engine_close(l->engine);
    model_file_close(l->file);
}

static void lend(struct server_thread *t, const struct lent *l, const char *path) {
    server_thread_lend(t, &(struct server_loan){l->engine, path, model_file_info(l->file), l->file, {0}});
}

// ---- the thread ----

static struct settings settings;
static struct server_report report;

static void await_report(struct server_thread *t) {
    struct pollfd fd = {.fd = server_thread_fd(t), .events = POLLIN};
    assert_int_equal(poll(&fd, 1, PATIENCE_S * 1000), 1);
    assert_true(server_thread_look(t, &report));
}

static struct server_thread *thread_begin(void) {
    struct status st = {0};
    report = (struct server_report){0};
    struct server_thread *t = server_thread_open(&settings, &local_models, &st);
    if (!t) fail_msg("%s", st.text);
    while (report.state == SERVER_STARTING) await_report(t);
    return t;
}

static struct server_thread *thread_serving(void) {
    struct server_thread *t = thread_begin();
    if (report.state != SERVER_SERVING) fail_msg("%s", report.failure.text);
    return t;
}

// ---- clients ----

static int dial(void) {
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)report.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static int post(const char *agent, const char *body) {
    char *request = xasprintf("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s%s%s"
                              "Content-Length: %zu\r\n\r\n%s",
                              agent ? "User-Agent: " : "", agent ? agent : "", agent ? "\r\n" : "", strlen(body), body);
    const int fd = dial();
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    free(request);
    return fd;
}

// What comes until the connection is closed, or `until` is in it.
static const char *hear(int fd, const char *until) {
    static char heard[1 << 20];
    size_t size = 0;
    heard[0] = 0;
    while (size + 1 < sizeof heard && (!until || !strstr(heard, until))) {
        const ssize_t n = recv(fd, heard + size, sizeof heard - 1 - size, 0);
        if (n <= 0) break;
        heard[size += (size_t)n] = 0;
    }
    if (until && !strstr(heard, until)) fail_msg("no %s in: %s", until, heard);
    return heard;
}

static void assert_answered(const char *body, const char *part) {
    const int fd = post("test", body);
    const char *reply = hear(fd, NULL);
    if (!strstr(reply, part)) fail_msg("no %s in: %s", part, reply);
    close(fd);
}

// Until the engine has been lent: before, it is refused.
static void assert_serves(void) {
    for (int i = 0; i < PATIENCE_S * 100; i++, usleep(10000)) {
        const int fd = post("test", SHORT);
        const bool served = strstr(hear(fd, NULL), " 200 ");
        close(fd);
        if (served) return;
    }
    fail_msg("it is not served");
}

static void streams_begin(int fds[STREAMS]) {
    for (int i = 0; i < STREAMS; i++) fds[i] = post("curl/7.88.1", LONG);
    for (int i = 0; i < STREAMS; i++) hear(fds[i], "data: ");
}

static void streams_end(int fds[STREAMS], const char *part) {
    for (int i = 0; i < STREAMS; i++) hear(fds[i], part), close(fds[i]);
}

// ---- tests ----

static void test_an_engine_is_lent_and_withdrawn(void **state) {
    (void)state;
    struct server_thread *t = thread_serving();
    struct lent l = engine_make();
    assert_answered(SHORT, " 503 ");
    lend(t, &l, NULL);
    assert_serves();
    server_thread_withdraw(t);
    server_thread_withdraw(t); // there is none any more
    engine_free(&l);
    assert_answered(SHORT, " 503 ");
    server_thread_close(t);
}

// Before the thread has looked at it, too.
static void test_a_loan_may_be_withdrawn_at_once(void **state) {
    (void)state;
    struct server_thread *t = thread_serving();
    for (int i = 0; i < ROUNDS; i++) {
        struct lent l = engine_make();
        lend(t, &l, i % 2 ? "/nowhere/tiny.gguf" : NULL);
        if (i % 4 == 3) usleep(1000);
        server_thread_withdraw(t);
        engine_free(&l);
    }
    server_thread_close(t);
}

static void test_the_model_is_switched_while_clients_stream(void **state) {
    (void)state;
    int fds[STREAMS];
    struct server_thread *t = thread_serving();
    struct lent first = engine_make(), second = engine_make();
    lend(t, &first, NULL);
    assert_serves();
    streams_begin(fds);
    server_thread_withdraw(t);
    engine_free(&first);
    streams_end(fds, "the model was unloaded");
    lend(t, &second, "/nowhere/tiny.gguf");
    assert_serves();
    server_thread_close(t);
    engine_free(&second);
}

// Whose compiling goes on, and who then has the next model.
static void test_a_withdrawal_waits_for_no_grammar(void **state) {
    (void)state;
    enum { GRAMMARS = 20, PROPERTIES = 3000 };
    char *body = xmalloc(PROPERTIES * 64), *at = body;
    at += sprintf(at, "{\"prompt\":\"a\",\"max_tokens\":2,\"guided_json\":{\"type\":\"object\",\"properties\":{");
    for (int i = 0; i < PROPERTIES; i++)
        at += sprintf(at, "%s\"p%d\":{\"type\":\"string\",\"maxLength\":9}", i ? "," : "", i);
    strcpy(at, "}}}");
    struct server_thread *t = thread_serving();
    struct lent first = engine_make(), second = engine_make();
    int fds[GRAMMARS];
    lend(t, &first, NULL);
    assert_serves();
    for (int i = 0; i < GRAMMARS; i++) fds[i] = post("test", body);
    server_thread_withdraw(t);
    engine_free(&first);
    lend(t, &second, "/nowhere/tiny.gguf");
    assert_serves();
    for (int i = 0; i < GRAMMARS; i++) hear(fds[i], "HTTP/1.1 "), close(fds[i]);
    server_thread_close(t);
    engine_free(&second);
    free(body);
}

static void test_it_ends_while_clients_stream(void **state) {
    (void)state;
    int fds[STREAMS];
    struct server_thread *t = thread_serving();
    struct lent l = engine_make();
    lend(t, &l, NULL);
    assert_serves();
    streams_begin(fds);
    server_thread_close(t);
    engine_free(&l);
    for (int i = 0; i < STREAMS; i++) hear(fds[i], NULL), close(fds[i]);
}

static void test_it_begins_and_ends_many_times(void **state) {
    (void)state;
    struct lent l = engine_make();
    for (int i = 0; i < ROUNDS; i++) {
        struct server_thread *t = thread_serving();
        settings.port = report.port; // once it is free it can be had again
        lend(t, &l, NULL);
        const int fd = i % 2 ? post(NULL, SHORT) : -1;
        server_thread_stop(t);
        if (i % 3 == 0) server_thread_withdraw(t);
        while (report.state != SERVER_STOPPED) await_report(t);
        assert_int_equal(report.failure.code, STATUS_OK);
        server_thread_close(t);
        if (fd >= 0) close(fd);
    }
    engine_free(&l);
}

static const struct server_client *reported(const char *name) {
    for (int i = 0; i < report.clients.n_listed; i++)
        if (!strcmp(report.clients.clients[i].name, name)) return &report.clients.clients[i];
    return NULL;
}

static void test_who_asks_is_reported_and_can_be_cancelled(void **state) {
    (void)state;
    struct server_thread *t = thread_serving();
    struct lent l = engine_make();
    lend(t, &l, NULL);
    assert_serves();
    int fds[] = {post("Evil\x1b[2J\xc2\x9bName/1.0 (x)", LONG), post(NULL, LONG), post("", LONG)};
    for (int i = 0; i < STREAMS; i++) hear(fds[i], "data: ");
    const struct server_client *evil = NULL;
    while (!evil || !evil->n_tokens || report.clients.n_clients < STREAMS)
        await_report(t), evil = reported("Evil␛[2J␦Name");
    assert_string_equal(evil->path, "/v1/completions");
    assert_string_equal(evil->model, "guide");
    assert_int_equal(evil->state, REQUEST_DECODING);
    assert_true(evil->first_token > 0);
    assert_string_equal(report.clients.clients[1].name, "127.0.0.1");
    assert_string_equal(report.clients.clients[2].name, "127.0.0.1");
    const uint64_t number = evil->number;
    server_thread_cancel(t, number + 1000); // nobody
    server_thread_cancel(t, number);
    hear(fds[0], "cancelled");
    while (reported("Evil␛[2J␦Name")) await_report(t);
    hear(fds[1], "data: "); // the others go on
    for (int i = 0; i < STREAMS; i++) close(fds[i]);
    while (report.clients.n_clients) await_report(t);
    server_thread_close(t);
    engine_free(&l);
}

// Beside a lent one, which stays, another is loaded for a client, and unloaded when its memory is needed.
static void test_idle_models_make_room(void **state) {
    (void)state;
    static const char ask[] = "{\"model\":\"guide\",\"prompt\":\"a\",\"max_tokens\":2}";
    struct server_thread *t = thread_serving();
    struct lent l = engine_make();
    lend(t, &l, "/nowhere/tiny.gguf");
    assert_serves();
    server_thread_make_room(t); // of nothing
    assert_int_equal(report.clients.idle_bytes, 0);
    for (int i = 0; i < 2; i++) {
        assert_answered(ask, " 200 ");
        while (!report.clients.idle_bytes) await_report(t);
        server_thread_make_room(t);
        while (report.clients.idle_bytes) await_report(t);
    }
    assert_serves();
    server_thread_stop(t);
    server_thread_make_room(t); // it gives up all
    server_thread_close(t);
    engine_free(&l);
}

static void test_what_it_cannot_have_is_said(void **state) {
    (void)state;
    struct server_thread *first = thread_serving(), *second;
    settings.port = report.port;
    second = thread_begin();
    assert_int_equal(report.state, SERVER_STOPPED);
    assert_non_null(strstr(report.failure.text, "in use"));
    server_thread_close(second);
    settings.port = 0;
    settings.api_keys = xstrdup("/nowhere/keys");
    second = thread_begin();
    assert_int_equal(report.state, SERVER_STOPPED);
    assert_non_null(strstr(report.failure.text, "/nowhere/keys"));
    server_thread_withdraw(second); // of nothing
    server_thread_close(second);
    server_thread_close(first);
}

static int setup(void **state) {
    (void)state;
    settings = settings_default();
    settings.port = 0;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    settings_free(&settings);
    return 0;
}

static int make_home(void **state) {
    static const char *const unset[] = {"HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME", "LLAMA_CACHE"};
    (void)state;
    const char *folder = temporary_folder_make();
    for (size_t i = 0; i < sizeof unset / sizeof *unset; i++) unsetenv(unset[i]);
    return setenv("HOME", folder, 1) || setenv("XDG_DATA_HOME", folder, 1) || setenv("OLLAMA_MODELS", folder, 1);
}

static int remove_home(void **state) {
    free(model_bytes);
    return temporary_folder_teardown(state);
}

#define THREAD_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        THREAD_TEST(test_an_engine_is_lent_and_withdrawn),
        THREAD_TEST(test_a_loan_may_be_withdrawn_at_once),
        THREAD_TEST(test_the_model_is_switched_while_clients_stream),
        THREAD_TEST(test_a_withdrawal_waits_for_no_grammar),
        THREAD_TEST(test_it_ends_while_clients_stream),
        THREAD_TEST(test_it_begins_and_ends_many_times),
        THREAD_TEST(test_who_asks_is_reported_and_can_be_cancelled),
        THREAD_TEST(test_idle_models_make_room),
        THREAD_TEST(test_what_it_cannot_have_is_said),
    };
    return cmocka_run_group_tests(tests, make_home, remove_home);
}
