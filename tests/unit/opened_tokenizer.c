#include "tests/unit/opened_tokenizer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct opened open_bytes(void *bytes, size_t size) {
    struct opened o = {.bytes = bytes};
    assert_true(gguf_open_memory(&o.file, "test.gguf", bytes, size, &o.status));
    o.t = tokenizer_open(&o.file, &o.status);
    return o;
}

struct opened open_writer(struct gguf_writer *w) {
    size_t size;
    void *bytes = gguf_writer_finish(w, &size);
    return open_bytes(bytes, size);
}

void close_opened(struct opened *o) {
    tokenizer_close(o->t);
    gguf_close(&o->file);
    free(o->bytes);
}

void check_ids(const struct opened *o, const char *text, struct encode_options options, size_t n,
               const int32_t *expected) {
    struct token_list ids = {0};
    const struct tokenizer_part part = {text, strlen(text), options.parse_special};
    tokenizer_encode_parts(o->t, &part, 1, options.no_space_prefix, &ids);
    assert_int_equal(ids.count, n);
    for (size_t i = 0; i < n; i++) assert_int_equal(ids.ids[i], expected[i]);
    size_t size;
    char *back = tokenizer_decode(o->t, ids.ids, ids.count, true, &size);
    if (!options.no_space_prefix && !options.normalises) assert_string_equal(back, text);
    free(back);
    free(ids.ids);
}

const char *check_line_of_ids(const struct tokenizer *t, const char *text, size_t size, const char *line) {
    struct token_list ids = {0};
    tokenizer_encode(t, text, size, false, &ids);
    for (size_t i = 0; i < ids.count; i++) {
        char *end;
        assert_int_equal(ids.ids[i], strtol(line, &end, 10));
        assert_ptr_not_equal(line, end);
        line = end;
    }
    line += strspn(line, " ");
    assert_int_equal(*line, '\n');
    free(ids.ids);
    return line + 1;
}

void check_round_trip(const struct opened *o, const char *text, size_t size) {
    struct token_list ids = {0};
    tokenizer_encode(o->t, text, size, false, &ids);
    size_t n;
    char *back = tokenizer_decode(o->t, ids.ids, ids.count, true, &n);
    assert_int_equal(n, size);
    assert_memory_equal(back, text, size);
    free(back);
    free(ids.ids);
}

void check_valid(const struct opened *o, const char *text, size_t size) {
    struct token_list ids = {0};
    tokenizer_encode(o->t, text, size, true, &ids);
    for (size_t i = 0; i < ids.count; i++) assert_in_range(ids.ids[i], 0, tokenizer_count(o->t) - 1);
    size_t n;
    free(tokenizer_decode(o->t, ids.ids, ids.count, true, &n));
    free(ids.ids);
}
