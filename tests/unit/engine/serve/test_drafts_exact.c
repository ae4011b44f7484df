// Drafts over real backends: of every family, in several formats, the text with drafts is the text without, greedy and
// sampled, looked up or written by a model, whoever is pre-empted or cancelled in between.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/clock.h"
#include "tests/unit/opened_model.h"
#include "tests/unit/scheduler_bench.h"
#include "tests/unit/tiny_families.h"

enum { REQUESTS = 5, TOKENS = 70, PROMPT = 30, CANCELLED = 4 };

// A step always takes as long, so that rows of drafts are free.
static bool timed_run(struct backend *b, const struct batch *batch, struct backend_result *out, struct status *st) {
    clock_freeze(clock_ns() + 1000000);
    return cpu_backend.run(b, batch, out, st);
}

struct texts {
    int32_t tokens[REQUESTS + 1][TOKENS];
    int n[REQUESTS + 1];
    int drafted, accepted, pre_empted;
};

static void submit(struct bench *b, uint64_t id, int n_vocab) {
    struct scheduler_request q = bench_ask(id, PROMPT, 8, TOKENS);
    for (int i = 8; i < PROMPT; i++) q.ids[i] = (int32_t)((i % 7 * 13 + (int)id * 29) % n_vocab); // it repeats itself
    q.conversation = 1 + id % 2;
    if (id % 2) {
        q.sampling.temperature = 0.2f;
        q.sampling.top_k = 3;
        q.sampling.repeat_penalty = id == 3 ? 1.05f : 1;
        q.sampling.seed = 7 + (uint32_t)id;
    }
    scheduler_submit(b->scheduler, &q);
}

// Five at once on pages for three; one is cancelled on the way.
enum how { PLAIN, LOOKUP, WRITTEN }; // written: by the same model, as if it were a small one

static void write_texts(const struct model *model, enum how how, struct texts *out) {
    struct backend_ops timed = cpu_backend;
    timed.run = timed_run;
    struct bench *b = bench_open((struct bench_options){.n_pages = 12,
                                                        .context = 128,
                                                        .drafts = how != PLAIN,
                                                        .drafter = how == WRITTEN ? &cpu_backend : NULL,
                                                        .model = model,
                                                        .placement = placement_on(&timed, 0)});
    clock_freeze(1000000000);
    for (uint64_t id = 1; id <= REQUESTS; id++) submit(b, id, model->spec.n_vocab);
    while (scheduler_step(b->scheduler)) {
        bench_check(b);
        if (b->answers[CANCELLED].n > TOKENS / 2) scheduler_cancel(b->scheduler, CANCELLED);
    }
    for (int i = 1; i <= REQUESTS; i++) {
        out->n[i] = b->answers[i].n;
        memcpy(out->tokens[i], b->answers[i].tokens, sizeof out->tokens[i]);
    }
    out->drafted = (int)b->metrics.drafted_tokens;
    out->accepted = (int)b->metrics.accepted_tokens;
    out->pre_empted = (int)b->metrics.preemptions;
    bench_close(b);
    clock_freeze(0);
}

static struct texts total[WRITTEN + 1];

static void check_shape(struct tiny_shape shape, enum block_id format, bool written) {
    shape.format = format;
    size_t size;
    void *bytes = tiny_shape_bytes(&shape, &size);
    struct opened_model o;
    opened_model_open(&o, shape.name, bytes, size);
    struct texts plain = {0}, drafted = {0};
    write_texts(&o.model, PLAIN, &plain);
    assert_int_equal(plain.drafted, 0);
    for (enum how how = LOOKUP; how <= (written ? WRITTEN : LOOKUP); how++) {
        write_texts(&o.model, how, &drafted);
        for (int i = 1; i <= REQUESTS; i++) {
            const int n = i == CANCELLED ? TOKENS / 2 : TOKENS;
            if (plain.n[i] < n || drafted.n[i] < n ||
                memcmp(plain.tokens[i], drafted.tokens[i], (size_t)n * sizeof(int32_t)))
                fail_msg("%s %s: answer %d is another with drafts", shape.name, block_formats[format].name, i);
        }
        total[how].drafted += drafted.drafted;
        total[how].accepted += drafted.accepted;
        total[how].pre_empted += drafted.pre_empted;
    }
    opened_model_close(&o);
}

static void test_text_is_the_same_to_the_bit(void **state) {
    (void)state;
    for (int i = 0; i < tiny_family_count; i++) {
        check_shape(tiny_families[i], BLOCK_F32, i % 3 == 0);
        check_shape(tiny_families[i], i % 2 ? BLOCK_Q8_0 : BLOCK_Q4_0, false);
    }
    static const enum block_id blocks[] = {BLOCK_BF16, BLOCK_Q4_K, BLOCK_Q6_K, BLOCK_IQ4_XS, BLOCK_MXFP4};
    struct tiny_shape wide = tiny_families[0];
    wide.n_embd = 256, wide.n_ff = 512, wide.head_size = 32, wide.n_head = 8, wide.n_head_kv = 4;
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++) check_shape(wide, blocks[k], true);
    for (enum how how = LOOKUP; how <= WRITTEN; how++) {
        print_message("%d of %d drafted tokens accepted, %d pre-empted\n", total[how].accepted, total[how].drafted,
                      total[how].pre_empted);
        assert_true(total[how].accepted > 500);
        assert_true(total[how].drafted > total[how].accepted + 100);
        assert_true(total[how].pre_empted > 10);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text_is_the_same_to_the_bit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
