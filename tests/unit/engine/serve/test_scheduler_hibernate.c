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
#include "engine/base/queue.h"
#include "tests/unit/opened_model.h"
#include "tests/unit/scheduler_bench.h"
#include "tests/unit/temporary_folder.h"
#include "tests/unit/tiny_families.h"
#include "tests/unit/tiny_model.h"

enum { PROMPT = 150, ANSWER = 40, MORE = 20, OWNER = 9 };

static char *folder;

struct sleeper { // a bench whose texts go to the disk
    struct queue jobs;
    struct hibernate *store; // NULL: nobody sleeps
    struct bench *bench;
};

static void on_done(void *context, struct hibernate_job *job) { queue_push(context, &job); }

static void sleeper_open(struct sleeper *l, struct bench_options o, uint64_t budget) {
    struct status st = {0};
    assert_true(queue_open(&l->jobs, sizeof(struct hibernate_job *), &st));
    const struct hibernate_params p = {.folder = folder, .budget = budget, .done = on_done, .context = &l->jobs};
    l->store = budget ? hibernate_open(&p, &st) : NULL;
    o.hibernation.store = l->store;
    l->bench = bench_open(o);
}

// All that is computed is saved first.
static void sleeper_close(struct sleeper *l) {
    scheduler_cancel_all(l->bench->scheduler);
    if (l->store) scheduler_hibernate_all(l->bench->scheduler);
    hibernate_close(l->store);
    bench_close(l->bench);
    for (struct hibernate_job *job; queue_pop(&l->jobs, &job);) hibernate_job_free(job);
    queue_close(&l->jobs);
}

static bool take_job(struct sleeper *l, int timeout_ms) {
    struct hibernate_job *job;
    if (!queue_wait(&l->jobs, &job, timeout_ms)) return false;
    scheduler_hibernated(l->bench->scheduler, job);
    bench_check(l->bench);
    return true;
}

static void sleeper_run(struct sleeper *l) {
    while (!scheduler_idle(l->bench->scheduler)) {
        if (!scheduler_step(l->bench->scheduler) && !take_job(l, 60000)) fail_msg("nothing happens for a minute");
        bench_check(l->bench);
    }
}

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
    sleeper_open(&l, o, 0);
    go_on(&l, &awake, 1, ANSWER);
    go_on(&l, &awake, 2, MORE);
    sleeper_close(&l);
    sleeper_open(&l, o, 64 << 20);
    go_on(&l, &woken, 1, ANSWER);
    sleeper_close(&l);
    sleeper_open(&l, o, 64 << 20);
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
    sleeper_open(&l, o, 64 << 20);
    go_on(&l, &t, 1, ANSWER);
    sleeper_close(&l);
    sleeper_open(&l, o, 64 << 20);
    ask(&l, &t, 2, MORE);
    assert_false(scheduler_step(l.bench->scheduler)); // it waits
    assert_true(take_job(&l, 60000));                 // has looked, and loads
    scheduler_forget(l.bench->scheduler, 1, OWNER);
    sleeper_run(&l);
    assert_int_equal(l.bench->answers[2].state, REQUEST_FINISHED);
    scheduler_metrics(l.bench->scheduler, &metrics);
    assert_int_equal(metrics.woken_tokens, 0);
    assert_int_equal(metrics.pages_kept, 0);
    sleeper_close(&l);
    opened_model_close(&m);
}

// ---- whatever comes ----

struct life {
    struct sleeper sleeper;
    uint32_t random;
};

static uint32_t pick(struct life *l, uint32_t n) {
    l->random = l->random * 1664525u + 1013904223u;
    return (l->random >> 8) % n;
}

static void submit(struct life *l) {
    struct bench *b = l->sleeper.bench;
    const uint64_t id = b->last + 1;
    const int n = 1 + (int)pick(l, 250), common = pick(l, 2) ? n : (int)pick(l, 200);
    struct scheduler_request q = bench_ask(id, n, common, (int)pick(l, 60) + 1);
    q.conversation = q.disk_owner = 1 + id % 5;
    if (!pick(l, 8)) q.disk_owner = 0;
    q.n_answers = pick(l, 4) ? 1 : 3;
    bench_note(b, &q, n, common);
    scheduler_submit(b->scheduler, &q);
}

static void command(struct life *l) {
    const struct bench *b = l->sleeper.bench;
    struct scheduler *s = b->scheduler;
    const uint32_t what = pick(l, 256);
    if (what < 12 && bench_has_room(b)) submit(l);
    else if (what < 18) scheduler_cancel(s, 1 + pick(l, (uint32_t)b->last + 1));
    else if (what < 24) scheduler_focus(s, pick(l, 6));
    else if (what < 28) {
        const uint64_t conversation = pick(l, 6);
        scheduler_forget(s, conversation, conversation);
    } else if (what < 60) take_job(&l->sleeper, 0);
    else if (what < 90) scheduler_hibernate(s);
    else scheduler_step(s);
}

// Engines come and go over one folder with little room; each answer is the beginning of its text alone, whether it was
// sooner to read or to compute what came before.
static void test_random_lives(void **state) {
    (void)state;
    temporary_folder_remove(folder);
    for (uint32_t seed = 1; seed <= 10; seed++) {
        struct life l = {.random = seed};
        sleeper_open(&l.sleeper, (struct bench_options){.n_pages = 12 + (int)seed, .context = 320, .chunk = 24},
                     40000 + 4000 * seed);
        for (int i = 0; i < 1000; i++) {
            command(&l);
            bench_check(l.sleeper.bench);
        }
        sleeper_run(&l.sleeper);
        bench_assert_noted(l.sleeper.bench);
        sleeper_close(&l.sleeper);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_family),
        cmocka_unit_test(test_every_format),
        cmocka_unit_test(test_forgotten_while_it_wakes),
        cmocka_unit_test(test_random_lives),
    };
    const char *home = temporary_folder_make();
    if (!home) return 1;
    folder = xasprintf("%s/kv", home);
    const int failed = cmocka_run_group_tests(tests, NULL, temporary_folder_teardown);
    free(folder);
    return failed;
}
