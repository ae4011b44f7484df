// The thread that draws touches no disk: whatever a person does, it neither opens, reads, writes nor locks a file.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "engine/base/machine_use.h"
#include "tests/unit/chat_fixture.h"

// From now on a system call that has to do with files ends the process, if this thread makes it.
static void forbid_files(void) {
    static const int forbidden[] = {
        SYS_openat,    SYS_pread64, SYS_pwrite64,   SYS_fsync,     SYS_fdatasync, SYS_unlinkat,
        SYS_renameat2, SYS_statx,   SYS_newfstatat, SYS_fallocate, SYS_ftruncate,
#ifdef SYS_open
        SYS_open,      SYS_unlink,  SYS_rename,     SYS_stat,      SYS_lstat,     SYS_access,
#endif
        SYS_faccessat};
    enum { COUNT = sizeof forbidden / sizeof *forbidden };
    struct sock_filter filter[1 + 2 * COUNT + 1] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    int n = 1;
    for (int i = 0; i < COUNT; i++) {
        filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)forbidden[i], 0, 1);
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    }
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = (unsigned short)n, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) _exit(77);
}

// What the system says of itself lies in no file on a disk.
uint64_t machine_memory_free(void) { return 1ull << 40; }
struct machine_use machine_use_now(void) { return (struct machine_use){0}; }

static void converse(void) {
    act(COMMAND_SEND, -1, "first question");
    say(1, 1, "an answer ");
    pass(1);
    say(1, 1, "and more of it");
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    type("a draft");
    pass(3);
    act(COMMAND_RENAME, -1, "Renamed");
    act(COMMAND_KNOB_UP, -1, NULL);
    act(COMMAND_REASONING, -1, NULL);
    act(COMMAND_ASCII, -1, NULL);
    act(COMMAND_REGENERATE, -1, NULL);
    end(1, 2, REQUEST_CANCELLED, FINISH_CANCELLED, "");
    act(COMMAND_VERSION_PREVIOUS, -1, NULL);
    act(COMMAND_NEW, -1, NULL);
    act(COMMAND_NEXT, -1, NULL);
    act(COMMAND_NEXT, 2, NULL); // one of the store's
    assert_message(0, VIEW_USER, "of another day");
    act(COMMAND_DELETE, -1, NULL);
    assert_int_equal(screen.view.n_chats, 2);
    act(COMMAND_MODEL, -1, "no such model"); // loading one takes a thread of its own, which may be forbidden nothing
    assert_non_null(strstr(screen.status, "no such model: "));
}

// What a child made of it: 0, 77 where the system has no such filters, or the signal.
static int in_child(void (*work)(void)) {
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        clock_freeze(now);
        open_chat();
        forbid_files();
        work();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static void read_a_file(void) {
    FILE *f = fopen("/proc/self/stat", "r");
    if (f) fclose(f);
}

static void test_no_command_touches_a_disk(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "of another day");
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    close_chat();
    engine.n_requests = 0;
    int forbidden = in_child(read_a_file), result = in_child(converse);
    open_chat();
    if (forbidden == 77) skip();
    assert_int_equal(forbidden, SIGSYS);
    assert_int_equal(result, 0);
}

static void wait_for_disk(void *job) { sem_wait(job); }

// A file system that answers nothing, or another program that holds the store.
static void test_a_stalled_disk_delays_no_frame(void **state) {
    (void)state;
    static sem_t disk;
    sem_init(&disk, 0, 0);
    worker_do(session_worker(chat->session), wait_for_disk, NULL, &disk);
    press(COMMAND_SEND, -1, "question");
    int draws = screen.draws;
    for (int i = 0; i < 30; i++) {
        told_engine_say((struct engine_event){
            .kind = EVENT_TEXT, .conversation = 1, .request = 1, .token = 1, .size = 1, .text = "x", .at = now});
        clock_freeze(now += 100000000);
        step();
    }
    assert_int_equal(screen.draws, draws + 30);
    assert_int_equal(screen.messages[1].size, 30);
    assert_true(screen.view.unsaved);
    assert_non_null(strstr(screen.status, "the disk does not answer"));
    sem_post(&disk);
    pass(1);
    pass(1);
    assert_false(screen.view.unsaved);
    sem_destroy(&disk);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CHAT_TEST(test_no_command_touches_a_disk),
        CHAT_TEST(test_a_stalled_disk_delays_no_frame),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
