// Drafts over the toy backend, by a clock that runs stand still between: the text is what it is without them, they are
// used where they pay, and nobody pays for another's.
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
#include "tests/unit/scheduler_bench.h"

enum { START = 1000000000, RUN = 1000000 }; // nanoseconds

// Whose text mostly repeats itself, with a step of RUN and so much for each of its rows.
static struct bench *open_drafts(struct bench_options o, int row_ns, int habit) {
    struct bench *b = bench_open(o);
    clock_freeze(START);
    toy.run_ns = RUN;
    toy.row_ns = row_ns;
    toy.habit = habit;
    return b;
}

static void close_drafts(struct bench *b) {
    clock_freeze(0);
    bench_close(b);
}

static void test_repeated_text_comes_several_tokens_a_step(void **state) {
    (void)state;
    struct bench *b = open_drafts((struct bench_options){.n_pages = 64, .drafts = true}, 0, 1 << 20);
    bench_submit(b, 1, 40, 0, 800);
    bench_run(b);
    bench_assert_text_alone(b, 1, 40, 0, 800);
    assert_int_equal(b->answers[1].reason, FINISH_LENGTH);
    assert_true(b->metrics.steps < 250);
    assert_int_equal(b->metrics.decode_tokens, 800);
    assert_int_equal(b->metrics.next_token.count, METRICS_SAMPLES);
    assert_true(b->metrics.accepted_tokens > 600);
    assert_true(b->metrics.accepted_tokens <= b->metrics.drafted_tokens);
    assert_int_equal(b->answers[1].n_accepted, b->metrics.accepted_tokens);
    close_drafts(b);
}

static void test_off_there_are_none(void **state) {
    (void)state;
    struct bench *b = open_drafts((struct bench_options){.n_pages = 64}, 0, 1 << 20);
    bench_submit(b, 1, 40, 0, 300);
    bench_run(b);
    assert_int_equal(b->metrics.steps, 300);
    assert_int_equal(b->metrics.drafted_tokens, 0);
    assert_int_equal(toy.most_rows, 40);
    close_drafts(b);
}

// The same draws from the same logits: with every filter and penalty, whatever else is in the batch.
static void test_sampled_text_is_the_same_draw_for_draw(void **state) {
    (void)state;
    static int32_t plain[6][300];
    for (int round = 0; round < 2; round++) {
        struct bench *b = open_drafts((struct bench_options){.n_pages = 128, .drafts = round}, 0, 12);
        for (uint64_t id = 1; id <= 6; id++) {
            struct scheduler_request q = bench_ask(id, 50, 0, 300);
            q.sampling = sampling_default();
            q.sampling.seed = 99 + (uint32_t)id;
            q.sampling.repeat_penalty = id % 2 ? 1 : 1.02f;
            q.sampling.temperature = 0.6f;
            scheduler_submit(b->scheduler, &q);
        }
        bench_run(b);
        for (int i = 0; i < 6; i++) {
            assert_int_equal(b->answers[1 + i].n, 300);
            if (!round) memcpy(plain[i], b->answers[1 + i].tokens, sizeof *plain);
            else assert_memory_equal(b->answers[1 + i].tokens, plain[i], sizeof *plain);
        }
        if (round) assert_true(b->metrics.accepted_tokens > 100);
        close_drafts(b);
    }
}

// An answer ends where it ends without drafts, also in the middle of one; the prompt that goes on there finds all of
// it.
static void test_an_end_in_the_middle_of_a_draft(void **state) {
    (void)state;
    for (int length = 150; length < 170; length++) {
        struct bench *b = open_drafts((struct bench_options){.n_pages = 64, .drafts = true}, 0, 1 << 20);
        int32_t *ids = bench_prompt(1, 40, 0), text[200];
        toy_continue(ids, 40, VOCAB, text, 200);
        struct scheduler_request q = bench_ask(1, 40, 0, length);
        scheduler_submit(b->scheduler, &q);
        while (b->answers[1].n < 120) scheduler_step(b->scheduler);
        b->end_token = text[length - 5]; // which comes again and again, but counts from here on
        bench_run(b);
        const int n = b->answers[1].n;
        assert_int_equal(b->answers[1].reason, FINISH_END);
        assert_int_equal(text[n], b->end_token);
        assert_memory_equal(b->answers[1].tokens, text, (size_t)n * sizeof *text);
        b->end_token = -1;
        int32_t *next = xmalloc((size_t)(41 + n) * sizeof *next);
        memcpy(next, ids, 40 * sizeof *next);
        memcpy(next + 40, text, (size_t)(n + 1) * sizeof *next);
        struct scheduler_request turn = {
            .id = 2, .conversation = 1, .ids = next, .n_ids = 41 + n, .sampling = bench_greedy(), .max_tokens = 20};
        scheduler_submit(b->scheduler, &turn);
        bench_run(b);
        assert_int_equal(b->answers[2].n_reused, 40 + n);
        free(ids);
        close_drafts(b);
    }
}

// The context's end, and a length that a draft could go past.
static void test_no_draft_goes_past_the_last_token(void **state) {
    (void)state;
    for (int length = 200; length < 220; length++) {
        struct bench_options o = {.n_pages = 64, .context = 40 + 210, .drafts = true};
        struct bench *b = open_drafts(o, 0, 1 << 20);
        bench_submit(b, 1, 40, 0, length);
        bench_run(b);
        bench_assert_text_alone(b, 1, 40, 0, length < 210 ? length : 210);
        assert_int_equal(b->answers[1].reason, length <= 210 ? FINISH_LENGTH : FINISH_CONTEXT);
        assert_true(b->metrics.accepted_tokens > 50);
        close_drafts(b);
    }
}

static double seconds_for(bool drafts, int row_ns, int habit, int conversations, int *accepted) {
    struct bench *b = open_drafts((struct bench_options){.n_pages = 512, .drafts = drafts}, row_ns, habit);
    for (int id = 1; id <= conversations; id++) bench_submit(b, (uint64_t)id, 40, 0, 700);
    bench_run(b);
    for (int id = 1; id <= conversations; id++) bench_assert_text_alone(b, (uint64_t)id, 40, 0, 700);
    const double seconds = clock_seconds() - START * 1e-9;
    if (accepted) *accepted = (int)b->metrics.accepted_tokens;
    close_drafts(b);
    return seconds;
}

// Whatever a row costs and however often guesses are right, no text takes 2 % longer than without.
static void test_drafts_never_cost_more_than_they_bring(void **state) {
    (void)state;
    static const int row_costs[] = {0, RUN / 20, RUN / 3, 4 * RUN}, habits[] = {0, 2, 4, 9, 1 << 20};
    for (size_t i = 0; i < sizeof row_costs / sizeof *row_costs; i++) {
        for (size_t k = 0; k < sizeof habits / sizeof *habits; k++) {
            for (int n = 1; n <= 5; n += 4) {
                const double plain = seconds_for(false, row_costs[i], habits[k], n, NULL);
                const double drafted = seconds_for(true, row_costs[i], habits[k], n, NULL);
                if (drafted > 1.02 * plain)
                    fail_msg("rows of %d ns, habit %d, %d conversations: %.3f times as long", row_costs[i], habits[k],
                             n, drafted / plain);
            }
        }
    }
}

// Where rows cost as much as steps there is nothing to win; where they are nearly free there is.
static void test_they_are_used_where_they_pay(void **state) {
    (void)state;
    int accepted;
    assert_true(seconds_for(false, RUN / 20, 40, 1, NULL) > 2 * seconds_for(true, RUN / 20, 40, 1, &accepted));
    assert_true(accepted > 350);
    seconds_for(true, 50 * RUN, 40, 1, &accepted);
    assert_true(accepted < 200); // and those when it was tried
}

// One repeats itself, four do not, and rows are dear: the four have the same speed beside it as without drafts.
static void test_others_do_not_pay(void **state) {
    (void)state;
    double seconds[2];
    for (int round = 0; round < 2; round++) {
        struct bench *b = open_drafts((struct bench_options){.n_pages = 512, .drafts = round}, RUN / 4, 1);
        for (uint64_t id = 2; id <= 5; id++) bench_submit(b, id, 40, 0, 1000);
        struct scheduler_request q = bench_ask(1, 40, 0, 1000);
        for (int i = 0; i < 40; i++) q.ids[i] = i % 4;
        scheduler_submit(b->scheduler, &q);
        while (b->answers[5].state < REQUEST_FINISHED) scheduler_step(b->scheduler);
        for (uint64_t id = 2; id <= 5; id++) bench_assert_text_alone(b, id, 40, 0, 1000);
        seconds[round] = clock_seconds() - START * 1e-9;
        close_drafts(b);
    }
    assert_true(seconds[1] < 1.02 * seconds[0]);
}

// What an answer said that was given up helps the next one to the same prompt; of other conversations nothing does.
static void test_other_branches_are_looked_up(void **state) {
    (void)state;
    int steps[2];
    for (int round = 0; round < 2; round++) {
        struct bench *b = open_drafts((struct bench_options){.n_pages = 128, .drafts = true}, 0, 0);
        bench_submit(b, 1, 64, 64, 300);
        bench_run(b);
        const int before = (int)b->metrics.steps;
        struct scheduler_request q = bench_ask(2, 64, 64, 300);
        q.conversation = round ? 1 : 2;
        scheduler_submit(b->scheduler, &q);
        bench_run(b);
        bench_assert_text_alone(b, 2, 64, 64, 300);
        steps[round] = (int)b->metrics.steps - before;
        close_drafts(b);
    }
    assert_true(steps[0] > 290);
    assert_true(steps[1] < 120);
}

// Answers of one prompt that say the same, one a little ahead of the others.
static void test_running_branches_are_looked_up(void **state) {
    (void)state;
    struct bench *b = open_drafts((struct bench_options){.n_pages = 128, .drafts = true}, 0, 0);
    bench_submit(b, 1, 64, 64, 400);
    for (int i = 0; i < 60; i++) scheduler_step(b->scheduler);
    struct scheduler_request q = bench_ask(2, 64, 64, 400);
    q.conversation = 1;
    scheduler_submit(b->scheduler, &q);
    bench_run(b);
    bench_assert_text_alone(b, 1, 64, 64, 400);
    bench_assert_text_alone(b, 2, 64, 64, 400);
    assert_true(b->metrics.accepted_tokens > 40);
    close_drafts(b);
}

// ---- a small model that writes ahead ----

static int quick_ns, slips, small_vocab; // what its runs take; one row in so many is wrong, 0: none
static bool broken;

static bool small_run(struct backend *b, const struct batch *batch, struct backend_result *out, struct status *st) {
    const int run = toy.run_ns, row = toy.row_ns;
    if (broken) return status_fail(st, STATUS_DEVICE, "the small device is lost");
    toy.run_ns = quick_ns;
    toy.row_ns = 0;
    const bool ok = toy_backend.run(b, batch, out, st);
    toy.run_ns = run;
    toy.row_ns = row;
    float *logits = out->logits;
    for (int i = 0; ok && i < batch->n_rows; i++) {
        if (!batch->rows[i].output) continue;
        if (slips && batch->rows[i].token % slips == 0) logits[(batch->rows[i].token + 7) % small_vocab] += 20;
        logits += small_vocab;
    }
    return ok;
}

// Text that never repeats itself; the small model is quick and says the same.
static struct bench *open_small(struct bench_options o, int run_ns, int slips_in) {
    static struct backend_ops small;
    small = toy_backend;
    small.run = small_run;
    quick_ns = run_ns, slips = slips_in, broken = false;
    small_vocab = o.draft_vocab ? o.draft_vocab : VOCAB;
    o.drafts = true;
    o.drafter = &small;
    return open_drafts(o, 0, 0);
}

static void test_a_small_model_writes_ahead(void **state) {
    (void)state;
    struct bench *b = open_small((struct bench_options){.n_pages = 64}, RUN / 50, 0);
    bench_submit(b, 1, 300, 0, 400);
    bench_run(b);
    bench_assert_text_alone(b, 1, 300, 0, 400);
    assert_true(b->metrics.accepted_tokens > 300);
    assert_true(clock_seconds() - START * 1e-9 < 400 * RUN * 1e-9 / 3);
    close_drafts(b);
}

static void test_it_is_left_alone_where_it_is_not_worth_it(void **state) {
    (void)state;
    struct bench *b = open_small((struct bench_options){.n_pages = 64}, 2 * RUN, 1); // slow, and always wrong
    bench_submit(b, 1, 60, 0, 1500);
    bench_run(b);
    bench_assert_text_alone(b, 1, 60, 0, 1500);
    assert_true(clock_seconds() - START * 1e-9 < 1.05 * 1500 * RUN * 1e-9);
    close_drafts(b);
}

static void test_it_writes_for_several_and_slips(void **state) {
    (void)state;
    static const int pages[] = {512, 24}; // all that they need, and so few that some get none
    for (size_t i = 0; i < 2; i++) {
        struct bench *b = open_small((struct bench_options){.n_pages = 512, .draft_pages = pages[i]}, RUN / 50, 5);
        for (uint64_t id = 1; id <= 6; id++) bench_submit(b, id, 40 + (int)id * 30, 20, 300);
        bench_run(b);
        for (uint64_t id = 1; id <= 6; id++) bench_assert_text_alone(b, id, 40 + (int)id * 30, 20, 300);
        assert_true(b->metrics.accepted_tokens > (i ? 20 : 800));
        assert_true(b->metrics.drafted_tokens > b->metrics.accepted_tokens);
        close_drafts(b);
    }
}

// A token that only the larger vocabulary has is not read, nor is what comes after it.
static void test_it_may_know_fewer_tokens(void **state) {
    (void)state;
    struct bench *b = open_small((struct bench_options){.n_pages = 64, .draft_vocab = VOCAB - 3}, RUN / 50, 0);
    bench_submit(b, 1, 40, 0, 300);
    struct scheduler_request q = bench_ask(2, 200, 0, 300);
    q.ids[150] = VOCAB - 1;
    scheduler_submit(b->scheduler, &q);
    bench_run(b);
    bench_assert_text_alone(b, 1, 40, 0, 300);
    assert_int_equal(b->answers[2].n, 300);
    close_drafts(b);
}

static void test_where_it_cannot_write_what_is_looked_up_stays(void **state) {
    (void)state;
    struct bench *b = open_small((struct bench_options){.n_pages = 64, .draft_vocab = VOCAB - 3}, RUN / 50, 0);
    toy.habit = 1 << 20;
    struct scheduler_request q = bench_ask(1, 40, 0, 800);
    q.ids[30] = VOCAB - 1; // which it does not know
    scheduler_submit(b->scheduler, &q);
    bench_run(b);
    assert_int_equal(b->metrics.decode_tokens, 800);
    assert_true(b->metrics.accepted_tokens > 600);
    close_drafts(b);
}

static void test_without_it_answers_go_on(void **state) {
    (void)state;
    struct bench *b = open_small((struct bench_options){.n_pages = 64}, RUN / 50, 0);
    bench_submit(b, 1, 40, 0, 300);
    for (int i = 0; i < 30; i++) scheduler_step(b->scheduler);
    broken = true;
    bench_run(b);
    bench_assert_text_alone(b, 1, 40, 0, 300);
    close_drafts(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repeated_text_comes_several_tokens_a_step),
        cmocka_unit_test(test_off_there_are_none),
        cmocka_unit_test(test_sampled_text_is_the_same_draw_for_draw),
        cmocka_unit_test(test_an_end_in_the_middle_of_a_draft),
        cmocka_unit_test(test_no_draft_goes_past_the_last_token),
        cmocka_unit_test(test_drafts_never_cost_more_than_they_bring),
        cmocka_unit_test(test_they_are_used_where_they_pay),
        cmocka_unit_test(test_others_do_not_pay),
        cmocka_unit_test(test_other_branches_are_looked_up),
        cmocka_unit_test(test_running_branches_are_looked_up),
        cmocka_unit_test(test_a_small_model_writes_ahead),
        cmocka_unit_test(test_it_is_left_alone_where_it_is_not_worth_it),
        cmocka_unit_test(test_it_writes_for_several_and_slips),
        cmocka_unit_test(test_it_may_know_fewer_tokens),
        cmocka_unit_test(test_where_it_cannot_write_what_is_looked_up_stays),
        cmocka_unit_test(test_without_it_answers_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
