// What the fuzzers of the server share: one over an engine that answers at once, in the fuzzer's own thread, and what
// clients do to it.
#ifndef CONFAB_TESTS_FUZZ_SERVER_H
#define CONFAB_TESTS_FUZZ_SERVER_H

#include "app/server/server_state.h"
#include "tests/unit/server_fixture.h"

enum { MOST_TURNS = 1000, WAIT_MS = 10 }; // for one reply, some of which come from another thread

static inline void start_fuzzed_server(void) {
    static const char *const homes[] = {"HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "HF_HOME", "OLLAMA_MODELS"};
    for (size_t i = 0; i < sizeof homes / sizeof *homes; i++) setenv(homes[i], "/nonexistent", 1);
    settings = settings_default();
    serve();
}

static inline void stop_fuzzed_server(void) {
    close_server();
    settings_free(&settings);
    free(model_bytes);
}

// ---- the engine ----

// A little thinking and text for each answer, and its end.
static inline void answer_request(uint64_t request) {
    struct engine_event text = {.kind = EVENT_TEXT, .request = request, .token = 70, .probability = 0.5f, .at = 1};
    struct engine_event end = {
        .kind = EVENT_STATE, .request = request, .state = REQUEST_FINISHED, .reason = FINISH_END};
    text.size = (size_t)snprintf(text.text, sizeof text.text, "\xe2\x82\xac");
    for (int i = 0; i < engine.n_answers || !i; i++) {
        text.answer = end.answer = i;
        text.channel = CHANNEL_THINKING;
        told_engine_say(text);
        text.channel = CHANNEL_ANSWER;
        told_engine_say(text);
        told_engine_say(end);
    }
}

static inline void serve_turn(int timeout_ms) {
    static uint64_t answered;
    server_turn(server, timeout_ms);
    while (answered < engine.n_requests) answer_request(++answered);
    engine.n_cancelled = 0;
}

// ---- clients ----

// False: the server has closed the connection before the end.
static inline bool send_all(int fd, const void *data, size_t size) {
    for (size_t at = 0, waits = 0; at < size && waits < MOST_TURNS;) {
        const ssize_t n = send(fd, (const char *)data + at, size - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN) return false;
        at += n > 0 ? (size_t)n : 0;
        waits = n > 0 ? 0 : waits + 1;
        serve_turn(0);
    }
    return true;
}

// What comes until the server closes the connection, or does not say more for so many turns; true: it was closed.
static inline bool hear_turns(int fd, size_t *size, int turns, int timeout_ms) {
    for (*size = 0; turns > 0;) {
        const ssize_t n = recv(fd, heard + *size, sizeof heard - 1 - *size, MSG_DONTWAIT);
        *size += n > 0 ? (size_t)n : 0;
        heard[*size] = 0;
        if (!n || (n < 0 && errno != EAGAIN)) return true;
        if (n < 0) serve_turn(timeout_ms), turns--;
    }
    return false;
}

// The status of the whole reply on a connection that the server then closes.
static inline int hear_reply(int fd) {
    size_t size;
    if (!hear_turns(fd, &size, MOST_TURNS, WAIT_MS)) abort();
    return size ? status_of(heard) : 0;
}

// The clients are gone: nothing of their requests is left.
static inline void settle(void) {
    for (int i = 0; i < 3 || (i < MOST_TURNS && (server->generations || server->waiting)); i++) serve_turn(0);
    if (server->generations || server->n_answers || server->waiting) abort();
}

#endif
