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
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app/server/server.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/base/paths.h"
#include "tests/unit/temporary_folder.h"
#include "tests/unit/tiny_model.h"
#include "tests/unit/told_engine.h"

static struct settings settings;
static struct server *server;

// ---- models: a small one, whatever the path, with the told engine; that of FAILS.gguf cannot be loaded ----

static void *model_bytes;
static size_t model_size;
static atomic_uint_fast64_t model_need; // bytes of memory; 0: nearly none (a search may outlive its server)

static struct model_file *fixture_open(const char *path, struct status *st) {
    if (!model_bytes) model_bytes = tiny_model_bytes((struct tiny_model_options){0}, &model_size);
    return model_file_open_memory(path ? path : "tiny", model_bytes, model_size, NULL, st);
}

static struct model_file *fixture_open_header(const char *path, bool text, struct status *st) {
    return (void)text, fixture_open(path, st);
}

static bool fixture_memory(const struct model_file *m, const struct engine_params *p, uint64_t available,
                           struct model_memory *out, struct status *st) {
    (void)m, (void)p, (void)available, (void)st;
    const uint64_t need = atomic_load(&model_need);
    *out = (struct model_memory){.kv_tokens = 512, .total = need ? need : 1};
    return true;
}

static struct engine *fixture_open_engine(struct model_file *m, const struct engine_params *p, struct status *st) {
    (void)p;
    if (!strstr(model_file_info(m)->path, "FAILS")) return &engine.engine;
    return status_fail(st, STATUS_MEMORY, "does not fit"), NULL;
}

static const struct model_opener fixture_models = {.open = fixture_open,
                                                   .open_header = fixture_open_header,
                                                   .memory = fixture_memory,
                                                   .open_engine = fixture_open_engine};

// ---- the server ----

static struct server_params server_params(void) {
    return (struct server_params){.settings = &settings, .opener = &fixture_models};
}

static inline void serve(void) {
    struct status st = {0};
    told_engine_reset();
    settings.port = 0;
    const struct server_params params = server_params();
    server = server_open(&params, &st);
    if (!server || !server_load(server, "guide", &st)) fail_msg("%s", st.text);
}

static inline void close_server(void) { server_close(server); }

static inline int start_server(void **state) {
    (void)state;
    settings = settings_default();
    model_need = 0;
    serve();
    return 0;
}

static inline int stop_server(void **state) {
    (void)state;
    close_server();
    settings_free(&settings);
    return 0;
}

// For all tests of a program: a home of their own, with two models.
static const char *folder;
static inline int make_home(void **state) {
    static const char *const unset[] = {"HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME", "LLAMA_CACHE"};
    (void)state;
    folder = temporary_folder_make();
    for (size_t i = 0; i < sizeof unset / sizeof *unset; i++) unsetenv(unset[i]);
    char *models = xasprintf("%s/confab/models", folder), *file = xasprintf("%s/x", models);
    struct status st = {0};
    if (setenv("HOME", folder, 1) || setenv("XDG_DATA_HOME", folder, 1) || setenv("OLLAMA_MODELS", folder, 1) ||
        !path_make_parents(file, &st))
        return -1;
    temporary_folder_write(models, "other.gguf", "GGUF");
    temporary_folder_write(models, "FAILS.gguf", "GGUF");
    free(models), free(file);
    return 0;
}

// A look at models that nobody waits for may still read model_bytes.
static inline int remove_home(void **state) { return temporary_folder_teardown(state); }

// ---- clients ----

static inline void turn(int n) {
    while (n--) server_turn(server, 1);
}

static inline int dial_port(int port) {
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static inline int dial(void) { return dial_port(server_port(server)); }

// Until the server closes the connection.
static inline void say(int fd, const char *text) {
    for (size_t size = strlen(text); size;) {
        const ssize_t n = send(fd, text, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN) return;
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
        if (!n || (n < 0 && errno != EAGAIN) || (until && strstr(heard, until))) return heard;
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

// Until the engine has been asked so often: a grammar is compiled on another thread before.
static inline void await_requests(uint64_t n) {
    for (int turns = 0; engine.n_requests < n; turns++) {
        if (turns == 3000) fail_msg("the engine was asked %d times", (int)engine.n_requests);
        turn(1);
    }
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

static inline void tell_prompt(int answer, int32_t token, float probability) {
    told_engine_say(
        (struct engine_event){.kind = EVENT_PROMPT,
                              .request = engine.n_requests,
                              .at = clock_ns(),
                              .answer = answer,
                              .token = token,
                              .probability = probability,
                              .n_alternatives = isnan(probability) ? 0 : 2,
                              .alternatives = {{.id = 70, .probability = 0.5f}, {.id = 71, .probability = 0.25f}}});
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

// Of an answer that one of its stops ended.
static inline void tell_stop(int answer, int stop) {
    told_engine_say((struct engine_event){.kind = EVENT_STATE,
                                          .request = engine.n_requests,
                                          .at = clock_ns(),
                                          .answer = answer,
                                          .state = REQUEST_FINISHED,
                                          .reason = FINISH_END,
                                          .stop = stop});
}

#endif
