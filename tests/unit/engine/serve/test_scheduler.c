// Scheduler over the toy backend: whatever shares the batch or the pages, each request's text is the one it has alone.
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

static void test_one_request(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 16});
    struct scheduler_request q = bench_ask(1, 40, 0, 50);
    scheduler_submit(b->scheduler, &q);
    assert_int_equal(b->answers[1].state, REQUEST_PENDING);
    bench_run(b);
    bench_assert_text_alone(b, 1, 40, 0, 50);
    assert_int_equal(b->answers[1].state, REQUEST_FINISHED);
    assert_int_equal(b->answers[1].reason, FINISH_LENGTH);
    assert_int_equal(b->answers[1].n_prompt, 40);
    bench_close(b);
}

static void test_eight_at_once(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 256, .chunk = 48});
    for (uint64_t id = 1; id <= 8; id++) bench_submit(b, id, 30 + (int)id * 11, 20, 100);
    bench_run(b);
    for (uint64_t id = 1; id <= 8; id++) bench_assert_text_alone(b, id, 30 + (int)id * 11, 20, 100);
    assert_int_equal(toy.most_segments, 8);
    assert_int_equal(b->metrics.preemptions, 0);
    bench_close(b);
}

// Sampled answers depend on the seed alone: not on the company, nor on which worker samples them.
static void test_seeded_answers_do_not_depend_on_the_batch(void **state) {
    (void)state;
    int32_t alone[40];
    for (int round = 0; round < 2; round++) {
        struct bench *b = bench_open((struct bench_options){.n_pages = 48, .n_vocab = 8192, .chunk = round ? 16 : 512});
        for (uint64_t id = round ? 1 : 8; id <= 8; id++) {
            struct scheduler_request q = bench_ask(id, 50, 0, 40);
            q.sampling = sampling_default();
            q.sampling.seed = 1234 + (uint32_t)id;
            scheduler_submit(b->scheduler, &q);
        }
        bench_run(b);
        assert_int_equal(toy.most_segments, round ? 8 : 1);
        assert_int_equal(b->answers[8].n, 40);
        if (!round) memcpy(alone, b->answers[8].tokens, sizeof alone);
        else assert_memory_equal(b->answers[8].tokens, alone, sizeof alone);
        bench_close(b);
    }
}

static void test_pre_emption_keeps_the_text(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 14, .chunk = 32});
    for (uint64_t id = 1; id <= 8; id++) bench_submit(b, id, 20 + (int)id, 0, 150);
    bench_run(b);
    assert_true(b->metrics.preemptions > 0);
    int resumed = 0;
    for (uint64_t id = 1; id <= 8; id++) {
        bench_assert_text_alone(b, id, 20 + (int)id, 0, 150);
        resumed += b->answers[id].times_pending > 1;
    }
    assert_true(resumed > 0);
    assert_int_equal(b->answers[1].times_pending, 1); // the oldest never gives way
    bench_close(b);
}

// A sampled answer that is pre-empted goes on with the generator where it was.
static void test_pre_emption_keeps_the_sampler(void **state) {
    (void)state;
    int32_t alone[150];
    for (int round = 0; round < 2; round++) {
        struct bench *b = bench_open((struct bench_options){.n_pages = 10, .chunk = 32});
        for (uint64_t id = round ? 1 : 4; id <= 4; id++) {
            struct scheduler_request q = bench_ask(id, 30, 0, 150);
            q.sampling = sampling_default();
            q.sampling.seed = 77;
            scheduler_submit(b->scheduler, &q);
        }
        bench_run(b);
        assert_int_equal(b->answers[4].n, 150);
        if (!round) memcpy(alone, b->answers[4].tokens, sizeof alone);
        else {
            assert_true(b->answers[4].times_pending > 1);
            assert_memory_equal(b->answers[4].tokens, alone, sizeof alone);
        }
        bench_close(b);
    }
}

// What a backend says of its stages arrives in the metrics, by stage and by what the steps did.
static void test_work_of_every_stage(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 32});
    clock_freeze(5000000000);
    struct scheduler_request q = bench_ask(1, 40, 0, 10);
    scheduler_submit(b->scheduler, &q);
    bench_run(b);
    clock_freeze(0);
    metrics_begin(&b->metrics, 5);
    metrics_publish(&b->metrics);
    static struct engine_metrics latest, *f = &latest;
    metrics_read(&b->metrics, f);
    const struct stage_work *attend = &f->stages[STAGE_ATTEND], *feed = &f->stages[STAGE_FEED];
    assert_float_equal(attend->bytes, 1000.0 * 49, 1e-3); // rows: the prompt's, and of all tokens but the last
    assert_float_equal(attend->operations, 2000.0 * 49, 1e-3);
    assert_float_equal(feed->bytes, 5000.0 * 49, 1e-3);
    assert_float_equal(feed->seconds, 3e-4 * 10, 1e-9);
    assert_true(f->stages[STAGE_LOGITS].bytes == 0 && f->stages[STAGE_LOGITS].seconds == 0);
    assert_float_equal(f->prefill.bytes, 6000.0 * 40, 1e-3);
    assert_float_equal(f->prefill.operations, 9000.0 * 40, 1e-3);
    assert_float_equal(f->decode.bytes, 6000.0 * 9, 1e-3);
    assert_float_equal(f->decode.operations, 9000.0 * 9, 1e-3);
    bench_close(b);
}

static void test_next_turn_reuses_the_last(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 32});
    struct scheduler_request q = bench_ask(1, 45, 0, 30);
    scheduler_submit(b->scheduler, &q);
    bench_run(b);
    // The second turn: the first prompt, its answer, and 20 tokens more.
    int32_t *ids = xmalloc(95 * sizeof *ids), *first = bench_prompt(1, 45, 0), expected[25];
    memcpy(ids, first, 45 * sizeof *ids);
    memcpy(ids + 45, b->answers[1].tokens, 30 * sizeof *ids);
    for (int i = 75; i < 95; i++) ids[i] = i % 50;
    toy_continue(ids, 95, VOCAB, expected, 25);
    uint64_t prefilled = b->metrics.prefill_tokens;
    struct scheduler_request next = {
        .id = 2, .conversation = 1, .ids = ids, .n_ids = 95, .sampling = bench_greedy(), .max_tokens = 25};
    scheduler_submit(b->scheduler, &next);
    bench_run(b);
    assert_int_equal(b->answers[2].n_reused, 74); // the answer's last token was never computed
    assert_int_equal(b->metrics.prefill_tokens - prefilled, 21);
    assert_int_equal(b->metrics.reused_tokens, 74);
    assert_memory_equal(b->answers[2].tokens, expected, sizeof expected);
    assert_true(toy.copies > 0); // the partly filled page was shared with the kept first turn
    free(first);
    bench_close(b);
}

static void test_same_prompt_again_computes_one_token(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 32});
    for (uint64_t id = 1; id <= 2; id++) {
        struct scheduler_request q = bench_ask(id, 64, 64, 10);
        scheduler_submit(b->scheduler, &q);
        bench_run(b);
    }
    assert_int_equal(b->answers[2].n_reused, 63);
    bench_assert_text_alone(b, 2, 64, 64, 10);
    bench_close(b);
}

// A fork of a running sequence shares its pages; both go on writing, neither sees the other's tokens.
static void test_fork_of_a_running_sequence(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 32});
    struct scheduler_request q = bench_ask(1, 50, 50, 60);
    scheduler_submit(b->scheduler, &q);
    for (int i = 0; i < 5; i++) scheduler_step(b->scheduler);
    struct scheduler_request fork = bench_ask(2, 60, 44, 60);
    scheduler_submit(b->scheduler, &fork);
    scheduler_step(b->scheduler);
    assert_int_equal(b->answers[2].n_reused, 44);
    assert_int_equal(toy.copies, 1);
    struct engine_metrics *f = xcalloc(1, sizeof *f);
    scheduler_metrics(b->scheduler, f);
    assert_int_equal(f->n_parts, 1);
    assert_string_equal(f->parts[0].device, "toy");
    assert_int_equal(f->pages_shared, 1);
    free(f);
    bench_run(b);
    bench_assert_text_alone(b, 1, 50, 50, 60);
    bench_assert_text_alone(b, 2, 60, 44, 60);
    bench_close(b);
}

// ---- what several have in common, while it is computed ----

static void bench_submit_answers(struct bench *b, uint64_t id, int n_prompt, int n_answer, int n_answers) {
    struct scheduler_request q = bench_ask(id, n_prompt, n_prompt, n_answer);
    q.n_answers = n_answers;
    scheduler_submit(b->scheduler, &q);
}

static void assert_rows_between(const struct bench *b, int low, int high) {
    if ((int)b->metrics.prefill_tokens < low || (int)b->metrics.prefill_tokens > high)
        fail_msg("%d prompt rows, not %d to %d", (int)b->metrics.prefill_tokens, low, high);
}

static void test_identical_prompts_are_computed_once(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 256});
    for (uint64_t id = 1; id <= 8; id++) bench_submit(b, id, 1000, 1000, 20);
    bench_run(b);
    assert_rows_between(b, 1000, 1010);
    for (uint64_t id = 1; id <= 8; id++) {
        bench_assert_text_alone(b, id, 1000, 1000, 20);
        assert_int_equal(b->answers[id].n_reused, id == 1 ? 0 : 999);
        assert_int_equal(b->answers[id].times_pending, 1);
    }
    bench_close(b);
}

static void test_what_prompts_begin_with_is_computed_once(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 128, .context = 2560}); // for one, and seven ends
    for (uint64_t id = 1; id <= 8; id++) bench_submit(b, id, 2000 + 10 * (int)id, 2000, 8);
    bench_run(b);
    assert_rows_between(b, 2360, 2370);
    for (uint64_t id = 1; id <= 8; id++) {
        bench_assert_text_alone(b, id, 2000 + 10 * (int)id, 2000, 8);
        assert_int_equal(b->answers[id].n_reused, id == 1 ? 0 : 2000);
    }
    bench_close(b);
}

static void test_answers_to_one_prompt_share_its_pages(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 64});
    struct engine_metrics *f = xcalloc(1, sizeof *f);
    bench_submit_answers(b, 1, 1000, 20, 4);
    while (!b->answers[4].n) scheduler_step(b->scheduler);
    scheduler_metrics(b->scheduler, f);
    assert_int_equal(f->running, 4);
    assert_int_equal(f->pages_shared, 31);   // 992 tokens
    assert_int_equal(f->pages_used, 31 + 4); // each has a last page of its own
    bench_run(b);
    assert_rows_between(b, 1000, 1010);
    for (uint64_t i = 1; i <= 4; i++) {
        assert_int_equal(b->answers[i].reason, FINISH_LENGTH);
        bench_assert_text_alone(b, i, 1000, 1000, 20);
    }
    free(f);
    bench_close(b);
}

// A seed gives the first answer what it gives a single one, and each other one its own.
static void test_answers_draw_for_themselves(void **state) {
    (void)state;
    int32_t alone[30], drawn[4][30];
    for (int round = 0; round < 2; round++) {
        struct bench *b = bench_open((struct bench_options){.n_pages = 64});
        struct scheduler_request q = bench_ask(1, 50, 0, 30);
        q.sampling = sampling_default();
        q.sampling.seed = 1234;
        q.n_answers = round ? 4 : 0;
        scheduler_submit(b->scheduler, &q);
        bench_run(b);
        if (!round) memcpy(alone, b->answers[1].tokens, sizeof alone);
        else
            for (int i = 0; i < 4; i++) memcpy(drawn[i], b->answers[1 + i].tokens, sizeof drawn[i]);
        bench_close(b);
    }
    assert_memory_equal(drawn[0], alone, sizeof alone);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < i; k++) assert_memory_not_equal(drawn[i], drawn[k], sizeof drawn[i]);
}

static void test_cancel_ends_every_answer(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 64});
    bench_submit_answers(b, 1, 40, 100, 3);
    for (int i = 0; i < 6; i++) scheduler_step(b->scheduler);
    scheduler_cancel(b->scheduler, 1);
    assert_true(scheduler_idle(b->scheduler));
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(b->answers[i].state, REQUEST_CANCELLED);
        assert_true(b->answers[i].n > 0);
    }
    bench_check(b);
    bench_close(b);
}

// The one that computes what others wait for ends: another goes on where it was.
static void test_another_takes_over_from_a_cancelled_one(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 128, .chunk = 100});
    for (uint64_t id = 1; id <= 4; id++) bench_submit(b, id, 1000, 1000, 5);
    for (int i = 0; i < 5; i++) scheduler_step(b->scheduler);
    assert_int_equal(b->answers[2].state, REQUEST_PENDING);
    scheduler_cancel(b->scheduler, 1);
    bench_check(b);
    scheduler_step(b->scheduler);
    assert_int_equal(b->answers[2].state, REQUEST_PREFILLING);
    assert_int_equal(b->answers[2].n_reused, 500);
    bench_run(b);
    assert_rows_between(b, 1000, 1010);
    for (uint64_t id = 2; id <= 4; id++) bench_assert_text_alone(b, id, 1000, 1000, 5);
    bench_close(b);
}

// Likewise where it is pre-empted, by one in focus.
static void test_another_takes_over_from_a_pre_empted_one(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 40, .chunk = 100});
    for (uint64_t id = 1; id <= 3; id++) bench_submit(b, id, 900, 900, 5);
    for (int i = 0; i < 5; i++) scheduler_step(b->scheduler);
    scheduler_focus(b->scheduler, 9);
    bench_submit(b, 9, 600, 0, 5);
    bench_run(b);
    assert_int_equal(b->metrics.preemptions, 1);
    assert_true(b->answers[9].ended < b->answers[1].answered);
    for (uint64_t id = 1; id <= 3; id++) bench_assert_text_alone(b, id, 900, 900, 5);
    bench_assert_text_alone(b, 9, 600, 0, 5);
    bench_close(b);
}

// A short prompt that begins like a long one waits for that beginning alone.
static void test_waits_for_the_common_part_only(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 128, .chunk = 100});
    bench_submit(b, 1, 1500, 320, 5);
    bench_submit(b, 2, 330, 320, 5);
    bench_run(b);
    assert_int_equal(b->answers[2].n_reused, 320);
    assert_true(b->answers[2].ended < b->answers[1].answered);
    bench_assert_text_alone(b, 1, 1500, 320, 5);
    bench_assert_text_alone(b, 2, 330, 320, 5);
    bench_close(b);
}

// What only a deleted conversation used is given back, what another used with it stays.
static void test_forget_keeps_what_others_share(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 64});
    struct engine_metrics *f = xcalloc(1, sizeof *f);
    bench_submit(b, 1, 200, 64, 10);
    bench_run(b);
    bench_submit(b, 2, 150, 64, 10);
    bench_run(b);
    assert_int_equal(b->answers[2].n_reused, 64);
    scheduler_forget(b->scheduler, 1, 0);
    bench_check(b);
    scheduler_metrics(b->scheduler, f);
    assert_int_equal(f->pages_kept, 5); // of 159 tokens
    for (int i = 0; i < f->n_pages; i++) assert_int_not_equal(f->pages[i].conversation, 1);
    scheduler_forget(b->scheduler, 2, 0);
    bench_check(b);
    scheduler_metrics(b->scheduler, f);
    assert_int_equal(f->pages_free, 64);
    free(f);
    bench_close(b);
}

// A deleted conversation that still runs shows nobody what it computes.
static void test_nobody_shares_with_a_forgotten_one_that_runs(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 64});
    struct engine_metrics *f = xcalloc(1, sizeof *f);
    bench_submit(b, 1, 100, 100, 60);
    for (int i = 0; i < 5; i++) scheduler_step(b->scheduler);
    scheduler_forget(b->scheduler, 1, 0);
    bench_submit(b, 2, 100, 100, 5);
    while (b->answers[1].n < 50) scheduler_step(b->scheduler); // over the end of a page
    assert_int_equal(b->answers[2].n_reused, 0);
    scheduler_forget(b->scheduler, 2, 0);
    scheduler_metrics(b->scheduler, f);
    assert_int_equal(f->pages_kept, 0);
    bench_run(b);
    scheduler_metrics(b->scheduler, f);
    assert_int_equal(f->pages_free, 64);
    bench_assert_text_alone(b, 1, 100, 100, 60);
    free(f);
    bench_close(b);
}

// ---- pages that are short ----

// Where the copy of a page that is shared in part would be one too many, its tokens are computed again.
static void test_a_partly_shared_page_is_done_without(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 4});
    bench_submit(b, 1, 109, 109, 1);
    bench_run(b);
    bench_submit(b, 2, 127, 109, 1);
    bench_run(b);
    assert_int_equal(b->answers[2].n_reused, 96);
    bench_assert_text_alone(b, 2, 127, 109, 1);
    bench_close(b);
}

static void test_cached_pages_give_way(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 8});
    for (uint64_t id = 1; id <= 6; id++) {
        struct scheduler_request q = bench_ask(id, 70, 0, 40); // 4 pages each
        scheduler_submit(b->scheduler, &q);
        bench_run(b);
        bench_assert_text_alone(b, id, 70, 0, 40);
    }
    assert_int_equal(b->metrics.preemptions, 0);
    struct scheduler_request again = bench_ask(7, 70, 0, 5);
    free(again.ids);
    again.ids = bench_prompt(6, 70, 0); // the latest is still there
    scheduler_submit(b->scheduler, &again);
    bench_run(b);
    assert_int_equal(b->answers[7].n_reused, 69);
    bench_close(b);
}

static void test_forget_gives_pages_back(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 16});
    struct engine_metrics *f = xcalloc(1, sizeof *f);
    for (uint64_t id = 1; id <= 2; id++) {
        struct scheduler_request q = bench_ask(id, 40, 0, 10);
        scheduler_submit(b->scheduler, &q);
        if (id == 1) bench_run(b);
    }
    scheduler_step(b->scheduler);
    scheduler_forget(b->scheduler, 1, 0);
    scheduler_forget(b->scheduler, 2, 0); // still running: nothing of it is kept when it ends
    bench_run(b);
    scheduler_metrics(b->scheduler, f);
    assert_int_equal(f->pages_free, 16);
    assert_int_equal(f->pages_kept, 0);
    bench_assert_text_alone(b, 2, 40, 0, 10);
    free(f);
    bench_close(b);
}

static void test_cancel_while_prefilling_and_decoding(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 64, .chunk = 32});
    struct scheduler_request first = bench_ask(1, 10, 0, 500), second = bench_ask(2, 600, 0, 10),
                             third = bench_ask(3, 20, 0, 30);
    scheduler_submit(b->scheduler, &first);
    scheduler_submit(b->scheduler, &second);
    scheduler_submit(b->scheduler, &third);
    for (int i = 0; i < 4; i++) scheduler_step(b->scheduler);
    assert_int_equal(b->answers[1].state, REQUEST_DECODING);
    assert_int_equal(b->answers[2].state, REQUEST_PREFILLING);
    int runs = toy.runs, tokens = b->answers[1].n;
    scheduler_cancel(b->scheduler, 2);
    scheduler_cancel(b->scheduler, 1);
    scheduler_cancel(b->scheduler, 99); // unknown ones are nobody's business
    assert_int_equal(toy.runs, runs);
    assert_int_equal(b->answers[1].state, REQUEST_CANCELLED);
    assert_int_equal(b->answers[2].state, REQUEST_CANCELLED);
    assert_int_equal(b->answers[2].reason, FINISH_CANCELLED);
    bench_check(b);
    bench_run(b);
    assert_int_equal(b->answers[1].n, tokens);
    bench_assert_text_alone(b, 3, 20, 0, 30);
    bench_close(b);
}

static void test_sampling_change_reaches_the_next_token(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 16});
    struct scheduler_request q = bench_ask(1, 20, 0, 60);
    scheduler_submit(b->scheduler, &q);
    for (int i = 0; i < 10; i++) scheduler_step(b->scheduler);
    assert_int_equal(b->answers[1].n, 10);
    struct sampling wild = bench_greedy();
    wild.temperature = 5, wild.top_k = 0, wild.top_p = 1, wild.min_p = 0, wild.seed = 3;
    scheduler_set_sampling(b->scheduler, 1, &wild);
    for (int i = 0; i < 20; i++) scheduler_step(b->scheduler);
    struct sampling back = bench_greedy();
    scheduler_set_sampling(b->scheduler, 1, &back);
    bench_run(b);
    // Every token is the greedy one after what precedes it, but for the middle part.
    int32_t text[80];
    int off = 0;
    int32_t *ids = bench_prompt(1, 20, 0);
    memcpy(text, ids, 20 * sizeof *text);
    memcpy(text + 20, b->answers[1].tokens, 60 * sizeof *text);
    for (int i = 0; i < 60; i++) {
        int32_t next;
        toy_continue(text, 20 + i, VOCAB, &next, 1);
        if (i < 10 || i >= 30) assert_int_equal(text[20 + i], next);
        else off += text[20 + i] != next;
    }
    assert_true(off > 10);
    free(ids);
    bench_close(b);
}

static void test_nan_fails_one_request_alone(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 64});
    toy.poison = VOCAB - 1; // no prompt of ours has it, and greedy answers of these seeds do not reach it
    for (uint64_t id = 1; id <= 3; id++) {
        struct scheduler_request q = bench_ask(id, 33, 0, 20);
        if (id == 2) q.ids[30] = VOCAB - 1;
        scheduler_submit(b->scheduler, &q);
    }
    bench_run(b);
    assert_int_equal(b->answers[2].state, REQUEST_FAILED);
    assert_int_equal(b->answers[2].reason, FINISH_ERROR);
    assert_non_null(strstr(b->answers[2].message, "NaN"));
    struct engine_metrics *f = xcalloc(1, sizeof *f);
    scheduler_metrics(b->scheduler, f);
    for (int i = 0; i < f->n_pages; i++) assert_int_not_equal(f->pages[i].conversation, 2); // its pages are not kept
    free(f);
    toy.poison = -1; // so that the reference can be computed should a text hold it
    bench_assert_text_alone(b, 1, 33, 0, 20);
    bench_assert_text_alone(b, 3, 33, 0, 20);
    bench_close(b);
}

static void test_lost_device_fails_the_batch(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 64});
    struct scheduler_request q = bench_ask(1, 33, 0, 20);
    scheduler_submit(b->scheduler, &q);
    toy.fail_runs = 1;
    bench_run(b);
    assert_int_equal(b->answers[1].state, REQUEST_FAILED);
    assert_non_null(strstr(b->answers[1].message, "device is lost"));
    struct scheduler_request next = bench_ask(2, 33, 0, 20);
    scheduler_submit(b->scheduler, &next);
    bench_run(b);
    bench_assert_text_alone(b, 2, 33, 0, 20);
    bench_close(b);
}

// Wherever the device fails the texts are those of a device that does not, also where answers fork and are pre-empted.
static void test_fallback_goes_on(void **state) {
    (void)state;
    for (int after = 0; after < 30; after++) {
        struct bench *b =
            bench_open((struct bench_options){.n_pages = 12, .chunk = 40, .fallback = placement_on(&toy_backend, 0)});
        for (uint64_t id = 1; id < 6; id++) bench_submit(b, id, 60 + (int)id, 50, 30);
        for (int i = 0; i < after; i++) scheduler_step(b->scheduler);
        toy.fail_runs = 1;
        scheduler_step(b->scheduler);
        assert_int_equal(b->n_moved, 1);
        assert_string_equal(b->moved, "toy: the device is lost");
        bench_check(b);
        bench_run(b);
        for (uint64_t id = 1; id < 6; id++) bench_assert_text_alone(b, id, 60 + (int)id, 50, 30);
        bench_close(b);
    }
}

static void test_fallback_fails_too(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 64, .fallback = placement_on(&toy_backend, 0)});
    bench_submit(b, 1, 33, 0, 20);
    toy.fail_runs = 2;
    bench_run(b);
    assert_int_equal(b->n_moved, 1);
    assert_int_equal(b->answers[1].state, REQUEST_FAILED);
    bench_submit(b, 2, 33, 0, 20);
    bench_run(b);
    bench_assert_text_alone(b, 2, 33, 0, 20);
    bench_close(b);
}

static void test_what_can_never_fit_fails_at_once(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 4});
    struct scheduler_request large = bench_ask(1, 128, 0, 10), empty = bench_ask(2, 1, 0, 1),
                             odd = bench_ask(3, 5, 0, 1), fine = bench_ask(4, 127, 0, 0),
                             tight = bench_ask(5, 100, 0, 5);
    tight.room = 29;
    empty.n_ids = 0;
    odd.ids[3] = VOCAB;
    scheduler_submit(b->scheduler, &large);
    assert_int_equal(b->answers[1].state, REQUEST_FAILED);
    assert_non_null(strstr(b->answers[1].message, "128 tokens"));
    assert_non_null(strstr(b->answers[1].message, "4 pages of 32 tokens"));
    assert_int_equal(b->answers[1].reason, FINISH_CONTEXT);
    scheduler_submit(b->scheduler, &empty);
    assert_non_null(strstr(b->answers[2].message, "empty"));
    scheduler_submit(b->scheduler, &odd);
    assert_non_null(strstr(b->answers[3].message, "token 3 of the prompt is 97"));
    scheduler_submit(b->scheduler, &tight);
    assert_int_equal(b->answers[5].reason, FINISH_CONTEXT);
    assert_non_null(strstr(b->answers[5].message, "leaves 28 of 128"));
    tight = bench_ask(6, 100, 0, 5);
    tight.room = 28;
    scheduler_submit(b->scheduler, &tight);
    scheduler_submit(b->scheduler, &fine);
    bench_run(b);
    bench_assert_text_alone(b, 4, 127, 0, 1);
    assert_int_equal(b->answers[6].state, REQUEST_FINISHED);
    assert_int_equal(b->answers[4].reason, FINISH_CONTEXT);
    bench_close(b);
}

static void test_ends(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 8, .context = 100});
    struct scheduler_request context = bench_ask(1, 60, 0, 0), length = bench_ask(2, 60, 0, 7);
    scheduler_submit(b->scheduler, &context);
    scheduler_submit(b->scheduler, &length);
    bench_run(b);
    assert_int_equal(b->answers[1].reason, FINISH_CONTEXT);
    bench_assert_text_alone(b, 1, 60, 0, 40);
    assert_int_equal(b->answers[2].reason, FINISH_LENGTH);
    bench_assert_text_alone(b, 2, 60, 0, 7);
    toy.likely = b->end_token = 11;
    struct scheduler_request end = bench_ask(3, 10, 0, 5);
    scheduler_submit(b->scheduler, &end);
    bench_run(b);
    assert_int_equal(b->answers[3].reason, FINISH_END);
    assert_int_equal(b->answers[3].n, 0);
    bench_close(b);
}

static void test_metrics_add_up(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 64});
    struct engine_metrics *f = xcalloc(1, sizeof *f);
    for (uint64_t id = 1; id <= 5; id++) bench_submit(b, id, 40, 33, 20);
    bool more = true;
    while (more) {
        more = scheduler_step(b->scheduler);
        scheduler_metrics(b->scheduler, f);
        assert_int_equal(f->pages_used + f->pages_kept + f->pages_free, f->n_pages);
        assert_int_equal(f->queue + f->running, f->n_requests);
        int used = 0, kept = 0, shared = 0;
        for (int i = 0; i < f->n_pages; i++) {
            used += f->pages[i].references && !f->pages[i].kept;
            kept += f->pages[i].kept;
            shared += f->pages[i].references > 1;
            assert_true(f->pages[i].filled <= f->page_tokens);
            assert_int_equal(f->pages[i].references > 0, f->pages[i].conversation > 0);
        }
        assert_int_equal(used, f->pages_used);
        assert_int_equal(kept, f->pages_kept);
        assert_int_equal(shared, f->pages_shared);
    }
    assert_int_equal(b->metrics.decode_tokens, 5 * 20);
    assert_int_equal(b->metrics.prefill_tokens + b->metrics.reused_tokens, 5 * 40);
    assert_int_equal(b->metrics.first_token.count, 5);
    assert_int_equal(b->metrics.next_token.count, 5 * 19);
    assert_int_equal(f->batch_rows, 0);
    free(f);
    bench_close(b);
}

// A cache may have more pages than the metrics tell of.
static void test_metrics_of_a_cache_that_is_too_large_for_them(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = METRICS_MAX_PAGES + 100, .context = 500});
    struct told {
        struct engine_metrics metrics;
        struct page_metrics behind[100];
    } *told = xcalloc(1, sizeof *told);
    memset(told->behind, 0xA5, sizeof told->behind);
    bench_submit(b, 1, 100, 0, 1);
    bench_run(b);
    scheduler_metrics(b->scheduler, &told->metrics);
    assert_int_equal(told->metrics.n_pages, METRICS_MAX_PAGES + 100);
    assert_int_equal(told->metrics.pages_kept, 4);
    for (size_t i = 0; i < sizeof told->behind; i++) assert_int_equal(((unsigned char *)told->behind)[i], 0xA5);
    free(told);
    bench_close(b);
}

static bool all_logits(struct bench *b, const int32_t *ids, int n, float *out, struct status *st) {
    struct scheduler_logits l = {.ids = ids, .n = n, .out = out};
    bool ok = scheduler_logits_start(b->scheduler, &l, st);
    while (ok && l.n_done < n) ok = scheduler_logits_pass(b->scheduler, &l, st);
    scheduler_logits_end(b->scheduler, &l);
    return ok;
}

static void fail_second_run(struct bench *b) {
    (void)b;
    if (toy.runs == 1) toy.fail_runs = 1;
}

static void test_logits_of_every_position(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 4});
    int32_t *ids = bench_prompt(9, 70, 0);
    float *logits = xmalloc(70 * VOCAB * sizeof *logits), expected[VOCAB];
    struct status st = {0};
    assert_true(all_logits(b, ids, 70, logits, &st));
    for (int i = 0; i < 70; i++) {
        toy_logits(ids, i + 1, VOCAB, expected);
        assert_memory_equal(logits + i * VOCAB, expected, sizeof expected);
    }
    bench_check(b);
    toy.fail_runs = 1;
    assert_false(all_logits(b, ids, 70, logits, &st));
    assert_string_equal(st.text, "toy: the device is lost");
    memset(logits, 0, 70 * VOCAB * sizeof *logits);
    b->stops = 3; // three passes are given up, and computed again
    assert_true(all_logits(b, ids, 70, logits, &st));
    assert_memory_equal(logits + 69 * VOCAB, expected, sizeof expected);
    assert_int_equal(toy.given_up, 3);
    bench_check(b);
    bench_close(b);
    b = bench_open((struct bench_options){.n_pages = 4, .fallback = placement_on(&toy_backend, 0)});
    b->in_step = fail_second_run;
    memset(logits, 0, 70 * VOCAB * sizeof *logits);
    assert_true(all_logits(b, ids, 70, logits, &st));
    assert_int_equal(b->n_moved, 1);
    assert_memory_equal(logits + 69 * VOCAB, expected, sizeof expected);
    toy_logits(ids, 1, VOCAB, expected);
    assert_memory_equal(logits, expected, sizeof expected);
    bench_check(b);
    assert_false(all_logits(b, ids, 129, logits, &st));
    ids[5] = -1;
    assert_false(all_logits(b, ids, 70, logits, &st));
    assert_non_null(strstr(st.text, "token 5 is -1"));
    struct scheduler_request q = bench_ask(1, 10, 0, 10);
    scheduler_submit(b->scheduler, &q);
    assert_false(all_logits(b, ids, 4, logits, &st));
    bench_run(b);
    free(ids);
    free(logits);
    bench_close(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_request),
        cmocka_unit_test(test_eight_at_once),
        cmocka_unit_test(test_seeded_answers_do_not_depend_on_the_batch),
        cmocka_unit_test(test_pre_emption_keeps_the_text),
        cmocka_unit_test(test_pre_emption_keeps_the_sampler),
        cmocka_unit_test(test_work_of_every_stage),
        cmocka_unit_test(test_next_turn_reuses_the_last),
        cmocka_unit_test(test_same_prompt_again_computes_one_token),
        cmocka_unit_test(test_fork_of_a_running_sequence),
        cmocka_unit_test(test_identical_prompts_are_computed_once),
        cmocka_unit_test(test_what_prompts_begin_with_is_computed_once),
        cmocka_unit_test(test_answers_to_one_prompt_share_its_pages),
        cmocka_unit_test(test_answers_draw_for_themselves),
        cmocka_unit_test(test_cancel_ends_every_answer),
        cmocka_unit_test(test_another_takes_over_from_a_cancelled_one),
        cmocka_unit_test(test_another_takes_over_from_a_pre_empted_one),
        cmocka_unit_test(test_waits_for_the_common_part_only),
        cmocka_unit_test(test_forget_keeps_what_others_share),
        cmocka_unit_test(test_nobody_shares_with_a_forgotten_one_that_runs),
        cmocka_unit_test(test_a_partly_shared_page_is_done_without),
        cmocka_unit_test(test_cached_pages_give_way),
        cmocka_unit_test(test_forget_gives_pages_back),
        cmocka_unit_test(test_cancel_while_prefilling_and_decoding),
        cmocka_unit_test(test_sampling_change_reaches_the_next_token),
        cmocka_unit_test(test_nan_fails_one_request_alone),
        cmocka_unit_test(test_lost_device_fails_the_batch),
        cmocka_unit_test(test_fallback_goes_on),
        cmocka_unit_test(test_fallback_fails_too),
        cmocka_unit_test(test_what_can_never_fit_fails_at_once),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_metrics_add_up),
        cmocka_unit_test(test_metrics_of_a_cache_that_is_too_large_for_them),
        cmocka_unit_test(test_logits_of_every_position),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
