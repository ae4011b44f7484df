// After SIGKILL at a random moment all that was reported as saved is found, and every page that is found is right.
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

#include "engine/backend.h"
#include "engine/base/panic.h"
#include "engine/base/queue.h"
#include "engine/serve/hibernate.h"
#include "tests/unit/temporary_folder.h"

enum { KILLS = 25, PAGES = 6, PAGE_BYTES = 300000, FINGERPRINT = 5 };

struct store {
    struct queue jobs;
    struct hibernate *hibernate;
};

static void on_done(void *context, struct hibernate_job *job) { queue_push(context, &job); }

static void store_open(struct store *s, const char *folder) {
    struct status st;
    assert_true(queue_open(&s->jobs, sizeof(struct hibernate_job *), &st));
    const struct hibernate_params p = {
        .folder = folder, .budget = (uint64_t)1 << 32, .done = on_done, .context = &s->jobs};
    s->hibernate = hibernate_open(&p, &st);
    assert_non_null(s->hibernate);
}

static void store_close(struct store *s) {
    hibernate_close(s->hibernate);
    for (struct hibernate_job *job; queue_pop(&s->jobs, &job);) hibernate_job_free(job);
    queue_close(&s->jobs);
}

static struct hibernate_job *wait_for_job(struct store *s) {
    struct hibernate_job *job;
    assert_true(queue_wait(&s->jobs, &job, 60000));
    return job;
}

// Text n, without its pages.
static struct hibernate_job *job_of(enum hibernate_kind kind, int n) {
    struct hibernate_job *job = xcalloc(1, sizeof *job);
    *job = (struct hibernate_job){
        .kind = kind, .fingerprint = FINGERPRINT, .owner = 1, .n_pages = PAGES, .page_bytes = PAGE_BYTES};
    job->tokens = xmalloc(PAGES * KV_PAGE_TOKENS * sizeof *job->tokens);
    for (int i = 0; i < PAGES * KV_PAGE_TOKENS; i++) job->tokens[i] = n * 1000 + i;
    return job;
}

static void fill(uint8_t *data, int n) {
    for (size_t i = 0; i < (size_t)PAGES * PAGE_BYTES; i++) data[i] = (uint8_t)(i * 2654435761u >> 13 ^ (size_t)n);
}

// Saves one text after the other until it is killed, and reports each.
static _Noreturn void save_until_killed(const char *folder, int first, int to) {
    struct store s;
    store_open(&s, folder);
    for (int n = first;; n++) {
        struct hibernate_job *job = job_of(HIBERNATE_SAVE, n);
        job->data = xmalloc((size_t)PAGES * PAGE_BYTES);
        fill(job->data, n);
        hibernate_do(s.hibernate, job);
        job = wait_for_job(&s);
        if (job->n_done != PAGES || write(to, &n, sizeof n) != sizeof n) _exit(1);
        hibernate_job_free(job);
    }
}

// The last text that a child reported before it was killed; first − 1: none.
static int kill_one(const char *folder, int first, bool after_saving, int milliseconds) {
    int ends[2], last = first - 1, said, status;
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        close(ends[0]);
        save_until_killed(folder, first, ends[1]);
    }
    close(ends[1]);
    if (after_saving) poll(&(struct pollfd){.fd = ends[0], .events = POLLIN}, 1, 60000);
    nanosleep(&(struct timespec){.tv_nsec = milliseconds * 1000000L}, NULL);
    kill(child, SIGKILL);
    while (read(ends[0], &said, sizeof said) == sizeof said) last = said;
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL); // it did not fail by itself
    close(ends[0]);
    return last;
}

static void assert_found(struct store *s, int n, bool whole) {
    uint8_t *expected = xmalloc((size_t)PAGES * PAGE_BYTES);
    hibernate_do(s->hibernate, job_of(HIBERNATE_LOAD, n));
    struct hibernate_job *job = wait_for_job(s);
    fill(expected, n);
    if (whole) assert_int_equal(job->n_done, PAGES);
    assert_memory_equal(job->data, expected, (size_t)job->n_done * PAGE_BYTES);
    hibernate_job_free(job);
    free(expected);
}

static void test_killed_at_any_moment(void **state) {
    (void)state;
    char home[] = "/tmp/confab-test-XXXXXX";
    assert_non_null(mkdtemp(home));
    char *folder = xasprintf("%s/kv", home);
    uint32_t random = 12345;
    int first = 0, saved = 0;
    for (int i = 0; i < KILLS; i++) {
        struct store s;
        random = random * 1664525u + 1013904223u;
        const int last = kill_one(folder, first, i % 2, 2 + (int)(random >> 24) % 30);
        store_open(&s, folder);
        for (int n = first; n <= last; n++) assert_found(&s, n, true);
        assert_found(&s, last + 1, false); // it may just have been written
        store_close(&s);
        saved += last - first + 1;
        first = last + 2;
    }
    assert_true(saved > 0);
    assert_int_equal(temporary_folder_remove(home), 0);
    free(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_killed_at_any_moment)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
