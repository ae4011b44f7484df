// A person beside other programs: who is served first, what is left for the others and how they share it, whose pages
// and places are taken, and which steps are given up.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "tests/unit/scheduler_bench.h"

enum { START = 1000000000, RUN = 1000000, PROGRAMS = 8, PERSON = 100 };

static void submit_as(struct bench *b, uint64_t id, bool background, int n_prompt, int common, int n_answer) {
    struct scheduler_request q = bench_ask(id, n_prompt, common, n_answer);
    q.background = background;
    scheduler_submit(b->scheduler, &q);
}

static void submit_program(struct bench *b, uint64_t id, int n_prompt, int n_answer) {
    submit_as(b, id, true, n_prompt, 0, n_answer);
}

static void step(struct bench *b) {
    scheduler_step(b->scheduler);
    bench_check(b);
}

// By a clock that stands still between steps, of RUN nanoseconds and so many for each row.
static struct bench *open_timed(struct bench_options o, int row_ns) {
    struct bench *b = bench_open(o);
    clock_freeze(START);
    toy.run_ns = RUN;
    toy.row_ns = row_ns;
    return b;
}

static void close_timed(struct bench *b) {
    clock_freeze(0);
    bench_close(b);
}

// ---- order, places, pages ----

static void test_a_person_is_served_first(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 128, .chunk = 16});
    for (uint64_t id = 1; id <= 3; id++) submit_program(b, id, 64, 5);
    step(b);
    bench_submit(b, 4, 64, 0, 5);
    bench_run(b);
    for (uint64_t id = 1; id <= 3; id++) assert_true(b->answers[4].answered < b->answers[id].answered);
    assert_true(b->answers[4].started < b->answers[2].answered);
    for (uint64_t id = 1; id <= 4; id++) bench_assert_text_alone(b, id, 64, 0, 5);
    bench_close(b);
}

// Nor does the conversation on screen make a program of a person, or the other way round.
static void test_focus_counts_among_persons_only(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 128, .chunk = 16, .places = 1});
    scheduler_focus(b->scheduler, 1);
    submit_program(b, 1, 64, 5);
    bench_submit(b, 2, 64, 0, 5);
    bench_run(b);
    assert_true(b->answers[2].ended < b->answers[1].answered);
    bench_close(b);
}

static void test_a_person_takes_the_place_of_a_program(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 128, .places = 2});
    submit_program(b, 1, 20, 40);
    submit_program(b, 2, 20, 40);
    for (int i = 0; i < 5; i++) step(b);
    bench_submit(b, 3, 20, 0, 30);
    step(b);
    assert_int_equal(b->answers[3].state, REQUEST_DECODING);
    submit_program(b, 4, 20, 10); // takes nobody's
    bench_submit(b, 5, 20, 0, 10);
    bench_submit(b, 6, 20, 0, 10); // nor does a person that of persons
    step(b);
    assert_int_equal(b->answers[6].state, REQUEST_PENDING);
    bench_run(b);
    assert_int_equal(b->metrics.preemptions, 2);
    assert_int_equal(b->answers[3].times_pending, 1);
    assert_true(b->answers[6].ended < b->answers[1].ended && b->answers[1].ended < b->answers[4].ended);
    const int n[] = {0, 40, 40, 30, 10, 10, 10};
    for (uint64_t id = 1; id <= 6; id++) bench_assert_text_alone(b, id, 20, 0, n[id]);
    bench_close(b);
}

// The program was there before, and both grow.
static void test_a_person_takes_the_pages_of_a_program(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 8});
    submit_program(b, 1, 100, 100);
    for (int i = 0; i < 10; i++) step(b);
    bench_submit(b, 2, 90, 0, 100);
    step(b);
    assert_int_equal(b->answers[2].state, REQUEST_DECODING);
    bench_run(b);
    assert_int_equal(b->answers[2].times_pending, 1);
    assert_int_equal(b->answers[1].times_pending, 2);
    assert_true(b->answers[2].ended < b->answers[1].ended);
    bench_assert_text_alone(b, 1, 100, 0, 100);
    bench_assert_text_alone(b, 2, 90, 0, 100);
    bench_close(b);
}

// Both fit at first; the one that has to go is the program, though it was there before.
static void test_a_program_gives_way_when_a_person_grows(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 8});
    submit_program(b, 1, 60, 100);
    for (int i = 0; i < 3; i++) step(b);
    bench_submit(b, 2, 60, 0, 120);
    bench_run(b);
    assert_int_equal(b->answers[2].times_pending, 1);
    assert_true(b->answers[1].times_pending > 1);
    bench_assert_text_alone(b, 1, 60, 0, 100);
    bench_assert_text_alone(b, 2, 60, 0, 120);
    bench_close(b);
}

// A person reads an answer while programs use page after page: the chat on screen goes on where it was.
static void test_the_chat_on_screen_stays_cached(void **state) {
    (void)state;
    for (uint64_t focus = 1; focus <= 2; focus++) {
        struct bench *b = bench_open((struct bench_options){.n_pages = 16});
        bench_submit(b, 1, 120, 100, 10);
        bench_run(b);
        scheduler_focus(b->scheduler, focus);
        for (uint64_t id = 10; id < 20; id++) submit_program(b, id, 100, 10);
        bench_run(b);
        struct scheduler_request next = bench_ask(3, 140, 100, 10);
        next.conversation = 1;
        scheduler_submit(b->scheduler, &next);
        bench_run(b);
        assert_int_equal(b->answers[3].n_reused, focus == 1 ? 100 : 0);
        bench_assert_text_alone(b, 3, 140, 100, 10);
        for (uint64_t id = 10; id < 20; id++) bench_assert_text_alone(b, id, 100, 0, 10);
        bench_close(b);
    }
}

// Where all that is cached is on screen it goes, too.
static void test_a_program_has_all_pages_where_it_needs_them(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 8});
    scheduler_focus(b->scheduler, 1);
    bench_submit(b, 1, 150, 0, 10);
    bench_run(b);
    submit_program(b, 2, 100, 150);
    bench_run(b);
    bench_assert_text_alone(b, 2, 100, 0, 150);
    bench_close(b);
}

// A program computes what a person's prompt begins with: it has the person's place in the meantime.
static void test_a_person_lends_its_place_to_what_it_waits_for(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 256, .chunk = 32});
    submit_as(b, 1, true, 640, 0, 5);
    submit_as(b, 2, true, 1200, 1200, 5);
    step(b);
    submit_as(b, 3, false, 601, 600, 5);
    bench_run(b);
    assert_true(b->answers[3].answered < b->answers[1].answered);
    assert_int_equal(b->answers[3].n_reused, 600);
    bench_assert_text_alone(b, 3, 601, 600, 5);
    bench_close(b);
}

// ---- what is left for others ----

struct outcome {
    double first, rest; // seconds: to a person's first token, and for the others
    int tokens;         // of the programs meanwhile
};

// A person asks while so many programs write.
static struct outcome ask_beside(int n_programs, int n_prompt, int n_answer, int row_ns) {
    struct bench *b = open_timed((struct bench_options){.n_pages = 1024, .context = 4096}, row_ns);
    struct outcome o = {0};
    bench_submit(b, 99, 200, 0, 2); // so that speeds are known
    bench_run(b);
    for (uint64_t id = 1; id <= (uint64_t)n_programs; id++) submit_program(b, id, 20, 1500);
    for (int i = 0; i < 40; i++) step(b);
    for (int i = 1; i <= n_programs; i++) o.tokens -= b->answers[i].n;
    const double asked = clock_seconds();
    bench_submit(b, PERSON, n_prompt, 0, n_answer);
    while (!b->answers[PERSON].answered) step(b);
    const double answered = clock_seconds();
    while (b->answers[PERSON].state < REQUEST_FINISHED) step(b);
    for (int i = 1; i <= n_programs; i++) o.tokens += b->answers[i].n;
    o.first = answered - asked;
    o.rest = clock_seconds() - answered;
    scheduler_cancel_all(b->scheduler);
    bench_assert_text_alone(b, PERSON, n_prompt, 0, n_answer);
    close_timed(b);
    return o;
}

// Whatever a row costs: nothing, a tenth of a step, or as much as all else in it, or as much as ten steps.
static void test_a_person_has_most_of_every_step(void **state) {
    (void)state;
    const int rows[] = {0, RUN / 10, RUN, 10 * RUN};
    for (int i = 0; i < 4; i++) {
        const struct outcome alone = ask_beside(0, 200, 400, rows[i]);
        const struct outcome beside = ask_beside(PROGRAMS, 200, 400, rows[i]);
        assert_true(beside.first <= 1.35 * alone.first);
        assert_true(beside.rest <= 1.35 * alone.rest);
        assert_true(beside.tokens >= 400 / 5); // and the others go on
        if (!rows[i]) assert_true(beside.tokens >= 400 * PROGRAMS * 8 / 10);
    }
}

// Rather one row in each step than many in one.
static void test_no_step_is_long(void **state) {
    (void)state;
    struct bench *b = open_timed((struct bench_options){.n_pages = 256}, RUN / 4);
    for (uint64_t id = 1; id <= PROGRAMS; id++) submit_program(b, id, 20, 600);
    bench_submit(b, PERSON, 20, 0, 300);
    while (b->answers[PERSON].n < 20) step(b);
    int with = 0;
    for (int i = 0; i < 200; i++) {
        const double start = clock_seconds();
        step(b);
        const double rows = (clock_seconds() - start) / (RUN * 1e-9) * 4 - 4;
        assert_true(rows < 2.5);
        with += rows > 1.5;
    }
    assert_true(with >= 160);
    close_timed(b);
}

// However long persons write: all get their turns, those that came late and those with long prompts too.
static void test_no_program_starves(void **state) {
    (void)state;
    struct bench *b = open_timed((struct bench_options){.n_pages = 1024, .context = 4096}, RUN);
    for (uint64_t id = 1; id <= 4; id++) submit_program(b, id, 20, 1500);
    for (int i = 0; i < 10; i++) step(b);
    submit_program(b, 5, 100, 10);
    bench_submit(b, PERSON, 100, 0, 2000);
    while (b->answers[PERSON].n < 1000) step(b);
    submit_program(b, 6, 20, 1500);
    const int before = b->answers[1].n;
    for (uint64_t id = 7; b->answers[PERSON].n < 2000; id++) { // short ones come all the time
        if (id < 60) submit_program(b, id, 3, 1);
        for (int i = 0; i < 16 && b->answers[PERSON].n < 2000; i++) step(b);
    }
    assert_int_equal(b->answers[5].n, 10);
    assert_true(b->answers[1].n > before + 20);
    for (int id = 2; id <= 4; id++) assert_in_range(b->answers[id].n, b->answers[1].n - 1, b->answers[1].n + 1);
    assert_true(b->answers[6].n > 10);
    bench_run(b);
    for (uint64_t id = 1; id <= 4; id++) bench_assert_text_alone(b, id, 20, 0, 1500);
    bench_assert_text_alone(b, 5, 100, 0, 10);
    bench_assert_text_alone(b, PERSON, 100, 0, 2000);
    close_timed(b);
}

// What becomes of the same requests, as persons' or programs'.
static void run_all_as(bool background, struct bench_answer *answers, int *runs, double *seconds) {
    struct bench *b =
        open_timed((struct bench_options){.n_pages = 40, .context = 700, .drafts = true, .places = 6}, RUN / 8);
    toy.habit = 6;
    for (uint64_t id = 1; id <= 10; id++) {
        submit_as(b, id, background, 20 + 50 * (int)id, id % 2 ? 40 : 0, 30 + 9 * (int)id);
        for (int i = 0; i < 5; i++) step(b);
    }
    bench_run(b);
    memcpy(answers, b->answers, 16 * sizeof *answers);
    *runs = toy.runs;
    *seconds = clock_seconds();
    close_timed(b);
}

static void test_without_persons_programs_have_all(void **state) {
    (void)state;
    static struct bench_answer as_programs[16], as_persons[16];
    int runs[2];
    double seconds[2];
    run_all_as(true, as_programs, &runs[0], &seconds[0]);
    run_all_as(false, as_persons, &runs[1], &seconds[1]);
    assert_true(runs[0] <= runs[1] && seconds[0] <= seconds[1]); // their prompts have larger shares
    for (int id = 1; id <= 10; id++) {
        const struct bench_answer *a = &as_programs[id], *b = &as_persons[id];
        assert_int_equal(a->n, b->n);
        assert_memory_equal(a->tokens, b->tokens, (size_t)a->n * sizeof *a->tokens);
    }
}

// What they draft costs time, too; a person's drafts are made beside their rows.
static void test_only_a_person_drafts(void **state) {
    (void)state;
    struct bench *b = open_timed((struct bench_options){.n_pages = 512, .context = 2048, .drafts = true}, RUN / 50);
    toy.habit = 1000;
    for (uint64_t id = 1; id <= 3; id++) submit_program(b, id, 20, 1500);
    for (int i = 0; i < 60; i++) step(b);
    bench_submit(b, PERSON, 20, 0, 600);
    while (!b->answers[PERSON].answered) step(b);
    int accepted = -b->answers[1].n_accepted, n = -b->answers[1].n;
    while (b->answers[PERSON].state < REQUEST_FINISHED) step(b);
    accepted += b->answers[1].n_accepted, n += b->answers[1].n;
    assert_true(b->answers[PERSON].n_accepted > 100);
    assert_true(n > 10);
    assert_int_equal(accepted, 0);
    bench_assert_text_alone(b, PERSON, 20, 0, 600);
    close_timed(b);
}

// A message is read while it is written, beside programs as without them, and its answer begins as soon.
static void test_what_a_person_writes_is_read_ahead(void **state) {
    (void)state;
    double first[2];
    for (int programs = 0; programs < 2; programs++) {
        struct bench *b = open_timed((struct bench_options){.n_pages = 512, .context = 2048}, RUN / 4);
        bench_submit(b, 99, 200, 0, 30);
        bench_run(b);
        for (uint64_t id = 1; id <= (programs ? PROGRAMS : 0); id++) submit_program(b, id, 100, 1000);
        for (int i = 0; i < 40; i++) step(b);
        struct scheduler_request ahead = bench_ask(PERSON, 200, 200, 0);
        ahead.read_ahead = READ_AHEAD_WORDS;
        scheduler_submit(b->scheduler, &ahead);
        const int before = b->answers[1].n;
        int steps = 0;
        while (b->answers[PERSON].state < REQUEST_FINISHED) {
            step(b);
            if (++steps % 10 == 0 && programs) submit_program(b, 10 + (uint64_t)steps / 10, 50, 5);
        }
        if (programs) assert_int_equal(b->answers[1].n, before + steps);
        assert_true(steps < 150);
        struct scheduler_request sent = bench_ask(PERSON + 1, 202, 200, 20);
        scheduler_submit(b->scheduler, &sent);
        const double asked = clock_seconds();
        while (!b->answers[PERSON + 1].answered) step(b);
        first[programs] = clock_seconds() - asked;
        assert_int_equal(b->answers[PERSON + 1].n_reused, 200);
        scheduler_cancel_all(b->scheduler);
        close_timed(b);
    }
    assert_true(first[1] <= 1.35 * first[0]);
}

// ---- steps that are given up ----

static int looks;

static void look_at_programs(struct bench *b) {
    looks++;
    assert_true(scheduler_overtakes(b->scheduler, 9, false, 0));
    assert_false(scheduler_overtakes(b->scheduler, 9, true, 0));
    assert_false(scheduler_overtakes(b->scheduler, 9, true, 9));
    assert_false(scheduler_computes(b->scheduler, 1)); // the other's next token would come later
}

static void look_at_both(struct bench *b) {
    looks++;
    assert_false(scheduler_overtakes(b->scheduler, 9, false, 0));
    assert_false(scheduler_overtakes(b->scheduler, PERSON, false, PERSON)); // after its own
    assert_true(scheduler_overtakes(b->scheduler, 9, false, 9));
    assert_true(scheduler_computes(b->scheduler, PERSON));
    assert_false(scheduler_computes(b->scheduler, 1)); // the person would wait longer
}

static void test_programs_steps_are_given_up_for_a_person(void **state) {
    (void)state;
    struct bench *b = open_timed((struct bench_options){.n_pages = 64, .chunk = 48}, RUN / 10);
    bench_submit(b, 99, 48, 0, 2);
    bench_run(b);
    submit_program(b, 1, 40, 50);
    submit_program(b, 2, 40, 50);
    while (b->answers[1].n < 4) step(b);
    looks = 0;
    b->in_step = look_at_programs;
    step(b);
    assert_int_equal(looks, 1);
    b->in_step = look_at_both;
    bench_submit(b, PERSON, 100, 0, 20);
    step(b);
    assert_int_equal(looks, 2);
    b->in_step = NULL;
    while (b->answers[PERSON].state != REQUEST_DECODING) step(b);
    looks = 0;
    b->in_step = look_at_both;
    step(b); // is short, and not to be given up for anybody
    assert_int_equal(looks, 0);
    b->in_step = NULL;
    bench_run(b);
    close_timed(b);
}

// Also those in which drafts are rows.
static void test_texts_of_steps_given_up_are_the_same(void **state) {
    (void)state;
    struct bench *b = open_timed((struct bench_options){.n_pages = 64, .chunk = 20, .drafts = true}, 0);
    toy.habit = 1000;
    for (uint64_t id = 1; id <= 5; id++) submit_program(b, id, 30, 600);
    uint64_t n = 0;
    for (int i = 0; scheduler_step(b->scheduler); i++) {
        bench_check(b);
        b->stops = i % 2;
        if (i % 20 == 19 && n < 8) bench_submit(b, PERSON + n++, 50, 0, 20);
    }
    assert_true(toy.given_up >= 20);
    assert_true(n >= 3);
    assert_true(b->metrics.accepted_tokens > 50);
    for (uint64_t id = 1; id <= 5; id++) bench_assert_text_alone(b, id, 30, 0, 600);
    for (uint64_t id = PERSON; id < PERSON + n; id++) bench_assert_text_alone(b, id, 50, 0, 20);
    close_timed(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_person_is_served_first),
        cmocka_unit_test(test_focus_counts_among_persons_only),
        cmocka_unit_test(test_a_person_takes_the_place_of_a_program),
        cmocka_unit_test(test_a_person_takes_the_pages_of_a_program),
        cmocka_unit_test(test_a_program_gives_way_when_a_person_grows),
        cmocka_unit_test(test_the_chat_on_screen_stays_cached),
        cmocka_unit_test(test_a_program_has_all_pages_where_it_needs_them),
        cmocka_unit_test(test_a_person_lends_its_place_to_what_it_waits_for),
        cmocka_unit_test(test_a_person_has_most_of_every_step),
        cmocka_unit_test(test_no_step_is_long),
        cmocka_unit_test(test_no_program_starves),
        cmocka_unit_test(test_without_persons_programs_have_all),
        cmocka_unit_test(test_only_a_person_drafts),
        cmocka_unit_test(test_what_a_person_writes_is_read_ahead),
        cmocka_unit_test(test_programs_steps_are_given_up_for_a_person),
        cmocka_unit_test(test_texts_of_steps_given_up_are_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
