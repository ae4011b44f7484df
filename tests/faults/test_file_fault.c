// A model file that shrinks while it is mapped ends the program with one line and status 1, whatever was reading it.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "app/base/file_fault.h"
#include "engine/base/reader.h"

enum { FILE_BYTES = 1 << 16 };

struct fault {
    char path[32];
    int fd;
};

static void fault_open(struct fault *f) {
    strcpy(f->path, "/tmp/confab-fault-XXXXXX");
    assert_true((f->fd = mkstemp(f->path)) >= 0);
    assert_int_equal(ftruncate(f->fd, FILE_BYTES), 0);
}

static void touch_what_is_gone(struct fault *f) {
    struct mapping m;
    struct status st;
    if (!mapping_open(&m, f->path, &st) || ftruncate(f->fd, 0)) _exit(90);
    volatile uint8_t byte = m.data[FILE_BYTES - 1];
    (void)byte;
    _exit(91); // no signal
}

// Like the terminal's handler: restores the terminal, then raises the signal for the previous handler.
static struct sigaction before;
static void hand_on(int signal_number) {
    if (write(STDERR_FILENO, "given back\n", 11) < 0) _exit(92);
    sigaction(signal_number, &before, NULL);
    raise(signal_number);
}

static void touch_beneath_another_handler(struct fault *f) {
    struct sigaction action = {.sa_handler = hand_on};
    sigfillset(&action.sa_mask);
    sigaction(SIGBUS, &action, &before);
    touch_what_is_gone(f);
}

static void touch_after_another_model_was_opened(struct fault *f) {
    struct sigaction action = {.sa_handler = hand_on};
    sigfillset(&action.sa_mask);
    sigaction(SIGBUS, &action, &before);
    file_fault_watch(f->path);
    touch_what_is_gone(f);
}

static void signal_from_outside(struct fault *f) {
    (void)f;
    pid_t child = getpid();
    if (!fork()) {
        kill(child, SIGBUS);
        _exit(0);
    }
    for (;;) pause();
}

// Runs `act` in a child that watches the file; returns the status that waitpid gives.
static int in_child(struct fault *f, void (*act)(struct fault *), char *text, size_t size) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (!child) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]), close(ends[1]);
        file_fault_watch(f->path);
        act(f);
    }
    close(ends[1]);
    size_t n = 0;
    for (ssize_t got; (got = read(ends[0], text + n, size - 1 - n)) > 0;) n += (size_t)got;
    text[n] = 0;
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void assert_reported(void (*act)(struct fault *), const char *before_message) {
    struct fault f;
    char text[512], expected[512];
    fault_open(&f);
    int status = in_child(&f, act, text, sizeof text);
    snprintf(expected, sizeof expected, "%sconfab: %s: cannot read: the file changed while in use\n",
             before_message, f.path);
    assert_string_equal(text, expected);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    close(f.fd);
    unlink(f.path);
}

static void a_file_that_shrinks_ends_with_one_line(void **state) {
    (void)state;
    assert_reported(touch_what_is_gone, "");
}

static void the_terminal_is_given_back_first(void **state) {
    (void)state;
    assert_reported(touch_beneath_another_handler, "given back\n");
}

static void the_terminal_stays_first_when_another_model_is_opened(void **state) {
    (void)state;
    assert_reported(touch_after_another_model_was_opened, "given back\n");
}

static void the_signal_from_outside_kills_as_ever(void **state) {
    (void)state;
    struct fault f;
    char text[512];
    fault_open(&f);
    int status = in_child(&f, signal_from_outside, text, sizeof text);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    assert_null(strstr(text, "cannot read"));
    close(f.fd);
    unlink(f.path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_that_shrinks_ends_with_one_line),
        cmocka_unit_test(the_terminal_is_given_back_first),
        cmocka_unit_test(the_terminal_stays_first_when_another_model_is_opened),
        cmocka_unit_test(the_signal_from_outside_kills_as_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
