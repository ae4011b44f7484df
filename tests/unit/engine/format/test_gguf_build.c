// GGUF contents built in memory, and models split into several files.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/panic.h"
#include "engine/model/model.h"
#include "tests/unit/gguf_writer.h"
#include "tests/unit/tiny_model.h"

// ---- building ----

static const struct block_format *format_of(enum block_id id) { return &block_formats[id]; }

static void built_values_are_read_back(void **state) {
    (void)state;
    struct gguf g;
    struct status st = {0};
    gguf_begin(&g, "built");
    char name[] = "the name"; // copied
    const struct span strings[] = {{"one", 3}, {NULL, 0}, {"three", 5}};
    gguf_add_string(&g, "string", (struct span){name, 8});
    gguf_add_int(&g, "int", 4000000000u);
    gguf_add_float(&g, "float", 1.5f);
    gguf_add_bool(&g, "bool", true);
    gguf_add_strings(&g, "strings", strings, 3);
    gguf_add_strings(&g, "no.strings", NULL, 0);
    gguf_add_numbers(&g, "i16", GGUF_I16, (int16_t[]){1, -2, 3}, 3);
    gguf_add_numbers(&g, "f32", GGUF_F32, (float[]){.25f, -8}, 2);
    gguf_add_numbers(&g, "none", GGUF_U8, NULL, 0);
    memset(name, '?', 8);
    if (!gguf_finish(&g, &st)) fail_msg("%s", st.text);
    assert_int_equal(g.n_pairs, 9);
    int64_t i = 0;
    float f = 0;
    bool b = false;
    struct span s;
    assert_true(gguf_get_int(&g, "int", GGUF_REQUIRED, 0, UINT32_MAX, &i, &st) && i == 4000000000);
    assert_true(gguf_get_float(&g, "float", GGUF_REQUIRED, 0, 9, &f, &st) && f == 1.5f);
    assert_true(gguf_get_bool(&g, "bool", &b, &st) && b);
    assert_true(gguf_get_string(&g, "string", GGUF_REQUIRED, &s, &st) && span_equals(s, "the name"));
    uint64_t count;
    const struct span *read = gguf_get_strings(&g, "strings", &g.arena, &count, &st);
    assert_int_equal(count, 3);
    assert_true(span_equals(read[0], "one") && span_equals(read[1], "") && span_equals(read[2], "three"));
    assert_non_null(gguf_get_strings(&g, "no.strings", &g.arena, &count, &st));
    assert_int_equal(count, 0);
    assert_true(gguf_number(gguf_find(&g, "i16"), 1) == -2 && gguf_find(&g, "i16")->count == 3);
    assert_true(gguf_number(gguf_find(&g, "f32"), 1) == -8 && gguf_find(&g, "none")->count == 0);
    gguf_close(&g);
}

static void built_tensors_are_found(void **state) {
    (void)state;
    static const float borrowed[6] = {1, 2, 3, 4, 5, 6};
    struct gguf g;
    struct status st = {0};
    gguf_begin(&g, "built");
    uint16_t *small = gguf_own_buffer(&g, 8, &st);
    uint8_t *large = gguf_own_buffer(&g, 3 << 20, &st);
    assert_true((uintptr_t)small % 64 == 0 && (uintptr_t)large % 64 == 0);
    for (int i = 0; i < 3 << 20; i += 4096) assert_int_equal(large[i], 0);
    small[3] = 7;
    gguf_add_tensor(&g, "small", format_of(BLOCK_F16), 1, (uint64_t[]){4}, small);
    gguf_add_tensor(&g, "borrowed", format_of(BLOCK_F32), 2, (uint64_t[]){3, 2}, borrowed);
    gguf_add_tensor(&g, "large", format_of(BLOCK_BF16), 3, (uint64_t[]){1024, 512, 3}, large);
    assert_true(gguf_finish(&g, &st));
    const struct gguf_tensor *t = gguf_tensor_find(&g, "borrowed");
    assert_ptr_equal(t->data, borrowed);
    assert_true(t->size == 24 && t->n_dims == 2 && t->dims[0] == 3 && t->dims[1] == 2 && t->dims[2] == 1);
    assert_int_equal(((const uint16_t *)gguf_tensor_find(&g, "small")->data)[3], 7);
    assert_int_equal(gguf_tensor_find(&g, "large")->size, 3 << 20);
    assert_null(gguf_tensor_find(&g, "larg"));
    gguf_close(&g);
    assert_int_equal(g.n_regions, 0);
}

static void many_built_pairs_and_tensors_are_sorted(void **state) {
    (void)state;
    struct gguf g;
    struct status st = {0};
    char name[32];
    gguf_begin(&g, "built");
    float *data = gguf_own_buffer(&g, 1000 * sizeof *data, &st);
    for (int i = 0; i < 1000; i++) {
        int k = i * 7 % 1000;
        data[k] = (float)k;
        snprintf(name, sizeof name, "item.%d", k);
        gguf_add_int(&g, name, (uint32_t)k);
        gguf_add_tensor(&g, name, format_of(BLOCK_F32), 1, (uint64_t[]){1}, data + k);
    }
    assert_true(gguf_finish(&g, &st));
    for (int k = 0; k < 1000; k++) {
        snprintf(name, sizeof name, "item.%d", k);
        assert_true(gguf_number(gguf_find(&g, name), 0) == k);
        assert_true(*(const float *)gguf_tensor_find(&g, name)->data == (float)k);
    }
    gguf_close(&g);
}

static void finish_rejected(struct gguf *g, const char *why) {
    struct status st = {0};
    assert_false(gguf_finish(g, &st));
    assert_string_equal(st.text, why);
    assert_null(g->arena.chunks);
}

static void invalid_contents_are_rejected(void **state) {
    (void)state;
    static const float data[64];
    struct gguf g;
    gguf_begin(&g, "built");
    gguf_add_int(&g, "twice", 1);
    gguf_add_bool(&g, "twice", true);
    finish_rejected(&g, "built: duplicate key twice");
    gguf_begin(&g, "built");
    gguf_add_int(&g, "", 1);
    finish_rejected(&g, "built: key name length 0 is out of range (1 to 256): ''");
    gguf_begin(&g, "built");
    gguf_add_tensor(&g, "zero", format_of(BLOCK_F32), 2, (uint64_t[]){3, 0}, data);
    finish_rejected(&g, "built: tensor zero: dimension 1 is zero");
    gguf_begin(&g, "built");
    gguf_add_tensor(&g, "half", format_of(BLOCK_Q8_0), 1, (uint64_t[]){48}, data);
    finish_rejected(&g, "built: tensor half: row size 48 is not a multiple of the Q8_0 block size 32");
    gguf_begin(&g, "built");
    gguf_add_tensor(&g, "huge", format_of(BLOCK_F32), 2, (uint64_t[]){1ull << 40, 1ull << 40}, data);
    finish_rejected(&g, "built: tensor huge: dimensions are too large");
    gguf_begin(&g, "built");
    gguf_add_tensor(&g, "a", format_of(BLOCK_F32), 1, (uint64_t[]){32}, data);
    gguf_add_tensor(&g, "b", format_of(BLOCK_F32), 1, (uint64_t[]){32}, data + 31);
    finish_rejected(&g, "built: tensors a and b overlap");
    gguf_begin(&g, "built");
    gguf_add_tensor(&g, "a", format_of(BLOCK_F32), 1, (uint64_t[]){32}, data);
    gguf_add_tensor(&g, "a", format_of(BLOCK_F32), 1, (uint64_t[]){32}, data + 32);
    finish_rejected(&g, "built: duplicate tensor a");
}

// ---- split files ----

enum { PARTS = 3 };

struct parts {
    char folder[32];
    char paths[PARTS][96];
};

struct part_says {
    uint32_t no, count, tensors;
    const char *extra; // an extra tensor
};

static void write_file(const char *path, struct gguf_writer *w) {
    size_t size;
    uint8_t *data = gguf_writer_finish(w, &size);
    FILE *f = fopen(path, "wb");
    assert_true(f && fwrite(data, 1, size, f) == size && !fclose(f));
    free(data);
}

static void write_part(const struct parts *p, int i, struct part_says says) {
    struct gguf_writer w = {0};
    char name[32];
    if (i == 0) gguf_writer_string(&w, "general.name", "in parts");
    gguf_writer_pair(&w, "split.no", GGUF_U16, &(uint16_t){(uint16_t)says.no}, 2);
    gguf_writer_pair(&w, "split.count", GGUF_U16, &(uint16_t){(uint16_t)says.count}, 2);
    gguf_writer_pair(&w, "split.tensors.count", GGUF_I32, &says.tensors, 4);
    for (int k = 0; k < i; k++) { // the first part has none
        snprintf(name, sizeof name, "t.%d.%d", i, k);
        gguf_writer_tensor(&w, name, 0, 1, (uint64_t[]){1}, &(float){(float)(10 * i + k)}, 4);
    }
    if (says.extra) gguf_writer_tensor(&w, says.extra, 0, 1, (uint64_t[]){1}, &(float){0}, 4);
    write_file(p->paths[i], &w);
}

static void write_parts(struct parts *p) {
    strcpy(p->folder, "/tmp/confab-split-XXXXXX");
    assert_non_null(mkdtemp(p->folder));
    for (int i = 0; i < PARTS; i++) {
        snprintf(p->paths[i], sizeof p->paths[i], "%s/m-%05d-of-%05d.gguf", p->folder, i + 1, PARTS);
        write_part(p, i, (struct part_says){(uint32_t)i, PARTS, 3, NULL});
    }
}

static void remove_parts(struct parts *p) {
    for (int i = 0; i < PARTS; i++) unlink(p->paths[i]);
    assert_int_equal(rmdir(p->folder), 0);
}

static void any_part_opens_the_whole_model(void **state) {
    (void)state;
    struct parts p;
    write_parts(&p);
    for (int i = 0; i < PARTS; i++) {
        struct gguf g;
        struct status st = {0};
        if (!gguf_open(&g, p.paths[i], &st)) fail_msg("%s", st.text);
        assert_int_equal(g.n_mappings, PARTS);
        assert_int_equal(g.n_tensors, 3);
        assert_int_equal(g.n_pairs, 1); // the first part's, without split.*
        assert_non_null(gguf_find(&g, "general.name"));
        assert_true(*(const float *)gguf_tensor_find(&g, "t.1.0")->data == 10);
        assert_true(*(const float *)gguf_tensor_find(&g, "t.2.0")->data == 20);
        assert_true(*(const float *)gguf_tensor_find(&g, "t.2.1")->data == 21);
        struct stat info;
        uint64_t bytes = 0;
        for (int k = 0; k < PARTS; k++) assert_int_equal(stat(p.paths[k], &info), 0), bytes += (uint64_t)info.st_size;
        assert_int_equal(gguf_file_bytes(&g), bytes);
        gguf_close(&g);
    }
    remove_parts(&p);
}

static void copy_pair(struct gguf_writer *w, const struct gguf_pair *pair) {
    char *key = span_copy(pair->key);
    if (pair->type == GGUF_ARRAY) gguf_writer_array(w, key, pair->element, pair->count, pair->data, pair->size);
    else gguf_writer_pair(w, key, pair->type, pair->data, pair->size);
    free(key);
}

static void copy_tensor(struct gguf_writer *w, const struct gguf_tensor *t) {
    char *name = span_copy(t->name);
    gguf_writer_tensor(w, name, t->format->gguf_type, t->n_dims, t->dims, t->data, t->size);
    free(name);
}

static void open_rejected(const char *path, const char *why) {
    struct gguf g;
    struct status st = {0};
    if (gguf_open(&g, path, &st)) fail_msg("opened; expected '%s'", why);
    if (!strstr(st.text, why)) fail_msg("'%s' does not contain '%s'", st.text, why);
    if (!strstr(st.text, "/tmp/confab-split-")) fail_msg("'%s' does not name the file", st.text);
    assert_null(g.arena.chunks);
}

static void parts_that_do_not_belong_together_are_rejected(void **state) {
    (void)state;
    static const struct {
        int part;
        struct part_says says;
        const char *why;
    } cases[] = {
        {0, {0, 4, 3, NULL}, "m-00001-of-00003.gguf: named part 1 of 3 but its keys say 1 of 4"},
        {1, {2, 3, 3, NULL}, "m-00002-of-00003.gguf: named part 2 of 3 but its keys say 3 of 3"},
        {2, {1, 3, 3, NULL}, "m-00003-of-00003.gguf: named part 3 of 3 but its keys say 2 of 3"},
        {0, {0, 3, 4, NULL}, "split.tensors.count is 4 but the 3 parts have 3 tensors"},
        {0, {0, 3, 4, "t.2.1"}, "duplicate tensor t.2.1"},
    };
    struct parts p;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_parts(&p);
        write_part(&p, cases[i].part, cases[i].says);
        open_rejected(p.paths[0], cases[i].why);
        open_rejected(p.paths[1], cases[i].why);
        remove_parts(&p);
    }
}

static void missing_parts_and_wrong_names_are_named(void **state) {
    (void)state;
    struct parts p;
    write_parts(&p);
    assert_int_equal(unlink(p.paths[1]), 0);
    open_rejected(p.paths[0], "part 2 of 3: ");
    open_rejected(p.paths[2], "m-00002-of-00003.gguf: No such file");
    static const char *const wrong[] = {"model.gguf", "m-00004-of-00003.gguf", "m-00000-of-00003.gguf",
                                        "m-0001-of-00003.gguf", "m-00001-of-00003.bin"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char path[96];
        snprintf(path, sizeof path, "%s/%s", p.folder, wrong[i]);
        assert_int_equal(rename(p.paths[0], path), 0);
        open_rejected(path, "one of 3 parts but not named like NAME-00001-of-00003.gguf");
        assert_int_equal(rename(path, p.paths[0]), 0);
    }
    remove_parts(&p);
}

// A model in two parts computes the same as in one file: it has the same keys and tensors.
static void a_split_model_computes_the_same(void **state) {
    (void)state;
    struct parts p;
    struct gguf whole, split;
    struct status st = {0};
    size_t size;
    void *bytes = tiny_model_bytes((struct tiny_model_options){.format = BLOCK_Q8_0}, &size);
    assert_true(gguf_open_memory(&whole, "whole", bytes, size, &st));
    write_parts(&p);
    for (int i = 0; i < PARTS; i++) {
        struct gguf_writer w = {0};
        gguf_writer_u32(&w, "split.no", (uint32_t)i);
        gguf_writer_u32(&w, "split.count", PARTS);
        for (uint64_t k = 0; i == 0 && k < whole.n_pairs; k++) copy_pair(&w, &whole.pairs[k]);
        for (uint64_t k = (uint64_t)i; k < whole.n_tensors; k += PARTS) copy_tensor(&w, &whole.tensors[k]);
        write_file(p.paths[i], &w);
    }
    if (!gguf_open(&split, p.paths[1], &st)) fail_msg("%s", st.text);
    assert_true(split.n_pairs == whole.n_pairs && split.n_tensors == whole.n_tensors);
    for (uint64_t k = 0; k < whole.n_tensors; k++)
        assert_memory_equal(split.tensors[k].data, whole.tensors[k].data, whole.tensors[k].size);
    struct model m;
    if (!model_open(&m, &split, 0, &st)) fail_msg("%s", st.text);
    model_close(&m);
    gguf_close(&split);
    gguf_close(&whole);
    free(bytes);
    remove_parts(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(built_values_are_read_back),
        cmocka_unit_test(built_tensors_are_found),
        cmocka_unit_test(many_built_pairs_and_tensors_are_sorted),
        cmocka_unit_test(invalid_contents_are_rejected),
        cmocka_unit_test(any_part_opens_the_whole_model),
        cmocka_unit_test(parts_that_do_not_belong_together_are_rejected),
        cmocka_unit_test(a_split_model_computes_the_same),
        cmocka_unit_test(missing_parts_and_wrong_names_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
