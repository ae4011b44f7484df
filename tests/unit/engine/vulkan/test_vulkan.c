// The Vulkan backend against the CPU's exact path, on the first Vulkan device there is: Mesa's lavapipe, where no GPU
// is. Skipped without a device.
#include <math.h>
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
#ifdef CONFAB_VULKAN
#include "engine/vulkan/device.h"
#endif
#include "tests/unit/cases.h"
#include "tests/unit/opened_backend.h"
#include "tests/unit/opened_model.h"
#include "tests/unit/scheduler_bench.h"
#include "tests/unit/temporary_folder.h"
#include "tests/unit/tiny_families.h"
#include "tests/unit/tiny_model.h"
#include "tests/unit/vulkan_validation.h"

enum { N_TOKENS = 36, N_PAGES = 8 };

static void open_shape(struct opened_model *s, struct tiny_shape shape) {
    size_t size;
    void *bytes = tiny_shape_bytes(&shape, &size);
    opened_model_open(s, shape.name, bytes, size);
}

static void open_tiny(struct opened_model *s, struct tiny_model_options options) {
    size_t size;
    void *bytes = tiny_model_bytes(options, &size);
    opened_model_open(s, "tiny", bytes, size);
}

static const struct backend_ops *device_ops(void) {
#ifdef CONFAB_VULKAN
    struct device device;
    if (vulkan_backend.devices(&device, 1)) return &vulkan_backend;
    print_message("no Vulkan device: skipped\n");
#else
    print_message("built without Vulkan: skipped\n");
#endif
    skip();
    return NULL;
}

// ---- what a model computes ----

struct plan {
    struct placement_plan parts;
    struct backend_params params;
};

static struct plan on(const struct backend_ops *ops, struct backend_params params) {
    return (struct plan){placement_on(ops, 0), params};
}

static struct placement *open_plan(const struct opened_model *s, const struct plan *plan) {
    struct backend_params params = plan->params;
    struct status st = {0};
    params.model = &s->model;
    params.n_threads = 1;
    params.n_pages = N_PAGES;
    params.max_rows = params.max_logits = params.max_hidden = N_TOKENS;
    struct placement *p = placement_open(&plan->parts, &params, &st);
    if (!p) fail_msg("%s: %s", s->gguf.path, st.text);
    return p;
}

struct rows {
    int first, n; // positions of a sequence
    const int32_t *pages;
    const float *embeddings; // [n, n_embd], in the place of tokens; or NULL
    unsigned output;
};

static int token(const struct model *m, int position) { return (position * 7 + position * position) % m->spec.n_vocab; }

// Results of rows, of all of which the same is wanted: the backend's.
static struct backend_result run(struct placement *p, const struct model *m, const struct rows *r) {
    struct batch_row rows[N_TOKENS] = {0};
    for (int i = 0; i < r->n; i++)
        rows[i] = (struct batch_row){.token = token(m, r->first + i),
                                     .output = r->output,
                                     .embedding = r->embeddings ? r->embeddings + i * m->spec.n_embd : NULL};
    const struct batch_segment segment = {0, r->n, r->first, r->pages};
    struct backend_result result;
    struct status st = {0};
    if (!placement_run(p, &(struct batch){.n_rows = r->n, .n_segments = 1, .rows = rows, .segments = &segment}, &result,
                       &st))
        fail_msg("%s", st.text);
    return result;
}

static const int32_t some_pages[] = {5, 2};

// Logits of N_TOKENS tokens, in chunks; the caller frees.
static float *logits_of(const struct opened_model *s, const struct plan *plan, int chunk) {
    const size_t n_vocab = (size_t)s->model.spec.n_vocab;
    struct placement *p = open_plan(s, plan);
    float *all = xmalloc(N_TOKENS * n_vocab * sizeof *all);
    for (int first = 0; first < N_TOKENS; first += chunk) {
        const int n = N_TOKENS - first < chunk ? N_TOKENS - first : chunk;
        const struct rows rows = {first, n, some_pages, NULL, ROW_LOGITS};
        memcpy(all + (size_t)first * n_vocab, run(p, &s->model, &rows).logits, (size_t)n * n_vocab * sizeof *all);
    }
    placement_close(p);
    return all;
}

static double distance(const struct opened_model *s, const struct plan *plan, int chunk, const float *exact) {
    float *got = logits_of(s, plan, chunk);
    const double error = nmse(got, exact, (size_t)N_TOKENS * (size_t)s->model.spec.n_vocab);
    free(got);
    return error;
}

static float *exact_logits(const struct opened_model *s) {
    const struct plan exact = on(&cpu_backend, (struct backend_params){.options.exact = true});
    return logits_of(s, &exact, N_TOKENS);
}

static void check_near(const struct opened_model *s, const struct plan *plan, int chunk, const char *name) {
    float *exact = exact_logits(s);
    const double error = distance(s, plan, chunk, exact);
    if (!(error <= 1e-5)) fail_msg("%s: %g from exact", name, error);
    free(exact);
}

// At most twice as far from exact as the CPU's fast path.
static void check_like_cpu(const struct opened_model *s, struct backend_params params, int chunk, const char *name) {
    float *exact = exact_logits(s);
    const struct plan ours = on(device_ops(), params), cpu = on(&cpu_backend, params);
    const double error = distance(s, &ours, chunk, exact), allowed = 2 * distance(s, &cpu, chunk, exact) + 1e-6;
    if (!(error <= allowed)) fail_msg("%s: %g from exact, allowed %g", name, error, allowed);
    free(exact);
}

// ---- tests ----

static void test_every_family(void **state) {
    (void)state;
    const struct plan plan = on(device_ops(), (struct backend_params){0});
    for (int i = 0; i < tiny_family_count; i += CASE_STEP) {
        struct opened_model s;
        if (tiny_families[i].n_layer > 8) continue;
        open_shape(&s, tiny_families[i]);
        check_near(&s, &plan, N_TOKENS, tiny_families[i].name);
        opened_model_close(&s);
    }
}

// A few of them: tests/kernels/test_shader_matmuls.c has every format by itself.
static void test_formats(void **state) {
    (void)state;
    for (int format = 0; format < BLOCK_FORMAT_COUNT; format += 8) {
        struct opened_model s;
        open_tiny(&s, (struct tiny_model_options){.format = (enum block_id)format, .n_embd = 256, .n_ff = 256});
        check_like_cpu(&s, (struct backend_params){0}, 9, block_formats[format].name);
        opened_model_close(&s);
    }
}

// Matrices and batches that are large enough for tiles: by cooperative matrices, where the device has them.
static void test_prompts(void **state) {
    (void)state;
    const struct plan ours = on(device_ops(), (struct backend_params){0});
    const struct plan cpu = on(&cpu_backend, (struct backend_params){0});
    static const enum block_id formats[] = {BLOCK_Q4_K, BLOCK_Q8_0, BLOCK_F16};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        struct opened_model s;
        open_tiny(&s, (struct tiny_model_options){.format = formats[i], .n_embd = 256, .n_ff = 512});
        float *exact = exact_logits(&s);
        const double error = distance(&s, &ours, N_TOKENS, exact),
                     allowed = 2 * distance(&s, &cpu, N_TOKENS, exact) + 1e-6;
        if (!(error <= allowed)) fail_msg("%s: %g, allowed %g", block_formats[formats[i]].name, error, allowed);
        free(exact);
        opened_model_close(&s);
    }
}

// With heads of a size that is no whole number of blocks too.
static void test_every_kv_type(void **state) {
    (void)state;
    for (int type = 0; type < KV_TYPES; type++) {
        const int size = type % 2 ? 40 : 64;
        char name[64];
        struct opened_model s;
        snprintf(name, sizeof name, "KV type %d, heads of %d", type, size);
        open_tiny(&s, (struct tiny_model_options){.n_head = 2, .n_head_kv = 1, .head_size = size});
        check_like_cpu(&s, (struct backend_params){.options.kv_type = (enum kv_type)type}, 7, name);
        opened_model_close(&s);
    }
}

// ---- long contexts, whose keys several work groups share ----

enum { LONG = 300, LONG_PAGES = 13, LONG_ROWS = 27 };

static struct placement *open_long(const struct opened_model *s, const struct plan *plan) {
    struct backend_params params = plan->params;
    struct status st = {0};
    params.model = &s->model;
    params.n_threads = 1;
    params.n_pages = LONG_PAGES;
    params.max_rows = 100;
    params.max_logits = LONG_ROWS;
    struct placement *p = placement_open(&plan->parts, &params, &st);
    if (!p) fail_msg("%s: %s", s->gguf.path, st.text);
    return p;
}

// Stale pages hold NaN in every type of keys and values.
static void spoil_pages(struct placement *p) {
    const size_t bytes = placement_info(p)->page_bytes;
    struct page_transfer writes[LONG_PAGES];
    struct backend_result result;
    void *data = xmalloc(bytes);
    memset(data, 0xff, bytes);
    for (int i = 0; i < LONG_PAGES; i++) writes[i] = (struct page_transfer){i, data};
    assert_true(placement_run(p, &(struct batch){.n_writes = LONG_PAGES, .writes = writes}, &result, NULL));
    free(data);
}

// Logits of a conversation's last row, of a new one and of three rows that share the first one's pages, in one batch.
static float *long_logits(const struct opened_model *s, const struct plan *plan) {
    static const int32_t pages[] = {7, 1, 10, 2, 9, 3, 8, 4, 0, 5}, other[] = {6}, shared[] = {7, 1, 10, 2, 11};
    const struct batch_segment segments[] = {{0, 1, LONG - 1, pages}, {1, 23, 0, other}, {24, 3, 4 * 32, shared}};
    struct placement *p = open_long(s, plan);
    struct batch_row rows[100] = {0};
    struct backend_result result;
    struct status st = {0};
    spoil_pages(p);
    for (int first = 0; first < LONG - 1; first += 100) {
        const struct batch_segment chunk = {0, first + 100 < LONG ? 100 : LONG - 1 - first, first, pages};
        for (int i = 0; i < chunk.n_rows; i++) rows[i].token = token(&s->model, first + i);
        const struct batch batch = {.n_rows = chunk.n_rows, .n_segments = 1, .rows = rows, .segments = &chunk};
        if (!placement_run(p, &batch, &result, &st)) fail_msg("%s", st.text);
    }
    for (int i = 0; i < LONG_ROWS; i++) rows[i] = (struct batch_row){.token = i, .output = ROW_LOGITS};
    const struct batch batch = {.n_rows = LONG_ROWS, .n_segments = 3, .rows = rows, .segments = segments};
    if (!placement_run(p, &batch, &result, &st)) fail_msg("%s", st.text);
    const size_t size = (size_t)LONG_ROWS * (size_t)s->model.spec.n_vocab * sizeof(float);
    float *copy = memcpy(xmalloc(size), result.logits, size);
    placement_close(p);
    return copy;
}

// With sinks, and a window in every other layer that begins in the middle of a page.
static void test_long_contexts(void **state) {
    (void)state;
    const struct plan plans[] = {on(&cpu_backend, (struct backend_params){.options.exact = true}),
                                 on(device_ops(), (struct backend_params){0})};
    struct tiny_shape shape = {0};
    for (int i = 0; i < tiny_family_count; i++)
        if (!strcmp(tiny_families[i].name, "gpt-oss")) shape = tiny_families[i];
    shape.n_layer = 2;
    for (struct tiny_key *key = shape.keys; key->name; key++)
        if (!strcmp(key->name, "attention.sliding_window")) key->number = 270;
    struct opened_model s;
    open_shape(&s, shape);
    float *want = long_logits(&s, &plans[0]), *got = long_logits(&s, &plans[1]);
    const double error = nmse(got, want, (size_t)LONG_ROWS * (size_t)s.model.spec.n_vocab);
    if (!(error <= 1e-5)) fail_msg("%g from exact", error);
    free(want);
    free(got);
    opened_model_close(&s);
}

static void test_half_on_each_device(void **state) {
    (void)state;
    const struct backend_ops *ops = device_ops();
    struct opened_model s;
    open_tiny(&s, (struct tiny_model_options){.n_layer = 4});
    const struct placement_plan plans[] = {{.parts = {{ops, 0, 0, 2, 0}, {&cpu_backend, 0, 2, 4, 0}}, .n = 2},
                                           {.parts = {{&cpu_backend, 0, 0, 1, 0}, {ops, 0, 1, 4, 0}}, .n = 2},
                                           {.parts = {{ops, 0, 0, 3, 0}, {ops, 0, 3, 4, 0}}, .n = 2}};
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        const char *const names[] = {"device, then cpu", "cpu, then device", "device twice"};
        check_near(&s, &(struct plan){plans[i], {0}}, 20, names[i]);
    }
    opened_model_close(&s);
}

// The last row is not finite, which changes nothing for those before it.
static void test_hidden_states_and_embeddings(void **state) {
    (void)state;
    const struct backend_ops *ops = device_ops();
    struct opened_model s;
    open_tiny(&s, (struct tiny_model_options){0});
    const struct plan plans[] = {on(&cpu_backend, (struct backend_params){.options.exact = true}),
                                 on(ops, (struct backend_params){0})};
    const size_t n_embd = (size_t)s.model.spec.n_embd, n = N_TOKENS * n_embd;
    float *embeddings = xmalloc(n * sizeof *embeddings), *want = xmalloc(n * sizeof *want);
    for (size_t i = 0; i < n; i++) embeddings[i] = i < n - n_embd ? (float)((i * 37 + 11) % 201) / 100 - 1 : NAN;
    for (int k = 0; k < 2; k++) {
        struct placement *p = open_plan(&s, &plans[k]);
        const struct rows rows = {0, N_TOKENS, some_pages, embeddings, ROW_HIDDEN};
        const struct backend_result result = run(p, &s.model, &rows);
        assert_int_equal(result.hidden_stride, n_embd);
        if (!k) memcpy(want, result.hidden, n * sizeof *want);
        else assert_true(nmse(result.hidden, want, n - n_embd) <= 1e-5);
        placement_close(p);
    }
    free(embeddings);
    free(want);
    opened_model_close(&s);
}

// Pages that were read out, written in elsewhere and copied there give the bits that the row had.
static void test_pages_move(void **state) {
    (void)state;
    const struct plan plan = on(device_ops(), (struct backend_params){.options.kv_type = KV_Q8_0});
    struct opened_model s;
    open_tiny(&s, (struct tiny_model_options){0});
    struct placement *p = open_plan(&s, &plan);
    const size_t n_vocab = (size_t)s.model.spec.n_vocab;
    float *want = xmalloc(n_vocab * sizeof *want);
    struct rows rows = {0, N_TOKENS - 1, some_pages, NULL, 0};
    run(p, &s.model, &rows);
    rows = (struct rows){N_TOKENS - 1, 1, some_pages, NULL, ROW_LOGITS};
    memcpy(want, run(p, &s.model, &rows).logits, n_vocab * sizeof *want);

    const size_t bytes = placement_info(p)->page_bytes;
    struct page_transfer out[2], in[2];
    for (int i = 0; i < 2; i++) {
        out[i] = (struct page_transfer){some_pages[i], xmalloc(bytes)};
        in[i] = (struct page_transfer){i, out[i].data};
    }
    const struct page_copy copies[] = {{6, 0}, {7, 1}, {3, 6}};
    struct backend_result result;
    assert_true(placement_run(
        p, &(struct batch){.n_reads = 2, .reads = out, .n_writes = 2, .writes = in, .n_copies = 3, .copies = copies},
        &result, NULL));
    rows.pages = (const int32_t[]){3, 7};
    assert_memory_equal(run(p, &s.model, &rows).logits, want, n_vocab * sizeof *want);
    for (int i = 0; i < 2; i++) free(out[i].data);
    free(want);
    placement_close(p);
    opened_model_close(&s);
}

#ifdef CONFAB_VULKAN
static bool stop_at_zero(void *context) { return !(*(int *)context)--; }

// Weights and all else come through staging buffers where a device's memory is not the host's.
static void test_memory_of_its_own(void **state) {
    struct vulkan_device *device = *state;
    const struct plan plan = on(device_ops(), (struct backend_params){0});
    struct opened_model s;
    open_tiny(&s, (struct tiny_model_options){.n_layer = 2});
    const bool shares = device->shares_memory;
    device->shares_memory = false;
    check_near(&s, &plan, N_TOKENS, "staged");
    device->maps_memory = false;
    check_near(&s, &plan, N_TOKENS, "staged, rows and pages copied");
    device->maps_memory = true;
    device->shares_memory = shares;
    opened_model_close(&s);
}

// At most twice as far from exact as the CPU's fast path, for matrices as halves, whole ones and slices.
static void check_widened(struct vulkan_device *device, struct opened_model *s, const char *name) {
    const struct vulkan_device usual = *device;
    device->widening_rows = 4;
    check_like_cpu(s, (struct backend_params){0}, N_TOKENS, name);
    device->widened_bytes = 150 << 10;
    check_like_cpu(s, (struct backend_params){0}, N_TOKENS, name);
    device->widening_rows = usual.widening_rows;
    device->widened_bytes = usual.widened_bytes;
    opened_model_close(s);
}

static void test_widened(void **state) {
    struct vulkan_device *device = *state;
    static const struct tiny_model_options options[] = {{.format = BLOCK_Q4_K, .n_embd = 256, .n_ff = 512},
                                                        {.format = BLOCK_F16, .n_embd = 256, .n_ff = 320},
                                                        {.format = BLOCK_Q8_0, .n_embd = 160, .n_ff = 416}};
    struct opened_model s;
    if (!device->cooperative.m) {
        print_message("no cooperative matrices: skipped\n");
        skip();
    }
    for (int i = 0; i < 3; i++) {
        open_tiny(&s, options[i]);
        check_widened(device, &s, block_formats[options[i].format].name);
    }
    for (int i = 0; i < tiny_family_count; i += CASE_STEP) {
        struct tiny_shape shape = tiny_families[i];
        if (strcmp(shape.name, "gpt-oss") && strcmp(shape.name, "qwen2moe")) continue;
        shape.format = BLOCK_Q8_0;
        open_shape(&s, shape);
        check_widened(device, &s, shape.name);
    }
}

// A pass that is handed over in many pieces gives the same bits, and can be given up between them.
static void test_long_passes(void **state) {
    struct vulkan_device *device = *state;
    const struct plan plan = on(device_ops(), (struct backend_params){0});
    struct opened_model s;
    open_tiny(&s, (struct tiny_model_options){0});
    float *whole = logits_of(&s, &plan, N_TOKENS), *pieces;
    const double usual = device->list_operations;
    device->list_operations = 1;
    pieces = logits_of(&s, &plan, N_TOKENS);
    assert_memory_equal(pieces, whole, N_TOKENS * (size_t)s.model.spec.n_vocab * sizeof *whole);

    struct placement *p = open_plan(&s, &plan);
    const struct batch_row row = {.token = 1, .output = ROW_LOGITS};
    const struct batch_segment segment = {0, 1, 0, some_pages};
    int left = 4, asked = left;
    struct batch batch = {
        .n_rows = 1, .n_segments = 1, .rows = &row, .segments = &segment, .stop = stop_at_zero, .stop_context = &left};
    struct backend_result result;
    struct status st;
    assert_false(placement_run(p, &batch, &result, &st));
    assert_int_equal(st.code, STATUS_CANCELLED);
    assert_int_equal(left, -1);
    left = 100;
    assert_true(placement_run(p, &batch, &result, &st));
    assert_true(left < 100 - asked);
    placement_close(p);
    device->list_operations = usual;
    free(whole);
    free(pieces);
    opened_model_close(&s);
}
#endif

// Eight conversations that share pages, copy them before they write and lose them to each other: each has the text that
// it has alone.
static void test_scheduling(void **state) {
    (void)state;
    const struct backend_ops *ops = device_ops();
    struct opened_model s;
    open_tiny(&s, (struct tiny_model_options){.n_layer = 2});
    struct bench_answer alone[10];
    for (int together = 0; together < 2; together++) {
        struct bench *b = bench_open((struct bench_options){
            .n_pages = 11, .context = 400, .chunk = 40, .model = &s.model, .placement = placement_on(ops, 0)});
        int pending = 0;
        for (uint64_t id = 1; id < 9; id++) {
            bench_submit(b, id, 74 + (int)id, 70, 30);
            if (!together || id == 1) bench_run(b);
        }
        bench_run(b);
        for (uint64_t id = 1; id < 9; id++) {
            const struct bench_answer *a = &b->answers[id];
            assert_true(a->n == 30);
            pending += a->times_pending;
            if (!together) alone[id] = *a;
            else assert_memory_equal(a->tokens, alone[id].tokens, (size_t)a->n * sizeof *a->tokens);
        }
        if (together) assert_true(pending > 8); // some were pre-empted
        bench_close(b);
    }
    opened_model_close(&s);
}

static void test_devices(void **state) {
    (void)state;
    struct device device = {0};
    const struct backend_ops *ops = device_ops();
    assert_true(ops->devices(&device, 1) == 1);
    ops->heaps(0, &device);
    assert_string_equal(device.name, "vulkan0");
    assert_true(device.description[0] && device.n_heaps > 0 && device.heaps[0].bytes > 0);
    for (int i = 0; i < device.n_heaps; i++) assert_true(device.heaps[i].free <= device.heaps[i].bytes);
    if (device.emulated) assert_int_equal(device.own_free, 0);
    else assert_null(strstr(device.description, "llvmpipe"));
}

static void test_limits(void **state) {
    (void)state;
    struct device_limits limits = {0};
    struct status st = {0};
    const struct backend_ops *ops = device_ops();
    assert_true(ops->limits(0, &limits, &st));
    assert_true(limits.read_bytes > 1e7 && limits.read_bytes < 1e14);
    assert_true(limits.float_operations > 1e7 && limits.float_operations < 1e16);
    assert_true(limits.int8_operations > 1e7 && limits.int8_operations < 1e16);
    assert_false(ops->limits(DEVICE_MOST, &limits, &st));
    assert_int_equal(st.code, STATUS_DEVICE);
}

static void test_validation(void **state) {
    (void)state;
    device_ops();
    vulkan_validation_check("the tests before");
}

// The device stays open from one test to the next, with its pipelines.
static int hold_device(void **state) {
#ifdef CONFAB_VULKAN
    vulkan_validation_start(temporary_folder_make());
    VkPhysicalDevice physical;
    if (vulkan_physical_devices(&physical, 1)) *state = vulkan_device_open(physical, NULL);
#endif
    (void)state;
    return 0;
}

static int release_device(void **state) {
#ifdef CONFAB_VULKAN
    if (*state) vulkan_device_close(*state);
#endif
    return temporary_folder_teardown(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_every_family),
        cmocka_unit_test(test_prompts),
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_every_kv_type),
        cmocka_unit_test(test_long_contexts),
        cmocka_unit_test(test_half_on_each_device),
        cmocka_unit_test(test_hidden_states_and_embeddings),
        cmocka_unit_test(test_pages_move),
        cmocka_unit_test(test_scheduling),
#ifdef CONFAB_VULKAN
        cmocka_unit_test(test_memory_of_its_own),
        cmocka_unit_test(test_long_passes),
        cmocka_unit_test(test_widened),
#endif
        cmocka_unit_test(test_validation),
    };
    return cmocka_run_group_tests(tests, hold_device, release_device);
}
