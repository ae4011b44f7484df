// Texts that sleep on the disk while scheduler and store are closed: woken they go on as if they had never slept.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "tests/unit/opened_model.h"
#include "tests/unit/sleeper.h"
#include "tests/unit/temporary_folder.h"
#include "tests/unit/tiny_families.h"
#include "tests/unit/tiny_model.h"

enum { PROMPT = 150, ANSWER = 40, MORE = 20, OWNER = 9 };

static char *folder;

// ---- every model ----

struct text {
    int32_t tokens[MOST_TOKENS];
    int n;
};

static void ask(struct sleeper *l, const struct text *t, uint64_t id, int n) {
    struct sampling warm = sampling_default();
    warm.seed = 3;
    struct scheduler_request q = {.id = id,
                                  .conversation = 1,
                                  .disk_owner = OWNER,
                                  .ids = xmalloc((size_t)t->n * sizeof *t->tokens),
                                  .n_ids = t->n,
                                  .sampling = warm,
                                  .max_tokens = n};
    memcpy(q.ids, t->tokens, (size_t)t->n * sizeof *t->tokens);
    scheduler_submit(l->bench->scheduler, &q);
}

static void go_on(struct sleeper *l, struct text *t, uint64_t id, int n) {
    ask(l, t, id, n);
    sleeper_run(l);
    const struct bench_answer *a = &l->bench->answers[id];
    assert_int_equal(a->state, REQUEST_FINISHED);
    memcpy(t->tokens + t->n, a->tokens, (size_t)a->n * sizeof *a->tokens);
    t->n += a->n;
}

static struct text begun(const struct model *m) {
    struct text t = {.n = PROMPT};
    for (int i = 0; i < PROMPT; i++) t.tokens[i] = (i * 7 + i * i) % m->spec.n_vocab;
    return t;
}

// The same two turns in one life and in two.
static void compare(struct bench_options o, const char *name) {
    struct sleeper l;
    struct text awake = begun(o.model), woken = begun(o.model);
    temporary_folder_remove(folder);
    o.n_pages = 16;
    o.n_vocab = o.model->spec.n_vocab;
    sleeper_open(&l, o, folder, 0);
    go_on(&l, &awake, 1, ANSWER);
    go_on(&l, &awake, 2, MORE);
    sleeper_close(&l);
    sleeper_open(&l, o, folder, 64 << 20);
    go_on(&l, &woken, 1, ANSWER);
    sleeper_close(&l);
    sleeper_open(&l, o, folder, 64 << 20);
    go_on(&l, &woken, 2, MORE);
    const int found = l.bench->answers[2].n_reused;
    sleeper_close(&l);
    if (found != (PROMPT + ANSWER - 1) / KV_PAGE_TOKENS * KV_PAGE_TOKENS) fail_msg("%s: %d tokens found", name, found);
    if (awake.n != woken.n || memcmp(awake.tokens, woken.tokens, (size_t)awake.n * sizeof *awake.tokens))
        fail_msg("%s: another text", name);
}

static struct placement_plan halves(const struct model *m) {
    const int n = m->spec.n_layer;
    return (struct placement_plan){.parts = {{&cpu_backend, 0, 0, n / 2, 0}, {&cpu_backend, 0, n / 2, n, 0}}, .n = 2};
}

// On one backend and on two, with each type of KV cache in turn, and exact.
static void test_every_family(void **state) {
    (void)state;
    int compared = 0;
    for (int i = 0; i < tiny_family_count; i++) {
        struct tiny_shape shape = tiny_families[i];
        struct opened_model s;
        size_t size;
        if (shape.n_layer > 8) continue;
        shape.n_context = 512;
        void *bytes = tiny_shape_bytes(&shape, &size);
        opened_model_open(&s, shape.name, bytes, size);
        struct bench_options o = {.model = &s.model, .placement = placement_on(&cpu_backend, 0)};
        o.backend.kv_type = (enum kv_type)(i % KV_TYPES);
        compare(o, shape.name);
        if (s.model.spec.n_layer > 1) {
            o.placement = halves(&s.model);
            o.backend.kv_type = (enum kv_type)((i + 1) % KV_TYPES);
            o.backend.exact = i % 3 == 0;
            compare(o, shape.name);
        }
        opened_model_close(&s);
        compared++;
    }
    assert_true(compared > 20);
}

static void test_every_format(void **state) {
    (void)state;
    for (enum block_id format = 0; format < BLOCK_FORMAT_COUNT; format++) {
        struct opened_model s;
        size_t size;
        const int wide = block_formats[format].elements > 64 ? 256 : 64;
        void *bytes = tiny_model_bytes((struct tiny_model_options){.format = format, .n_embd = wide}, &size);
        opened_model_open(&s, block_formats[format].name, bytes, size);
        struct bench_options o = {.model = &s.model, .placement = placement_on(&cpu_backend, 0)};
        o.backend.kv_type = (enum kv_type)(format % KV_TYPES);
        compare(o, block_formats[format].name);
        opened_model_close(&s);
    }
}

// What is on its way from the disk when its chat is deleted is not kept.
static void test_forgotten_while_it_wakes(void **state) {
    (void)state;
    struct opened_model m;
    struct sleeper l;
    struct engine_metrics metrics = {0};
    size_t size;
    void *bytes = tiny_model_bytes((struct tiny_model_options){0}, &size);
    opened_model_open(&m, "forgotten", bytes, size);
    struct text t = begun(&m.model);
    const struct bench_options o = {
        .model = &m.model, .placement = placement_on(&cpu_backend, 0), .n_pages = 16, .n_vocab = m.model.spec.n_vocab};
    temporary_folder_remove(folder);
    sleeper_open(&l, o, folder, 64 << 20);
    go_on(&l, &t, 1, ANSWER);
    sleeper_close(&l);
    sleeper_open(&l, o, folder, 64 << 20);
    ask(&l, &t, 2, MORE);
    assert_false(scheduler_step(l.bench->scheduler)); // it waits
    assert_true(sleeper_take(&l, 60000));             // has looked, and loads
    scheduler_forget(l.bench->scheduler, 1, OWNER);
    sleeper_run(&l);
    assert_int_equal(l.bench->answers[2].state, REQUEST_FINISHED);
    scheduler_metrics(l.bench->scheduler, &metrics);
    assert_int_equal(metrics.woken_tokens, 0);
    assert_int_equal(metrics.pages_kept, 0);
    sleeper_close(&l);
    opened_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_family),
        cmocka_unit_test(test_every_format),
        cmocka_unit_test(test_forgotten_while_it_wakes),
    };
    const char *home = temporary_folder_make();
    if (!home) return 1;
    folder = xasprintf("%s/kv", home);
    const int failed = cmocka_run_group_tests(tests, NULL, temporary_folder_teardown);
    free(folder);
    return failed;
}
