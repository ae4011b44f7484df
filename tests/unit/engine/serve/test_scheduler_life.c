// The whole life of schedulers: everything that may be asked of one, by persons and by other programs, at random and
// all at once, on few pages, with drafts, with texts that go to the disk and wake up, and with a device that is lost.
// After every command the KV cache agrees with itself; every answer is the one that its request has alone in a plain
// scheduler; and where all conversations are forgotten every page is free.
//
// As a program: test_scheduler_life [LIVES].
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "tests/unit/sleeper.h"
#include "tests/unit/temporary_folder.h"
#include "tests/unit/xorshift.h"

enum {
    COMMANDS = 2000, // of a life
    CONVERSATIONS = 5,
    CONTEXT = 320,
    MOST_BEGUN = 60,
    START = 1000000000, // nanoseconds
    RUN = 1000000
};

static int lives = 20;
static char *folder;

// ---- what is asked ----

struct wish {
    uint64_t id; // 0: of another answer of the wish before
    int n_prompt, common, n_answers, n_tokens;
    uint64_t prompt_of; // whose prompt it has
    int32_t begun[MOST_BEGUN];
    int n_begun;
    enum read_ahead ahead;
    bool background, scores;
    struct sampling sampling;
};

struct life {
    struct sleeper sleeper;
    struct wish wishes[MOST_REQUESTS];
    uint64_t last, random;
};

static struct { uint64_t scored, accepted, pre_empted, given_up, woken, moved, forks, ahead, finished; } total;

static uint32_t pick(struct life *l, uint32_t n) { return xorshift_below(&l->random, n); }
static uint64_t some_conversation(struct life *l) { return pick(l, CONVERSATIONS + 1); }

static void submit(struct bench *b, const struct wish *w) {
    struct scheduler_request q = bench_ask(w->prompt_of, w->n_prompt, w->common, w->n_tokens);
    q.ids = xrealloc(q.ids, (size_t)(w->n_prompt + w->n_begun) * sizeof *q.ids);
    memcpy(q.ids + w->n_prompt, w->begun, (size_t)w->n_begun * sizeof *q.ids);
    q.id = w->id;
    q.n_ids = w->n_prompt + w->n_begun;
    q.n_begun = w->n_begun;
    q.conversation = 1 + w->id % CONVERSATIONS;
    q.disk_owner = w->id % 8 ? q.conversation : 0;
    q.sampling = w->sampling;
    q.n_answers = w->n_answers;
    q.read_ahead = w->ahead;
    q.background = w->background;
    q.score_prompt = w->scores;
    scheduler_submit(b->scheduler, &q);
}

static struct sampling any_sampling(struct life *l) {
    if (pick(l, 2)) return bench_greedy();
    struct sampling s = sampling_default();
    s.seed = 1 + pick(l, 1000);
    s.temperature = 0.6f;
    s.repeat_penalty = pick(l, 2) ? 1 : 1.05f;
    return s;
}

static void ask(struct life *l, struct wish w) {
    w.id = l->last + 1;
    if (!w.prompt_of) w.prompt_of = w.id;
    w.sampling = any_sampling(l);
    w.background = !w.ahead && pick(l, 2);
    w.scores = !w.ahead && !pick(l, 3);
    l->wishes[w.id] = w;
    l->last += (uint64_t)w.n_answers;
    submit(l->sleeper.bench, &w);
}

static struct wish any_wish(struct life *l) {
    const int n = 1 + (int)pick(l, 250), common = pick(l, 2) ? n : (int)pick(l, (uint32_t)n);
    return (struct wish){
        .n_prompt = n, .common = common, .n_answers = pick(l, 4) ? 1 : 3, .n_tokens = 1 + (int)pick(l, 90)};
}

// From what an earlier answer has said so far, with another token behind it.
static void fork_answer(struct life *l) {
    const uint64_t from = 1 + pick(l, (uint32_t)l->last);
    const struct bench_answer *a = &l->sleeper.bench->answers[from];
    struct wish w = l->wishes[from];
    if (!w.id || w.ahead) return;
    w.n_begun = a->n ? (int)pick(l, (uint32_t)(a->n < MOST_BEGUN ? a->n : MOST_BEGUN)) : 0;
    memcpy(w.begun, a->tokens, (size_t)w.n_begun * sizeof *w.begun);
    w.begun[w.n_begun++] = (int32_t)pick(l, VOCAB);
    w.n_tokens = w.n_begun + (int)pick(l, 40);
    ask(l, w);
    total.forks++;
}

static void read_ahead(struct life *l) {
    struct wish w = any_wish(l);
    w.n_answers = 1;
    w.n_tokens = 0;
    w.ahead = pick(l, 4) ? READ_AHEAD_WORDS : READ_AHEAD_FIND;
    ask(l, w);
}

static void command(struct life *l) {
    struct bench *b = l->sleeper.bench;
    struct scheduler *s = b->scheduler;
    const bool room = l->last + 4 < MOST_REQUESTS;
    const uint32_t what = pick(l, 256);
    if (what < 8 && room) ask(l, any_wish(l));
    else if (what < 14 && room && l->last) fork_answer(l);
    else if (what < 18 && room) read_ahead(l);
    else if (what < 22) scheduler_cancel(s, 1 + pick(l, (uint32_t)l->last + 1));
    else if (what < 26) scheduler_cancel_answer(s, 1 + pick(l, (uint32_t)l->last + 1), (int)pick(l, 3));
    else if (what < 32) scheduler_focus(s, some_conversation(l));
    else if (what < 35) {
        const uint64_t conversation = some_conversation(l);
        scheduler_forget(s, conversation, conversation);
    } else if (what < 37) b->stops = 1;
    else if (what < 38) toy.fail_runs = !b->n_moved && l->random % 4 == 0;
    else if (what < 60) sleeper_take(&l->sleeper, 0);
    else if (what < 90) scheduler_hibernate(s);
    else scheduler_step(s);
}

// ---- what comes of it ----

// The same request alone, where nothing is guessed, saved or found.
static void check_wish(const struct bench *b, struct bench *plain, const struct wish *w) {
    submit(plain, w);
    bench_run(plain);
    for (uint64_t id = w->id; id < w->id + (uint64_t)w->n_answers; id++) {
        const struct bench_answer *a = &b->answers[id], *alone = &plain->answers[id];
        assert_int_equal(alone->state, REQUEST_FINISHED);
        if (a->state == REQUEST_FINISHED) {
            assert_int_equal(a->n, alone->n);
            assert_int_equal(a->reason, alone->reason);
            assert_int_equal(a->n_scored, alone->n_scored);
            total.scored += (uint64_t)a->n_scored;
            total.finished++;
        } else {
            assert_int_equal(a->state, REQUEST_CANCELLED);
            assert_true(a->n <= alone->n && a->n_scored <= alone->n_scored);
        }
        assert_memory_equal(a->scored, alone->scored, (size_t)a->n_scored * sizeof *a->scored);
        assert_memory_equal(a->scores, alone->scores, (size_t)a->n_scored * sizeof *a->scores);
        assert_memory_equal(a->tokens, alone->tokens, (size_t)a->n * sizeof *a->tokens);
    }
    const bool plain_text = !(w->sampling.temperature > 0) && !w->n_begun && !w->ahead;
    for (int i = 0; plain_text && i < w->n_answers; i++)
        bench_assert_answer(b, w->id + (uint64_t)i, w->id, w->n_prompt, w->common, b->answers[w->id + (uint64_t)i].n);
    scheduler_forget(plain->scheduler, 1 + w->id % CONVERSATIONS, 0);
}

static void check_wishes(const struct life *l, int habit) {
    struct bench *plain = bench_open((struct bench_options){.n_pages = 64, .context = CONTEXT});
    toy.habit = habit;
    for (uint64_t id = 1; id <= l->last; id++) {
        const struct wish *w = &l->wishes[id];
        if (!w->id) continue;
        if (w->ahead) total.ahead += l->sleeper.bench->answers[id].state == REQUEST_FINISHED;
        else check_wish(l->sleeper.bench, plain, w);
    }
    bench_close(plain);
}

static void check_pages(const struct life *l) {
    static struct engine_metrics f;
    struct bench *b = l->sleeper.bench;
    scheduler_metrics(b->scheduler, &f);
    total.woken += (uint64_t)f.woken_tokens;
    for (uint64_t i = 0; i <= CONVERSATIONS; i++) {
        scheduler_forget(b->scheduler, i, 0);
        bench_check(b);
    }
    scheduler_metrics(b->scheduler, &f);
    assert_int_equal(f.pages_free, f.n_pages);
}

// ---- lives ----

// As the model that answers, in a fraction of the time.
static bool quick_run(struct backend *b, const struct batch *batch, struct backend_result *out, struct status *st) {
    const int run = toy.run_ns, row = toy.row_ns;
    toy.run_ns = RUN / 50;
    toy.row_ns = 0;
    const bool ok = toy_backend.run(b, batch, out, st);
    toy.run_ns = run;
    toy.row_ns = row;
    return ok;
}

// Every one with its own mixture: pages, places, what a row takes, how often a text repeats itself, whether a small
// model writes ahead, whether there is somewhere to go on where the device is lost.
static void live(uint64_t seed) {
    static struct backend_ops quick;
    static struct life l;
    struct bench_options o = {.n_pages = 12 + (int)(seed % 20),
                              .context = CONTEXT,
                              .chunk = 24,
                              .places = seed % 4 ? 0 : 3,
                              .drafts = seed % 5 > 0};
    const int habit = 2 + (int)(seed % 7);
    quick = toy_backend;
    quick.run = quick_run;
    if (seed % 3 == 0) o.drafter = &quick;
    if (seed % 2) o.fallback = placement_on(&toy_backend, 0);
    l = (struct life){.random = seed * 0x9e3779b97f4a7c15u + 1};
    sleeper_open(&l.sleeper, o, folder, seed % 6 ? 40000 + 1000 * seed : 0);
    clock_freeze(START);
    toy.run_ns = RUN;
    toy.row_ns = seed % 4 < 2 ? 0 : RUN / 10;
    toy.habit = habit;
    for (int i = 0; i < COMMANDS; i++) {
        command(&l);
        bench_check(l.sleeper.bench);
        if (!o.fallback.n) toy.fail_runs = 0;
    }
    toy.fail_runs = 0;
    sleeper_run(&l.sleeper);
    const struct bench *b = l.sleeper.bench;
    total.accepted += b->metrics.accepted_tokens;
    total.pre_empted += b->metrics.preemptions;
    total.given_up += (uint64_t)toy.given_up;
    total.moved += (uint64_t)b->n_moved;
    check_pages(&l);
    check_wishes(&l, habit);
    clock_freeze(0);
    sleeper_close(&l.sleeper);
}

static void test_whatever_is_asked_in_whatever_order(void **state) {
    (void)state;
    for (int i = 1; i <= lives; i++) live((uint64_t)i);
    print_message("%d commands: %d answers finished, %d forked, %d read ahead; %d tokens drafted right, %d woken; %d "
                  "pre-empted, %d steps given up, %d devices lost\n",
                  lives * COMMANDS, (int)total.finished, (int)total.forks, (int)total.ahead, (int)total.accepted,
                  (int)total.woken, (int)total.pre_empted, (int)total.given_up, (int)total.moved);
    assert_true(total.finished > 400);
    assert_true(total.scored > 1000);
    assert_true(total.forks > 100);
    assert_true(total.ahead > 50);
    assert_true(total.accepted > 500);
    assert_true(total.woken > 500);
    assert_true(total.pre_empted > 100);
    assert_true(total.given_up > 20);
    assert_true(total.moved > 2);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_whatever_is_asked_in_whatever_order)};
    const char *home = temporary_folder_make();
    if (argc > 1 && atoi(argv[1]) > lives) lives = atoi(argv[1]);
    if (!home) return 1;
    folder = xasprintf("%s/kv", home);
    const int failed = cmocka_run_group_tests(tests, NULL, temporary_folder_teardown);
    free(folder);
    return failed;
}
