// Every family of tokenizers with its own small vocabulary: golden ids, which match the peer's (tests/peer), and common
// properties: any bytes, long runs, hostile files.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/panic.h"
#include "engine/text/charsmap.h"
#include "tests/unit/opened_tokenizer.h"
#include "tests/unit/tiny_vocab.h"

#define KEY(name) "tokenizer.ggml." name

static struct opened open_kind(const struct tiny_vocab_kind *kind) {
    size_t size;
    void *bytes = tiny_vocab_file(kind, &size);
    struct opened o = open_bytes(bytes, size);
    assert_non_null(o.t);
    return o;
}

static void gemma_gives_golden_ids(void **state) {
    (void)state;
    struct gguf_writer w = {0};
    tiny_vocab_gemma(&w);
    struct opened o = open_writer(&w);
    assert_non_null(o.t);
    CHECK_IDS(&o, "Hello world", PARSED, 298, 305);
    CHECK_IDS(&o, "  \n\n\n\n\nHello", PARSED, 264, 263, 263, 347, 298);
    CHECK_IDS(&o, "\n\n\n\n", PARSED, 443);
    CHECK_IDS(&o, "\n\n", PARSED, 263);
    CHECK_IDS(&o, "hé 世界 €<table> the", PARSED, 267, 340, 266, 340, 233, 137, 179, 6, 270);
    CHECK_IDS(&o, "a    b<turn|>", PARSED, 413, 265, 414, 5);
    CHECK_IDS(&o, "the\tand 1984", PARSED, 432, 269, 348, 413, 278, 340, 339, 372, 368);
    assert_true(tokenizer_adds_bos(o.t)); // overrides the file
    assert_true(tokenizer_ends_generation(o.t, 5) && tokenizer_ends_generation(o.t, 1));
    assert_string_equal(tokenizer_pre_name(o.t), "gemma4");
    assert_int_equal(tokenizer_closing(o.t), -1);
    close_opened(&o);
}

// Keys to set to true; `closing`: the token after a text.
static struct opened open_unigram(const char *first, const char *second, int32_t closing) {
    struct gguf_writer w = {0};
    tiny_vocab_unigram(&w);
    if (first) gguf_writer_bool(&w, first, true);
    if (second) gguf_writer_bool(&w, second, true);
    if (closing < 0) gguf_writer_bool(&w, KEY("add_eos_token"), false);
    struct opened o = open_writer(&w);
    assert_non_null(o.t);
    assert_int_equal(tokenizer_closing(o.t), closing);
    return o;
}

static void unigram_gives_golden_ids(void **state) {
    (void)state;
    struct opened o = open_unigram(KEY("add_space_prefix"), KEY("remove_extra_whitespaces"), 1);
    assert_false(tokenizer_adds_bos(o.t));
    CHECK_IDS(&o, "Hello  world", NORMALISED, 23, 21);
    CHECK_IDS(&o, "ﬁne ½ ｶﾞ\u3000ｶ", NORMALISED, 3, 35, 11, 6, 3, 39, 2, 40, 3, 50, 3, 49);
    CHECK_IDS(&o, "日本 the", NORMALISED, 3, 2, 5);
    CHECK_IDS(&o, "<extra_id_0>the</s>", NORMALISED, 64, 5, 1);
    CHECK_IDS(&o, "   ", NORMALISED, );
    CHECK_IDS(&o, "A\u030aö aaaa", NORMALISED, 3, 51, 54, 9, 58);
    CHECK_IDS(&o, "ﷺ", NORMALISED, 3, 2, 3, 2, 3, 2, 3, 2);
    CHECK_IDS(&o, "the old world, 123!", NORMALISED, 5, 3, 63, 21, 44, 3, 41, 42, 45);
    CHECK_IDS(&o,
              "a\xff\xc3"
              "b",
              NORMALISED, 9, 2, 38);
    CHECK_IDS(&o, "worlds\nthing", NORMALISED, 21, 4, 3, 60, 17);
    size_t size;
    struct token_list ids = {0};
    tokenizer_encode(o.t, " Hello \t world", 14, false, &ids);
    char *text = tokenizer_decode(o.t, ids.ids, ids.count, true, &size);
    assert_string_equal(text, "Hello world");
    free(text);
    free(ids.ids);
    close_opened(&o);
}

static void unigram_spaces_follow_the_keys(void **state) {
    (void)state;
    struct opened o = open_unigram(NULL, NULL, 1);
    CHECK_IDS(&o, "Hello  world", NORMALISED, 28, 6, 26, 10, 3, 21);
    CHECK_IDS(&o, " the", NORMALISED, 5);
    CHECK_IDS(&o, "  ", NORMALISED, 3, 3);
    close_opened(&o);
    o = open_unigram(KEY("add_space_prefix"), NULL, -1);
    CHECK_IDS(&o, "Hello  world", NORMALISED, 23, 3, 21);
    CHECK_IDS(&o, " the", NORMALISED, 3, 5);
    CHECK_IDS(&o, "  ", NORMALISED, 3, 3);
    CHECK_IDS(&o, "a<extra_id_0>a", NORMALISED, 9, 64, 9);
    close_opened(&o);
    o = open_unigram(KEY("remove_extra_whitespaces"), NULL, -1);
    CHECK_IDS(&o, "Hello  world", NORMALISED, 23, 21);
    CHECK_IDS(&o, " the", NORMALISED, 5);
    CHECK_IDS(&o, "  ", NORMALISED, );
    CHECK_IDS(&o, "a<extra_id_0>a", NORMALISED, 9, 64, 9);
    close_opened(&o);
}

static struct opened open_wordpiece(const char *off) {
    struct gguf_writer w = {0};
    tiny_vocab_wordpiece(&w);
    if (off) gguf_writer_bool(&w, off, false);
    struct opened o = open_writer(&w);
    assert_non_null(o.t);
    return o;
}

static void wordpiece_gives_golden_ids(void **state) {
    (void)state;
    struct opened o = open_wordpiece(NULL);
    assert_true(tokenizer_adds_bos(o.t));
    assert_int_equal(tokenizer_bos(o.t), 2);
    assert_int_equal(tokenizer_closing(o.t), 3);
    CHECK_IDS(&o, "Hello, WORLD!", NORMALISED, 6, 58, 7, 36);
    CHECK_IDS(&o, "unaffable ubering", NORMALISED, 8, 9, 10, 14, 11);
    CHECK_IDS(&o, "Élan é e\u0301", NORMALISED, 172, 187, 165, 191, 172, 172);
    CHECK_IDS(&o, "世界x世", NORMALISED, 16, 17, 210, 16);
    CHECK_IDS(&o, "playing\u200b\1ed", NORMALISED, 12, 11, 13);
    CHECK_IDS(&o, "[MASK] the [UNK]", NORMALISED, 4, 5, 1);
    CHECK_IDS(&o, "zß ÉÉ", NORMALISED, 214, 34, 172, 173);
    CHECK_IDS(&o, "ПРИВЕТ Ελλάδα", NORMALISED, 24, 25, 22, 23);
    CHECK_IDS(&o, "$a<b~", NORMALISED, 42, 164, 90, 166, 222);
    CHECK_IDS(&o, "", NORMALISED, );
    CHECK_IDS(&o, "the\xff the", NORMALISED, 5, 5);
    CHECK_IDS(&o, "→ 😀😀", NORMALISED, 35, 29, 30);
    CHECK_IDS(&o, "x\u00a0y\tz", NORMALISED, 210, 212, 214);
    close_opened(&o);
    o = open_wordpiece(KEY("normalizer.lowercase")); // implies stripping accents
    CHECK_IDS(&o, "Hello World", NORMALISED, 26, 144, 27);
    CHECK_IDS(&o, "é É", NORMALISED, 18, 1);
    close_opened(&o);
    o = open_wordpiece(KEY("normalizer.strip_accents"));
    CHECK_IDS(&o, "Hello World", NORMALISED, 6, 7);
    CHECK_IDS(&o, "é É e\u0301", NORMALISED, 18, 18, 1);
    close_opened(&o);
}

// The character map.

static bool map_opens(const void *bytes, size_t size, const char *words) {
    struct charsmap map = {0};
    struct status st = {0};
    bool opened = charsmap_open(&map, (struct span){bytes, size}, "test.gguf", &st);
    if (!opened) {
        assert_int_equal(st.code, STATUS_FORMAT);
        assert_non_null(strstr(st.text, "test.gguf: tokenizer.ggml.precompiled_charsmap"));
        assert_non_null(strstr(st.text, words));
    }
    return opened;
}

static void invalid_maps_are_rejected(void **state) {
    (void)state;
    char long_value[8 + CHARSMAP_LONGEST + 2] = {4};
    memset(long_value + 8, 'a', CHARSMAP_LONGEST + 1);
    assert_false(map_opens("", 0, "invalid array size 0 in 0 bytes"));
    assert_false(map_opens("\4\0\0", 3, "3 bytes"));
    assert_false(map_opens("\0\0\0\0", 4, "invalid array size 0"));
    assert_false(map_opens("\5\0\0\0.........", 13, "invalid array size 5"));
    assert_false(map_opens("\4\0\0\0...", 7, "7 bytes"));
    assert_false(map_opens("\xfc\xff\xff\xff....", 8, "4294967292"));
    assert_false(map_opens("\4\0\0\0....abc", 11, "value at byte 0"));
    assert_false(map_opens("\4\0\0\0....\0a\0b", 12, "value at byte 3"));
    assert_false(map_opens(long_value, sizeof long_value, "value at byte 0"));
    assert_true(map_opens("\4\0\0\0....", 8, ""));
    assert_true(map_opens("\4\0\0\0....abc\0", 12, ""));
}

// An accepted array never leads outside itself and its values.
static void random_maps_stay_in_bounds(void **state) {
    (void)state;
    srand(3);
    size_t matches = 0;
    for (int round = 0; round < 20000; round++) {
        uint8_t bytes[4 + 4 * 64 + 700] = {0, 1}; // 64 units, then values
        for (size_t i = 4; i < sizeof bytes - 1; i++) bytes[i] = (uint8_t)(rand() % 5 ? rand() % 4 : rand());
        for (size_t i = 4; i < sizeof bytes - 700; i += 4) bytes[i] &= 3, bytes[i + 2] = 0, bytes[i + 3] &= 0x80;
        struct charsmap map = {0};
        struct status st = {0};
        assert_true(charsmap_open(&map, (struct span){(char *)bytes, sizeof bytes}, "map", &st));
        char text[300];
        for (size_t i = 0; i < sizeof text; i++) text[i] = (char)(1 + rand() % 3);
        struct span value;
        size_t n = charsmap_match(&map, text, sizeof text, &value);
        assert_in_range(n, 0, CHARSMAP_LONGEST);
        if (!n) continue;
        matches++;
        assert_true(value.data >= map.values.data && value.data + value.size < map.values.data + map.values.size);
    }
    assert_true(matches > 100);
}

// All families.

static void any_bytes_encode(void **state) {
    (void)state;
    static const char *const bits[] = {"the ", " and",       "Hello",  " world", "\n\n",   "   ",      "'ll",
                                       "1984", "é",          "世界",   "😀",      "\xff",   "\xe2\x82", "\xf0\x9f",
                                       "\x80", "<|im_end|>", "<0x0A>", "\t",     "e\u0301"};
    srand(11);
    for (int k = 0; k < TINY_VOCAB_KINDS; k++) {
        struct opened o = open_kind(&tiny_vocab_kinds[k]);
        for (int round = 0; round < 500; round++) {
            char text[256] = "";
            for (int i = rand() % 16; i > 0; i--) strcat(text, bits[(size_t)rand() % (sizeof bits / sizeof *bits)]);
            if (tiny_vocab_kinds[k].comes_back) check_round_trip(&o, text, strlen(text));
            else check_valid(&o, text, strlen(text));
        }
        char all[256];
        for (int i = 0; i < 256; i++) all[i] = (char)(255 - i);
        if (tiny_vocab_kinds[k].comes_back) check_round_trip(&o, all, sizeof all);
        else check_valid(&o, all, sizeof all);
        close_opened(&o);
    }
}

static void a_megabyte_of_one_thing_is_fast(void **state) {
    (void)state;
    enum { SIZE = 1 << 20 };
    static const char *const units[] = {"a", "l", " ", "\n",        "\xff", "\u0301",
                                        "😀", "1", "'", "<|im_end|", "世界", "한"};
    char *text = xmalloc(SIZE + 16);
    for (int k = 0; k < TINY_VOCAB_KINDS; k++) {
        struct opened o = open_kind(&tiny_vocab_kinds[k]);
        for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
            size_t size = 0, length = strlen(units[u]);
            for (; size < SIZE; size += length) memcpy(text + size, units[u], length);
            if (tiny_vocab_kinds[k].comes_back) check_round_trip(&o, text, size);
            else check_valid(&o, text, size);
        }
        close_opened(&o);
    }
    free(text);
}

// Hostile vocabularies: those that open also encode and decode.
static void mutated_files_fail_or_work(void **state) {
    (void)state;
    srand(5);
    for (int k = 0; k < TINY_VOCAB_KINDS; k++) {
        size_t size;
        uint8_t *whole = tiny_vocab_file(&tiny_vocab_kinds[k], &size), *bytes = xmalloc(size);
        for (int round = 0; round < 250; round++) {
            memcpy(bytes, whole, size);
            for (int i = 0; i < 8; i++) bytes[(size_t)rand() % size] ^= (uint8_t)(1 << rand() % 8);
            struct opened o = {0};
            if (!gguf_open_memory(&o.file, "mutated", bytes, size, &o.status)) continue;
            o.t = tokenizer_open(&o.file, &o.status);
            assert_true(o.t || o.status.code != STATUS_OK);
            if (o.t) check_valid(&o, "Hello world<|im_end|>\n 1984 ﬁ世 \xff", 36);
            close_opened(&o);
        }
        free(bytes);
        free(whole);
    }
}

int main(void) {
    alarm(500); // too short for quadratic time in a_megabyte_of_one_thing_is_fast
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gemma_gives_golden_ids),
        cmocka_unit_test(unigram_gives_golden_ids),
        cmocka_unit_test(unigram_spaces_follow_the_keys),
        cmocka_unit_test(wordpiece_gives_golden_ids),
        cmocka_unit_test(invalid_maps_are_rejected),
        cmocka_unit_test(random_maps_stay_in_bounds),
        cmocka_unit_test(any_bytes_encode),
        cmocka_unit_test(a_megabyte_of_one_thing_is_fast),
        cmocka_unit_test(mutated_files_fail_or_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
