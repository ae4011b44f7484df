// GGUF files: valid ones are read, invalid ones rejected with a message that names the reason.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/panic.h"
#include "tests/unit/gguf_writer.h"
#include "tests/unit/shared_files.h"
#include "tests/unit/tiny_model.h"

static const uint64_t one_row[] = {32, 1, 1, 1};
static const float zeros[256];

struct opened {
    struct gguf g;
    uint8_t *data;
};

static void open_good(struct opened *o, struct gguf_writer *w) {
    size_t size;
    struct status st = {0};
    o->data = gguf_writer_finish(w, &size);
    if (!gguf_open_memory(&o->g, "good.gguf", o->data, size, &st)) fail_msg("%s", st.text);
}

static void close_good(struct opened *o) {
    gguf_close(&o->g);
    free(o->data);
}

static void check_rejected_bytes(const void *data, size_t size, const char *why) {
    struct gguf g;
    struct status st = {0};
    uint8_t *copy = xmalloc(size + 1); // aligned, and a sanitizer sees reads past the end
    if (size) memcpy(copy, data, size);
    if (gguf_open_memory(&g, "bad.gguf", copy, size, &st)) fail_msg("opened; expected '%s'", why);
    if (!strstr(st.text, why)) fail_msg("'%s' does not contain '%s'", st.text, why);
    assert_non_null(strstr(st.text, "bad.gguf: "));
    assert_int_not_equal(st.code, STATUS_OK);
    assert_null(g.arena.chunks);
    free(copy);
}

static void check_rejected(struct gguf_writer *w, const char *why) {
    size_t size;
    uint8_t *data = gguf_writer_finish(w, &size);
    check_rejected_bytes(data, size, why);
    free(data);
}

// ---- valid files ----

static void write_values(struct gguf_writer *w) {
    gguf_writer_pair(w, "u8", GGUF_U8, &(uint8_t){200}, 1);
    gguf_writer_pair(w, "i8", GGUF_I8, &(int8_t){-100}, 1);
    gguf_writer_pair(w, "u16", GGUF_U16, &(uint16_t){60000}, 2);
    gguf_writer_pair(w, "i16", GGUF_I16, &(int16_t){-30000}, 2);
    gguf_writer_u32(w, "u32", 4000000000u);
    gguf_writer_pair(w, "i32", GGUF_I32, &(int32_t){-2000000000}, 4);
    gguf_writer_float(w, "f32", 1.5f);
    gguf_writer_bool(w, "bool", true);
    gguf_writer_string(w, "string", "text");
    gguf_writer_string(w, "empty", "");
    gguf_writer_pair(w, "u64", GGUF_U64, &(uint64_t){UINT64_MAX}, 8);
    gguf_writer_pair(w, "i64", GGUF_I64, &(int64_t){INT64_MIN}, 8);
    gguf_writer_pair(w, "f64", GGUF_F64, &(double){-2.25}, 8);
    gguf_writer_array(w, "array", GGUF_I16, 3, (int16_t[]){1, -2, 3}, 6);
    struct bytes strings = {0};
    bytes_string(&strings, "one");
    bytes_string(&strings, "");
    bytes_string(&strings, "three");
    gguf_writer_array(w, "strings", GGUF_STRING, 3, strings.data, strings.size);
    gguf_writer_array(w, "none", GGUF_STRING, 0, NULL, 0);
    free(strings.data);
}

static void open_values(struct opened *o) {
    struct gguf_writer w = {0};
    write_values(&w);
    open_good(o, &w);
}

static double number_of(const struct gguf *g, const char *key, uint64_t i) {
    const struct gguf_pair *p = gguf_find(g, key);
    assert_non_null(p);
    return gguf_number(p, i);
}

static void values_of_all_types_are_read(void **state) {
    (void)state;
    for (uint32_t version = 2; version <= 3; version++) {
        struct gguf_writer w = {.version = version};
        write_values(&w);
        struct opened o;
        open_good(&o, &w);
        assert_int_equal(o.g.version, version);
        assert_int_equal(o.g.n_pairs, 16);
        assert_true(number_of(&o.g, "u8", 0) == 200 && number_of(&o.g, "i8", 0) == -100);
        assert_true(number_of(&o.g, "u16", 0) == 60000 && number_of(&o.g, "i16", 0) == -30000);
        assert_true(number_of(&o.g, "u32", 0) == 4000000000.0 && number_of(&o.g, "i32", 0) == -2000000000.0);
        assert_true(number_of(&o.g, "f32", 0) == 1.5 && number_of(&o.g, "f64", 0) == -2.25);
        assert_true(number_of(&o.g, "u64", 0) == 0x1p64 && number_of(&o.g, "i64", 0) == -0x1p63);
        assert_true(number_of(&o.g, "bool", 0) == 1);
        assert_true(number_of(&o.g, "array", 1) == -2 && number_of(&o.g, "array", 2) == 3);
        assert_int_equal(gguf_find(&o.g, "array")->count, 3);
        assert_null(gguf_find(&o.g, "arra"));
        assert_null(gguf_find(&o.g, "arrayy"));
        assert_null(gguf_find(&o.g, ""));
        close_good(&o);
    }
}

static void strings_and_their_arrays_are_read(void **state) {
    (void)state;
    struct opened o;
    open_values(&o);
    struct status st = {0};
    struct span s;
    assert_true(gguf_get_string(&o.g, "string", GGUF_REQUIRED, &s, &st) && span_equals(s, "text"));
    assert_true(gguf_get_string(&o.g, "empty", GGUF_REQUIRED, &s, &st) && s.size == 0);
    struct arena arena = {0};
    uint64_t count;
    struct span *strings = gguf_get_strings(&o.g, "strings", &arena, &count, &st);
    assert_int_equal(count, 3);
    assert_true(span_equals(strings[0], "one") && span_equals(strings[1], "") && span_equals(strings[2], "three"));
    assert_non_null(gguf_get_strings(&o.g, "none", &arena, &count, &st));
    assert_int_equal(count, 0);
    assert_null(gguf_get_strings(&o.g, "absent", &arena, &count, &st));
    assert_int_equal(st.code, STATUS_OK);
    assert_null(gguf_get_strings(&o.g, "array", &arena, &count, &st));
    assert_string_equal(st.text, "good.gguf: array: expected an array of strings, got array of i16");
    arena_free(&arena);
    close_good(&o);
}

static void tensors_are_found_with_their_data(void **state) {
    (void)state;
    struct gguf_writer w = {0};
    const uint64_t dims[] = {64, 3};
    uint8_t blocks[6 * 34];
    memset(blocks, 7, sizeof blocks);
    gguf_writer_tensor(&w, "zeta", 8, 2, dims, blocks, sizeof blocks);
    gguf_writer_tensor(&w, "alpha", 0, 1, one_row, zeros, 128);
    gguf_writer_tensor(&w, "middle", 1, 4, (uint64_t[]){2, 3, 4, 2}, zeros, 96);
    struct opened o;
    open_good(&o, &w);
    const struct gguf_tensor *t = gguf_tensor_find(&o.g, "zeta");
    assert_non_null(t);
    assert_int_equal(t->format->id, BLOCK_Q8_0);
    assert_int_equal(t->n_dims, 2);
    assert_true(t->dims[0] == 64 && t->dims[1] == 3 && t->dims[2] == 1 && t->dims[3] == 1);
    assert_int_equal(t->size, sizeof blocks);
    assert_memory_equal(t->data, blocks, sizeof blocks);
    assert_int_equal(gguf_tensor_find(&o.g, "alpha")->size, 128);
    assert_int_equal(gguf_tensor_find(&o.g, "middle")->size, 96);
    assert_null(gguf_tensor_find(&o.g, "beta"));
    close_good(&o);
}

static void the_alignment_of_the_file_is_used(void **state) {
    (void)state;
    for (uint32_t alignment = 8; alignment <= 4096; alignment *= 8) {
        struct gguf_writer w = {.alignment = alignment};
        gguf_writer_u32(&w, "general.alignment", alignment);
        gguf_writer_tensor(&w, "a", 0, 1, (uint64_t[]){1}, &(float){3}, 4);
        gguf_writer_tensor(&w, "b", 0, 1, (uint64_t[]){1}, &(float){4}, 4);
        struct opened o;
        open_good(&o, &w);
        const struct gguf_tensor *a = gguf_tensor_find(&o.g, "a"), *b = gguf_tensor_find(&o.g, "b");
        assert_int_equal((const char *)b->data - (const char *)a->data, alignment);
        assert_int_equal((size_t)((const uint8_t *)a->data - o.data) % alignment, 0);
        assert_true(*(const float *)a->data == 3 && *(const float *)b->data == 4);
        close_good(&o);
    }
}

static void a_file_without_tensors_is_valid(void **state) {
    (void)state;
    struct gguf_writer w = {0};
    gguf_writer_string(&w, "general.architecture", "x"); // ends before any padding
    struct opened o;
    open_good(&o, &w);
    assert_int_equal(o.g.n_tensors, 0);
    assert_null(gguf_tensor_find(&o.g, "a"));
    close_good(&o);
    struct gguf_writer empty = {0};
    open_good(&o, &empty);
    assert_null(gguf_find(&o.g, "a"));
    close_good(&o);
}

// ---- typed reads ----

static void integers_are_checked_for_type_and_range(void **state) {
    (void)state;
    struct opened o;
    open_values(&o);
    struct status st = {0};
    int64_t v = 42;
    assert_true(gguf_get_int(&o.g, "absent", GGUF_OPTIONAL, 0, 9, &v, &st) && v == 42);
    assert_false(gguf_get_int(&o.g, "absent", GGUF_REQUIRED, 0, 9, &v, &st));
    assert_string_equal(st.text, "good.gguf: missing key absent");
    assert_true(gguf_get_int(&o.g, "u8", GGUF_REQUIRED, 200, 200, &v, &st) && v == 200);
    assert_true(gguf_get_int(&o.g, "i8", GGUF_REQUIRED, -100, 0, &v, &st) && v == -100);
    assert_true(gguf_get_int(&o.g, "u32", GGUF_REQUIRED, 0, UINT32_MAX, &v, &st) && v == 4000000000);
    assert_true(gguf_get_int(&o.g, "i64", GGUF_REQUIRED, INT64_MIN, 0, &v, &st) && v == INT64_MIN);
    assert_false(gguf_get_int(&o.g, "u8", GGUF_OPTIONAL, 0, 199, &v, &st));
    assert_string_equal(st.text, "good.gguf: u8: 200 is out of range (0 to 199)");
    assert_false(gguf_get_int(&o.g, "i16", GGUF_OPTIONAL, 0, 199, &v, &st));
    assert_false(gguf_get_int(&o.g, "u64", GGUF_OPTIONAL, 0, 1ll << 60, &v, &st));
    static const char *const others[] = {"f32", "bool", "string", "array", "f64"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(gguf_get_int(&o.g, others[i], GGUF_OPTIONAL, INT64_MIN, INT64_MAX, &v, &st));
        assert_non_null(strstr(st.text, "expected an integer"));
    }
    close_good(&o);
}

static void other_values_are_checked_for_type_and_range(void **state) {
    (void)state;
    struct gguf_writer w = {0};
    write_values(&w);
    gguf_writer_float(&w, "nan", NAN);
    gguf_writer_float(&w, "inf", INFINITY);
    struct opened o;
    open_good(&o, &w);
    struct status st = {0};
    float f = 7;
    bool b = false;
    struct span s;
    assert_true(gguf_get_float(&o.g, "absent", GGUF_OPTIONAL, 0, 1, &f, &st) && f == 7);
    assert_false(gguf_get_float(&o.g, "absent", GGUF_REQUIRED, 0, 1, &f, &st));
    assert_true(gguf_get_float(&o.g, "f32", GGUF_OPTIONAL, 0, 2, &f, &st) && f == 1.5f);
    assert_true(gguf_get_float(&o.g, "f64", GGUF_OPTIONAL, -3, 2, &f, &st) && f == -2.25f);
    assert_false(gguf_get_float(&o.g, "f64", GGUF_OPTIONAL, 0, 2, &f, &st));
    assert_string_equal(st.text, "good.gguf: f64: -2.25 is out of range (0 to 2)");
    assert_false(gguf_get_float(&o.g, "nan", GGUF_OPTIONAL, -1e30, 1e30, &f, &st));
    assert_false(gguf_get_float(&o.g, "inf", GGUF_OPTIONAL, -1e30, 1e30, &f, &st));
    assert_false(gguf_get_float(&o.g, "u32", GGUF_OPTIONAL, 0, 1e30, &f, &st));
    assert_true(gguf_get_bool(&o.g, "absent", &b, &st) && !b);
    assert_true(gguf_get_bool(&o.g, "bool", &b, &st) && b);
    assert_false(gguf_get_bool(&o.g, "u8", &b, &st));
    assert_string_equal(st.text, "good.gguf: u8: expected a bool, got u8");
    assert_true(gguf_get_string(&o.g, "absent", GGUF_OPTIONAL, &s, &st));
    assert_false(gguf_get_string(&o.g, "absent", GGUF_REQUIRED, &s, &st));
    assert_false(gguf_get_string(&o.g, "strings", GGUF_OPTIONAL, &s, &st));
    close_good(&o);
}

// ---- invalid header and pairs ----

static void other_kinds_of_file_are_rejected(void **state) {
    (void)state;
    check_rejected_bytes("", 0, "not a GGUF file");
    check_rejected_bytes("GGU", 3, "not a GGUF file");
    check_rejected_bytes("GGML\3\0\0\0", 8, "not a GGUF file (starts with 'GGML')");
    check_rejected_bytes("\x1b[2J....", 8, "starts with '?[2J'");
    check_rejected_bytes("GGUF\3\0", 6, "expected 4 bytes at offset 4, got 2");
    check_rejected_bytes("GGUF\0\0\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24, "big-endian");
    check_rejected_bytes("GGUF\0\0\0\2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24, "big-endian");
    static const uint32_t versions[] = {0, 1, 4, 99, UINT32_MAX};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        struct gguf_writer w = {.version = versions[i]};
        size_t size;
        uint8_t *data = gguf_writer_finish(&w, &size);
        memcpy(data + 4, &versions[i], 4);
        char why[64];
        snprintf(why, sizeof why, "unsupported GGUF version %u (expected 2 or 3)", versions[i]);
        check_rejected_bytes(data, size, why);
        free(data);
    }
}

static void counts_beyond_the_file_are_rejected(void **state) {
    (void)state;
    static const uint64_t counts[] = {1, 1000, 1ull << 32, 1ull << 60, UINT64_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct gguf_writer w = {.n_pairs = counts[i]};
        check_rejected(&w, "keys do not fit in the file");
        w = (struct gguf_writer){.n_tensors = counts[i]};
        size_t size;
        uint8_t *data = gguf_writer_finish(&w, &size);
        check_rejected_bytes(data, 24, "tensors do not fit in the file");
        free(data);
        w = (struct gguf_writer){0};
        gguf_writer_array(&w, "a", GGUF_F32, counts[i] | 1024, zeros, 16);
        check_rejected(&w, "a: ");
        w = (struct gguf_writer){0};
        gguf_writer_array(&w, "names", GGUF_STRING, counts[i] | 1024, zeros, 64);
        check_rejected(&w, "strings do not fit in the file");
    }
}

static void bad_names_are_rejected(void **state) {
    (void)state;
    char name[300];
    memset(name, 'x', sizeof name);
    name[257] = 0;
    struct gguf_writer w = {0};
    gguf_writer_bool(&w, name, true);
    check_rejected(&w, "key 0: name length 257 is out of range (1 to 256)");
    gguf_writer_bool(&w, "fine", true);
    gguf_writer_bool(&w, "", true);
    check_rejected(&w, "key 1: name length 0 is");
    gguf_writer_tensor(&w, name, 0, 1, one_row, zeros, 128);
    check_rejected(&w, "tensor 0: name length 257 is");
    gguf_writer_tensor(&w, "", 0, 1, one_row, zeros, 128);
    check_rejected(&w, "tensor 0: name length 0 is");
    bytes_u64(&w.pairs, UINT64_MAX);
    bytes_put(&w.pairs, zeros, 32);
    w.n_pairs = 1;
    check_rejected(&w, "key 0: name length 18446744073709551615 is");
    bytes_u64(&w.pairs, 40);
    bytes_put(&w.pairs, zeros, 32);
    w.n_pairs = 1;
    check_rejected(&w, "key 0: truncated");
}

static void bad_value_types_are_rejected(void **state) {
    (void)state;
    static const uint32_t types[] = {13, 14, 255, UINT32_MAX};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct gguf_writer w = {0};
        char why[64];
        gguf_writer_pair(&w, "k", (enum gguf_type)types[i], zeros, 64);
        snprintf(why, sizeof why, "k: unknown value type %u", types[i]);
        check_rejected(&w, why);
        gguf_writer_array(&w, "k", (enum gguf_type)types[i], 1, zeros, 64);
        snprintf(why, sizeof why, "k: unknown array element type %u", types[i]);
        check_rejected(&w, why);
    }
}

static void nested_arrays_are_rejected(void **state) {
    (void)state;
    struct gguf_writer w = {0};
    gguf_writer_array(&w, "deep", GGUF_ARRAY, 1, zeros, 64);
    check_rejected(&w, "deep: nested arrays are not supported");
}

static void strings_beyond_the_file_are_rejected(void **state) {
    (void)state;
    static const uint64_t lengths[] = {65, 1ull << 32, UINT64_MAX - 8, UINT64_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct gguf_writer w = {0};
        gguf_writer_pair(&w, "s", GGUF_STRING, NULL, 0);
        bytes_u64(&w.pairs, lengths[i]);
        bytes_put(&w.pairs, zeros, 64);
        check_rejected(&w, "s: truncated");
        struct bytes strings = {0};
        bytes_string(&strings, "good");
        bytes_u64(&strings, lengths[i]);
        bytes_put(&strings, zeros, 64);
        gguf_writer_array(&w, "list", GGUF_STRING, 2, strings.data, strings.size);
        check_rejected(&w, "list: truncated");
        free(strings.data);
    }
}

static void duplicate_keys_are_rejected(void **state) {
    (void)state;
    struct gguf_writer w = {0};
    gguf_writer_u32(&w, "b", 1);
    gguf_writer_u32(&w, "a", 1);
    gguf_writer_u32(&w, "ab", 1);
    gguf_writer_string(&w, "b", "again");
    check_rejected(&w, "duplicate key b");
}

static void bad_alignments_are_rejected(void **state) {
    (void)state;
    static const struct {
        uint32_t value;
        const char *why;
    } cases[] = {{0, "general.alignment: 0 is out of range (8 to 1048576)"},
                 {4, "general.alignment: 4 is out of range"},
                 {33, "general.alignment: 33 is not a power of two"},
                 {96, "not a power of two"},
                 {1 << 21, "is out of range (8 to 1048576)"},
                 {UINT32_MAX, "is out of range (8 to 1048576)"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gguf_writer w = {0};
        gguf_writer_u32(&w, "general.alignment", cases[i].value);
        gguf_writer_tensor(&w, "t", 0, 1, one_row, zeros, 128);
        check_rejected(&w, cases[i].why);
    }
    struct gguf_writer w = {0};
    gguf_writer_string(&w, "general.alignment", "32");
    check_rejected(&w, "general.alignment: expected an integer, got string");
}

// ---- invalid tensors ----

static void bad_dimensions_are_rejected(void **state) {
    (void)state;
    static const uint64_t dims[8] = {32, 1, 1, 1, 1, 1, 1, 1}, with_zero[] = {32, 0};
    static const uint64_t huge[] = {1ull << 40, 1ull << 40}, wraps[] = {1ull << 62, 4}, most[] = {UINT64_MAX};
    struct gguf_writer w = {0};
    gguf_writer_entry(&w, "t", 0, 0, dims, 0);
    bytes_put(&w.directory, zeros, 64);
    check_rejected(&w, "tensor t: number of dimensions 0 is out of range (1 to 4)");
    gguf_writer_entry(&w, "t", 0, 5, dims, 0);
    check_rejected(&w, "tensor t: number of dimensions 5 is");
    gguf_writer_entry(&w, "t", 0, 2, with_zero, 0);
    check_rejected(&w, "tensor t: dimension 1 is zero");
    gguf_writer_entry(&w, "t", 0, 2, huge, 0);
    check_rejected(&w, "tensor t: dimensions are too large");
    gguf_writer_entry(&w, "t", 0, 2, wraps, 0);
    check_rejected(&w, "tensor t: dimensions are too large");
    gguf_writer_entry(&w, "t", 0, 1, most, 0);
    bytes_put(&w.directory, zeros, 16);
    check_rejected(&w, "tensor t: dimensions are too large");
}

static void rows_of_partial_blocks_are_rejected(void **state) {
    (void)state;
    struct gguf_writer w = {0};
    gguf_writer_entry(&w, "t", 8, 1, (uint64_t[]){48}, 0);
    bytes_put(&w.data, zeros, 512);
    check_rejected(&w, "tensor t: row size 48 is not a multiple of the Q8_0 block size 32");
    gguf_writer_entry(&w, "t", 12, 2, (uint64_t[]){128, 2}, 0); // 256 elements, but not in one row
    bytes_put(&w.data, zeros, 512);
    check_rejected(&w, "tensor t: row size 128 is not a multiple of the Q4_K block size 256");
}

static void unsupported_formats_are_rejected_by_name(void **state) {
    (void)state;
    for (uint32_t type = 0; type < 60; type++) {
        const char *name = block_format_known_name(type);
        char why[200];
        if (block_format_find(type)) continue;
        if (name)
            snprintf(why, sizeof why, "tensor t: unsupported format %s (supported: F32 F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0",
                     name);
        else snprintf(why, sizeof why, "tensor t: unknown format %u (supported: F32", type);
        struct gguf_writer w = {0};
        gguf_writer_tensor(&w, "t", type, 1, (uint64_t[]){256}, zeros, sizeof zeros);
        check_rejected(&w, why);
    }
}

static void tensors_outside_the_file_are_rejected(void **state) {
    (void)state;
    static const uint64_t offsets[] = {32, 1ull << 40, UINT64_MAX - 31};
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        struct gguf_writer w = {0};
        gguf_writer_entry(&w, "t", 0, 1, one_row, offsets[i]);
        bytes_put(&w.data, zeros, 128);
        check_rejected(&w, "outside the file");
    }
    struct gguf_writer w = {0};
    gguf_writer_entry(&w, "t", 0, 1, one_row, 16);
    bytes_put(&w.data, zeros, 512);
    check_rejected(&w, "tensor t: data (128 bytes at offset 16) is not aligned");
    gguf_writer_entry(&w, "t", 0, 1, one_row, 0);
    bytes_put(&w.data, zeros, 127);
    check_rejected(&w, "tensor t: data (128 bytes at offset 0) is outside the file");
    w = (struct gguf_writer){.alignment = 8}; // ends inside the padding of the default alignment
    gguf_writer_entry(&w, "uneven size", 0, 1, (uint64_t[]){1}, 0);
    check_rejected(&w, "file ends before the tensor data");
}

static void overlapping_tensors_are_rejected(void **state) {
    (void)state;
    struct gguf_writer w = {0};
    gguf_writer_entry(&w, "b", 0, 1, one_row, 96);
    gguf_writer_entry(&w, "c", 0, 1, one_row, 320);
    gguf_writer_entry(&w, "a", 0, 1, one_row, 0);
    bytes_put(&w.data, zeros, 512);
    check_rejected(&w, "tensors a and b overlap");
    gguf_writer_entry(&w, "a", 0, 1, one_row, 0);
    gguf_writer_entry(&w, "b", 0, 1, one_row, 0);
    bytes_put(&w.data, zeros, 512);
    check_rejected(&w, "overlap");
}

static void duplicate_tensors_are_rejected(void **state) {
    (void)state;
    struct gguf_writer w = {0};
    gguf_writer_tensor(&w, "same", 0, 1, one_row, zeros, 128);
    gguf_writer_tensor(&w, "other", 0, 1, one_row, zeros, 128);
    gguf_writer_tensor(&w, "same", 0, 1, one_row, zeros, 128);
    check_rejected(&w, "duplicate tensor same");
}

static void a_directory_that_ends_early_names_the_tensor(void **state) {
    (void)state;
    struct gguf_writer w = {0};
    gguf_writer_tensor(&w, "first", 0, 1, one_row, NULL, 0);
    bytes_string(&w.directory, "second");
    bytes_u32(&w.directory, 4);
    bytes_u64(&w.directory, 32);
    bytes_u64(&w.directory, 32);
    w.n_tensors = 2;
    check_rejected(&w, "tensor second: truncated");
}

// Checks for duplicates and overlaps must not be quadratic: a hundred thousand of each would take minutes.
static void many_keys_and_tensors_open_fast(void **state) {
    (void)state;
    struct gguf_writer w = {0};
    char name[64];
    for (int i = 0; i < 100000; i++) {
        snprintf(name, sizeof name, "a.long.common.beginning.of.the.name.%d", i * 7919 % 100000);
        gguf_writer_bool(&w, name, true);
        gguf_writer_tensor(&w, name, 0, 1, (uint64_t[]){1}, zeros, 4);
    }
    struct opened o;
    open_good(&o, &w);
    assert_non_null(gguf_find(&o.g, "a.long.common.beginning.of.the.name.99999"));
    assert_non_null(gguf_tensor_find(&o.g, "a.long.common.beginning.of.the.name.0"));
    close_good(&o);
}

// ---- files ----

static void files_are_opened_by_path(void **state) {
    (void)state;
    char path[] = "/tmp/confab-gguf-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    struct gguf g;
    struct status st = {0};
    assert_false(gguf_open(&g, path, &st));
    assert_non_null(strstr(st.text, "empty"));
    tiny_model_write(path, (struct tiny_model_options){0});
    assert_true(gguf_open(&g, path, &st));
    assert_string_equal(g.path, path);
    assert_non_null(gguf_tensor_find(&g, "blk.1.ffn_down.weight"));
    gguf_close(&g);
    assert_int_equal(g.n_mappings, 0);
    unlink(path);
    assert_false(gguf_open(&g, path, &st));
    assert_int_equal(st.code, STATUS_IO);
    assert_non_null(strstr(st.text, path));
}

// A long path must not crowd out the message.
static void long_paths_are_shown_by_their_end(void **state) {
    (void)state;
    char name[3000];
    memset(name, 'd', sizeof name);
    strcpy(name + sizeof name - 20, "/the-model.gguf");
    struct gguf g;
    struct status st = {0};
    _Alignas(8) static const char data[] = "nonsense";
    assert_false(gguf_open_memory(&g, name, data, 8, &st));
    assert_non_null(strstr(st.text, "/the-model.gguf: not a GGUF file"));
}

static void real_vocabularies_open(void **state) {
    (void)state;
    static const struct {
        const char *file;
        uint64_t tokens;
    } vocabularies[] = {{"vocabs/llama-spm.gguf", 32000},
                        {"vocabs/llama-bpe.gguf", 128256},
                        {"vocabs/qwen2.gguf", 151936},
                        {"vocabs/gpt-2.gguf", 50257},
                        {"vocabs/phi-3.gguf", 32064}};
    for (size_t i = 0; i < sizeof vocabularies / sizeof *vocabularies; i++) {
        struct gguf g;
        struct status st = {0};
        if (!gguf_open(&g, shared_file(vocabularies[i].file), &st)) fail_msg("%s", st.text);
        struct arena arena = {0};
        uint64_t count;
        struct span *tokens = gguf_get_strings(&g, "tokenizer.ggml.tokens", &arena, &count, &st);
        assert_non_null(tokens);
        assert_int_equal(count, vocabularies[i].tokens);
        arena_free(&arena);
        gguf_close(&g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_all_types_are_read),
        cmocka_unit_test(strings_and_their_arrays_are_read),
        cmocka_unit_test(tensors_are_found_with_their_data),
        cmocka_unit_test(the_alignment_of_the_file_is_used),
        cmocka_unit_test(a_file_without_tensors_is_valid),
        cmocka_unit_test(integers_are_checked_for_type_and_range),
        cmocka_unit_test(other_values_are_checked_for_type_and_range),
        cmocka_unit_test(other_kinds_of_file_are_rejected),
        cmocka_unit_test(counts_beyond_the_file_are_rejected),
        cmocka_unit_test(bad_names_are_rejected),
        cmocka_unit_test(bad_value_types_are_rejected),
        cmocka_unit_test(nested_arrays_are_rejected),
        cmocka_unit_test(strings_beyond_the_file_are_rejected),
        cmocka_unit_test(duplicate_keys_are_rejected),
        cmocka_unit_test(bad_alignments_are_rejected),
        cmocka_unit_test(bad_dimensions_are_rejected),
        cmocka_unit_test(rows_of_partial_blocks_are_rejected),
        cmocka_unit_test(unsupported_formats_are_rejected_by_name),
        cmocka_unit_test(tensors_outside_the_file_are_rejected),
        cmocka_unit_test(overlapping_tensors_are_rejected),
        cmocka_unit_test(duplicate_tensors_are_rejected),
        cmocka_unit_test(a_directory_that_ends_early_names_the_tensor),
        cmocka_unit_test(many_keys_and_tensors_open_fast),
        cmocka_unit_test(files_are_opened_by_path),
        cmocka_unit_test(long_paths_are_shown_by_their_end),
        cmocka_unit_test(real_vocabularies_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
