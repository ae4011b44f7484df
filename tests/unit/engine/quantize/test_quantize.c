// Quantizing files: formats of tensors, contents of the output, and no output after a failure.
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/panic.h"
#include "engine/local_engine.h"
#include "engine/quantize.h"
#include "engine/quantize/quantize_plan.h"
#include "tests/unit/full_disk.h"
#include "tests/unit/gguf_writer.h"
#include "tests/unit/shared_files.h"
#include "tests/unit/temporary_folder.h"
#include "tests/unit/tiny_huggingface.h"
#include "tests/unit/tiny_model.h"

static const char *folder;

static const char *in_folder(const char *name) {
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static int files_in_folder(void) {
    int n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    while (readdir(d)) n++;
    closedir(d);
    return n - 2;
}

static struct quantize_report *quantize(struct quantize_params p) {
    struct status st = {0};
    struct quantize_report *r = quantize_model(&p, &st);
    if (!r) fail_msg("%s", st.text);
    return r;
}

// Fails as expected and leaves no file behind.
static void assert_rejected(struct quantize_params p, enum status_code code, const char *why) {
    struct status st = {0};
    int before = files_in_folder();
    struct quantize_report *r = quantize_model(&p, &st);
    if (r || st.code != code || !strstr(st.text, why)) fail_msg("%s; expected %s", r ? "done" : st.text, why);
    assert_int_equal(files_in_folder(), before);
}

static const struct quantize_tensor *tensor_of(const struct quantize_report *r, const char *name) {
    for (uint64_t i = 0; i < r->n_tensors; i++)
        if (!strcmp(r->tensors[i].name, name)) return &r->tensors[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

static struct gguf open_gguf(const char *path) {
    struct gguf g;
    struct status st = {0};
    if (!gguf_open(&g, path, &st)) fail_msg("%s", st.text);
    return g;
}

static float *decoded(const struct gguf_tensor *t, uint64_t *n) {
    *n = t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3];
    float *x = xmalloc(*n * sizeof *x);
    t->format->decode(t->data, x, *n);
    return x;
}

struct difference {
    double squared_error, squares; // sums over weights: (b − a)² and a²
};

static struct difference difference(const struct gguf_tensor *a, const struct gguf_tensor *b) {
    uint64_t n, m;
    float *x = decoded(a, &n), *y = decoded(b, &m);
    struct difference d = {0};
    assert_int_equal(n, m);
    for (uint64_t j = 0; j < n; j++) {
        d.squared_error += ((double)y[j] - (double)x[j]) * ((double)y[j] - (double)x[j]);
        d.squares += (double)x[j] * (double)x[j];
    }
    free(x);
    free(y);
    return d;
}

static struct difference difference_of_files(const char *a_path, const char *b_path) {
    struct gguf a = open_gguf(a_path), b = open_gguf(b_path);
    struct difference all = {0};
    assert_int_equal(a.n_tensors, b.n_tensors);
    for (uint64_t i = 0; i < a.n_tensors; i++) {
        struct difference d = difference(&a.tensors[i], &b.tensors[i]);
        all.squared_error += d.squared_error;
        all.squares += d.squares;
    }
    gguf_close(&a);
    gguf_close(&b);
    return all;
}

// ---- plans ----

static enum block_id chosen(struct quantize_plan *p, const char *type, const char *name, int n_dims, uint64_t columns) {
    struct status st = {0};
    p->type = quantize_type_find(type, &st);
    assert_non_null(p->type);
    struct gguf_tensor t = {.name = {name, strlen(name)}, .n_dims = n_dims, .dims = {columns, 8, 1, 1}};
    return quantize_plan_choose(p, &t).format->id;
}

static void types_are_found_by_name(void **state) {
    (void)state;
    struct status st = {0};
    assert_int_equal(quantize_type_find("Q4_K_M", &st)->file_type, 15);
    assert_int_equal(quantize_type_find("q8_0", &st)->format, BLOCK_Q8_0);
    assert_null(quantize_type_find("Q4_K_L", &st));
    assert_int_equal(st.code, STATUS_USAGE);
    assert_non_null(strstr(st.text, "'Q4_K_L'"));
    assert_non_null(strstr(st.text, "Q4_K_M"));
}

static void small_tensors_stay_f32(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int n_dims;
        enum block_id format;
    } tensors[] = {
        {"blk.0.attn_q.weight", 2, BLOCK_Q4_0},      {"blk.0.attn_norm.weight", 1, BLOCK_F32},
        {"blk.0.attn_q.bias", 1, BLOCK_F32},         {"blk.0.ffn_gate_exps.bias", 2, BLOCK_F32},
        {"blk.0.ffn_gate_inp.weight", 2, BLOCK_F32}, {"blk.0.ffn_gate_exps.weight", 3, BLOCK_Q4_0},
        {"blk.0.attn_q_norm.weight", 2, BLOCK_F32},  {"position_embd.weight", 2, BLOCK_F32},
        {"token_embd.weight", 2, BLOCK_Q4_0},        {"output_norm.weight", 1, BLOCK_F32},
    };
    struct quantize_plan p = {.n_layers = 2};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        assert_int_equal(chosen(&p, "Q4_0", tensors[i].name, tensors[i].n_dims, 256), tensors[i].format);
}

static void rows_that_do_not_fill_blocks_get_smaller_ones(void **state) {
    (void)state;
    struct quantize_plan p = {.n_layers = 2};
    const char *name = "blk.0.attn_q.weight";
    assert_int_equal(chosen(&p, "Q4_K", name, 2, 512), BLOCK_Q4_K);
    assert_int_equal(chosen(&p, "Q4_K", name, 2, 320), BLOCK_Q5_0);
    assert_int_equal(chosen(&p, "Q5_K", name, 2, 320), BLOCK_Q5_1);
    assert_int_equal(chosen(&p, "Q6_K", name, 2, 320), BLOCK_Q8_0);
    assert_int_equal(chosen(&p, "Q2_K", name, 2, 320), BLOCK_IQ4_NL);
    assert_int_equal(chosen(&p, "Q4_K", name, 2, 48), BLOCK_F16);
    assert_int_equal(chosen(&p, "Q8_0", name, 2, 48), BLOCK_F16);
    assert_int_equal(chosen(&p, "MXFP4", name, 2, 320), BLOCK_MXFP4);
    assert_int_equal(chosen(&p, "Q4_K_M", "output.weight", 2, 320), BLOCK_Q8_0);
}

// The layers with the finer format in the mixes of the reference engine, for several depths.
static void mixes_are_what_the_field_makes_them(void **state) {
    (void)state;
    static const int of_22[] = {0, 1, 4, 7, 10, 13, 16, 19, 20, 21, -1}, of_4[] = {2, 3, -1},
                     of_32[] = {0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31, -1};
    static const struct {
        int n_layers;
        const int *finer;
    } models[] = {{22, of_22}, {4, of_4}, {32, of_32}};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        struct quantize_plan p = {.n_layers = models[m].n_layers};
        const int *finer = models[m].finer;
        for (int layer = 0; layer < p.n_layers; layer++) {
            bool is_finer = *finer == layer;
            finer += is_finer;
            static const char *const parts[] = {"attn_v", "ffn_down", "attn_qkv", "ffn_down_exps"};
            for (size_t i = 0; i < 4; i++) {
                char name[64];
                snprintf(name, sizeof name, "blk.%d.%s.weight", layer, parts[i]);
                assert_int_equal(chosen(&p, "Q4_K_M", name, 2, 256), is_finer ? BLOCK_Q6_K : BLOCK_Q4_K);
                assert_int_equal(chosen(&p, "Q5_K_M", name, 2, 256), is_finer ? BLOCK_Q6_K : BLOCK_Q5_K);
                bool first = layer < (i % 2 ? p.n_layers / 8 : 4);
                assert_int_equal(chosen(&p, "Q4_K_S", name, 2, 256), first ? BLOCK_Q5_K : BLOCK_Q4_K);
                assert_int_equal(chosen(&p, "Q4_K", name, 2, 256), BLOCK_Q4_K);
            }
        }
        assert_int_equal(chosen(&p, "Q4_K_M", "blk.0.attn_k.weight", 2, 256), BLOCK_Q4_K);
        assert_int_equal(chosen(&p, "Q4_K_M", "output.weight", 2, 256), BLOCK_Q6_K);
        assert_int_equal(chosen(&p, "Q4_K_M", "token_embd.weight", 2, 256), BLOCK_Q4_K);
        assert_int_equal(chosen(&p, "Q4_K", "output.weight", 2, 256), BLOCK_Q4_K);
    }
    struct quantize_plan tied = {.n_layers = 8, .tied = true}, experts = {.n_layers = 8, .n_experts = 8},
                         large = {.n_layers = 80, .shared_heads = true};
    assert_int_equal(chosen(&tied, "Q4_K_M", "token_embd.weight", 2, 256), BLOCK_Q6_K);
    assert_int_equal(chosen(&experts, "Q4_K_M", "blk.1.attn_v.weight", 2, 256), BLOCK_Q8_0);
    assert_int_equal(chosen(&experts, "Q4_K_M", "blk.1.attn_k.weight", 2, 256), BLOCK_Q8_0);
    assert_int_equal(chosen(&experts, "Q4_K_M", "blk.1.attn_output.weight", 2, 256), BLOCK_Q5_K);
    assert_int_equal(chosen(&experts, "Q4_K_M", "blk.1.ffn_down_exps.weight", 3, 256), BLOCK_Q4_K);
    assert_int_equal(chosen(&large, "Q4_K_M", "blk.10.attn_v.weight", 2, 256), BLOCK_Q5_K);
    assert_int_equal(chosen(&large, "Q4_K_M", "blk.9.attn_v.weight", 2, 256), BLOCK_Q6_K);
}

// ---- files ----

static const struct tiny_model_options small = {.n_embd = 256, .n_ff = 256, .n_head = 4, .n_head_kv = 2};

// Logits of a few tokens; the caller frees.
static float *logits_of(const char *path, int *n) {
    struct status st = {0};
    static const int32_t ids[] = {3, 5, 7, 9, 11, 4};
    struct model_file *m = model_file_open(path, &st);
    if (!m) fail_msg("%s", st.text);
    struct engine_params params = {.n_threads = 1, .kv_tokens = 64, .options.exact = true};
    struct engine *e = local_engine_open(m, &params, &st);
    if (!e) fail_msg("%s", st.text);
    *n = 6 * model_file_info(m)->n_vocab;
    float *logits = xmalloc((size_t)*n * sizeof *logits);
    if (!engine_logits(e, ids, 6, logits, &st)) fail_msg("%s", st.text);
    engine_close(e);
    model_file_close(m);
    return logits;
}

static void every_type_makes_a_file_that_runs(void **state) {
    (void)state;
#define X(name, format, file_type, mix, help) {name, format, file_type},
    static const struct {
        const char *name;
        enum block_id format;
        uint32_t file_type;
    } types[] = {QUANTIZE_TYPES(X)};
#undef X
    const char *in = in_folder("in.gguf"), *out = in_folder("out.gguf");
    tiny_model_write(in, small);
    int n, m;
    float *before = logits_of(in, &n);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct quantize_report *r =
            quantize((struct quantize_params){.in = in, .out = out, .type = types[i].name, .replace = true});
        assert_string_equal(tensor_of(r, "blk.1.attn_q.weight")->to, block_formats[types[i].format].name);
        assert_string_equal(tensor_of(r, "blk.1.attn_norm.weight")->to, "F32");
        assert_int_equal(r->n_done, r->n_tensors);
        // The report matches the file.
        double reported = 0;
        for (uint64_t t = 0; t < r->n_tensors; t++) reported += r->tensors[t].squared_error;
        struct difference d = difference_of_files(in, out);
        assert_true(fabs(reported - d.squared_error) <= 1e-9 * d.squares);
        struct gguf g = open_gguf(out);
        int64_t file_type = -1;
        struct status st = {0};
        assert_true(gguf_get_int(&g, "general.file_type", GGUF_REQUIRED, 0, 100, &file_type, &st));
        assert_int_equal(file_type, types[i].file_type);
        gguf_close(&g);
        float *after = logits_of(out, &m);
        assert_int_equal(n, m);
        double error = 0, power = 0;
        for (int j = 0; j < n; j++) {
            error += ((double)after[j] - (double)before[j]) * ((double)after[j] - (double)before[j]);
            power += (double)before[j] * (double)before[j];
        }
        if (!(error / power < 60 * d.squared_error / d.squares + 1e-12))
            fail_msg("%s: logits off by %g, weights by %g", types[i].name, error / power, d.squared_error / d.squares);
        free(after);
        quantize_report_free(r);
    }
    free(before);
}

// All keys are copied, except those that describe the input file.
static void keys_are_kept(void **state) {
    (void)state;
    const char *in = in_folder("keys.gguf"), *out = in_folder("out.gguf");
    struct gguf_writer w = {.alignment = 64};
    float weights[64] = {1, -2, 3};
    const uint64_t dims[2] = {32, 2};
    gguf_writer_string(&w, "general.architecture", "llama");
    gguf_writer_u32(&w, "general.file_type", 0);
    gguf_writer_u32(&w, "general.alignment", 64);
    gguf_writer_u32(&w, "split.count", 1);
    gguf_writer_u32(&w, "llama.block_count", 3);
    gguf_writer_bool(&w, "some.bool", true);
    gguf_writer_array(&w, "some.numbers", GGUF_U16, 3, (uint16_t[]){7, 8, 9}, 6);
    struct bytes strings = {0};
    bytes_string(&strings, "one");
    bytes_string(&strings, "");
    gguf_writer_array(&w, "some.strings", GGUF_STRING, 2, strings.data, strings.size);
    free(strings.data);
    gguf_writer_tensor(&w, "blk.10.ffn_up.weight", 0, 2, dims, weights, sizeof weights);
    gguf_writer_tensor(&w, "blk.9.ffn_up.weight", 0, 2, dims, weights, sizeof weights);
    size_t size;
    uint8_t *bytes = gguf_writer_finish(&w, &size);
    FILE *f = fopen(in, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
    free(bytes);

    struct quantize_report *r =
        quantize((struct quantize_params){.in = in, .out = out, .type = "q8_0", .replace = true});
    assert_string_equal(r->tensors[0].name, "blk.9.ffn_up.weight"); // in order of layers
    struct gguf a = open_gguf(in), b = open_gguf(out);
    assert_int_equal(b.version, 3);
    assert_int_equal(b.n_pairs, 5 + 2);
    for (uint64_t i = 0; i < b.n_pairs; i++) {
        char *key = span_copy(b.pairs[i].key);
        const struct gguf_pair *old = gguf_find(&a, key);
        if (!strcmp(key, "general.file_type")) assert_true(gguf_number(&b.pairs[i], 0) == 7);
        else if (!strcmp(key, "general.quantization_version")) assert_true(gguf_number(&b.pairs[i], 0) == 2);
        else {
            assert_non_null(old);
            assert_int_equal(old->type, b.pairs[i].type);
            assert_int_equal(old->count, b.pairs[i].count);
            assert_int_equal(old->size, b.pairs[i].size);
            assert_memory_equal(old->data, b.pairs[i].data, old->size);
        }
        free(key);
    }
    gguf_close(&a);
    gguf_close(&b);
    quantize_report_free(r);
}

static void threads_change_nothing(void **state) {
    (void)state;
    const char *in = in_folder("in.gguf"), *one = in_folder("one.gguf"), *many = in_folder("many.gguf");
    tiny_model_write(in, small);
    struct quantize_report *a =
        quantize((struct quantize_params){.in = in, .out = one, .type = "Q4_K_M", .n_threads = 1});
    struct quantize_report *b =
        quantize((struct quantize_params){.in = in, .out = many, .type = "Q4_K_M", .n_threads = 5});
    for (uint64_t i = 0; i < a->n_tensors; i++) assert_true(a->tensors[i].squared_error == b->tensors[i].squared_error);
    struct status st = {0};
    size_t n, m;
    char *x = file_read(one, 1 << 30, &n, &st), *y = file_read(many, 1 << 30, &m, &st);
    assert_int_equal(n, m);
    assert_int_equal(n, a->file_bytes);
    assert_memory_equal(x, y, n);
    free(x);
    free(y);
    quantize_report_free(a);
    quantize_report_free(b);
    unlink(one);
    unlink(many);
}

// A Hugging Face folder gives the same as the GGUF file it would be exported to.
static void folders_are_read_too(void **state) {
    (void)state;
    const char *in = in_folder("in.gguf"), *from_file = in_folder("file.gguf"), *from_folder = in_folder("out.gguf");
    tiny_model_write(in, small);
    struct gguf g = open_gguf(in);
    char *hub = xasprintf("%s/hub", folder);
    assert_int_equal(mkdir(hub, 0700), 0);
    tiny_huggingface_write(hub, &g, (struct tiny_huggingface_options){.model_type = "llama"});
    tiny_huggingface_tokenizer(hub, gguf_tensor_find(&g, "token_embd.weight")->dims[1]);
    gguf_close(&g);
    quantize_report_free(
        quantize((struct quantize_params){.in = in, .out = from_file, .type = "Q4_K_M", .replace = true}));
    quantize_report_free(
        quantize((struct quantize_params){.in = hub, .out = from_folder, .type = "Q4_K_M", .replace = true}));
    struct gguf a = open_gguf(from_file), b = open_gguf(from_folder);
    assert_int_equal(a.n_tensors, b.n_tensors);
    for (uint64_t i = 0; i < a.n_tensors; i++) {
        assert_int_equal(a.tensors[i].format->id, b.tensors[i].format->id);
        assert_int_equal(a.tensors[i].size, b.tensors[i].size);
        assert_memory_equal(a.tensors[i].data, b.tensors[i].data, a.tensors[i].size);
    }
    gguf_close(&a);
    gguf_close(&b);
    tiny_huggingface_remove(hub);
    unlink(from_file);
    free(hub);
}

static void odd_rows_are_reported(void **state) {
    (void)state;
    const char *in = in_folder("odd.gguf"), *out = in_folder("out.gguf");
    struct tiny_model_options odd = {.n_embd = 64, .n_ff = 256};
    tiny_model_write(in, odd);
    struct quantize_report *r =
        quantize((struct quantize_params){.in = in, .out = out, .type = "Q4_K_M", .replace = true});
    const struct quantize_tensor *up = tensor_of(r, "blk.0.ffn_up.weight"),
                                 *down = tensor_of(r, "blk.0.ffn_down.weight");
    assert_string_equal(up->to, "Q5_0");
    assert_non_null(strstr(up->note, "256"));
    assert_int_equal(up->bytes, 64 * 256 / 32 * 22);
    assert_string_equal(down->to, "Q4_K");
    assert_string_equal(down->note, "");
    quantize_report_free(r);
}

// ---- failures ----

static void write_one_tensor(const char *path, uint32_t type, const void *weights, size_t size, uint64_t n) {
    struct gguf_writer w = {0};
    gguf_writer_string(&w, "general.architecture", "llama");
    gguf_writer_tensor(&w, "blk.0.ffn_up.weight", type, 2, (const uint64_t[]){256, n / 256}, weights, size);
    uint8_t *bytes = gguf_writer_finish(&w, &size);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
    free(bytes);
}

static void broken_weights_are_named(void **state) {
    (void)state;
    enum { ROWS = 100, COUNT = 256 * ROWS };
    const char *in = in_folder("broken.gguf"), *out = in_folder("never.gguf");
    float *x = xcalloc(COUNT, sizeof *x);
    x[20001] = NAN;
    write_one_tensor(in, 0, x, COUNT * sizeof *x, COUNT);
    assert_rejected((struct quantize_params){.in = in, .out = out, .type = "Q4_K"}, STATUS_NUMERIC,
                    "blk.0.ffn_up.weight: weight 20001 is not finite");
    x[20001] = 0;
    x[12345] = -1e5f;
    write_one_tensor(in, 0, x, COUNT * sizeof *x, COUNT);
    assert_rejected((struct quantize_params){.in = in, .out = out, .type = "F16"}, STATUS_NUMERIC,
                    "weight 12345: -100000 is out of range for F16");
    free(x);
    unlink(in);
}

static void quantised_tensors_are_left_alone(void **state) {
    (void)state;
    const char *in = in_folder("quantised.gguf"), *out = in_folder("never.gguf");
    struct tiny_model_options o = small;
    o.format = BLOCK_Q8_0;
    tiny_model_write(in, o);
    assert_rejected((struct quantize_params){.in = in, .out = out, .type = "Q4_K"}, STATUS_UNSUPPORTED,
                    "is already quantised as Q8_0");
    quantize_report_free(quantize((struct quantize_params){.in = in, .out = out, .type = "Q4_K", .requantize = true}));
    // Converting to floats is lossless, and the same format is a copy.
    struct quantize_report *r =
        quantize((struct quantize_params){.in = in, .out = out, .type = "F32", .replace = true});
    for (uint64_t i = 0; i < r->n_tensors; i++) assert_true(r->tensors[i].squared_error == 0);
    quantize_report_free(r);
    r = quantize((struct quantize_params){.in = in, .out = out, .type = "Q8_0", .replace = true});
    for (uint64_t i = 0; i < r->n_tensors; i++) assert_true(r->tensors[i].squared_error == 0);
    quantize_report_free(r);
    unlink(out);
    unlink(in);
}

static void files_are_not_lost(void **state) {
    (void)state;
    const char *in = in_folder("in.gguf"), *out = in_folder("there.gguf");
    tiny_model_write(in, small);
    FILE *f = fopen(out, "wb");
    assert_non_null(f);
    assert_int_equal(fclose(f), 0); // empty: nothing to lose
    quantize_report_free(quantize((struct quantize_params){.in = in, .out = out, .type = "Q4_0"}));
    assert_rejected((struct quantize_params){.in = in, .out = out, .type = "Q8_0"}, STATUS_IO, "already exists");
    assert_rejected((struct quantize_params){.in = in, .out = in, .type = "Q8_0", .replace = true}, STATUS_USAGE,
                    "input and output are the same file");
    assert_rejected((struct quantize_params){.in = in, .out = folder, .type = "Q8_0", .replace = true}, STATUS_IO,
                    "exists and is not a regular file");
    assert_rejected((struct quantize_params){.in = in, .out = "/nonexistent/x.gguf", .type = "Q8_0"}, STATUS_IO,
                    "/nonexistent/x.gguf: cannot write: ");
    assert_rejected((struct quantize_params){.in = in_folder("missing"), .out = out, .type = "Q8_0"}, STATUS_IO,
                    "missing");
    struct gguf g = open_gguf(out);
    assert_int_equal(gguf_tensor_find(&g, "blk.0.attn_q.weight")->format->id, BLOCK_Q4_0);
    gguf_close(&g);
    unlink(out);
}

static bool stop_in_the_middle(void *context, const struct quantize_report *r, double done) {
    int *calls = context;
    assert_true(done > 0 && done <= 1);
    ++*calls;
    return r->n_done < r->n_tensors / 2;
}

static void cancelling_leaves_nothing(void **state) {
    (void)state;
    const char *in = in_folder("in.gguf"), *out = in_folder("never.gguf");
    int calls = 0;
    tiny_model_write(in, small);
    assert_rejected(
        (struct quantize_params){
            .in = in, .out = out, .type = "Q4_K", .progress = stop_in_the_middle, .progress_context = &calls},
        STATUS_CANCELLED, "never.gguf was not written");
    assert_true(calls > 5);
}

static void a_full_disk_is_named(void **state) {
    (void)state;
    const char *in = in_folder("in.gguf"), *out = in_folder("never.gguf");
    tiny_model_write(in, small);
    struct quantize_params p = {.in = in, .out = out, .type = "Q8_0"};
    struct status st = {0};
    int files = files_in_folder();
    full_disk_begin(200000);
    struct quantize_report *r = quantize_model(&p, &st);
    full_disk_end();
    assert_null(r);
    assert_int_equal(st.code, STATUS_IO);
    if (!strstr(st.text, "never.gguf: cannot write")) fail_msg("%s", st.text);
    assert_int_equal(files_in_folder(), files);
}

// ---- against the reference engine ----

static bool run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static bool run(const char *format, ...) {
    va_list args;
    char *line;
    va_start(args, format);
    if (vasprintf(&line, format, args) < 0) panic("out of memory");
    va_end(args);
    int status = system(line);
    free(line);
    return status == 0;
}

// The largest ratio of our error to the reference's over the tensors of a file.
static double worst_ratio(const char *in, const char *ours, const char *theirs) {
    struct gguf a = open_gguf(in), b = open_gguf(ours), c = open_gguf(theirs);
    double worst = 0;
    for (uint64_t i = 0; i < a.n_tensors; i++) {
        double error = difference(&a.tensors[i], &b.tensors[i]).squared_error;
        double reference = difference(&a.tensors[i], &c.tensors[i]).squared_error;
        assert_int_equal(b.tensors[i].size, c.tensors[i].size);
        if (error > 0) worst = fmax(worst, error / reference);
    }
    gguf_close(&a);
    gguf_close(&b);
    gguf_close(&c);
    return worst;
}

static void no_tensor_has_a_larger_error_than_the_references(void **state) {
    (void)state;
    const char *peer = getenv("CONFAB_PEER");
    if (!peer) {
        print_message("CONFAB_PEER names no reference engine: skipped\n");
        skip();
    }
    static const char *const types[] = {"Q8_0", "Q4_0", "Q4_1",   "Q5_0",   "Q5_1",   "Q2_K",   "Q3_K",  "Q4_K",
                                        "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "Q4_K_M", "Q4_K_S", "Q5_K_M"};
    static const char *const models[] = {"models/tiny-llama-f32.gguf", "models/stories260K-f32.gguf",
                                         "models/tiny-qwen3-f32.gguf"};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++)
        for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
            char *in = xstrdup(shared_file(models[m]));
            const char *ours = in_folder("ours.gguf"), *theirs = in_folder("theirs.gguf");
            if (!run("'%s' quantize '%s' %s '%s' > /dev/null", peer, in, types[i], theirs))
                fail_msg("the reference failed");
            quantize_report_free(
                quantize((struct quantize_params){.in = in, .out = ours, .type = types[i], .replace = true}));
            struct difference d = difference_of_files(in, ours), reference = difference_of_files(in, theirs);
            double worst = worst_ratio(in, ours, theirs);
            print_message("%-28s %-7s error %.4e, %.4f of the reference's, %.4f in one tensor\n", models[m], types[i],
                          d.squared_error / d.squares, d.squared_error / reference.squared_error, worst);
            assert_true(d.squared_error <= reference.squared_error);
            assert_true(worst <= 1.02);
            free(in);
        }
}

static int setup(void **state) {
    (void)state;
    folder = temporary_folder_make();
    return folder ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_are_found_by_name),
        cmocka_unit_test(small_tensors_stay_f32),
        cmocka_unit_test(rows_that_do_not_fill_blocks_get_smaller_ones),
        cmocka_unit_test(mixes_are_what_the_field_makes_them),
        cmocka_unit_test(every_type_makes_a_file_that_runs),
        cmocka_unit_test(keys_are_kept),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(folders_are_read_too),
        cmocka_unit_test(odd_rows_are_reported),
        cmocka_unit_test(broken_weights_are_named),
        cmocka_unit_test(quantised_tensors_are_left_alone),
        cmocka_unit_test(files_are_not_lost),
        cmocka_unit_test(cancelling_leaves_nothing),
        cmocka_unit_test(a_full_disk_is_named),
        cmocka_unit_test(no_tensor_has_a_larger_error_than_the_references),
    };
    return cmocka_run_group_tests(tests, setup, temporary_folder_teardown);
}
