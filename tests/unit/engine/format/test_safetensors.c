// Safetensors files: what good ones give, and that every bad one is refused with a message that says why.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/panic.h"
#include "engine/format/safetensors.h"
#include "tests/unit/exact_copy.h"
#include "tests/unit/safetensors_writer.h"
#include "tests/unit/tiny_huggingface.h"

// ---- files of a header that is said and data of zeros ----

static uint8_t *file_of(const char *header, size_t data, size_t *size) {
    struct bytes file = {0};
    bytes_u64(&file, strlen(header));
    bytes_put(&file, header, strlen(header));
    for (size_t i = 0; i < data; i++) bytes_put(&file, "", 1);
    *size = file.size;
    return file.data;
}

static bool opens(const void *data, size_t size, struct status *st) {
    struct safetensors s;
    uint8_t *copy = exact_copy(data, size);
    bool opened = safetensors_open_memory(&s, "x.safetensors", copy, size, st);
    if (opened) {
        volatile uint8_t sum = 0; // every byte of every tensor is there
        for (uint64_t i = 0; i < s.n_tensors; i++)
            for (uint64_t k = 0; k < s.tensors[i].size; k++) sum += ((const uint8_t *)s.tensors[i].data)[k];
        (void)sum;
        safetensors_close(&s);
    }
    assert_null(s.arena.chunks);
    free(copy);
    return opened;
}

static void refused(const char *header, size_t data, const char *why) {
    struct status st = {0};
    size_t size;
    uint8_t *file = file_of(header, data, &size);
    if (opens(file, size, &st)) fail_msg("opened, though %s: %s", why, header);
    if (!strstr(st.text, why)) fail_msg("\"%s\" does not say \"%s\"", st.text, why);
    assert_memory_equal(st.text, "x.safetensors: ", 15);
    free(file);
}

// ---- good files ----

static void tensors_are_found(void **state) {
    (void)state;
    struct safetensors_writer w = {0};
    struct safetensors s;
    struct status st = {0};
    size_t size;
    const uint16_t half[6] = {1, 2, 3, 4, 5, 6};
    safetensors_writer_tensor(&w, "b", "BF16", 2, (uint64_t[]){2, 3}, half, sizeof half);
    safetensors_writer_tensor(&w, "a", "F32", 0, NULL, &(float){7}, 4);
    safetensors_writer_tensor(&w, "empty", "I64", 2, (uint64_t[]){0, 5}, NULL, 0);
    json_object_set_new(w.header, "__metadata__", json_pack("{s:s}", "format", "pt"));
    uint8_t *file = safetensors_writer_finish(&w, &size);
    if (!safetensors_open_memory(&s, "x", file, size, &st)) fail_msg("%s", st.text);
    assert_int_equal(s.n_tensors, 3);
    const struct safetensors_tensor *t = safetensors_find(&s, "b");
    assert_true(t->dtype == DTYPE_BF16 && t->n_dims == 2 && t->dims[0] == 2 && t->dims[1] == 3);
    assert_true(t->count == 6 && t->size == 12);
    assert_memory_equal(t->data, half, sizeof half);
    t = safetensors_find(&s, "a");
    float value;
    memcpy(&value, t->data, sizeof value);
    assert_true(t->n_dims == 0 && t->count == 1 && value == 7);
    assert_int_equal(safetensors_find(&s, "empty")->size, 0);
    assert_null(safetensors_find(&s, "c"));
    assert_null(safetensors_find(&s, "__metadata__"));
    safetensors_close(&s);
    free(file);
}

static void every_dtype_has_its_size(void **state) {
    (void)state;
    static const struct {
        const char *name;
        size_t bytes;
    } sizes[] = {{"F64", 8},     {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F8_E4M3", 1}, {"F8_E5M2", 1},
                 {"F8_E8M0", 1}, {"I64", 8}, {"I32", 4}, {"I16", 2},  {"I8", 1},      {"U64", 8},
                 {"U32", 4},     {"U16", 2}, {"U8", 1},  {"BOOL", 1}};
    assert_int_equal(sizeof sizes / sizeof *sizes, DTYPE_COUNT);
    for (int i = 0; i < DTYPE_COUNT; i++) {
        assert_string_equal(safetensors_dtype_name((enum safetensors_dtype)i), sizes[i].name);
        assert_int_equal(safetensors_dtype_bytes((enum safetensors_dtype)i), sizes[i].bytes);
    }
}

// ---- bad headers ----

static void other_files_are_refused(void **state) {
    (void)state;
    struct status st = {0};
    assert_false(opens("", 0, &st) || opens("1234567", 7, &st));
    assert_string_equal(st.text,
                        "x.safetensors: no safetensors file: ends too early: 8 bytes wanted at offset 0, 7 left");
    assert_false(opens("\x09\0\0\0\0\0\0\0{}", 10, &st));
    assert_non_null(strstr(st.text, "ends too early"));
    assert_false(opens("GGUF\3\0\0\0....", 12, &st));
    assert_non_null(strstr(st.text, "allowed are 67108864"));
    refused("", 0, "no JSON");
    refused("[]", 0, "no JSON object");
    refused("{} x", 0, "no JSON");
    refused("{\"a\": 1, \"a\": 2}", 0, "duplicate object key");
    refused("{\"\\u0000\": 1}", 0, "no JSON");
    refused("{\"\xff\": 1}", 0, "no JSON");
    refused("{\"\": {}}", 0, "0 bytes long");
}

#define ENTRY(dtype, shape, offsets)                                                                                   \
    "{\"t\": {\"dtype\": \"" dtype "\", \"shape\": " shape ", \"data_offsets\": " offsets "}}"

static void bad_entries_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *header, *why;
    } cases[] = {
        {"{\"t\": 1}", "tensor t: is no object"},
        {"{\"t\": {}}", "tensor t: has no dtype"},
        {"{\"t\": {\"dtype\": 1}}", "has no dtype"},
        {"{\"t\": {\"dtype\": \"F32\"}}", "has no shape"},
        {"{\"t\": {\"dtype\": \"F32\", \"shape\": []}}", "has no two data_offsets"},
        {ENTRY("F33", "[1]", "[0, 4]"), "its dtype F33 is unknown"},
        {ENTRY("F32", "1", "[0, 4]"), "has no shape"},
        {ENTRY("F32", "[-1]", "[0, 4]"), "shape holds something else than non-negative integers"},
        {ENTRY("F32", "[1.0]", "[0, 4]"), "shape holds something else"},
        {ENTRY("F32", "[\"1\"]", "[0, 4]"), "shape holds something else"},
        {ENTRY("F32", "[1, 1, 1, 1, 1, 1, 1, 1, 1]", "[0, 4]"), "has 9 dimensions"},
        {ENTRY("F32", "[4611686018427387904, 4]", "[0, 4]"), "multiply to an absurd size"},
        {ENTRY("F32", "[4611686018427387904]", "[0, 4]"), "multiply to an absurd size"},
        {ENTRY("F32", "[99999999999999999999]", "[0, 4]"), "too big integer"},
        {ENTRY("F32", "[1]", "[0]"), "has no two data_offsets"},
        {ENTRY("F32", "[1]", "[0, 4, 8]"), "has no two data_offsets"},
        {ENTRY("F32", "[1]", "[-4, 0]"), "data_offsets holds something else"},
        {ENTRY("F32", "[1]", "[4, 0]"), "data_offsets 4 to 0 are outside the 16 bytes"},
        {ENTRY("F32", "[1]", "[16, 20]"), "data_offsets 16 to 20 are outside the 16 bytes"},
        {ENTRY("F32", "[1]", "[9223372036854775803, 9223372036854775807]"), "are outside the 16 bytes"},
        {ENTRY("F32", "[2]", "[0, 4]"), "has 4 bytes of data, its shape of F32 needs 8"},
        {ENTRY("F16", "[1]", "[0, 4]"), "has 4 bytes of data, its shape of F16 needs 2"},
        {ENTRY("F16", "[0]", "[0, 4]"), "has 4 bytes of data, its shape of F16 needs 0"},
        {"{\"a\": {\"dtype\": \"U8\", \"shape\": [8], \"data_offsets\": [0, 8]},"
         " \"b\": {\"dtype\": \"U8\", \"shape\": [8], \"data_offsets\": [7, 15]}}",
         "the tensors a and b overlap"},
        {"{\"a\": {\"dtype\": \"U8\", \"shape\": [8], \"data_offsets\": [4, 12]},"
         " \"b\": {\"dtype\": \"U8\", \"shape\": [2], \"data_offsets\": [4, 6]}}",
         "overlap"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) refused(cases[i].header, 16, cases[i].why);
}

static void deep_and_long_headers_are_refused(void **state) {
    (void)state;
    char *deep = xmalloc(1 << 20);
    memset(deep, '[', (1 << 20) - 1);
    deep[(1 << 20) - 1] = 0;
    refused(deep, 0, "maximum parsing depth");
    free(deep);
    char header[512];
    memset(header, 'n', sizeof header);
    memcpy(header, "{\"", 2);
    strcpy(header + 300, "\": {}}");
    refused(header, 0, "the name of a tensor is 298 bytes long");
}

static void every_damaged_byte_is_survived(void **state) {
    (void)state;
    struct safetensors_writer w = {0};
    struct status st;
    size_t size, refusals = 0;
    const float values[6] = {1, 2, 3, 4, 5, 6};
    safetensors_writer_tensor(&w, "one", "F32", 2, (uint64_t[]){2, 2}, values, 16);
    safetensors_writer_tensor(&w, "two", "BF16", 1, (uint64_t[]){4}, values, 8);
    json_object_set_new(w.header, "__metadata__", json_pack("{s:s}", "format", "pt"));
    uint8_t *file = safetensors_writer_finish(&w, &size);
    for (size_t at = 0; at < size - 24; at++) {
        uint8_t good = file[at];
        for (int byte = 0; byte < 256; byte++) {
            file[at] = (uint8_t)byte;
            st = (struct status){0};
            bool opened = opens(file, size, &st);
            if (opened != (st.code == STATUS_OK)) fail_msg("byte %zu = %d: result and status differ", at, byte);
            refusals += !opened;
        }
        file[at] = good;
    }
    for (size_t cut = 0; cut < size; cut++) assert_false(opens(file, cut, &st));
    assert_true(refusals > (size - 24) * 128);
    free(file);
}

// ---- folders ----

static void write_text(const char *folder, const char *name, const char *text) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    write_whole_file(path, text, strlen(text));
}

static void write_shard(const char *folder, const char *name, const char *tensor, float value) {
    struct safetensors_writer w = {0};
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    safetensors_writer_tensor(&w, tensor, "F32", 1, (uint64_t[]){1}, &value, sizeof value);
    safetensors_writer_save(&w, path);
}

#define INDEX "model.safetensors.index.json"

static void an_index_opens_all_files(void **state) {
    (void)state;
    char folder[] = "/tmp/confab-safetensors-XXXXXX";
    struct safetensors s;
    struct status st = {0};
    assert_non_null(mkdtemp(folder));
    assert_false(safetensors_open(&s, folder, &st));
    assert_non_null(strstr(st.text, "/model.safetensors: No such file"));
    write_shard(folder, "one.safetensors", "a", 1);
    write_shard(folder, "two.safetensors", "b", 2);
    write_text(folder, INDEX,
               "{\"metadata\": {}, \"weight_map\": {\"b\": \"two.safetensors\", \"a\": \"one.safetensors\"}}");
    if (!safetensors_open(&s, folder, &st)) fail_msg("%s", st.text);
    assert_int_equal(s.n_mappings, 2);
    float value;
    memcpy(&value, safetensors_find(&s, "b")->data, sizeof value);
    assert_true(value == 2 && s.n_tensors == 2);
    safetensors_close(&s);
    tiny_huggingface_remove(folder);
}

static void bad_indexes_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *index, *why;
    } cases[] = {
        {"", "index.json: no JSON"},
        {"[]", "index.json: is no JSON object"},
        {"{}", "has no weight_map"},
        {"{\"weight_map\": []}", "has no weight_map"},
        {"{\"weight_map\": {}}", "weight_map lists 0 files"},
        {"{\"weight_map\": {\"a\": 1}}", "weight_map: a is in \"\""},
        {"{\"weight_map\": {\"a\": \"../x\"}}", "a is in \"../x\", which is no name of a file beside it"},
        {"{\"weight_map\": {\"a\": \"/etc/passwd\"}}", "which is no name of a file beside it"},
        {"{\"weight_map\": {\"a\": \"three.safetensors\"}}", "three.safetensors: No such file"},
        {"{\"weight_map\": {\"a\": \"one.safetensors\", \"b\": \"one.safetensors\"}}",
         "the tensor b is not in one.safetensors"},
        {"{\"weight_map\": {\"a\": \"one.safetensors\", \"b\": \"two.safetensors\"}}", "the tensor a is in two files"},
    };
    char folder[] = "/tmp/confab-safetensors-XXXXXX";
    assert_non_null(mkdtemp(folder));
    write_shard(folder, "one.safetensors", "a", 1);
    write_shard(folder, "two.safetensors", "a", 2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct safetensors s;
        struct status st = {0};
        write_text(folder, INDEX, cases[i].index);
        if (safetensors_open(&s, folder, &st)) fail_msg("opened, though %s", cases[i].why);
        if (!strstr(st.text, cases[i].why)) fail_msg("\"%s\" does not say \"%s\"", st.text, cases[i].why);
        assert_memory_equal(st.text, folder, strlen(folder));
        assert_null(s.arena.chunks);
    }
    tiny_huggingface_remove(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_found),
        cmocka_unit_test(every_dtype_has_its_size),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(bad_entries_are_refused),
        cmocka_unit_test(deep_and_long_headers_are_refused),
        cmocka_unit_test(every_damaged_byte_is_survived),
        cmocka_unit_test(an_index_opens_all_files),
        cmocka_unit_test(bad_indexes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
