// A model placed on two backends of half the layers each: the bits are those of one backend with all layers.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/panic.h"
#include "engine/serve/placement.h"
#include "tests/unit/opened_model.h"
#include "tests/unit/scheduler_bench.h"
#include "tests/unit/tiny_families.h"
#include "tests/unit/tiny_model.h"
#include "tests/unit/toy_backend.h"

enum { N_TOKENS = 75, N_PAGES = 24, LONG = 700, LONG_PAGES = (LONG + KV_PAGE_TOKENS - 1) / KV_PAGE_TOKENS };

static bool open_family(struct opened_model *s, const char *name, int n_context) {
    for (int i = 0; i < tiny_family_count; i++) {
        if (strcmp(tiny_families[i].architecture, name)) continue;
        struct tiny_shape shape = tiny_families[i];
        size_t size;
        if (n_context) shape.n_context = n_context;
        void *bytes = tiny_shape_bytes(&shape, &size);
        opened_model_open(s, name, bytes, size);
        return true;
    }
    return false;
}

static struct placement_plan halves(const struct model *m) {
    const int n = m->spec.n_layer;
    assert_true(n >= 2);
    return (struct placement_plan){.parts = {{&cpu_backend, 0, 0, n / 2, 0}, {&cpu_backend, 0, n / 2, n, 0}}, .n = 2};
}

static struct placement *open_placement(const struct model *m, bool two, struct backend_params params) {
    const struct placement_plan plan = two ? halves(m) : placement_on(&cpu_backend, 0);
    struct status st = {0};
    params.model = m;
    struct placement *p = placement_open(&plan, &params, &st);
    if (!p) fail_msg("%s", st.text);
    return p;
}

static int token(const struct model *m, int position) { return (position * 7 + position * position) % m->spec.n_vocab; }

// Rows [first, first + n) of a sequence, every third of which wants its logits, every fifth its hidden state: appends
// them to `out`.
static float *run(struct placement *p, const struct model *m, int first, int n, const int32_t *pages, float *out) {
    struct batch_row *rows = xcalloc((size_t)n, sizeof *rows);
    for (int i = 0; i < n; i++)
        rows[i] =
            (struct batch_row){.token = token(m, first + i),
                               .output = ((first + i) % 3 ? 0u : ROW_LOGITS) | ((first + i) % 5 ? 0u : ROW_HIDDEN)};
    const struct batch_segment segment = {0, n, first, pages};
    struct backend_result result;
    struct status st = {0};
    if (!placement_run(p, &(struct batch){.n_rows = n, .n_segments = 1, .rows = rows, .segments = &segment}, &result,
                       &st))
        fail_msg("%s", st.text);
    for (int i = 0, logits = 0, hidden = 0; i < n; i++) {
        if (rows[i].output & ROW_LOGITS) {
            memcpy(out, result.logits + (size_t)logits++ * (size_t)m->spec.n_vocab,
                   (size_t)m->spec.n_vocab * sizeof *out);
            out += m->spec.n_vocab;
        }
        if (rows[i].output & ROW_HIDDEN) {
            memcpy(out, result.hidden + (size_t)hidden++ * (size_t)result.hidden_stride,
                   (size_t)m->spec.n_embd * sizeof *out);
            out += m->spec.n_embd;
        }
    }
    assert_true(result.work.stages[STAGE_EMBED].bytes > 0 && result.work.stages[STAGE_FEED].bytes > 0);
    free(rows);
    return out;
}

// What all rows of a sequence want of a placement, computed in chunks; the caller frees.
static float *run_sequence(struct placement *p, const struct model *m, int n, int chunk, size_t *size) {
    int32_t pages[LONG_PAGES];
    const size_t most = (size_t)n * (size_t)(m->spec.n_vocab + m->spec.n_embd);
    float *all = xcalloc(most, sizeof *all), *end = all;
    for (int i = 0; i < LONG_PAGES; i++) pages[i] = (i * 5 + 1) % LONG_PAGES;
    for (int first = 0; first < n; first += chunk)
        end = run(p, m, first, n - first < chunk ? n - first : chunk, pages, end);
    *size = (size_t)(end - all);
    return all;
}

static void compare(const struct model *m, const char *name, struct backend_params params, int n, int chunk) {
    float *found[2];
    size_t size[2];
    params.n_threads = 2;
    params.n_pages = LONG_PAGES;
    params.max_rows = params.max_logits = params.max_hidden = chunk;
    for (int two = 0; two < 2; two++) {
        struct placement *p = open_placement(m, two, params);
        found[two] = run_sequence(p, m, n, chunk, &size[two]);
        placement_close(p);
    }
    assert_true(size[0] > 0 && size[0] == size[1]);
    if (memcmp(found[0], found[1], size[0] * sizeof(float))) fail_msg("%s: two halves compute something else", name);
    free(found[0]), free(found[1]);
}

// Every family, so experts, windows, post norms and parallel layers too; exact, and with each type of KV cache in turn.
static void test_every_family(void **state) {
    (void)state;
    int compared = 0;
    for (int i = 0; i < tiny_family_count; i++) {
        struct opened_model s;
        if (tiny_families[i].n_layer < 2 || tiny_families[i].n_layer > 8) continue;
        assert_true(open_family(&s, tiny_families[i].architecture, 0));
        compare(&s.model, s.gguf.path, (struct backend_params){.options.exact = true}, N_TOKENS, 30);
        compare(&s.model, s.gguf.path, (struct backend_params){.options.kv_type = (enum kv_type)(i % KV_TYPES)},
                N_TOKENS, N_TOKENS);
        opened_model_close(&s);
        compared++;
    }
    assert_true(compared > 20);
}

// Longer than a split of attention, over windows.
static void test_long_prompts(void **state) {
    (void)state;
    const char *const names[] = {"gpt-oss", "gemma2", "qwen3moe"};
    for (int i = 0; i < 3; i++) {
        struct opened_model s;
        assert_true(open_family(&s, names[i], 2 * LONG));
        compare(&s.model, names[i], (struct backend_params){.options.kv_type = KV_Q8_0}, LONG, 256);
        opened_model_close(&s);
    }
}

static struct placement *open_tiny_halves(struct opened_model *s, bool two) {
    size_t size;
    void *bytes = tiny_model_bytes((struct tiny_model_options){.format = BLOCK_Q8_0, .n_layer = 4}, &size);
    opened_model_open(s, "tiny", bytes, size);
    return open_placement(
        &s->model, two,
        (struct backend_params){
            .n_threads = 2, .n_pages = N_PAGES, .max_rows = N_TOKENS, .max_logits = N_TOKENS, .max_hidden = N_TOKENS});
}

// Pages that are read out and written in have the bytes of both halves; what one backend read out two take in.
static void test_pages_go_from_one_placement_to_another(void **state) {
    (void)state;
    struct opened_model s[2];
    struct placement *p[2] = {open_tiny_halves(&s[0], false), open_tiny_halves(&s[1], true)};
    const size_t bytes = placement_info(p[0])->page_bytes;
    assert_int_equal(placement_info(p[1])->page_bytes, bytes);
    float want[4096], got[4096];
    const int32_t pages[] = {7, 3, 5}, others[] = {2, 9, 4};
    assert_true((size_t)(s[0].model.spec.n_vocab + s[0].model.spec.n_embd) * 2 < 4096);
    float *all = xcalloc(N_TOKENS * 4096, sizeof *all);
    run(p[0], &s[0].model, 0, N_TOKENS, pages, all);
    const float *end = run(p[0], &s[0].model, N_TOKENS, 1, pages, want); // row 75: logits and hidden state
    struct page_transfer out[3], in[3];
    for (int i = 0; i < 3; i++) {
        out[i] = (struct page_transfer){pages[i], xmalloc(bytes)};
        in[i] = (struct page_transfer){others[i], out[i].data};
    }
    struct backend_result result;
    assert_true(placement_run(p[0], &(struct batch){.n_reads = 3, .reads = out}, &result, NULL));
    assert_true(placement_run(p[1], &(struct batch){.n_writes = 3, .writes = in}, &result, NULL));
    run(p[1], &s[1].model, N_TOKENS, 1, others, got);
    assert_memory_equal(got, want, (size_t)(end - want) * sizeof *want);
    for (int i = 0; i < 3; i++) free(out[i].data);
    free(all);
    for (int i = 0; i < 2; i++) placement_close(p[i]), opened_model_close(&s[i]);
}

static bool stop(void *context) {
    (void)context;
    return true;
}

// The first half gives up; the copies of the second are made nonetheless.
static void test_copies_are_made_in_a_batch_given_up(void **state) {
    (void)state;
    struct opened_model s;
    struct placement *p = open_tiny_halves(&s, true);
    float want[4096], got[4096];
    float *all = xcalloc(N_TOKENS * 4096, sizeof *all);
    int32_t pages[] = {0, 1, 2};
    run(p, &s.model, 0, N_TOKENS, pages, all);
    const float *end = run(p, &s.model, N_TOKENS, 1, pages, want);
    const struct page_copy copies[] = {{10, 0}, {11, 1}, {12, 2}};
    const int32_t elsewhere[] = {20};
    const struct batch_row row = {.token = 1};
    const struct batch_segment segment = {0, 1, 0, elsewhere};
    struct backend_result result;
    struct status st = {0};
    assert_false(placement_run(p,
                               &(struct batch){.n_copies = 3,
                                               .copies = copies,
                                               .n_rows = 1,
                                               .n_segments = 1,
                                               .rows = &row,
                                               .segments = &segment,
                                               .stop = stop},
                               &result, &st));
    assert_int_equal(st.code, STATUS_CANCELLED);
    for (int i = 0; i < 3; i++) pages[i] = copies[i].to;
    run(p, &s.model, N_TOKENS, 1, pages, got);
    assert_memory_equal(got, want, (size_t)(end - want) * sizeof *want);
    free(all);
    placement_close(p), opened_model_close(&s);
}

// A quick start puts off the weights of both halves; each is repacked in its turn.
static void test_both_halves_are_repacked(void **state) {
    (void)state;
    struct opened_model s;
    size_t size;
    const struct tiny_model_options options = {.format = BLOCK_Q8_0, .n_layer = 2, .n_embd = 512, .n_ff = 8192};
    void *bytes = tiny_model_bytes(options, &size);
    opened_model_open(&s, "tiny", bytes, size);
    const struct backend_params params = {.n_threads = 1, .n_pages = 4, .max_rows = 1, .options.quick_start = true};
    int steps[2] = {1, 1};
    for (int two = 0; two < 2; two++) {
        struct placement *p = open_placement(&s.model, two, params);
        while (placement_repack(p)) steps[two]++;
        assert_false(placement_repack(p));
        placement_close(p);
    }
    assert_true(steps[0] > 4 && steps[1] >= steps[0] - 1);
    opened_model_close(&s);
}

struct told {
    int n;
    double last;
};

static bool tell(void *context, double done) {
    struct told *t = context;
    assert_true(done > t->last && done <= 1);
    t->last = done;
    t->n++;
    return true;
}

static void test_progress_and_memory_are_of_both(void **state) {
    (void)state;
    struct opened_model s;
    size_t size;
    void *bytes =
        tiny_model_bytes((struct tiny_model_options){.format = BLOCK_Q8_0, .n_layer = 4, .n_embd = 512}, &size);
    opened_model_open(&s, "tiny", bytes, size);
    struct told told = {0};
    struct backend_params params = {.model = &s.model,
                                    .n_threads = 1,
                                    .n_pages = 4,
                                    .max_rows = 1,
                                    .max_logits = 1,
                                    .options = {.progress = tell, .progress_context = &told}};
    struct backend_memory one, two;
    const struct placement_plan whole = placement_on(&cpu_backend, 0), parts = halves(&s.model);
    assert_true(placement_measure(&whole, &params, &one, NULL) && placement_measure(&parts, &params, &two, NULL));
    assert_int_equal(one.kv, two.kv);
    assert_true(two.weights < one.weights + one.weights / 50 && two.buffers > one.buffers);
    placement_close(open_placement(&s.model, true, params));
    assert_true(told.n >= 2 && told.last == 1);
    opened_model_close(&s);
}

static void test_each_part_says_where_it_is(void **state) {
    (void)state;
    struct opened_model s;
    size_t size;
    void *bytes = tiny_model_bytes((struct tiny_model_options){.n_layer = 4}, &size);
    opened_model_open(&s, "tiny", bytes, size);
    struct backend_params params = {.model = &s.model, .n_threads = 1, .n_pages = 4, .max_rows = 1, .max_logits = 1};
    struct placement_plan plan = {
        .parts = {{.ops = &cpu_backend, .end_layer = 1}, {.ops = &toy_backend, .first_layer = 1, .end_layer = 4}},
        .n = 2};
    struct engine_metrics *f = xcalloc(1, sizeof *f);
    struct backend_memory taken;
    struct status st = {0};
    struct placement *p = placement_open(&plan, &params, &st);
    if (!p) fail_msg("%s", st.text);
    f->n_parts = placement_parts(p, f->parts);
    assert_int_equal(f->n_parts, 2);
    assert_string_equal(f->parts[0].device, "cpu");
    assert_string_equal(f->parts[1].device, "toy");
    assert_string_equal(f->parts[1].description, "toy");
    assert_string_equal(placement_info(p)->description, "cpu + toy");
    assert_true(f->parts[0].first_layer == 0 && f->parts[0].end_layer == 1);
    assert_true(f->parts[1].first_layer == 1 && f->parts[1].end_layer == 4);
    assert_true(placement_measure(&plan, &params, &taken, &st));
    assert_true(f->parts[0].weights > 0 && f->parts[0].buffers > 0 && f->parts[1].kv > 0);
    assert_int_equal(f->parts[0].kv + f->parts[1].kv, taken.kv);
    assert_ptr_equal(metrics_main_part(f), &f->parts[1]);
    assert_true(metrics_on_devices(f->parts, 2) && !metrics_on_devices(f->parts, 1));
    metrics_set_unknown(f);
    assert_null(metrics_main_part(f));
    free(f);
    placement_close(p);
    plan = placement_on(&toy_backend, 0);
    assert_non_null(p = placement_open(&plan, &params, &st));
    struct part_metrics all[METRICS_MAX_PARTS];
    assert_int_equal(placement_parts(p, all), 1);
    assert_true(all[0].first_layer == 0 && all[0].end_layer == 4); // all layers, as 0 and 0 say
    placement_close(p);
    opened_model_close(&s);
}

// Conversations that share pages, copy them before they write and lose them to each other: the texts are the same.
static void test_scheduling_over_two_halves(void **state) {
    (void)state;
    struct opened_model s;
    assert_true(open_family(&s, "gpt-oss", 512));
    struct bench *b[2];
    for (int two = 0; two < 2; two++) {
        b[two] =
            bench_open((struct bench_options){.n_pages = 14,
                                              .context = 400,
                                              .chunk = 40,
                                              .model = &s.model,
                                              .placement = two ? halves(&s.model) : placement_on(&cpu_backend, 0)});
        bench_submit(b[two], 1, 75, 70, 60);
        bench_run(b[two]);
        for (uint64_t id = 2; id < 6; id++) bench_submit(b[two], id, 74 + (int)id, 70, 90);
        bench_run(b[two]);
    }
    int pending = 0;
    for (uint64_t id = 1; id < 6; id++) {
        const struct bench_answer *one = &b[0]->answers[id], *two = &b[1]->answers[id];
        assert_true(one->n > 0 && one->n == two->n);
        assert_memory_equal(one->tokens, two->tokens, (size_t)one->n * sizeof *one->tokens);
        pending += two->times_pending;
        if (id > 1) assert_int_equal(two->n_reused, 70); // in the middle of a page, which is copied
    }
    assert_true(pending > 5); // some were pre-empted
    bench_close(b[0]), bench_close(b[1]);
    opened_model_close(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_family),
        cmocka_unit_test(test_long_prompts),
        cmocka_unit_test(test_pages_go_from_one_placement_to_another),
        cmocka_unit_test(test_copies_are_made_in_a_batch_given_up),
        cmocka_unit_test(test_both_halves_are_repacked),
        cmocka_unit_test(test_progress_and_memory_are_of_both),
        cmocka_unit_test(test_each_part_says_where_it_is),
        cmocka_unit_test(test_scheduling_over_two_halves),
    };
    return cmocka_run_group_tests_name("placement", tests, NULL, NULL);
}
