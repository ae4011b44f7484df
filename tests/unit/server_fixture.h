// What the tests of the server share: one over the told engine, in the test's own thread, and clients that speak to it
// through plain sockets.
#ifndef CONFAB_TESTS_SERVER_FIXTURE_H
#define CONFAB_TESTS_SERVER_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app/server/server.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "tests/unit/tiny_model.h"
#include "tests/unit/told_engine.h"

static struct settings settings;
static struct server *server;
static struct model_file *file;
static void *model_bytes;

static inline void serve(void) {
    struct status st = {0};
    size_t size;
    told_engine_reset();
    model_bytes = tiny_model_bytes((struct tiny_model_options){0}, &size);
    file = model_file_open_memory("tiny", model_bytes, size, NULL, &st);
    if (!file) fail_msg("%s", st.text);
    settings.port = 0;
    server = server_open(
        &(struct server_params){.settings = &settings, .name = "tiny", .file = file, .engine = &engine.engine}, &st);
    if (!server) fail_msg("%s", st.text);
}

static inline int start_server(void **state) {
    (void)state;
    settings = settings_default();
    serve();
    return 0;
}

static inline int stop_server(void **state) {
    (void)state;
    server_close(server);
    model_file_close(file);
    free(model_bytes);
    settings_free(&settings);
    return 0;
}

// ---- clients ----

static inline void turn(int n) {
    while (n--) server_turn(server, 1);
}

static inline int dial(void) {
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)server_port(server)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static inline void say(int fd, const char *text) {
    for (size_t size = strlen(text); size;) {
        const ssize_t n = send(fd, text, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) text += n, size -= (size_t)n;
        turn(1);
    }
}

// What comes until the server closes the connection, or `until` is in it.
static char heard[1 << 21];
static inline const char *hear(int fd, const char *until) {
    size_t size = 0;
    for (int turns = 0; turns < 3000; turns++) {
        const ssize_t n = recv(fd, heard + size, sizeof heard - 1 - size, MSG_DONTWAIT);
        size += n > 0 ? (size_t)n : 0;
        heard[size] = 0;
        if (!n || (until && strstr(heard, until))) return heard;
        if (n < 0) turn(1);
    }
    fail_msg("no %s in: %s", until ? until : "end", heard);
    return heard;
}

static inline int post(const char *path, const char *body) {
    char *request = xasprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: "
                              "application/json\r\nContent-Length: %zu\r\n\r\n%s",
                              path, strlen(body), body);
    int fd = dial();
    say(fd, request);
    free(request);
    turn(3);
    return fd;
}

static inline int status_of(const char *reply) { return atoi(reply + strcspn(reply, " ")); }

// A reply with a JSON object; the caller frees.
static inline json_t *json_of(const char *reply) {
    const char *body = strstr(reply, "\r\n\r\n");
    json_error_t error;
    json_t *object = body ? json_loads(body + 4, 0, &error) : NULL;
    if (!object) fail_msg("no JSON in: %s", reply);
    return object;
}

// The whole exchange of one that is answered at once.
static inline const char *exchange(const char *request) {
    int fd = dial();
    say(fd, request);
    const char *reply = hear(fd, NULL);
    close(fd);
    return reply;
}

static inline void assert_says(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("no %s in: %s", part, text);
}

// ---- what the engine says of the latest request ----

static inline void tell_text(int answer, enum channel channel, int32_t token, const char *text) {
    struct engine_event e = {.kind = EVENT_TEXT,
                             .request = engine.n_requests,
                             .at = clock_ns(),
                             .answer = answer,
                             .channel = channel,
                             .token = token,
                             .probability = 0.5f,
                             .n_alternatives = token < 0 ? 0 : 2,
                             .alternatives = {{.id = 70, .probability = 0.5f}, {.id = 71, .probability = 0.25f}},
                             .size = strlen(text)};
    memcpy(e.text, text, e.size + 1);
    told_engine_say(e);
}

static inline void tell_end(int answer, enum request_state state, enum finish_reason reason, const char *text) {
    struct engine_event e = {.kind = EVENT_STATE,
                             .request = engine.n_requests,
                             .at = clock_ns(),
                             .answer = answer,
                             .state = state,
                             .reason = reason,
                             .n_prompt = 7,
                             .n_reused = 4,
                             .n_generated = 2,
                             .size = strlen(text)};
    memcpy(e.text, text, e.size + 1);
    told_engine_say(e);
}

#endif
