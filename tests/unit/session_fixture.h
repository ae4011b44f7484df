// What the tests of the session share: an engine that does what it is told, a store in a folder of its own, and a clock
// that stands still unless a test moves it. Each program includes it in one file.
#ifndef CONFAB_TESTS_SESSION_FIXTURE_H
#define CONFAB_TESTS_SESSION_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/session/session.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "tests/unit/temporary_folder.h"
#include "tests/unit/told_engine.h"

static struct loop *loop;
static struct session *session;
static struct settings settings;
static char folder[64], *store_path;
static int told[16];
static char last_text[512];
static uint64_t now;

static inline void on_event(void *context, const struct session_event *event) {
    (void)context;
    told[event->kind]++;
    if (event->text) snprintf(last_text, sizeof last_text, "%s", event->text);
}

static inline void turn(void) { loop_turn(loop, 0); }

static inline void pass(double seconds) {
    now += (uint64_t)(seconds * 1e9);
    clock_freeze(now);
    turn();
}

// Until everything is written and read that there is to be.
static inline void settle(void) {
    pass(1);
    assert_true(worker_wait(session_worker(session), 60000));
}

static inline void open_session(void) {
    struct status st = {0};
    loop = loop_open();
    session = session_open(
        &(struct session_params){.loop = loop, .settings = &settings, .store_path = store_path, .tell = on_event}, &st);
    assert_non_null(session);
    session_set_client(session, engine_client_open(&engine.engine, &st), "Tiny 1B");
    settle();
    assert_true(told[SESSION_LISTED]);
}

static inline void close_session(void) {
    struct status st = {0};
    if (!session_close(session, &st)) fail_msg("%s", st.text);
    engine_client_close(engine.client);
    loop_close(loop);
}

static inline int setup(void **state) {
    (void)state;
    told_engine_reset();
    memset(told, 0, sizeof told);
    settings = settings_default();
    strcpy(folder, "/tmp/confab-test-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    store_path = xasprintf("%s/confab.db", folder);
    now = 1000000000;
    clock_freeze(now);
    open_session();
    return 0;
}

static inline int teardown(void **state) {
    (void)state;
    close_session();
    settings_free(&settings);
    free(store_path);
    return temporary_folder_remove(folder);
}

static inline struct session_chat *chat(int index) { return session_chat(session, index); }
static inline const struct message *message(int index, int m) { return &chat(index)->conversation.messages[m]; }
static inline void send(int index, const char *text) { session_send(session, chat(index), text); }

static inline void happen(struct engine_event event) {
    event.at = now;
    told_engine_say(event);
    turn();
}

static inline void say(uint64_t request, const char *text) {
    struct engine_event event = {.kind = EVENT_TEXT, .request = request, .token = 1, .size = strlen(text)};
    strcpy(event.text, text);
    happen(event);
}

static inline void end(uint64_t request, enum request_state state, const char *text) {
    struct engine_event event = {.kind = EVENT_STATE,
                                 .request = request,
                                 .state = state,
                                 .reason = state == REQUEST_CANCELLED ? FINISH_CANCELLED : FINISH_END,
                                 .n_prompt = 10,
                                 .n_generated = 3};
    snprintf(event.text, sizeof event.text, "%s", text);
    happen(event);
}

// A token with one alternative, as it is drawn; or as it is given.
static inline void say_token(uint64_t request, int32_t id, const char *text, bool given) {
    struct engine_event event = {.kind = EVENT_TEXT,
                                 .request = request,
                                 .token = id,
                                 .probability = given ? NAN : 0.5f,
                                 .entropy = given ? NAN : 1,
                                 .n_alternatives = !given,
                                 .alternatives = {{.id = id + 100, .probability = 0.25f, .text = "else"}},
                                 .size = strlen(text)};
    strcpy(event.text, text);
    happen(event);
}

#define SESSION_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
