// Pre-tokenizers: individual cases, and pieces that cover every byte of any input.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/text/pretokenize.h"

static const struct pretokenizer *find(const char *name) {
    const struct pretokenizer *p = pretokenizer_find((struct span){name, strlen(name)});
    assert_non_null(p);
    return p;
}

// Each case is a text with splits marked by '|'.
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

static void gpt2_splits_as_published(void **state) {
    (void)state;
    CHECK_CUTS("gpt-2", "Hello| world", "I|'m| here|,| aren|'t| we|'ll", "'t|is", "''|re", "a|  | b", "a|   ", "  | a",
               "x|\n| y", "x|\n|\n|y", "12345| 678", "1|.|5", "a|1|b", " !?", "a| !!", "a|\t|!", "a|  | !", "é|¹| ٣",
               "日本| 語", "don|'t|!|\n", "\t|a", "€€| €", "e|\u0301", "👨‍👩‍👧| 👍");
}

static void llama_splits_as_published(void **state) {
    (void)state;
    CHECK_CUTS("llama-bpe", "Hello| world", "I|'M|,| we|'Ll| they|'RE|'s", "'t|is", "'hello", "''|s", "(word|)",
               "\tword", " |\tword", "a|  | b", "a|123|456|7", " |12", "a|!!\n\n|b", "a| !?\r\n|b", "a|  \n|  | b",
               "a| \n \n|\t|\tb", "a|   ", "\n\n\n", "\n|word", "x|\u3000語", "½²", "ⅷ٣٤|٥٦");
}

static void qwen_splits_as_published(void **state) {
    (void)state;
    CHECK_CUTS("qwen2", "a|1|2|3", "v|2|.|5", "I|'D| x", "a|.\n|b", "year| |2|0|2|4");
}

// Texts that distinguish the pre-tokenizers.
static const struct {
    const char *name, *cases[7];
} others[] = {
    {"default",
     {"Hello| | world|'|s| I|'|LL| |123|45| a", "x|.|y|(|z|)| |!!!/|\n|b", "HTTPServer| éÉa| नमस|्|त|े",
      "你好吗| カナ한글| abc", "a| | |12| |123|4|x| |123|456|7|.|89", "    \t| z|\n|\n|b| \n| c",
      "$|x|=<|a|>|b|_|c| |,|d"}},
    {"falcon",
     {"Hello| | world|'|s| I|'|LL| |123|45| a", "x|.|y|(|z|)| |!!!/|\n|b", "HTTPServer| éÉa| नमस|्|त|े",
      "你好吗| カナ한글| abc", "a| | 12| |123|4|x| |123|456|7|.|89", "    \t| z|\n|\n|b| \n| c",
      "$|x|=<|a|>|b|_|c| |,|d"}},
    {"minicpm5",
     {"Hello| | world|'s| I|'LL| |123|45| a", "x|.y|(z|)| !!!/\n|b", "HTTPServer| éÉa| नमस|्त|े", "你好吗| カナ한글| abc",
      "a|  |12| |123|4|x| |123|456|7|.|89", "    \t| z|\n\n|b| \n| c", "$x|=<|a|>b|_c| ,|d"}},
    {"jais-2",
     {"Hello| | world|'s| I|'LL| |123|45| a", "x|.y|(z|)| !!!/\n|b", "HTTPServer| éÉa| नमस|्त|े", "你好吗| カナ한글| abc",
      "a| | |12| |123|4|x| |123|456|7|.|89", "    |\t| z|\n\n|b| \n| c", "$x|=<|a|>b|_c| ,|d"}},
    {"qwen35",
     {"Hello| | world|'s| I|'LL| |1|2|3|4|5| a", "x|.y|(z|)| !!!/\n|b", "HTTPServer| éÉa| नमस्ते",
      "你好吗| カナ한글| abc", "a| | |1|2| |1|2|3|4|x| |1|2|3|4|5|6|7|.|8|9", "    \t| z|\n\n|b| \n| c",
      "$x|=<|a|>b|_c| ,|d"}},
    {"ufakzeka",
     {"Hello| | world|'s| I|'LL| |1|2|3|4|5| a", "x|.y|(z|)| !!!/\n|b", "HTTPServer| éÉa| नमस|्त|े",
      "你好吗| カナ한글| abc", "a| | |1|2| |1|2|3|4|x| |1|2|3|4|5|6|7|.|8|9", "    \t| z|\n\n|b| \n| c",
      "$x|=<|a|>b|_c| ,|d"}},
    {"seed-coder",
     {"Hello| | world|'s| I|'LL| |1|2|3|4|5| a", "x|.y|(z|)| !!!/|\n|b", "HTTPServer| éÉa| नमस|्त|े",
      "你好吗| カナ한글| abc", "a| | |1|2| |1|2|3|4|x| |1|2|3|4|5|6|7|.|8|9", "    \t| z|\n\n|b| \n| c",
      "$x|=<|a|>b|_c| ,|d"}},
    {"laguna",
     {"Hello| | world|'s| I|'LL| |1|2|3|4|5| a", "x|.y|(z|)| !!!/|\n|b", "HTTPServer| éÉa| नमस|्त|े",
      "你好吗| カナ한글| abc", "a| | |1|2| |1|2|3|4|x| |1|2|3|4|5|6|7|.|8|9", "    \t| z|\n\n|b| |\n| c",
      "$x|=<|a|>b|_c| ,|d"}},
    {"exaone-moe",
     {"Hello| | world|'s| I|'LL| |1|2|3|4|5| a", "x|.y|(z|)| !!!/\n|b", "HTTPServer éÉa नमस्ते", "你好吗 カナ한글 abc",
      "a| | |1|2| |1|2|3|4|x| |1|2|3|4|5|6|7|.|8|9", "    \t| z|\n\n|b| \n| c", "$x|=<|a|>b|_c| ,|d"}},
    {"gpt-4o",
     {"Hello| | world's| I'LL| |123|45| a", "x|.y|(z|)| !!!/\n|b", "HTTPServer| é|Éa| नमस्ते", "你好吗| カナ한글| abc",
      "a| | |12| |123|4|x| |123|456|7|.|89", "    \t| z|\n\n|b| \n| c", "$x|=<|a|>b|_c| ,|d"}},
    {"tiny_aya",
     {"Hello| | world's| I'LL| |12|345| a", "x|.y|(z|)| !!!/\n|b", "HTTPServer| é|Éa| नमस्ते", "你好吗| カナ한글| abc",
      "a|  |12| |123|4|x| |1|234|567|.|89", "    \t| z|\n\n|b| \n| c", "$x|=<|a|>b|_c| ,|d"}},
    {"tekken",
     {"Hello| | world|'s| I|'LL| |1|2|3|4|5| a", "x|.y|(z|)| !!!/\n|b", "HTTPServer| é|Éa| नमस्ते",
      "你好吗| カナ한글| abc", "a| | |1|2| |1|2|3|4|x| |1|2|3|4|5|6|7|.|8|9", "    \t| z|\n\n|b| \n| c",
      "$x|=<|a|>b|_c| ,|d"}},
    {"youtu",
     {"Hello| | world's| I'LL| |1|2|3|4|5| a", "x|.y|(z|)| !!!/\n|b", "HTTPServer| é|Éa| नमस्ते",
      "你好吗| |カナ|한글| abc", "a| | |1|2| |1|2|3|4|x| |1|2|3|4|5|6|7|.|8|9", "    \t| z|\n\n|b| \n| c",
      "$x|=<|a|>b|_c| ,|d"}},
    {"kimi-k2",
     {"Hello| | world's| I'LL| |123|45| a", "x|.y|(z|)| !!!/\n|b", "HTTPServer| é|Éa| नमस्ते", "你好吗| カナ한글| abc",
      "a| | |12| |123|4|x| |123|456|7|.|89", "    \t| z|\n\n|b| \n| c", "$x|=<|a|>b|_c| ,|d"}},
    {"deepseek-llm",
     {"Hello| | world|'|s| I|'|LL| |12345| a", "x|.|y|(|z|)| !!!/|\n|b", "HTTPServer| éÉ|a| |नमस्ते",
      "你好吗| |カナ한글| abc", "a|  |12| |1234|x| |1234567|.|89", "    \t| z|\n|\n|b| |\n| c",
      "$|x|=<|a|>|b|_|c| ,|d"}},
    {"deepseek-coder",
     {"Hello| | world|'|s| I|'|LL| |1|2|3|4|5| a", "x|.|y|(|z|)| !!!/|\n|b", "HTTPServer| éÉa| |नमस|्|त|े",
      "你好吗| |カナ한글| abc", "a|  |1|2| |1|2|3|4|x| |1|2|3|4|5|6|7|.|8|9", "    \t| z|\n|\n|b| |\n| c",
      "$|x|=<|a|>|b|_|c| ,|d"}},
    {"deepseek-v3",
     {"Hello| | world|'s| I|'LL| |123|45| a", "x|.y|(z|)| !!!/\n|b", "HTTPServer| éÉa| नमस्ते", "你好吗| |カナ|한글| abc",
      "a|  |12| |123|4|x| |123|456|7|.|89", "    \t| z|\n\n|b| \n| c", "$x|=<|a|>b|_c| ,|d"}},
    {"spark2_5",
     {"Hello| | world|'s| I|'LL| |1|2|3|4|5| a", "x|.y|(z|)| !!!/|\n|b", "HTTPServer| éÉa| नमस्ते",
      "你好吗| |カナ|한글| abc", "a|  |1|2| |1|2|3|4|x| |1|2|3|4|5|6|7|.|8|9", "    \t| z|\n|\n|b| \n| c",
      "$x|=<|a|>b|_c| ,|d"}},
    {"afmoe",
     {"Hello| | world|'s| I|'LL| |12|345| a", "x|.y|(z|)| !!!/\n|b", "HTTPServer| éÉa| नमस्ते", "你好吗| |カナ한글| abc",
      "a|  |12| |1|234|x| |1|234|567|.|89", "    \t| z|\n\n|b| \n| c", "$x|=<|a|>b|_c| ,|d"}},
    {"smollm",
     {"Hello| | world|'s| I|'|LL| |1|2|3|4|5| a", "x|.|y|(|z|)| !!!/|\n|b", "HTTPServer| éÉa| नमस|्|त|े",
      "你好吗| カナ한글| abc", "a|  |1|2| |1|2|3|4|x| |1|2|3|4|5|6|7|.|8|9", "    \t| z|\n|\n|b| \n| c",
      "$|x|=<|a|>|b|_|c| ,|d"}},
    {"chameleon",
     {"Hello|  |world|'|s| I|'|LL| |1|2|3|4|5| a", "x|.|y|(|z|)| |!|!|!|/|\n|b", "HTTPServer| éÉa| नमस|्|त|े",
      "你好吗| カナ한글| abc", "a|  |1|2| |1|2|3|4|x| |1|2|3|4|5|6|7|.|8|9", "    |\t| z|\n|\n|b| |\n| c",
      "$|x|=|<|a|>|b|_|c| |,|d"}},
    {"bloom",
     {"Hello| | world's| I'LL| 12345| a", "x|.|y|(|z|) !!!|/|\n|b", "HTTPServer| éÉa| नमस्ते", "你好吗| カナ한글| abc",
      "a| | 12| 1234x| 1234567|.|89", "    \t| z|\n\n|b| \n| c", "$x=<a>b_c| ,|d"}},
    {"viking",
     {"Hello| | world's| I'LL| |1|2|3|4|5| a", "x|.|y|(|z|) !!!|/|\n|b", "HTTPServer| éÉa| नमस्ते",
      "你好吗| カナ한글| abc", "a| | |1|2| |1|2|3|4|x| |1|2|3|4|5|6|7|.|8|9", "    \t| z|\n\n|b| \n| c",
      "$x=<a>b_c| ,|d"}},
    {"superbpe",
     {"Hello  world's I'LL |12|345| a", "x.y(z) !!!/\nb", "HTTPServer éÉa नमस्ते", "你好吗 カナ한글 abc",
      "a  |12| |1|234|x |1|234|567|.|89", "    \t z\n\nb \n c", "$x=<a>b_c ,d"}},
    {"gemma4",
     {"Hello  world's I'LL 12345 a", "x.y(z) !!!/|\n|b", "HTTPServer éÉa नमस्ते", "你好吗 カナ한글 abc",
      "a  12 1234x 1234567.89", "    \t z|\n\n|b |\n| c", "$x=<a>b_c ,d"}},
};

static void others_split_as_published(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) check_cuts(others[i].name, others[i].cases, 7);
    CHECK_CUTS("gpt-4o", "中|ABC", "Ab|Cd's", "ABc", "Abc's|d", "AB'll", "ǅa", "a\u0301b", "中'Re|x", "\u0301Ab");
    CHECK_CUTS("kimi-k2", "a|中文|b", "A|中", "〇〇|12", "中|'s");
    CHECK_CUTS("tiny_aya", "1|000|.|5", "1|000|,x", "100|0|_", "12|345|!", "١|٢٣٤");
    CHECK_CUTS("superbpe", "a|1|b", "ab c|12|345");
    CHECK_CUTS("exaone-moe", "(ab c|,", "a| | b", "!!/\n|b", "नम ते");
    CHECK_CUTS("chameleon", "a|    |  | b", "\t|\n|a");
    CHECK_CUTS("deepseek-llm", " h|é|llo", "x|  ", "a|\n|\n|b");
}

static void spaces_split_in_powers_of_two(void **state) {
    (void)state;
    char cuts[1100] = "";
    static const int sizes[] = {512, 256, 128, 64, 32, 16, 8, 4, 2};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memset(cuts + strlen(cuts), ' ', (size_t)sizes[i]);
        strcat(cuts, "|");
    }
    strcat(cuts, " x");
    const char *const cases[] = {cuts};
    check_cuts("jais-2", cases, 1);
}

static void pretokenizers_differ(void **state) {
    (void)state;
    CHECK_CUTS("gpt-2", "1234", "A|'|S", "(|a", "!|\n", "x|\n|\n|y");
    CHECK_CUTS("llama3", "123|4", "A|'S", "(a", "!\n", "x|\n\n|y");
    CHECK_CUTS("deepseek-r1-qwen", "1|2|3|4", "A|'S", "(a", "!\n", "x|\n\n|y");
}

// No-break space, line separator and NEL are white space; zero-width space and invalid bytes are symbols.
static void white_space_is_unicode(void **state) {
    (void)state;
    CHECK_CUTS("gpt-2", "a|\u00a0|\u00a0|b", "a|\u2028|!", "a|\xc2\x85|!", "a|\u200b!", "a|\xe2\x80!",
               "a|\xff\xfe| \xf0");
}

static void names_find_pretokenizers(void **state) {
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
    for (size_t i = 0; pretokenizer_at(i); i++) // names are unique
        for (const char *const *name = pretokenizer_at(i)->names; *name; name++)
            assert_ptr_equal(find(*name), pretokenizer_at(i));
}

static void pieces_cover_any_bytes(void **state) {
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

// Long runs of anything take a moment with every pre-tokenizer; quadratic time would take minutes.
static void long_runs_are_fast(void **state) {
    (void)state;
    enum { SIZE = 1 << 17 };
    static const char *const units[] = {"a",   "A",       "Aa", "aA",  "1",      "\u0661", " ",     "\n",
                                        " \n", "\t ",     "'",  "'s",  "!",      "!a",     "/",     "\xff",
                                        "中",  "中A",     "한", "ا",   "\u0301", "a ",     "1a",    "\u3000",
                                        "$",   "a\u0301", "😀",  "  a", "_",      "ǅ",      "\u200b"};
    char *text = malloc(SIZE + 16);
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
        size_t size = 0, length = strlen(units[u]);
        for (; size < SIZE; size += length) memcpy(text + size, units[u], length);
        text[size++] = 'x'; // the run does not end with the text
        for (size_t i = 0; pretokenizer_at(i); i++) {
            struct pretokenize_walk walk = pretokenize_begin(pretokenizer_at(i), text, size);
            size_t whole = 0;
            for (struct span piece; pretokenize_next(&walk, &piece);) whole += piece.size;
            assert_int_equal(whole, size);
        }
    }
    free(text);
}

int main(void) {
    alarm(500); // too short for quadratic time in long_runs_are_fast
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt2_splits_as_published),      cmocka_unit_test(llama_splits_as_published),
        cmocka_unit_test(qwen_splits_as_published),      cmocka_unit_test(others_split_as_published),
        cmocka_unit_test(spaces_split_in_powers_of_two), cmocka_unit_test(pretokenizers_differ),
        cmocka_unit_test(white_space_is_unicode),        cmocka_unit_test(names_find_pretokenizers),
        cmocka_unit_test(pieces_cover_any_bytes),        cmocka_unit_test(long_runs_are_fast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
