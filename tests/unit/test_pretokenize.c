// The pre-tokenizers, case by case, and as a whole: pieces cover every byte, whatever the bytes are.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/text/pretokenize.h"

static const struct pretokenizer *find(const char *name) {
    const struct pretokenizer *p = pretokenizer_find((struct span){name, strlen(name)});
    assert_non_null(p);
    return p;
}

// Each case is a text with its cuts drawn as '|'.
static void check_cuts(const char *name, const char *const *cases, size_t n) {
    const struct pretokenizer *p = find(name);
    for (size_t i = 0; i < n; i++) {
        char text[2048], cut[4096];
        size_t size = 0, out = 0;
        for (const char *c = cases[i]; *c; c++)
            if (*c != '|') text[size++] = *c;
        struct pretokenize_walk walk = pretokenize_begin(p, text, size);
        for (struct span piece; pretokenize_next(&walk, &piece); out += piece.size) {
            if (piece.data != text) cut[out++] = '|';
            memcpy(cut + out, piece.data, piece.size);
        }
        cut[out] = 0;
        assert_string_equal(cut, cases[i]);
    }
}
#define CHECK_CUTS(name, ...)                                                                                          \
    do {                                                                                                               \
        static const char *const cases[] = {__VA_ARGS__};                                                              \
        check_cuts(name, cases, sizeof cases / sizeof *cases);                                                         \
    } while (0)

static void test_gpt2(void **state) {
    (void)state;
    CHECK_CUTS("gpt-2", "Hello| world", "I|'m| here|,| aren|'t| we|'ll", "'t|is", "''|re", "a|  | b", "a|   ", "  | a",
               "x|\n| y", "x|\n|\n|y", "12345| 678", "1|.|5", "a|1|b", " !?", "a| !!", "a|\t|!", "a|  | !", "é|¹| ٣",
               "日本| 語", "don|'t|!|\n", "\t|a", "€€| €", "e|\u0301", "👨‍👩‍👧| 👍");
}

static void test_llama(void **state) {
    (void)state;
    CHECK_CUTS("llama-bpe", "Hello| world", "I|'M|,| we|'Ll| they|'RE|'s", "'t|is", "'hello", "''|s", "(word|)",
               "\tword", " |\tword", "a|  | b", "a|123|456|7", " |12", "a|!!\n\n|b", "a| !?\r\n|b", "a|  \n|  | b",
               "a| \n \n|\t|\tb", "a|   ", "\n\n\n", "\n|word", "x|\u3000語", "½²", "ⅷ٣٤|٥٦");
}

static void test_qwen(void **state) {
    (void)state;
    CHECK_CUTS("qwen2", "a|1|2|3", "v|2|.|5", "I|'D| x", "a|.\n|b", "year| |2|0|2|4");
}

static void test_schemes_differ(void **state) {
    (void)state;
    CHECK_CUTS("gpt-2", "1234", "A|'|S", "(|a", "!|\n", "x|\n|\n|y");
    CHECK_CUTS("llama3", "123|4", "A|'S", "(a", "!\n", "x|\n\n|y");
    CHECK_CUTS("deepseek-r1-qwen", "1|2|3|4", "A|'S", "(a", "!\n", "x|\n\n|y");
}

// No-break space, line separator, next line are white space; zero-width space and a broken character are symbols.
static void test_white_space_is_unicodes(void **state) {
    (void)state;
    CHECK_CUTS("gpt-2", "a|\u00a0|\u00a0|b", "a|\u2028|!", "a|\xc2\x85|!", "a|\u200b!", "a|\xe2\x80!",
               "a|\xff\xfe| \xf0");
}

static void test_names(void **state) {
    (void)state;
    assert_ptr_equal(find(""), pretokenizer_default);
    assert_ptr_equal(find("default"), pretokenizer_default);
    assert_ptr_equal(find("llama-v3"), find("llama-bpe"));
    assert_ptr_not_equal(find("qwen2"), find("llama-bpe"));
    assert_true(find("llama-bpe")->whole_pieces && find("llama-bpe")->adds_bos);
    assert_false(find("qwen2")->whole_pieces || find("gpt-2")->adds_bos);
    assert_ptr_equal(find("exaone4"), find("gpt-2"));
    assert_true(find("tekken")->whole_pieces && find("chatglm-bpe")->without_bos && find("gemma4")->raw);
    assert_null(pretokenizer_find((struct span){"qwen", 4}));
    for (size_t i = 0; pretokenizer_at(i); i++) // no name twice
        for (const char *const *name = pretokenizer_at(i)->names; *name; name++)
            assert_ptr_equal(find(*name), pretokenizer_at(i));
}

static void test_any_bytes_are_covered(void **state) {
    (void)state;
    static const char letters[] = "a1 '!\n\r\xc3\xa9\xe2\x80\xa8\xf0\x9f\xff\xe6\x97\xa5s";
    srand(7);
    for (int round = 0; round < 3000; round++) {
        char text[64];
        size_t size = (size_t)(rand() % 64);
        for (size_t i = 0; i < size; i++) text[i] = letters[(size_t)rand() % (sizeof letters - 1)];
        for (size_t i = 0; pretokenizer_at(i); i++) {
            struct pretokenize_walk walk = pretokenize_begin(pretokenizer_at(i), text, size);
            size_t at = 0;
            for (struct span piece; pretokenize_next(&walk, &piece); at += piece.size) {
                assert_ptr_equal(piece.data, text + at);
                assert_true(piece.size > 0 && piece.size <= size - at);
            }
            assert_int_equal(at, size);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpt2),
        cmocka_unit_test(test_llama),
        cmocka_unit_test(test_qwen),
        cmocka_unit_test(test_schemes_differ),
        cmocka_unit_test(test_white_space_is_unicodes),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_any_bytes_are_covered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
