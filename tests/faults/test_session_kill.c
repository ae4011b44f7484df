// After SIGKILL at a random moment, while a conversation is answered, saved, goes to the disk with its pages or wakes
// up: it opens with every turn that was saved, and goes on as one whose pages were never on the disk.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "app/session/session.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/local_engine.h"
#include "engine/metrics.h"
#include "tests/unit/temporary_folder.h"
#include "tests/unit/tiny_model.h"
#include "tests/unit/xorshift.h"

enum { KILLS = 16, TURNS = 5, ANSWER = 24, PATIENCE = 60 };

static struct model_file *model;
static struct settings settings;
static char *store_path, *kv_folder;
static int told[16]; // events of the session, by kind

struct life {
    struct engine *engine;
    struct engine_client *client;
    struct loop *loop;
    struct session *session;
};

static void on_event(void *context, const struct session_event *event) {
    (void)context;
    told[event->kind]++;
}

// Until the session has told so many events of a kind.
static void wait_for(struct life *l, enum session_event_kind kind, int n) {
    const double end = clock_seconds() + PATIENCE;
    while (told[kind] < n) {
        loop_turn(l->loop, 100);
        if (clock_seconds() > end) panic("the session tells nothing");
    }
}

static void life_open(struct life *l, bool hibernates) {
    struct status st = {0};
    const struct engine_params p = {.n_threads = 1,
                                    .kv_tokens = 4096,
                                    .hibernation = {.budget = hibernates ? (uint64_t)1 << 28 : 0, .folder = kv_folder},
                                    .options.device = "cpu"};
    memset(told, 0, sizeof told);
    l->engine = local_engine_open(model, &p, &st);
    l->client = l->engine ? engine_client_open(l->engine, &st) : NULL;
    l->loop = loop_open();
    l->session = session_open(
        &(struct session_params){
            .loop = l->loop, .settings = &settings, .store_path = store_path, .kv_folder = kv_folder, .tell = on_event},
        &st);
    if (!l->client || !l->session) panic("%s", st.text);
    session_set_client(l->session, l->client, "tiny");
    wait_for(l, SESSION_LISTED, 1);
}

static void life_close(struct life *l) {
    struct status st = {0};
    if (!session_close(l->session, &st)) fail_msg("%s", st.text);
    engine_client_close(l->client);
    engine_close(l->engine);
    loop_close(l->loop);
}

static void read_chat(struct life *l, struct session_chat *chat) {
    const int read = told[SESSION_READ];
    session_read(l->session, chat);
    if (chat->reading) wait_for(l, SESSION_READ, read + 1);
}

static int turns(const struct session_chat *chat) {
    int *path = xcalloc((size_t)chat->conversation.count + 1, sizeof *path);
    const int n = conversation_path(&chat->conversation, path);
    free(path);
    return n / 2;
}

static void take_turn(struct life *l, struct session_chat *chat) {
    char text[128];
    snprintf(text, sizeof text, "Question %d: what is it that an answer of so many words is about?",
             turns(chat) + 1);
    const int ended = told[SESSION_ENDED];
    session_send(l->session, chat, text);
    wait_for(l, SESSION_ENDED, ended + 1);
}

// ---- who is killed ----

struct saved { // is said after each turn
    int64_t row;
    int turns;
};

// Goes on with the newest chat, and begins another one when that is long.
static _Noreturn void converse_until_killed(int to) {
    struct status st = {0};
    struct life l;
    life_open(&l, true);
    struct session_chat *chat = session_chat(l.session, session_count(l.session) > 1);
    read_chat(&l, chat);
    for (;;) {
        if (turns(chat) >= TURNS) chat = session_new(l.session);
        take_turn(&l, chat);
        if (!session_save(l.session, &st)) _exit(1);
        const struct saved said = {chat->conversation.row, turns(chat)};
        if (write(to, &said, sizeof said) != sizeof said) _exit(1);
    }
}

// What was said last; false: nothing.
static bool kill_one(bool after_a_turn, int milliseconds, struct saved *last) {
    int ends[2], status;
    bool any = false;
    struct saved said;
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        close(ends[0]);
        converse_until_killed(ends[1]);
    }
    close(ends[1]);
    if (after_a_turn) poll(&(struct pollfd){.fd = ends[0], .events = POLLIN}, 1, 1000 * PATIENCE);
    nanosleep(&(struct timespec){.tv_nsec = milliseconds * 1000000L}, NULL);
    kill(child, SIGKILL);
    while (read(ends[0], &said, sizeof said) == sizeof said) *last = said, any = true;
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL); // it did not fail by itself
    close(ends[0]);
    return any;
}

// ---- who comes after ----

static struct session_chat *chat_of(const struct life *l, int64_t row) {
    for (int i = 0; i < session_count(l->session); i++)
        if (session_chat(l->session, i)->conversation.row == row) return session_chat(l->session, i);
    fail_msg("a chat that was saved is gone");
    return NULL;
}

static struct message *last_message(const struct session_chat *chat) {
    return &chat->conversation.messages[conversation_last(&chat->conversation)];
}

static char *assert_goes_on(const struct saved *said, int64_t *woken) {
    struct life l;
    life_open(&l, true);
    struct session_chat *chat = chat_of(&l, said->row);
    read_chat(&l, chat);
    assert_true(turns(chat) >= said->turns);
    take_turn(&l, chat);
    assert_int_equal(last_message(chat)->state, MESSAGE_COMPLETE);
    char *text = xstrdup(last_message(chat)->text);
    const double end = clock_seconds() + 0.2; // for the figures
    while (clock_seconds() < end && engine_metrics(l.client)->running) loop_turn(l.loop, 10);
    *woken += engine_metrics(l.client)->woken_tokens;
    life_close(&l);
    return text;
}

static void assert_same_without_disk(const struct saved *said, const char *text) {
    struct life l;
    life_open(&l, false);
    struct session_chat *chat = chat_of(&l, said->row);
    read_chat(&l, chat);
    assert_string_equal(last_message(chat)->text, text);
    session_ask(l.session, chat, last_message(chat)->parent, 1, NULL);
    wait_for(&l, SESSION_ENDED, 1);
    assert_int_equal(last_message(chat)->state, MESSAGE_COMPLETE);
    assert_string_equal(last_message(chat)->text, text);
    life_close(&l);
}

static void test_killed_at_any_moment(void **state) {
    (void)state;
    uint64_t random = 12345;
    int64_t woken = 0;
    int n = 0;
    for (int i = 0; i < KILLS; i++) {
        struct saved last = {0};
        if (!kill_one(i % 4, (int)xorshift_below(&random, i % 2 ? 40 : 8), &last)) continue;
        char *text = assert_goes_on(&last, &woken);
        assert_same_without_disk(&last, text);
        free(text);
        n++;
    }
    print_message("%d conversations went on, with %d tokens from the disk\n", n, (int)woken);
    assert_true(n > KILLS / 2);
    assert_true(woken > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_killed_at_any_moment)};
    const char *folder = temporary_folder_make();
    struct status st = {0};
    size_t size;
    void *bytes = tiny_model_bytes((struct tiny_model_options){.n_context = 4096}, &size);
    if (!folder) return 1;
    model = model_file_open_memory("tiny.gguf", bytes, size, NULL, &st);
    if (!model) panic("%s", st.text);
    store_path = xasprintf("%s/confab.db", folder);
    kv_folder = xasprintf("%s/kv", folder);
    settings = settings_default();
    settings.sampling.temperature = 0;
    settings.max_tokens = ANSWER;
    const int failed = cmocka_run_group_tests(tests, NULL, temporary_folder_teardown);
    settings_free(&settings);
    model_file_close(model);
    free(bytes), free(store_path), free(kv_folder);
    return failed;
}
