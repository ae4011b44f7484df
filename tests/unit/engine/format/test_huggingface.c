// Hugging Face folders: a model of every family, written as a folder, computes the same as its GGUF file.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/backend.h"
#include "engine/base/panic.h"
#include "engine/format/huggingface.h"
#include "tests/unit/tiny_families.h"
#include "tests/unit/tiny_huggingface.h"

enum { ROWS = 24, PAGES = (ROWS + KV_PAGE_TOKENS - 1) / KV_PAGE_TOKENS };

struct folder {
    char path[40];
};

static struct folder new_folder(void) {
    struct folder f = {"/tmp/confab-huggingface-XXXXXX"};
    assert_non_null(mkdtemp(f.path));
    return f;
}

// ---- logits of a model ----

// Logits of the last rows after fixed tokens, on the exact path; the caller frees.
static float *logits_of(const struct gguf *g, const char *what, size_t *n) {
    struct model m;
    struct status st = {0};
    if (!model_open(&m, g, 0, &st)) fail_msg("%s: %s", what, st.text);
    struct batch_row rows[ROWS];
    int32_t pages[PAGES];
    for (int i = 0; i < ROWS; i++)
        rows[i] = (struct batch_row){.token = (i * 37 + 5) % m.spec.n_vocab,
                                     .output = i == ROWS / 2 || i == ROWS - 1 ? ROW_LOGITS : 0};
    for (int i = 0; i < PAGES; i++) pages[i] = i + 1;
    const struct batch_segment segment = {.n_rows = ROWS, .pages = pages};
    const struct batch batch = {.n_rows = ROWS, .n_segments = 1, .rows = rows, .segments = &segment};
    const struct backend_params params = {
        .model = &m, .n_threads = 1, .n_pages = PAGES + 1, .max_rows = ROWS, .max_logits = 2, .options.exact = true};
    struct backend *b = cpu_backend.open(&params, &st);
    if (!b) fail_msg("%s: %s", what, st.text);
    struct backend_result result;
    assert_true(cpu_backend.run(b, &batch, &result, &st));
    *n = 2 * (size_t)m.spec.n_vocab;
    float *copy = xmalloc(*n * sizeof *copy);
    memcpy(copy, result.logits, *n * sizeof *copy);
    cpu_backend.close(b);
    model_close(&m);
    return copy;
}

static double relative_error(const float *a, const float *b, size_t n) {
    double error = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        error += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        size += (double)b[i] * (double)b[i];
    }
    return error / size;
}

// ---- a shape as GGUF and as folder ----

struct pair {
    struct gguf original, imported;
    uint8_t *bytes;
    struct folder folder;
};

// Rounded so that x − 1 + 1 = x.
static void round_norms(struct gguf *g) {
    for (uint64_t i = 0; i < g->n_tensors; i++) {
        const struct gguf_tensor *t = &g->tensors[i];
        float *values = (float *)t->data; // in our own buffer
        if (t->n_dims != 1 || t->format->id != BLOCK_F32) continue;
        for (uint64_t k = 0; k < t->dims[0]; k++) values[k] = values[k] - 1 + 1;
    }
}

static void open_pair(struct pair *p, const struct tiny_shape *shape, struct tiny_huggingface_options options) {
    size_t size;
    struct status st = {0};
    p->bytes = tiny_shape_bytes(shape, &size);
    if (!gguf_open_memory(&p->original, shape->name, p->bytes, size, &st)) fail_msg("%s", st.text);
    if (!strncmp(shape->architecture, "gemma", 5)) round_norms(&p->original);
    p->folder = new_folder();
    tiny_huggingface_write(p->folder.path, &p->original, options);
    if (!huggingface_open(&p->imported, p->folder.path, true, &st)) fail_msg("%s: %s", shape->name, st.text);
}

static void close_pair(struct pair *p) {
    gguf_close(&p->original);
    gguf_close(&p->imported);
    free(p->bytes);
    tiny_huggingface_remove(p->folder.path);
}

static double compare(const struct tiny_shape *shape, struct tiny_huggingface_options options) {
    struct pair p;
    size_t n, imported_n;
    open_pair(&p, shape, options);
    float *expected = logits_of(&p.original, shape->name, &n);
    float *imported = logits_of(&p.imported, shape->name, &imported_n);
    assert_int_equal(n, imported_n);
    double error =
        memcmp(expected, imported, n * sizeof *expected) ? relative_error(imported, expected, n) + 1e-300 : 0;
    free(expected);
    free(imported);
    close_pair(&p);
    return error;
}

// ---- every family ----

static const struct {
    const char *shape, *model_type;
} types[] = {
    {"llama", "llama"},
    {"llama3", "llama"},
    {"llama-biases", "llama"},
    {"llama-yarn", "mistral"},
    {"mixtral", "mixtral"},
    {"mixtral-singly", "mixtral"},
    {"mistral3", "ministral3"},
    {"exaone", "exaone"},
    {"smollm3", "smollm3"},
    {"deepseek", "deepseek"},
    {"granite", "granite"},
    {"granitemoe", "granitemoe"},
    {"granitemoe-shared", "granitemoeshared"},
    {"qwen2", "qwen2"},
    {"qwen2-yarn", "qwen2"},
    {"qwen2moe", "qwen2_moe"},
    {"qwen3", "qwen3"},
    {"qwen3moe", "qwen3_moe"},
    {"qwen3moe-fused", "qwen3_moe"},
    {"gpt-oss", "gpt_oss"},
    {"gemma", "gemma"},
    {"gemma2", "gemma2"},
    {"gemma2-wide", "gemma2"},
    {"gemma3", "gemma3_text"},
    {"gemma3-wide", "gemma3_text"},
    {"olmo2", "olmo2"},
    {"olmo3", "olmo3"},
    {"olmoe", "olmoe"},
    {"phi2", "phi"},
    {"phi3", "phi3"},
    {"phi3-short", "phi3"},
    {"phi3-long", "phi3"},
    {"stablelm", "stablelm"},
    {"stablelm-parallel", "stablelm"},
    {"starcoder2", "starcoder2"},
    {"command-r", "cohere"},
    {"command-r-plus", "cohere"},
};
enum { TYPES = sizeof types / sizeof *types };

// Removes what config.json cannot express: arbitrary divisors, a scale of experts.
static struct tiny_shape shape_named(const char *name) {
    for (int i = 0; i < tiny_family_count; i++) {
        if (strcmp(tiny_families[i].name, name)) continue;
        struct tiny_shape s = tiny_families[i];
        s.parts &= ~(unsigned)PART_ROPE_FREQS;
        for (int k = 0; k < TINY_MAX_KEYS && s.keys[k].name; k++)
            if (!strcmp(s.keys[k].name, "expert_weights_scale")) s.keys[k] = (struct tiny_key)TINY_INT("vocab_size", 0);
        return s;
    }
    fail_msg("no shape %s", name);
    return (struct tiny_shape){0};
}

static void every_family_computes_the_same(void **state) {
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        struct tiny_shape shape = shape_named(types[i].shape);
        double error = compare(&shape, (struct tiny_huggingface_options){.model_type = types[i].model_type});
        if (error > 0) fail_msg("%s: its logits differ, relative error %g", shape.name, error);
    }
}

// As published: experts in MXFP4, gate and up in alternating rows.
static void mxfp4_experts_compute_the_same(void **state) {
    (void)state;
    struct tiny_shape shape = shape_named("gpt-oss");
    shape.format = BLOCK_MXFP4;
    double error = compare(&shape, (struct tiny_huggingface_options){.model_type = "gpt_oss"});
    if (error > 0) fail_msg("its logits differ, relative error %g", error);
}

static void every_architecture_is_covered(void **state) {
    (void)state;
    for (int i = 0; i < tiny_family_count; i++) {
        bool covered = false;
        for (int k = 0; k < TYPES; k++)
            covered |= !strcmp(shape_named(types[k].shape).architecture, tiny_families[i].architecture);
        if (!covered) fail_msg("%s is not tested", tiny_families[i].architecture);
    }
}

// ---- storage formats ----

static void half_floats_and_shards_compute_the_same(void **state) {
    (void)state;
    static const enum block_id formats[] = {BLOCK_F16, BLOCK_BF16};
    static const char *const shapes[][2] = {{"llama", "llama"}, {"gemma2", "gemma2"}, {"granitemoe", "granitemoe"}};
    for (int i = 0; i < 6; i++) {
        struct tiny_shape shape = shape_named(shapes[i / 2][0]);
        shape.format = formats[i % 2];
        const struct tiny_huggingface_options options = {.model_type = shapes[i / 2][1], .shards = 3};
        double error = compare(&shape, options);
        if (error > 0) fail_msg("%s: its logits differ, relative error %g", shape.name, error);
    }
}

// Only converted tensors take memory.
static void plain_tensors_are_borrowed(void **state) {
    (void)state;
    struct tiny_shape shape = shape_named("qwen3moe");
    struct pair p;
    shape.format = BLOCK_BF16;
    open_pair(&p, &shape, (struct tiny_huggingface_options){.model_type = "qwen3_moe", .shards = 2});
    assert_int_equal(p.imported.n_mappings, 2);
    for (uint64_t i = 0; i < p.imported.n_tensors; i++) {
        const struct gguf_tensor *t = &p.imported.tensors[i];
        bool mapped = false;
        for (int k = 0; k < 2; k++) {
            const struct mapping *m = &p.imported.mappings[k];
            mapped |= (const uint8_t *)t->data >= m->data && (const uint8_t *)t->data < m->data + m->size;
        }
        if (mapped != (t->n_dims > 1)) fail_msg("%.*s: mapped %d", (int)t->name.size, t->name.data, mapped);
    }
    close_pair(&p);
}

// Quantised to the nearest code: the error is that of the format, in E4M3 at most 2⁻⁴ of every weight.
static void quantised_matrices_are_nearly_the_same(void **state) {
    (void)state;
    static const struct {
        enum tiny_quantisation how;
        double least, most; // relative squared error
    } cases[] = {
        {TINY_FP8_TENSOR, 3e-4, 1.3e-3}, {TINY_FP8_ROWS, 1e-3, 5e-3},     {TINY_FP8_BLOCKS, 3e-4, 1.3e-3},
        {TINY_NF4, 4e-3, 1.3e-2},        {TINY_NF4_DOUBLE, 4e-3, 1.3e-2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tiny_shape shape = shape_named("llama");
        struct pair p;
        open_pair(&p, &shape, (struct tiny_huggingface_options){.model_type = "llama", .quantisation = cases[i].how});
        for (uint64_t k = 0; k < p.original.n_tensors; k++) {
            const struct gguf_tensor *t = &p.original.tensors[k], *u = &p.imported.tensors[k]; // in the same order
            size_t n = t->dims[0] * t->dims[1];
            float *values = xmalloc(n * sizeof *values);
            u->format->decode(u->data, values, n);
            double error = relative_error(values, t->data, n);
            bool quantised = t->n_dims == 2 && t->name.data[0] == 'b';
            if (quantised ? error < cases[i].least || error > cases[i].most : error > 0)
                fail_msg("%.*s, stored the way %d: relative error %g", (int)t->name.size, t->name.data,
                         (int)cases[i].how, error);
            free(values);
        }
        close_pair(&p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_computes_the_same), cmocka_unit_test(mxfp4_experts_compute_the_same),
        cmocka_unit_test(every_architecture_is_covered),  cmocka_unit_test(half_floats_and_shards_compute_the_same),
        cmocka_unit_test(plain_tensors_are_borrowed),     cmocka_unit_test(quantised_matrices_are_nearly_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
