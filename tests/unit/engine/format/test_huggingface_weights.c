// Weights of Hugging Face folders, decoded and compared with the definitions of the formats element by element.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/panic.h"
#include "engine/format/huggingface.h"
#include "tests/unit/huggingface_folder.h"
#include "tests/unit/tiny_quantised.h"

#define UP      "model.layers.0.mlp.up_proj.weight"
#define UP_GGUF "blk.0.ffn_up.weight"

// Decoded to floats; the caller frees. The file must open.
static float *values_of(struct huggingface_folder *f, const char *name, const char *format, uint64_t rows,
                        uint64_t columns) {
    struct gguf g;
    struct status st = {0};
    if (!huggingface_folder_open(f, &g, &st)) fail_msg("%s", st.text);
    const struct gguf_tensor *t = gguf_tensor_find(&g, name);
    if (!t) fail_msg("no %s", name);
    assert_string_equal(t->format->name, format);
    assert_true(t->dims[0] == columns && t->dims[0] * t->dims[1] * t->dims[2] == rows * columns);
    float *values = xmalloc(rows * columns * sizeof *values);
    t->format->decode(t->data, values, rows * columns);
    gguf_close(&g);
    return values;
}

static void rejected(struct huggingface_folder *f, const char *why) {
    struct gguf g;
    struct status st = {0};
    if (huggingface_folder_open(f, &g, &st)) fail_msg("opened; expected '%s'", why);
    if (!strstr(st.text, why)) fail_msg("'%s' does not contain '%s'", st.text, why);
    assert_null(g.arena.chunks);
}

static void put(struct huggingface_folder *f, const char *name, const char *dtype, int n_dims, const uint64_t *dims,
                const void *data, size_t size) {
    safetensors_writer_tensor(&f->weights, name, dtype, n_dims, dims, data, size);
}

// ---- FP8 ----

static void the_definition_of_fp8_is_right(void **state) {
    (void)state;
    // The extremes listed in the specification.
    assert_true(tiny_e4m3(0x7e) == 448 && tiny_e4m3(0x08) == ldexp(1, -6) && tiny_e4m3(0x01) == ldexp(1, -9));
    assert_true(tiny_e4m3(0x07) == 0.875 * ldexp(1, -6) && tiny_e4m3(0xb8) == -1 && isnan(tiny_e4m3(0x7f)));
    assert_true(tiny_e5m2(0x7b) == 57344 && tiny_e5m2(0x04) == ldexp(1, -14) && tiny_e5m2(0x01) == ldexp(1, -16));
    assert_true(tiny_e5m2(0x03) == 0.75 * ldexp(1, -14) && isinf(tiny_e5m2(0x7c)) && isnan(tiny_e5m2(0x7d)));
}

static void every_code_of_fp8_is_exact(void **state) {
    (void)state;
    uint8_t codes[256];
    for (int i = 0; i < 256; i++) codes[i] = (uint8_t)i;
    for (int e5m2 = 0; e5m2 < 2; e5m2++) {
        struct huggingface_folder f = huggingface_folder_new("");
        put(&f, UP, e5m2 ? "F8_E5M2" : "F8_E4M3", 2, (uint64_t[]){2, 128}, codes, sizeof codes);
        float *values = values_of(&f, UP_GGUF, "BF16", 2, 128);
        for (int i = 0; i < 256; i++) {
            double expected = e5m2 ? tiny_e5m2((uint8_t)i) : tiny_e4m3((uint8_t)i);
            bool same = isnan(expected) ? isnan(values[i]) : (double)values[i] == expected;
            if (!same) fail_msg("code %d is %g, expected %g", i, (double)values[i], expected);
        }
        free(values);
        huggingface_folder_remove(&f);
    }
}

// The meaning of scales of each shape; [21 × 40] weights in blocks of 16 × 32 have [2 × 2] scales.
static void fp8_scales_cover_their_rows_and_columns(void **state) {
    (void)state;
    enum { ROWS = 21, COLUMNS = 40 };
    static const struct {
        const char *ending, *dtype;
        int n_dims;
        uint64_t dims[2], rows, columns; // rows and columns per scale
    } cases[] = {
        {"_scale", "F32", 0, {0}, ROWS, COLUMNS},        {"_scale", "BF16", 1, {1}, ROWS, COLUMNS},
        {"_scale_inv", "F16", 2, {1, 1}, ROWS, COLUMNS}, {"_scale", "F32", 1, {ROWS}, 1, COLUMNS},
        {"_scale", "BF16", 2, {ROWS, 1}, 1, COLUMNS},    {"_scale_inv", "F32", 2, {2, 2}, 16, 32},
        {"_scale_inv", "F8_E8M0", 2, {2, 2}, 16, 32},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct huggingface_folder f = huggingface_folder_new(
            "{\"quantization_config\": {\"quant_method\": \"fp8\", \"weight_block_size\": [16, 32]}}");
        uint8_t codes[ROWS * COLUMNS], bytes[ROWS * 4];
        uint64_t across = cases[c].columns == COLUMNS ? 1 : 2, n = (ROWS + cases[c].rows - 1) / cases[c].rows * across;
        double scales[ROWS];
        size_t size = !strcmp(cases[c].dtype, "F32") ? 4 : !strcmp(cases[c].dtype, "F8_E8M0") ? 1 : 2;
        for (int i = 0; i < ROWS * COLUMNS; i++) codes[i] = (uint8_t)(i * 29 % 127); // no NaN
        for (uint64_t i = 0; i < n; i++) {
            bool small = size < 4; // exact in the narrow types
            scales[i] = small ? ldexp(1, (int)(i % 3) - 5) : 0.013 * (double)(i + 1);
            float value = (float)scales[i];
            uint32_t bits;
            memcpy(&bits, &value, 4);
            uint16_t half = cases[c].dtype[0] == 'B' ? (uint16_t)(bits >> 16) : f16_from_f32(value);
            uint8_t exponent = (uint8_t)(bits >> 23);
            memcpy(bytes + i * size, size == 4 ? (void *)&value : size == 1 ? (void *)&exponent : (void *)&half, size);
            scales[i] = (double)value;
        }
        char name[64];
        snprintf(name, sizeof name, "%s%s", UP, cases[c].ending);
        put(&f, UP, "F8_E4M3", 2, (uint64_t[]){ROWS, COLUMNS}, codes, sizeof codes);
        put(&f, name, cases[c].dtype, cases[c].n_dims, cases[c].dims, bytes, n * size);
        float *values = values_of(&f, UP_GGUF, "BF16", ROWS, COLUMNS);
        for (uint64_t i = 0; i < ROWS * COLUMNS; i++) {
            uint64_t at = i / COLUMNS / cases[c].rows * across + i % COLUMNS / cases[c].columns;
            double expected = tiny_e4m3(codes[i]) * scales[at], rest = fabs((double)values[i] - expected);
            // Powers of two are exact, others within half a step of BF16.
            if (size < 4 ? rest > 0 : rest > fabs(expected) * 0.00391)
                fail_msg("case %zu, element %d: %g, expected %g", c, (int)i, (double)values[i], expected);
        }
        free(values);
        huggingface_folder_remove(&f);
    }
}

static void scales_that_do_not_fit_are_rejected(void **state) {
    (void)state;
    uint8_t codes[8 * 8] = {0};
    float scales[64] = {0};
    struct huggingface_folder f = huggingface_folder_new("");
    put(&f, UP, "F8_E4M3", 2, (uint64_t[]){8, 8}, codes, sizeof codes);
    put(&f, UP "_scale", "F32", 1, (uint64_t[]){3}, scales, 12);
    rejected(&f, "tensor " UP ": 3 × 1 scales do not fit 8 × 8 weights in blocks of 128 × 128");
    put(&f, UP, "F8_E4M3", 2, (uint64_t[]){8, 8}, codes, sizeof codes);
    put(&f, UP "_scale", "I32", 1, (uint64_t[]){1}, scales, 4);
    rejected(&f, "unsupported scales (I32, 1 dimensions)");
    huggingface_folder_remove(&f);
    f = huggingface_folder_new("{\"quantization_config\": {\"weight_block_size\": [0, 128]}}");
    put(&f, UP, "F8_E4M3", 2, (uint64_t[]){8, 8}, codes, sizeof codes);
    rejected(&f, "weight_block_size: expected numbers from 1 to 65535");
    huggingface_folder_remove(&f);
}

// ---- bitsandbytes ----

static void put_nf4(struct huggingface_folder *f, const char *dtype, const uint8_t *codes, uint64_t n,
                    const float *absmax, const char *shape) {
    char state[256];
    uint64_t length =
        (uint64_t)snprintf(state, sizeof state, "{\"blocksize\": 8, \"dtype\": \"%s\", \"shape\": %s}", dtype, shape);
    put(f, UP, "U8", 2, (uint64_t[]){n, 1}, codes, n);
    put(f, UP ".absmax", "F32", 1, (uint64_t[]){(2 * n + 7) / 8}, absmax, (2 * n + 7) / 8 * 4);
    put(f, UP ".quant_map", "F32", 1, (uint64_t[]){16}, tiny_nf4_codes, 64);
    put(f, UP ".quant_state.bitsandbytes__nf4", "U8", 1, &length, state, length);
}

static void nf4_is_code_times_absmax(void **state) {
    (void)state;
    static const struct {
        const char *dtype, *format;
        double step; // half of it, relative
    } cases[] = {{"float32", "F32", 1e-7}, {"float16", "F16", 0.00049}, {"bfloat16", "BF16", 0.00391}};
    const uint8_t codes[] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xf0, 0x7f, 0x12, 0x34};
    const float absmax[] = {2, 0.3f, 5};
    for (int c = 0; c < 3; c++) {
        struct huggingface_folder f = huggingface_folder_new("");
        put_nf4(&f, cases[c].dtype, codes, sizeof codes, absmax, "[2, 12]");
        float *values = values_of(&f, UP_GGUF, cases[c].format, 2, 12);
        for (int i = 0; i < 24; i++) { // the first element of a byte is in its high half
            int code = i % 2 ? codes[i / 2] % 16 : codes[i / 2] / 16;
            double expected = (double)tiny_nf4_codes[code] * (double)absmax[i / 8];
            if (fabs((double)values[i] - expected) > fabs(expected) * cases[c].step)
                fail_msg("%s, element %d: %g, expected %g", cases[c].dtype, i, (double)values[i], expected);
        }
        free(values);
        huggingface_folder_remove(&f);
    }
}

static void nested_absmax_is_decoded(void **state) {
    (void)state;
    const uint8_t codes[] = {0xff, 0xff, 0xff, 0xff, 0x0f, 0xff, 0xff, 0xff}, absmax[] = {3, 200};
    const float nested[] = {1.5f};
    float map[256], *values;
    for (int i = 0; i < 256; i++) map[i] = (float)i / 255 - 0.4f;
    struct huggingface_folder f = huggingface_folder_new("");
    static const char text[] =
        "{\"blocksize\": 8, \"dtype\": \"float32\", \"shape\": [1, 16], \"nested_blocksize\": 256, "
        "\"nested_offset\": 0.75}";
    uint64_t length = sizeof text - 1;
    put(&f, UP, "U8", 2, (uint64_t[]){8, 1}, codes, 8);
    put(&f, UP ".absmax", "U8", 1, (uint64_t[]){2}, absmax, 2);
    put(&f, UP ".nested_absmax", "F32", 1, (uint64_t[]){1}, nested, 4);
    put(&f, UP ".nested_quant_map", "F32", 1, (uint64_t[]){256}, map, sizeof map);
    put(&f, UP ".quant_map", "F32", 1, (uint64_t[]){16}, tiny_nf4_codes, 64);
    put(&f, UP ".quant_state.bitsandbytes__nf4", "U8", 1, &length, text, length);
    values = values_of(&f, UP_GGUF, "F32", 1, 16);
    for (int i = 0; i < 16; i++) { // code 15 is 1, code 0 is −1
        double expected = ((double)map[absmax[i / 8]] * 1.5 + 0.75) * (i == 8 ? -1 : 1);
        assert_true(fabs((double)values[i] - expected) < 1e-6);
    }
    free(values);
    huggingface_folder_remove(&f);
}

static void damaged_quant_states_are_rejected(void **state) {
    (void)state;
    static const struct {
        const char *shape, *why;
    } cases[] = {
        {"[2, 13]", "quant_state: shape has 26 elements but the tensor has 12 bytes"},
        {"[]", "quant_state: number of dimensions 0 is out of range (1 to 4)"},
        {"[0, 24]", "quant_state: invalid shape"},
        {"[4294967296, 4294967296, 4294967296]", "quant_state: invalid shape"},
        {"[24], \"blocksize\": 1", "quant_state: invalid JSON"}, // duplicate member
        {"", "quant_state: invalid JSON"},
    };
    const uint8_t codes[12] = {0};
    const float absmax[3] = {0};
    struct huggingface_folder f = huggingface_folder_new("");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_nf4(&f, "float32", codes, sizeof codes, absmax, cases[i].shape);
        rejected(&f, cases[i].why);
    }
    put_nf4(&f, "float32", codes, sizeof codes, absmax, "[24]");
    json_object_del(f.weights.header, UP ".absmax");
    rejected(&f, "missing absmax or quant_map");
    put_nf4(&f, "float32", codes, sizeof codes, absmax, "[24]");
    put(&f, UP ".absmax", "F32", 1, (uint64_t[]){2}, absmax, 8);
    rejected(&f, "absmax: expected 3 F32 values, got 2 F32");
    put_nf4(&f, "float32", codes, sizeof codes, absmax, "[24]");
    put(&f, UP ".nested_absmax", "F32", 1, (uint64_t[]){1}, absmax, 4);
    rejected(&f, "absmax: expected 3 U8 values, got 3 F32");
    huggingface_folder_remove(&f);
}

// ---- MXFP4 ----

#define EXPERTS "model.layers.0.mlp.experts."

static void mxfp4_nibbles_are_reordered(void **state) {
    (void)state;
    static const double values[16] = {0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6};
    enum { COUNT = 2, ROWS = 6, BLOCKS = 2 }; // experts, rows of gate and up, blocks a row
    uint8_t codes[COUNT * ROWS * BLOCKS * 16], scales[COUNT * ROWS * BLOCKS];
    for (size_t i = 0; i < sizeof codes; i++) codes[i] = (uint8_t)(i * 37 + i / 16);
    for (size_t i = 0; i < sizeof scales; i++) scales[i] = (uint8_t)(120 + i);
    for (int up = 0; up < 2; up++) {
        struct huggingface_folder f = huggingface_folder_new("{\"model_type\": \"gpt_oss\"}");
        put(&f, EXPERTS "gate_up_proj_blocks", "U8", 4, (uint64_t[]){COUNT, ROWS, BLOCKS, 16}, codes, sizeof codes);
        put(&f, EXPERTS "gate_up_proj_scales", "U8", 3, (uint64_t[]){COUNT, ROWS, BLOCKS}, scales, sizeof scales);
        float *got = values_of(&f, up ? "blk.0.ffn_up_exps.weight" : "blk.0.ffn_gate_exps.weight", "MXFP4",
                               COUNT * ROWS / 2, BLOCKS * 32);
        for (size_t i = 0; i < COUNT * ROWS / 2 * BLOCKS * 32; i++) {
            size_t row = i / (BLOCKS * 32) * 2 + (size_t)up, element = i % (BLOCKS * 32); // gate and up in turn
            uint8_t byte = codes[row * BLOCKS * 16 + element / 2];
            double expected =
                values[element % 2 ? byte / 16 : byte % 16] * ldexp(1, scales[row * BLOCKS + element / 32] - 127);
            if ((double)got[i] != expected) fail_msg("element %zu: %g, expected %g", i, (double)got[i], expected);
        }
        free(got);
        huggingface_folder_remove(&f);
    }
}

static void mxfp4_without_its_scales_is_rejected(void **state) {
    (void)state;
    uint8_t codes[64] = {0};
    struct huggingface_folder f = huggingface_folder_new("{\"model_type\": \"gpt_oss\"}");
    put(&f, EXPERTS "down_proj_blocks", "U8", 4, (uint64_t[]){2, 1, 2, 16}, codes, 64);
    rejected(&f, "missing tensor " EXPERTS "down_proj_scales");
    put(&f, EXPERTS "down_proj_blocks", "U8", 4, (uint64_t[]){2, 1, 2, 16}, codes, 64);
    put(&f, EXPERTS "down_proj_scales", "U8", 3, (uint64_t[]){2, 2, 1}, codes, 4);
    rejected(&f, "shape does not match " EXPERTS "down_proj_scales");
    huggingface_folder_remove(&f);
}

// ---- the rest ----

static void unaligned_tensors_are_copied(void **state) {
    (void)state;
    const uint8_t odd = 1;
    const float values[] = {1, -2, 3, -4, 5, -6};
    struct huggingface_folder f = huggingface_folder_new("");
    put(&f, "model.layers.0.self_attn.k_proj.k_scale", "U8", 1, (uint64_t[]){1}, &odd, 1); // misaligns the next tensor
    put(&f, UP, "F32", 2, (uint64_t[]){3, 2}, values, sizeof values);
    float *got = values_of(&f, UP_GGUF, "F32", 3, 2);
    assert_memory_equal(got, values, sizeof values);
    free(got);
    huggingface_folder_remove(&f);
}

static void vectors_become_f32(void **state) {
    (void)state;
    const uint16_t ones[] = {0x3f80, 0xc000, 0x3f81};
    struct huggingface_folder f = huggingface_folder_new("");
    put(&f, "model.norm.weight", "BF16", 1, (uint64_t[]){3}, ones, sizeof ones);
    float *got = values_of(&f, "output_norm.weight", "F32", 1, 3);
    assert_true(got[0] == 1 && got[1] == -2 && got[2] == 1.0078125f);
    free(got);
    huggingface_folder_remove(&f);
}

static void other_tensors_are_rejected(void **state) {
    (void)state;
    static const struct {
        const char *name, *dtype;
        int n_dims;
        uint64_t dims[5];
        size_t size;
        const char *why;
    } cases[] = {
        {UP, "I8", 2, {2, 2}, 4, "tensor " UP ": unsupported dtype I8 (supported: F32, F16"},
        {UP, "F64", 2, {2, 2}, 32, "unsupported dtype F64"},
        {UP, "U8", 2, {2, 2}, 4, "unsupported dtype U8"},
        {UP, "F32", 5, {1, 1, 1, 1, 1}, 4, "too many dimensions: 5 (maximum 4)"},
        {UP, "F32", 2, {0, 2}, 0, "no elements"},
        {"model.layers.0.mlp.wrong.weight",
         "F32",
         1,
         {1},
         4,
         "unexpected tensor model.layers.0.mlp.wrong.weight in a llama model"},
        {"model.layers.00.mlp.up_proj.weight",
         "F32",
         1,
         {1},
         4,
         "unexpected tensor model.layers.00.mlp.up_proj.weight in"},
        {"model.layers.0.self_attn.q_proj.weight", "F32", 2, {6, 1}, 24, "rows cannot be split into heads"},
    };
    const float zeros[8] = {0};
    struct huggingface_folder f = huggingface_folder_new("");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put(&f, cases[i].name, cases[i].dtype, cases[i].n_dims, cases[i].dims, zeros, cases[i].size);
        rejected(&f, cases[i].why);
    }
    put(&f, UP, "F32", 2, (uint64_t[]){2, 2}, zeros, 16); // the same tensor under two names
    put(&f, "language_model." UP, "F32", 2, (uint64_t[]){2, 2}, zeros, 16);
    rejected(&f, "duplicate tensor " UP_GGUF);
    huggingface_folder_remove(&f);
}

// Biases are placed by elements, stacks by rows: tensors of a stack of biases would be longer than their data.
static void stacks_of_biases_are_rejected(void **state) {
    (void)state;
    static const char *const names[] = {"model.layers.0.block_sparse_moe.output_linear.bias",
                                        "model.layers.0.block_sparse_moe.input_linear.bias"};
    const float zeros[8] = {0};
    struct huggingface_folder f = huggingface_folder_new("{\"model_type\": \"granitemoe\"}");
    for (int i = 0; i < 2; i++) {
        put(&f, names[i], "F32", 3, (uint64_t[]){1, 2, 4}, zeros, sizeof zeros);
        rejected(&f, "not a stack of experts");
    }
    huggingface_folder_remove(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_definition_of_fp8_is_right),
        cmocka_unit_test(every_code_of_fp8_is_exact),
        cmocka_unit_test(fp8_scales_cover_their_rows_and_columns),
        cmocka_unit_test(scales_that_do_not_fit_are_rejected),
        cmocka_unit_test(nf4_is_code_times_absmax),
        cmocka_unit_test(nested_absmax_is_decoded),
        cmocka_unit_test(damaged_quant_states_are_rejected),
        cmocka_unit_test(mxfp4_nibbles_are_reordered),
        cmocka_unit_test(mxfp4_without_its_scales_is_rejected),
        cmocka_unit_test(unaligned_tensors_are_copied),
        cmocka_unit_test(vectors_become_f32),
        cmocka_unit_test(other_tensors_are_rejected),
        cmocka_unit_test(stacks_of_biases_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
