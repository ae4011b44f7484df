// Safetensors files: valid ones are read, invalid ones rejected with a message that names the reason.
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

// ---- files with a given header and zero data ----

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
        volatile uint8_t sum = 0; // every byte of every tensor is readable
        for (uint64_t i = 0; i < s.n_tensors; i++)
            for (uint64_t k = 0; k < s.tensors[i].size; k++) sum += ((const uint8_t *)s.tensors[i].data)[k];
        (void)sum;
        safetensors_close(&s);
    }
    assert_null(s.arena.chunks);
    free(copy);
    return opened;
}

static void rejected(const char *header, size_t data, const char *why) {
    struct status st = {0};
    size_t size;
    uint8_t *file = file_of(header, data, &size);
    if (opens(file, size, &st)) fail_msg("opened; expected '%s': %s", why, header);
    if (!strstr(st.text, why)) fail_msg("'%s' does not contain '%s'", st.text, why);
    assert_memory_equal(st.text, "x.safetensors: ", 15);
    free(file);
}

// ---- valid files ----

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

// ---- invalid headers ----

static void other_files_are_rejected(void **state) {
    (void)state;
    struct status st = {0};
    assert_false(opens("", 0, &st) || opens("1234567", 7, &st));
    assert_string_equal(st.text,
                        "x.safetensors: not a safetensors file: truncated: expected 8 bytes at offset 0, got 7");
    assert_false(opens("\x09\0\0\0\0\0\0\0{}", 10, &st));
    assert_non_null(strstr(st.text, "truncated"));
    assert_false(opens("GGUF\3\0\0\0....", 12, &st));
    assert_non_null(strstr(st.text, "too large (maximum 67108864)"));
    rejected("", 0, "invalid JSON");
    rejected("[]", 0, "not a JSON object");
    rejected("{} x", 0, "invalid JSON");
    rejected("{\"a\": 1, \"a\": 2}", 0, "duplicate object key");
    rejected("{\"\\u0000\": 1}", 0, "invalid JSON");
    rejected("{\"\xff\": 1}", 0, "invalid JSON");
    rejected("{\"\": {}}", 0, "tensor name length 0 is out of range (1 to 256)");
}

#define ENTRY(dtype, shape, offsets)                                                                                   \
    "{\"t\": {\"dtype\": \"" dtype "\", \"shape\": " shape ", \"data_offsets\": " offsets "}}"

static void bad_entries_are_rejected(void **state) {
    (void)state;
    static const struct {
        const char *header, *why;
    } cases[] = {
        {"{\"t\": 1}", "tensor t: expected an object"},
        {"{\"t\": {}}", "tensor t: missing dtype"},
        {"{\"t\": {\"dtype\": 1}}", "missing dtype"},
        {"{\"t\": {\"dtype\": \"F32\"}}", "missing shape"},
        {"{\"t\": {\"dtype\": \"F32\", \"shape\": []}}", "data_offsets: expected two numbers"},
        {ENTRY("F33", "[1]", "[0, 4]"), "unknown dtype 'F33'"},
        {ENTRY("F32", "1", "[0, 4]"), "missing shape"},
        {ENTRY("F32", "[-1]", "[0, 4]"), "shape: expected non-negative integers"},
        {ENTRY("F32", "[1.0]", "[0, 4]"), "shape: expected"},
        {ENTRY("F32", "[\"1\"]", "[0, 4]"), "shape: expected"},
        {ENTRY("F32", "[1, 1, 1, 1, 1, 1, 1, 1, 1]", "[0, 4]"), "too many dimensions: 9 (maximum 8)"},
        {ENTRY("F32", "[4611686018427387904, 4]", "[0, 4]"), "dimensions are too large"},
        {ENTRY("F32", "[4611686018427387904]", "[0, 4]"), "dimensions are too large"},
        {ENTRY("F32", "[99999999999999999999]", "[0, 4]"), "too big integer"},
        {ENTRY("F32", "[1]", "[0]"), "data_offsets: expected two numbers"},
        {ENTRY("F32", "[1]", "[0, 4, 8]"), "data_offsets: expected two numbers"},
        {ENTRY("F32", "[1]", "[-4, 0]"), "data_offsets: expected non-negative integers"},
        {ENTRY("F32", "[1]", "[4, 0]"), "data_offsets: 4 to 0 is outside the data (16 bytes)"},
        {ENTRY("F32", "[1]", "[16, 20]"), "data_offsets: 16 to 20 is outside the data (16 bytes)"},
        {ENTRY("F32", "[1]", "[9223372036854775803, 9223372036854775807]"), "is outside the data (16 bytes)"},
        {ENTRY("F32", "[2]", "[0, 4]"), "has 4 bytes of data, but its shape and dtype F32 need 8"},
        {ENTRY("F16", "[1]", "[0, 4]"), "has 4 bytes of data, but its shape and dtype F16 need 2"},
        {ENTRY("F16", "[0]", "[0, 4]"), "has 4 bytes of data, but its shape and dtype F16 need 0"},
        {"{\"a\": {\"dtype\": \"U8\", \"shape\": [8], \"data_offsets\": [0, 8]},"
         " \"b\": {\"dtype\": \"U8\", \"shape\": [8], \"data_offsets\": [7, 15]}}",
         "tensors a and b overlap"},
        {"{\"a\": {\"dtype\": \"U8\", \"shape\": [8], \"data_offsets\": [4, 12]},"
         " \"b\": {\"dtype\": \"U8\", \"shape\": [2], \"data_offsets\": [4, 6]}}",
         "overlap"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) rejected(cases[i].header, 16, cases[i].why);
}

static void deep_and_long_headers_are_rejected(void **state) {
    (void)state;
    char *deep = xmalloc(1 << 20);
    memset(deep, '[', (1 << 20) - 1);
    deep[(1 << 20) - 1] = 0;
    rejected(deep, 0, "maximum parsing depth");
    free(deep);
    char header[512];
    memset(header, 'n', sizeof header);
    memcpy(header, "{\"", 2);
    strcpy(header + 300, "\": {}}");
    rejected(header, 0, "tensor name length 298 is");
}

static void every_damaged_byte_is_survived(void **state) {
    (void)state;
    struct safetensors_writer w = {0};
    struct status st;
    size_t size, rejected = 0;
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
            rejected += !opened;
        }
        file[at] = good;
    }
    for (size_t cut = 0; cut < size; cut++) assert_false(opens(file, cut, &st));
    assert_true(rejected > (size - 24) * 128);
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

static void bad_indexes_are_rejected(void **state) {
    (void)state;
    static const struct {
        const char *index, *why;
    } cases[] = {
        {"", "index.json: invalid JSON"},
        {"[]", "index.json: not a JSON object"},
        {"{}", "missing weight_map"},
        {"{\"weight_map\": []}", "missing weight_map"},
        {"{\"weight_map\": {}}", "weight_map: number of files 0 is out of range (1 to 4096)"},
        {"{\"weight_map\": {\"a\": 1}}", "weight_map: a: '' is not a file name"},
        {"{\"weight_map\": {\"a\": \"../x\"}}", "a: '../x' is not a file name"},
        {"{\"weight_map\": {\"a\": \"/etc/passwd\"}}", "'/etc/passwd' is not a file name"},
        {"{\"weight_map\": {\"a\": \"three.safetensors\"}}", "three.safetensors: No such file"},
        {"{\"weight_map\": {\"a\": \"one.safetensors\", \"b\": \"one.safetensors\"}}",
         "tensor b is not in one.safetensors"},
        {"{\"weight_map\": {\"a\": \"one.safetensors\", \"b\": \"two.safetensors\"}}", "tensor a is in two files"},
    };
    char folder[] = "/tmp/confab-safetensors-XXXXXX";
    assert_non_null(mkdtemp(folder));
    write_shard(folder, "one.safetensors", "a", 1);
    write_shard(folder, "two.safetensors", "a", 2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct safetensors s;
        struct status st = {0};
        write_text(folder, INDEX, cases[i].index);
        if (safetensors_open(&s, folder, &st)) fail_msg("opened; expected '%s'", cases[i].why);
        if (!strstr(st.text, cases[i].why)) fail_msg("'%s' does not contain '%s'", st.text, cases[i].why);
        assert_memory_equal(st.text, folder, strlen(folder));
        assert_null(s.arena.chunks);
    }
    tiny_huggingface_remove(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_found),
        cmocka_unit_test(every_dtype_has_its_size),
        cmocka_unit_test(other_files_are_rejected),
        cmocka_unit_test(bad_entries_are_rejected),
        cmocka_unit_test(deep_and_long_headers_are_rejected),
        cmocka_unit_test(every_damaged_byte_is_survived),
        cmocka_unit_test(an_index_opens_all_files),
        cmocka_unit_test(bad_indexes_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
