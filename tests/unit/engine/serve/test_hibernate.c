// Conversations that are saved to disk and opened by another engine: the same text as if they had never slept.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/panic.h"
#include "engine/local_engine.h"
#include "engine/metrics.h"
#include "engine/model/opened_model.h"
#include "engine/serve/local_engine_state.h"
#include "tests/unit/full_disk.h"
#include "tests/unit/temporary_folder.h"
#include "tests/unit/tiny_families.h"
#include "tests/unit/tiny_model.h"
#include "tests/unit/toy_backend.h"

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

static void engine_start(struct bench *b, const struct engine_params *p, const struct backend_ops *ops) {
    struct status st = {0};
    b->engine = local_engine_open_on(b->file, p, ops, &st);
    if (!b->engine) fail_msg("%s", st.text);
    b->client = engine_client_open(b->engine, &st);
    assert_non_null(b->client);
}

static void engine_end(struct bench *b) {
    engine_client_close(b->client);
    engine_close(b->engine);
}

static void model_start(struct bench *b, void *bytes, size_t size) {
    struct status st = {0};
    b->bytes = bytes;
    b->file = model_file_open_memory("tiny.gguf", bytes, size, NULL, &st);
    if (!b->file) fail_msg("%s", st.text);
}

static void model_end(struct bench *b) {
    model_file_close(b->file);
    free(b->bytes);
}

static void tiny_start(struct bench *b, uint64_t seed) {
    size_t size;
    void *bytes = tiny_model_bytes((struct tiny_model_options){.seed = seed}, &size);
    model_start(b, bytes, size);
}

static void prompt_of(const struct bench *b, struct text *t, int n) {
    const uint32_t n_vocab = (uint32_t)model_file_info(b->file)->n_vocab;
    for (t->n = 0; t->n < n; t->n++) t->tokens[t->n] = (int32_t)((uint32_t)(t->n * 31 + 5) % n_vocab);
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

static void start_empty(void) { temporary_folder_remove(folder); }

// What the model says when nobody sleeps.
static void awake(struct bench *b, struct text *t, const struct engine_params *p, const struct backend_ops *ops) {
    struct engine_params plain = *p;
    plain.hibernation = (struct engine_hibernation){0};
    engine_start(b, &plain, ops);
    prompt_of(b, t, PROMPT);
    go_on(b, t, 0, ANSWER);
    go_on(b, t, 0, MORE);
    engine_end(b);
}

// The same with an engine that is closed in between; how many tokens the second one found.
static int slept(struct bench *b, struct text *t, const struct engine_params *p, const struct backend_ops *ops) {
    engine_start(b, p, ops);
    prompt_of(b, t, PROMPT);
    go_on(b, t, OWNER, ANSWER);
    engine_end(b);
    engine_start(b, p, ops);
    go_on(b, t, OWNER, MORE);
    engine_end(b);
    return t->n_reused;
}

static void test_woken_is_never_slept(void **state) {
    (void)state;
    struct bench b;
    struct text alone, woken;
    const struct engine_params p = sleeping();
    start_empty();
    tiny_start(&b, 0);
    awake(&b, &alone, &p, NULL);
    assert_int_equal(slept(&b, &woken, &p, NULL), (PROMPT + ANSWER - 1) / KV_PAGE_TOKENS * KV_PAGE_TOKENS);
    assert_same(&alone, &woken);
    assert_true(count_files(".kv") > 0);
    model_end(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_woken_is_never_slept),
    };
    const char *home = temporary_folder_make();
    if (!home) return 1;
    char *inside = xasprintf("%s/kv", home);
    folder = inside;
    const int failed = cmocka_run_group_tests(tests, NULL, temporary_folder_teardown);
    free(inside);
    return failed;
}
