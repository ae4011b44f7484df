// The engine from outside: the context and KV cache that it has with the machine's memory.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/engine_fixture.h"
#include "tests/unit/tiny_families.h"

static void test_sizes(void **state) {
    (void)state;
    const struct {
        struct engine_params params;
        int context, n_pages; // 0: whatever the machine allows, up to 16 conversations
    } cases[] = {{{0}, 512, 0},
                 {{.context = 100}, 100, 0},
                 {{.context = 9999}, 512, 0},
                 {{.kv_tokens = 65}, 96, 3},
                 {{.kv_tokens = 128, .context = 50}, 50, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench *b = bench_open((struct tiny_model_options){0}, &toy_backend, cases[i].params);
        const struct engine_metrics *f = engine_metrics(b->client);
        assert_int_equal(f->context, cases[i].context);
        if (cases[i].n_pages) assert_int_equal(f->n_pages, cases[i].n_pages);
        else assert_true(f->n_pages * f->page_tokens >= f->context && f->n_pages <= 16 * (f->context + 31) / 32);
        struct backend_memory memory;
        toy_backend.measure(&(struct backend_params){.n_pages = f->n_pages}, &memory, NULL);
        assert_int_equal(f->kv_bytes, memory.kv);
        bench_close(b);
    }
}

static bool absurd_measure(const struct backend_params *params, struct backend_memory *out, struct status *st) {
    (void)st;
    *out = (struct backend_memory){.kv = (uint64_t)params->n_pages << 40};
    return true;
}

static void test_more_memory_than_there_is(void **state) {
    (void)state;
    struct bench *b = bench_open((struct tiny_model_options){0}, &toy_backend, (struct engine_params){0});
    struct backend_ops absurd = toy_backend;
    absurd.measure = absurd_measure;
    struct status st = {0};
    assert_null(local_engine_open_on(b->file, &(struct engine_params){.kv_tokens = 1024}, &absurd, &st));
    assert_int_equal(st.code, STATUS_MEMORY);
    assert_non_null(strstr(st.text, "a KV cache of 1024 tokens 33554432 MiB"));
    bench_close(b);
}

// Opens a model of this format on a machine with room for so many tokens beside everything else.
static void check_room_for(enum block_id format, int tokens) {
    const struct tiny_model_options options = {
        .format = format, .n_embd = 512, .n_ff = 2048, .n_layer = 2, .n_head = 16, .n_head_kv = 16, .n_context = 8192};
    struct bench *b = bench_open(options, &cpu_backend, (struct engine_params){.kv_tokens = tokens});
    struct engine_params params = {.n_threads = 2, .kv_tokens = tokens};
    struct model_memory need, planned;
    struct status st = {0};
    assert_true(local_engine_memory(b->file, &params, 0, &need, &st));
    assert_int_equal(engine_metrics(b->client)->kv_bytes, need.kv);
    bench_close_engine(b);
    memory_free = need.total;
    params.kv_tokens = 0;
    assert_true(local_engine_memory(b->file, &params, memory_free, &planned, &st));
    b->engine = local_engine_open(b->file, &params, &st);
    if (!b->engine) fail_msg("%s: %s", block_formats[format].name, st.text);
    b->client = engine_client_open(b->engine, &st);
    assert_true(planned.total <= memory_free);
    assert_int_equal(engine_metrics(b->client)->kv_bytes, planned.kv);
    assert_int_equal(engine_metrics(b->client)->context, planned.context);
    memory_free = PLENTY;
    bench_close(b);
}

static void test_a_model_gets_the_cache_that_fits_beside_its_tiles(void **state) {
    (void)state;
    for (int format = 0; format < BLOCK_FORMAT_COUNT; format++) check_room_for(format, 1024);
}

static void test_what_show_says_fits_can_be_opened(void **state) {
    (void)state;
    struct bench *b =
        bench_open((struct tiny_model_options){.format = BLOCK_IQ1_S, .n_embd = 512, .n_ff = 2048, .n_context = 65536},
                   &cpu_backend, (struct engine_params){.kv_tokens = 40000});
    struct status st = {0};
    struct model_memory need;
    assert_true(local_engine_memory(b->file, &(struct engine_params){.kv_tokens = 40000}, 0, &need, &st));
    memory_free = need.total;
    struct engine_params params = {.kv_tokens = local_engine_tokens_that_fit(b->file, KV_F16, memory_free),
                                   .options.quick_start = true};
    assert_true(params.kv_tokens > 39000 && params.kv_tokens <= 40000);
    struct engine *e = local_engine_open(b->file, &params, &st);
    if (!e) fail_msg("%s", st.text);
    engine_close(e);
    params.kv_tokens += 1000;
    assert_null(local_engine_open(b->file, &params, &st));
    assert_int_equal(st.code, STATUS_MEMORY);
    memory_free = PLENTY;
    bench_close(b);
}

// ---- LongRoPE ----

enum { LONG_IDS = 40 };

// Logits of some tokens by an engine with these over a model whose factors differ beyond 4096 tokens.
static float *long_logits(const struct engine_params *p, int n_context, size_t *n) {
    struct tiny_shape shape = {0};
    struct status st = {0};
    int32_t ids[LONG_IDS];
    size_t size;
    for (int i = 0; i < tiny_family_count; i++)
        if (!strcmp(tiny_families[i].name, "phi3-short")) shape = tiny_families[i];
    shape.n_context = n_context;
    void *bytes = tiny_shape_bytes(&shape, &size);
    struct model_file *file = model_file_open_memory("phi3.gguf", bytes, size, NULL, &st);
    if (!file) fail_msg("%s", st.text);
    *n = LONG_IDS * (size_t)model_file_info(file)->n_vocab;
    float *logits = xmalloc(*n * sizeof *logits);
    for (int i = 0; i < LONG_IDS; i++) ids[i] = 3 + i;
    struct engine *e = local_engine_open(file, p, &st);
    if (!e || !engine_logits(e, ids, LONG_IDS, logits, &st)) fail_msg("%s", st.text);
    engine_close(e);
    model_file_close(file);
    free(bytes);
    return logits;
}

static void test_long_rope_does_not_depend_on_memory(void **state) {
    (void)state;
    const struct {
        struct engine_params params;
        uint64_t memory_free;
        int n_context;
        bool is_long;
    } cases[] = {
        {{.n_threads = 1}, PLENTY, 131072, true},
        {{.n_threads = 1}, 24 << 20, 131072, true},
        {{.n_threads = 1, .kv_tokens = 64}, PLENTY, 131072, true},
        {{.n_threads = 1, .context = 8192, .kv_tokens = 64}, PLENTY, 131072, true},
        {{.n_threads = 1, .context = 4096}, PLENTY, 131072, false}, // asked for
        {{.n_threads = 1}, PLENTY, 4096, false},
        {{.n_threads = 1}, 24 << 20, 4096, false},
    };
    size_t n;
    float *want[2] = {long_logits(&cases[5].params, 4096, &n), long_logits(&cases[0].params, 131072, &n)};
    assert_memory_not_equal(want[0], want[1], n * sizeof(float));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memory_free = cases[i].memory_free;
        float *logits = long_logits(&cases[i].params, cases[i].n_context, &n);
        assert_memory_equal(logits, want[cases[i].is_long], n * sizeof *logits);
        free(logits);
    }
    memory_free = PLENTY;
    free(want[0]), free(want[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_more_memory_than_there_is),
        cmocka_unit_test(test_a_model_gets_the_cache_that_fits_beside_its_tiles),
        cmocka_unit_test(test_what_show_says_fits_can_be_opened),
        cmocka_unit_test(test_long_rope_does_not_depend_on_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
