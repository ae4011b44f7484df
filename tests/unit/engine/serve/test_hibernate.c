// Conversations that are saved to disk and opened by another engine: the same text as if they had never slept.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/backend.h"
#include "engine/base/output_file.h"
#include "engine/base/panic.h"
#include "engine/base/reader.h"
#include "engine/local_engine.h"
#include "engine/metrics.h"
#include "tests/unit/full_disk.h"
#include "tests/unit/temporary_folder.h"
#include "tests/unit/tiny_model.h"

enum { PROMPT = 200, ANSWER = 80, MORE = 24, MOST = 512 };
#define OWNER 77

static const char *folder; // of saved pages

struct bench {
    void *bytes;
    struct model_file *file;
    struct engine *engine;
    struct engine_client *client;
};

struct text {
    int32_t tokens[MOST];
    int n, n_reused;
    enum request_state state;
};

static struct engine_params sleeping(void) {
    return (struct engine_params){
        .n_threads = 1, .kv_tokens = 2048, .hibernation = {.folder = folder, .budget = 64 << 20}};
}

static void engine_start(struct bench *b, const struct engine_params *p) {
    struct status st = {0};
    b->engine = local_engine_open(b->file, p, &st);
    if (!b->engine) fail_msg("%s", st.text);
    b->client = engine_client_open(b->engine, &st);
    assert_non_null(b->client);
}

static void engine_end(struct bench *b) {
    engine_client_close(b->client);
    engine_close(b->engine);
    b->engine = NULL;
}

static void model_start(struct bench *b, uint64_t seed) {
    struct status st = {0};
    size_t size;
    b->bytes = tiny_model_bytes((struct tiny_model_options){.seed = seed}, &size);
    b->file = model_file_open_memory("tiny.gguf", b->bytes, size, NULL, &st);
    if (!b->file) fail_msg("%s", st.text);
}

static void model_end(struct bench *b) {
    model_file_close(b->file);
    free(b->bytes);
}

// Every test has a bench with a model, and nothing is saved yet.
static int setup(void **state) {
    static struct bench b;
    b = (struct bench){0};
    temporary_folder_remove(folder);
    model_start(&b, 0);
    *state = &b;
    return 0;
}

static int teardown(void **state) {
    struct bench *b = *state;
    if (b->engine) engine_end(b); // of a test that failed
    model_end(b);
    return 0;
}

static void prompt_of(const struct bench *b, struct text *t) {
    const uint32_t n_vocab = (uint32_t)model_file_info(b->file)->n_vocab;
    for (t->n = 0; t->n < PROMPT; t->n++) t->tokens[t->n] = (int32_t)((uint32_t)(t->n * 31 + 5) % n_vocab);
}

static struct sampling warm(void) {
    struct sampling s = sampling_default();
    s.seed = 7;
    return s;
}

// Asks for n more tokens of a text, and waits for them.
static void go_on(struct bench *b, struct text *t, uint64_t owner, int n) {
    struct request_params p = {.conversation = 1,
                               .disk_owner = owner,
                               .ids = t->tokens,
                               .n_ids = t->n,
                               .sampling = warm(),
                               .max_tokens = n,
                               .ignore_end = true};
    struct engine_event e;
    engine_submit(b->client, &p);
    for (t->state = REQUEST_PENDING; t->state < REQUEST_FINISHED;) {
        if (!engine_wait(b->client, &e, 60000)) fail_msg("no event for a minute");
        if (e.kind == EVENT_TEXT && e.token >= 0) t->tokens[t->n++] = e.token;
        if (e.kind == EVENT_STATE) t->state = e.state, t->n_reused = e.n_reused;
    }
    assert_int_equal(t->state, REQUEST_FINISHED);
}

static void assert_same(const struct text *a, const struct text *b) {
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->tokens, b->tokens, (size_t)a->n * sizeof *a->tokens);
}

static int count_files(const char *ending) {
    int n = 0;
    DIR *dir = opendir(folder);
    for (const struct dirent *d; dir && (d = readdir(dir));) n += strstr(d->d_name, ending) != NULL;
    if (dir) closedir(dir);
    return n;
}

// What the model says when nobody sleeps.
static void awake(struct bench *b, struct text *t, const struct engine_params *p) {
    struct engine_params plain = *p;
    plain.hibernation = (struct engine_hibernation){0};
    engine_start(b, &plain);
    prompt_of(b, t);
    go_on(b, t, 0, ANSWER);
    go_on(b, t, 0, MORE);
    engine_end(b);
}

// go_on in an engine of its own.
static void live(struct bench *b, struct text *t, const struct engine_params *p, uint64_t owner, int n) {
    engine_start(b, p);
    go_on(b, t, owner, n);
    engine_end(b);
}

// The same with an engine that is closed in between; how many tokens the second one found.
static int slept(struct bench *b, struct text *t, const struct engine_params *p) {
    prompt_of(b, t);
    live(b, t, p, OWNER, ANSWER);
    live(b, t, p, OWNER, MORE);
    return t->n_reused;
}

static void test_woken_is_never_slept(void **state) {
    struct bench *b = *state;
    struct text alone, woken;
    const struct engine_params p = sleeping();
    awake(b, &alone, &p);
    assert_int_equal(slept(b, &woken, &p), (PROMPT + ANSWER - 1) / KV_PAGE_TOKENS * KV_PAGE_TOKENS);
    assert_same(&alone, &woken);
    assert_true(count_files(".kv") > 0);
}

// What has no owner, as with `run` or without a store, leaves no trace.
static void test_private_texts_never_touch_the_disk(void **state) {
    struct bench *b = *state;
    struct text t;
    const struct engine_params p = sleeping();
    prompt_of(b, &t);
    live(b, &t, &p, 0, ANSWER);
    assert_int_equal(access(folder, F_OK), -1);
}

static void test_only_the_user_can_read(void **state) {
    struct bench *b = *state;
    struct text t;
    struct stat info;
    const struct engine_params p = sleeping();
    slept(b, &t, &p);
    assert_int_equal(stat(folder, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    DIR *dir = opendir(folder);
    int n = 0;
    for (const struct dirent *d; (d = readdir(dir));) {
        if (d->d_name[0] == '.') continue;
        assert_int_equal(fstatat(dirfd(dir), d->d_name, &info, 0), 0);
        assert_int_equal(info.st_mode & 0777, 0600);
        n++;
    }
    closedir(dir);
    assert_true(n > 0);
}

static void wait_for_files(int n) {
    for (int i = 0; count_files(".kv") < n; i++, usleep(10000))
        if (i > 3000) fail_msg("no file for half a minute");
}

// An engine that was open before another saved something finds it.
static void test_engines_share_a_folder(void **state) {
    struct bench *a = *state, b;
    struct text t, alone;
    const struct engine_params p = sleeping();
    model_start(&b, 0);
    awake(a, &alone, &p);
    engine_start(a, &p);
    engine_start(&b, &p);
    prompt_of(a, &t);
    go_on(a, &t, OWNER, ANSWER);
    wait_for_files(1);
    go_on(&b, &t, OWNER + 1, MORE); // found by its tokens, whoever's it is
    assert_true(t.n_reused >= PROMPT);
    assert_same(&alone, &t);
    engine_end(a);
    engine_end(&b);
    model_end(&b);
}

static void test_pages_of_another_model_are_foreign(void **state) {
    struct bench *a = *state, b;
    struct text t;
    struct engine_params p = sleeping();
    model_start(&b, 1); // of the same shape
    slept(a, &t, &p);
    prompt_of(&b, &t);
    live(&b, &t, &p, OWNER, MORE);
    assert_int_equal(t.n_reused, 0);
    p.options.kv_type = KV_Q8_0; // and so are those of another type
    prompt_of(a, &t);
    live(a, &t, &p, OWNER, MORE);
    assert_int_equal(t.n_reused, 0);
    model_end(&b);
}

static void test_a_deleted_conversation_takes_its_files_along(void **state) {
    struct bench *b = *state;
    struct text t;
    const struct engine_params p = sleeping();
    slept(b, &t, &p);
    engine_start(b, &p);
    prompt_of(b, &t);
    t.tokens[0]++; // another text, of another conversation
    go_on(b, &t, OWNER + 1, ANSWER);
    engine_forget(b->client, 5, OWNER);
    engine_end(b);
    assert_true(count_files("000000000000004e-") > 0);
    assert_int_equal(count_files("000000000000004d-"), 0);
    local_engine_remove_saved(folder, OWNER + 1);
    assert_int_equal(count_files(".kv"), 0);
}

static uint64_t bytes_of_files(void) {
    uint64_t bytes = 0;
    struct stat info;
    DIR *dir = opendir(folder);
    for (const struct dirent *d; dir && (d = readdir(dir));)
        if (!fstatat(dirfd(dir), d->d_name, &info, 0) && S_ISREG(info.st_mode)) bytes += (uint64_t)info.st_size;
    if (dir) closedir(dir);
    return bytes;
}

// The least recently used conversation goes, the one that was used since stays.
static void test_files_stay_within_the_budget(void **state) {
    struct bench *b = *state;
    struct text t;
    struct engine_params p = sleeping();
    prompt_of(b, &t);
    live(b, &t, &p, OWNER, 1);
    const uint64_t one = bytes_of_files();
    p.hibernation.budget = 3 * one + one / 2;
    for (int i = 0; i < 6; i++) {
        prompt_of(b, &t);
        t.tokens[0] += 1 + i;
        live(b, &t, &p, OWNER + 1 + (uint64_t)i, 1);
        assert_true(bytes_of_files() <= p.hibernation.budget);
        prompt_of(b, &t); // the first one is used again and again
        live(b, &t, &p, OWNER, 1);
        assert_int_equal(t.n_reused, (PROMPT - 1) / KV_PAGE_TOKENS * KV_PAGE_TOKENS);
    }
    assert_int_equal(count_files(".kv"), 3);
}

static void test_a_full_disk_is_no_failure(void **state) {
    struct bench *b = *state;
    struct text alone, woken;
    const struct engine_params p = sleeping();
    awake(b, &alone, &p);
    full_disk_begin(20000);
    assert_int_equal(slept(b, &woken, &p), 0);
    full_disk_end();
    assert_same(&alone, &woken);
    assert_int_equal(bytes_of_files(), 0);
}

struct stored { // a file
    char name[256];
    uint8_t *bytes;
    size_t size;
};

static struct stored read_first_file(void) {
    struct stored f = {0};
    DIR *dir = opendir(folder);
    for (const struct dirent *d; (d = readdir(dir)) && !f.bytes;) {
        struct status st = {0};
        if (!strstr(d->d_name, ".kv")) continue;
        char *path = xasprintf("%s/%s", folder, d->d_name);
        snprintf(f.name, sizeof f.name, "%s", d->d_name);
        f.bytes = (uint8_t *)file_read_regular(path, 1 << 24, &f.size, &st);
        free(path);
    }
    closedir(dir);
    assert_non_null(f.bytes);
    return f;
}

static void write_file(const char *name, const void *bytes, size_t size) {
    char *path = xasprintf("%s/%s", folder, name);
    struct status st = {0};
    if (!output_file_replace(path, bytes, size, 0600, &st)) fail_msg("%s", st.text);
    free(path);
}

// Damaged at any place, or cut off: the text is the same, and the file is gone afterwards.
static void test_damaged_files_are_ignored(void **state) {
    struct bench *b = *state;
    struct text alone, woken, begin;
    const struct engine_params p = sleeping();
    awake(b, &alone, &p);
    prompt_of(b, &begin);
    live(b, &begin, &p, OWNER, ANSWER);
    struct stored f = read_first_file();
    assert_int_equal(count_files(".kv"), 1);
    for (size_t i = 0; i < 40; i++) {
        const size_t at = i < 20 ? i * 4 : f.size * (i - 20) / 20;
        f.bytes[at] ^= 0x10;
        write_file(f.name, f.bytes, i % 7 == 6 ? f.size - 1 - i : f.size);
        f.bytes[at] ^= 0x10;
        woken = begin;
        live(b, &woken, &p, OWNER, MORE);
        assert_same(&alone, &woken);
        woken = begin;
        live(b, &woken, &p, OWNER, MORE); // it was written anew
        if (woken.n_reused < PROMPT) fail_msg("damaged at %zu: %d tokens found", at, woken.n_reused);
    }
    free(f.bytes);
}

static void test_foreign_files_stay(void **state) {
    struct bench *b = *state;
    struct text t;
    const struct engine_params p = sleeping();
    slept(b, &t, &p);
    write_file("short.kv", "short", 5);
    write_file("empty.kv", "", 0);
    char zeros[4096] = {0};
    write_file("zeros.kv", zeros, sizeof zeros);
    write_file("notes.txt", "mine", 4);
    char *path = xasprintf("%s/pipe.kv", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    free(path);
    assert_true(slept(b, &t, &p) > PROMPT);
    assert_int_equal(count_files("short.kv") + count_files("zeros.kv") + count_files("notes") + count_files("pipe"), 4);
}

// What a kill leaves behind goes when nobody can be writing it any more.
static void test_old_temporary_files_go(void **state) {
    struct bench *b = *state;
    struct text t;
    const struct engine_params p = sleeping();
    slept(b, &t, &p);
    write_file("a.kv.0001.part", "a", 1);
    write_file("b.kv.0002.part", "b", 1);
    char *path = xasprintf("%s/a.kv.0001.part", folder);
    const struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    assert_int_equal(utimensat(AT_FDCWD, path, long_ago, 0), 0);
    free(path);
    slept(b, &t, &p);
    assert_int_equal(count_files("a.kv"), 0);
    assert_int_equal(count_files("b.kv"), 1);
}

static void test_metrics_tell_what_is_on_the_disk(void **state) {
    struct bench *b = *state;
    struct text t;
    const struct engine_params p = sleeping();
    const int found = slept(b, &t, &p);
    engine_start(b, &p);
    go_on(b, &t, OWNER, MORE);
    const struct engine_metrics *f = engine_metrics(b->client);
    for (int i = 0; !f->woken_tokens && i < 3000; i++, usleep(1000)) f = engine_metrics(b->client);
    int on_disk = 0;
    for (int i = 0; i < f->n_pages; i++) on_disk += f->pages[i].on_disk;
    assert_true(f->woken_tokens >= found);
    assert_true(on_disk * KV_PAGE_TOKENS >= found);
    assert_int_equal(f->disk_budget, p.hibernation.budget);
    for (int i = 0; f->disk_bytes != (int64_t)bytes_of_files() && i < 3000; i++, usleep(1000))
        f = engine_metrics(b->client);
    assert_int_equal(f->disk_bytes, bytes_of_files());
    engine_end(b);
}

// Four answers to one prompt wait for the same pages.
static void test_answers_wake_together(void **state) {
    struct bench *b = *state;
    struct text t;
    const struct engine_params p = sleeping();
    slept(b, &t, &p);
    engine_start(b, &p);
    const struct request_params q = {.conversation = 1,
                                     .disk_owner = OWNER,
                                     .ids = t.tokens,
                                     .n_ids = t.n,
                                     .sampling = warm(),
                                     .n_answers = 4,
                                     .max_tokens = 5,
                                     .ignore_end = true};
    engine_submit(b->client, &q);
    struct engine_event e;
    for (int open = 4; open;) {
        if (!engine_wait(b->client, &e, 60000)) fail_msg("no event for a minute");
        if (e.kind != EVENT_STATE || e.state < REQUEST_FINISHED) continue;
        assert_int_equal(e.state, REQUEST_FINISHED);
        assert_true(e.n_reused >= PROMPT);
        open--;
    }
    assert_true(engine_metrics(b->client)->prefill_tokens <= 4 * KV_PAGE_TOKENS); // the rest of the last page, each
    engine_end(b);
}

// Closing at once, in the middle of whatever it is.
static void test_closing_at_any_moment(void **state) {
    struct bench *b = *state;
    struct text t;
    const struct engine_params p = sleeping();
    slept(b, &t, &p);
    for (int i = 0; i < 60; i++) {
        engine_start(b, &p);
        const struct request_params q = {
            .conversation = 1, .disk_owner = OWNER, .ids = t.tokens, .n_ids = t.n, .sampling = warm()};
        const uint64_t id = engine_submit(b->client, &q);
        usleep((useconds_t)(i * 40));
        if (i % 3 == 0) engine_cancel(b->client, id);
        if (i % 5 == 0) engine_forget(b->client, 1, OWNER);
        engine_end(b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_woken_is_never_slept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_private_texts_never_touch_the_disk, setup, teardown),
        cmocka_unit_test_setup_teardown(test_only_the_user_can_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_engines_share_a_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pages_of_another_model_are_foreign, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_deleted_conversation_takes_its_files_along, setup, teardown),
        cmocka_unit_test_setup_teardown(test_files_stay_within_the_budget, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_full_disk_is_no_failure, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damaged_files_are_ignored, setup, teardown),
        cmocka_unit_test_setup_teardown(test_foreign_files_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(test_old_temporary_files_go, setup, teardown),
        cmocka_unit_test_setup_teardown(test_metrics_tell_what_is_on_the_disk, setup, teardown),
        cmocka_unit_test_setup_teardown(test_answers_wake_together, setup, teardown),
        cmocka_unit_test_setup_teardown(test_closing_at_any_moment, setup, teardown),
    };
    const char *home = temporary_folder_make();
    if (!home) return 1;
    char *inside = xasprintf("%s/kv", home);
    folder = inside;
    const int failed = cmocka_run_group_tests(tests, NULL, temporary_folder_teardown);
    free(inside);
    return failed;
}
