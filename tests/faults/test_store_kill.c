// After SIGKILL at a random moment the store opens again and contains everything that was reported as saved.
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

#include "app/session/store.h"
#include "engine/base/panic.h"
#include "tests/unit/temporary_folder.h"

#define KILLS 25

struct saved { // sent by the writer after each successful save
    int64_t row;
    int messages;
    size_t last_size;
};

// A branch of two messages beside the conversation, which are there together or not at all.
static void grow_and_prune(struct conversation *c, int turn) {
    static int branch;
    int last = conversation_last(c);
    if (turn % 4 == 1) {
        branch = conversation_add(c, 0, MESSAGE_MODEL, "half", 4);
        conversation_add(c, branch, MESSAGE_USER, "half", 4);
        conversation_name(c, branch, "half");
        conversation_choose(c, last);
    } else if (turn % 4 == 3) {
        conversation_prune(c, branch);
    }
}

// Starts a conversation and adds to it until it is killed; reports every save through the pipe.
static _Noreturn void write_until_killed(const char *path, int to) {
    struct status st = {0};
    struct settings settings = settings_default();
    struct store *s = store_open(path, &st);
    if (!s) _exit(1);
    struct conversation c;
    conversation_open(&c, 1, &settings);
    int message = conversation_add(&c, -1, MESSAGE_USER, "question", 8);
    int messages = 1;
    for (int turn = 0;; turn++) {
        if (turn % 8 == 0) message = conversation_add(&c, message, MESSAGE_MODEL, "", 0), messages++;
        grow_and_prune(&c, turn);
        for (int i = 0; i < 40; i++) conversation_append(&c, message, "some words ", 11);
        if (!store_save(s, &c, &st)) _exit(1);
        struct saved said = {c.row, messages, c.messages[message].size};
        if (write(to, &said, sizeof said) != sizeof said) _exit(1);
    }
}

static bool read_said(int from, struct saved *last) {
    bool any = false;
    struct saved said;
    while (read(from, &said, sizeof said) == sizeof said) {
        *last = said;
        any = true;
    }
    return any;
}

// Runs a writer and kills it after a few milliseconds, or so long after its first save. False: it had not saved
// anything yet.
static bool kill_one(const char *path, bool after_saving, int milliseconds, struct saved *last) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        close(ends[0]);
        write_until_killed(path, ends[1]);
    }
    close(ends[1]);
    if (after_saving) poll(&(struct pollfd){.fd = ends[0], .events = POLLIN}, 1, 60000);
    nanosleep(&(struct timespec){.tv_nsec = milliseconds * 1000000L}, NULL);
    kill(child, SIGKILL);
    bool any = read_said(ends[0], last);
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL); // it did not fail by itself
    close(ends[0]);
    return any;
}

struct wanted {
    int64_t row;
    struct conversation found;
    bool there;
};

static void look(void *context, struct conversation *c) {
    struct wanted *w = context;
    if (c->row == w->row) {
        w->found = *c;
        w->there = true;
    } else {
        conversation_close(c);
    }
}

static void assert_there(const char *path, const struct saved *said) {
    struct status st = {0};
    struct settings initial = settings_default();
    struct store *s = store_open(path, &st);
    if (!s) fail_msg("%s", st.text);
    struct wanted w = {.row = said->row};
    assert_true(store_list(s, &initial, look, &w, &st));
    assert_true(w.there);
    assert_true(store_read(s, &w.found, &st));
    int *way = xcalloc((size_t)w.found.count, sizeof *way), halves = 0, named = 0;
    assert_true(conversation_path(&w.found, way) >= said->messages);
    assert_true(w.found.messages[way[said->messages - 1]].size >= said->last_size);
    free(way);
    for (int i = 0; i < w.found.count; i++) {
        halves += !strcmp(w.found.messages[i].text, "half");
        named += w.found.messages[i].name != NULL;
    }
    assert_true(halves == 2 * named && named <= 1);
    conversation_close(&w.found);
    store_close(s);
}

static void test_killed_at_any_moment(void **state) {
    (void)state;
    char folder[] = "/tmp/confab-test-XXXXXX";
    assert_non_null(mkdtemp(folder));
    char *path = xasprintf("%s/confab.db", folder);
    uint32_t random = 12345;
    int saved = 0;
    for (int i = 0; i < KILLS; i++) {
        struct saved last;
        random = random * 1664525u + 1013904223u;
        if (!kill_one(path, i % 2, 5 + (int)(random >> 24) % 60, &last)) continue;
        assert_there(path, &last);
        saved++;
    }
    assert_true(saved > 0);
    assert_int_equal(temporary_folder_remove(folder), 0);
    free(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_killed_at_any_moment)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
