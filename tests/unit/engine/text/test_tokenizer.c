// Tokenizers with small vocabularies and the real ones of ../shared: SentencePiece, byte-level BPE.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/text/tokenizer.h"
#include "tests/unit/gguf_writer.h"
#include "tests/unit/opened_tokenizer.h"
#include "tests/unit/shared_files.h"

#define KEY(name) "tokenizer.ggml." name

// A token of a test vocabulary.
struct row {
    const char *text;
    float score;
    int32_t type; // 0: normal
};
static void put_rows(struct gguf_writer *w, const struct row *rows, size_t n) {
    struct bytes texts = {0}, scores = {0}, types = {0};
    for (size_t i = 0; i < n; i++) {
        bytes_string(&texts, rows[i].text);
        bytes_put(&scores, &rows[i].score, sizeof rows[i].score);
        bytes_u32(&types, rows[i].type ? (uint32_t)rows[i].type : TOKEN_NORMAL);
    }
    gguf_writer_array(w, KEY("tokens"), GGUF_STRING, n, texts.data, texts.size);
    gguf_writer_array(w, KEY("scores"), GGUF_F32, n, scores.data, scores.size);
    gguf_writer_array(w, KEY("token_type"), GGUF_I32, n, types.data, types.size);
    free(texts.data);
    free(scores.data);
    free(types.data);
}

static void put_merges(struct gguf_writer *w, const char *const *merges, size_t n) {
    struct bytes texts = {0};
    for (size_t i = 0; i < n; i++) bytes_string(&texts, merges[i]);
    gguf_writer_array(w, KEY("merges"), GGUF_STRING, n, texts.data, texts.size);
    free(texts.data);
}

// SentencePiece.

enum { UNK, BOS, EOS, SPACE, A, B, C, AB, BC, AA, SPACE_A, SPACES, USER, BYTE_C3, BYTE_A9, LONG };
static const struct row spm_rows[] = {
    [UNK] = {"<unk>", 0, TOKEN_UNKNOWN},
    [BOS] = {"<s>", 0, TOKEN_CONTROL},
    [EOS] = {"</s>", 0, TOKEN_CONTROL},
    [SPACE] = {"▁", -9, 0},
    [A] = {"a", -10, 0},
    [B] = {"b", -11, 0},
    [C] = {"c", -12, 0},
    [AB] = {"ab", -4, 0},
    [BC] = {"bc", -2, 0},
    [AA] = {"aa", -3, 0},
    [SPACE_A] = {"▁a", -5, 0},
    [SPACES] = {"▁▁", -6, 0},
    [USER] = {"ca", -1, TOKEN_USER_DEFINED},
    [BYTE_C3] = {"<0xC3>", 0, TOKEN_BYTE},
    [BYTE_A9] = {"<0xA9>", 0, TOKEN_BYTE},
    [LONG] = {"aab", -1, TOKEN_UNUSED},
};
enum { SPM_COUNT = sizeof spm_rows / sizeof *spm_rows };

static struct gguf_writer spm_writer(void) {
    struct gguf_writer w = {0};
    gguf_writer_string(&w, KEY("model"), "llama");
    put_rows(&w, spm_rows, SPM_COUNT);
    return w;
}

static void spm_merges_by_score(void **state) {
    (void)state;
    struct gguf_writer w = spm_writer();
    struct opened o = open_writer(&w);
    assert_non_null(o.t);
    CHECK_IDS(&o, "", PLAIN, );
    CHECK_IDS(&o, "abc", NO_PREFIX, A, BC); // the better score wins over position
    CHECK_IDS(&o, "aaa", NO_PREFIX, AA, A); // of equal scores, the leftmost
    CHECK_IDS(&o, "aab", NO_PREFIX, LONG);  // merged symbols merge again
    CHECK_IDS(&o, "ab", PLAIN, SPACE, AB);  // the space in front merges later than "ab"
    CHECK_IDS(&o, "a", PLAIN, SPACE_A);
    CHECK_IDS(&o, "  a", PLAIN, SPACES, SPACE_A);
    CHECK_IDS(&o, "é", PLAIN, SPACE, BYTE_C3, BYTE_A9);
    CHECK_IDS(&o, "\xc3", NO_PREFIX, BYTE_C3);
    CHECK_IDS(&o, "x", NO_PREFIX, UNK);          // no byte token for it
    CHECK_IDS(&o, "bca", PLAIN, SPACE, B, USER); // matched before any merging
    CHECK_IDS(&o, "caa", PLAIN, USER, SPACE_A);  // the text continues as after a special token
    close_opened(&o);
}

static void spm_recognises_special_tokens(void **state) {
    (void)state;
    struct gguf_writer w = spm_writer();
    struct opened o = open_writer(&w);
    CHECK_IDS(&o, "</s>a", PARSED, EOS, SPACE_A);
    CHECK_IDS(&o, "a<s> a", PARSED, SPACE_A, BOS, SPACE, SPACE_A);
    CHECK_IDS(&o, "<s><s>", PARSED, BOS, BOS);
    struct token_list ids = {0};
    tokenizer_encode(o.t, "</s>", 4, false, &ids); // typed text: characters
    for (size_t i = 0; i < ids.count; i++) assert_int_not_equal(ids.ids[i], EOS);
    free(ids.ids);
    assert_int_equal(tokenizer_bos(o.t), BOS); // by default
    assert_int_equal(tokenizer_eos(o.t), EOS);
    assert_true(tokenizer_adds_bos(o.t));
    assert_true(tokenizer_ends_generation(o.t, EOS));
    assert_false(tokenizer_ends_generation(o.t, A) || tokenizer_ends_generation(o.t, -1) ||
                 tokenizer_ends_generation(o.t, SPM_COUNT));
    assert_string_equal(tokenizer_model_name(o.t), "llama");
    assert_string_equal(tokenizer_pre_name(o.t), "");
    close_opened(&o);
}

static void spm_keys_override_defaults(void **state) {
    (void)state;
    struct gguf_writer w = spm_writer();
    gguf_writer_bool(&w, KEY("add_space_prefix"), false);
    gguf_writer_bool(&w, KEY("add_bos_token"), false);
    gguf_writer_u32(&w, KEY("eos_token_id"), B);
    gguf_writer_u32(&w, KEY("eot_token_id"), C);
    gguf_writer_u32(&w, KEY("bos_token_id"), UINT32_MAX); // means none
    struct opened o = open_writer(&w);
    assert_non_null(o.t);
    CHECK_IDS(&o, "ab", PLAIN, AB);
    CHECK_IDS(&o, " ab", PLAIN, SPACE, AB);
    assert_int_equal(tokenizer_bos(o.t), -1);
    assert_int_equal(tokenizer_eos(o.t), B);
    assert_false(tokenizer_adds_bos(o.t));
    assert_true(tokenizer_ends_generation(o.t, B) && tokenizer_ends_generation(o.t, C));
    assert_true(tokenizer_ends_generation(o.t, EOS)); // by its text
    close_opened(&o);
}

// Words merge independently only if no token spans several words.
static void spm_words_merge_independently(void **state) {
    (void)state;
    static const struct row rows[] = {
        {"<unk>", 0, TOKEN_UNKNOWN}, {"▁", -9, 0}, {"a", -8, 0}, {"b", -7, 0}, {"a▁", -1, 0}, {"a▁b", -2, 0}};
    struct gguf_writer w = {0};
    gguf_writer_string(&w, KEY("model"), "llama");
    put_rows(&w, rows, 6);
    struct opened o = open_writer(&w);
    CHECK_IDS(&o, "a b", NO_PREFIX, 5);
    CHECK_IDS(&o, "a  b", NO_PREFIX, 4, 1, 3);
    close_opened(&o);
}

static void phi3_markers_strip_white_space(void **state) {
    (void)state;
    for (int is_phi = 0; is_phi < 2; is_phi++) {
        struct gguf_writer w = spm_writer();
        if (is_phi) gguf_writer_string(&w, "general.architecture", "phi3");
        struct opened o = open_writer(&w);
        const char text[] = "</s>  a<s> a";
        struct token_list ids = {0};
        tokenizer_encode(o.t, text, strlen(text), true, &ids);
        static const int32_t expected[2][6] = {{EOS, SPACES, SPACE_A, BOS, SPACE, SPACE_A},
                                               {EOS, SPACE_A, BOS, SPACE, SPACE_A}};
        assert_int_equal(ids.count, is_phi ? 5 : 6);
        assert_memory_equal(ids.ids, expected[is_phi], ids.count * sizeof *ids.ids);
        free(ids.ids);
        close_opened(&o);
    }
}

static void pieces_are_the_bytes_of_tokens(void **state) {
    (void)state;
    struct gguf_writer w = spm_writer();
    struct opened o = open_writer(&w);
    assert_true(span_equals(tokenizer_piece(o.t, SPACE_A, false), " a"));
    assert_true(span_equals(tokenizer_piece(o.t, BYTE_C3, false), "\xc3"));
    assert_true(span_equals(tokenizer_piece(o.t, EOS, false), ""));
    assert_true(span_equals(tokenizer_piece(o.t, EOS, true), "</s>"));
    assert_true(span_equals(tokenizer_piece(o.t, USER, false), "ca"));
    assert_int_equal(tokenizer_piece(o.t, -1, true).size, 0);
    assert_int_equal(tokenizer_piece(o.t, SPM_COUNT, true).size, 0);
    assert_int_equal(tokenizer_find(o.t, "▁a", 4), SPACE_A);
    assert_int_equal(tokenizer_find(o.t, "▁b", 4), -1);
    assert_int_equal(tokenizer_count(o.t), SPM_COUNT);
    size_t size;
    char *text = tokenizer_decode(o.t, (int32_t[]){BOS, SPACE_A, 99, EOS, SPACE_A, SPACE_A}, 6, false, &size);
    assert_string_equal(text, "aa a");
    free(text);
    close_opened(&o);
}

// Text crosses parts, special tokens do not; only trusted parts contain any.
static void parts_encode_as_one_text(void **state) {
    (void)state;
    struct gguf_writer w = spm_writer();
    struct opened o = open_writer(&w);
    const struct tokenizer_part parts[] = {{"<s>a", 4, true}, {"a", 1, false}, {"b", 1, true},
                                           {"<s", 2, true},   {">", 1, true},  {"</s>", 4, true},
                                           {"", 0, true},     {"b", 1, false}, {"c", 1, false}};
    struct token_list ids = {0};
    tokenizer_encode_parts(o.t, parts, sizeof parts / sizeof *parts, false, &ids);
    const int32_t expected[] = {BOS, SPACE, LONG, UNK, UNK, UNK, EOS, SPACE, BC};
    assert_int_equal(ids.count, 9);
    assert_memory_equal(ids.ids, expected, sizeof expected);
    free(ids.ids);
    close_opened(&o);
}

// Byte-level.

enum { GA, GB, GC, GAB, GABC, GBC, GSPACE, GSPACE_A, GAB_AGAIN, GEND, G_E2, GXX, GX };
static const struct row bpe_rows[] = {
    [GA] = {"a", 0, 0},         [GB] = {"b", 0, 0},
    [GC] = {"c", 0, 0},         [GAB] = {"ab", 0, 0},
    [GABC] = {"abc", 0, 0},     [GBC] = {"bc", 0, 0},
    [GSPACE] = {"Ġ", 0, 0},     [GSPACE_A] = {"Ġa", 0, 0},
    [GAB_AGAIN] = {"ab", 0, 0}, [GEND] = {"<|im_end|>", 0, TOKEN_USER_DEFINED},
    [G_E2] = {"â", 0, 0},       [GXX] = {"xx", 0, 0},
    [GX] = {"x", 0, 0},
};
enum { BPE_COUNT = sizeof bpe_rows / sizeof *bpe_rows };

static struct gguf_writer bpe_writer(const char *pre) {
    static const char *const merges[] = {"b c", "a b", "a bc", "Ġ a", "q r", "b c", "ab c", "x x", "xx xx"};
    struct gguf_writer w = {0};
    gguf_writer_string(&w, KEY("model"), "gpt2");
    if (pre) gguf_writer_string(&w, KEY("pre"), pre);
    put_rows(&w, bpe_rows, BPE_COUNT);
    put_merges(&w, merges, sizeof merges / sizeof *merges);
    return w;
}

static void bpe_merges_by_rank(void **state) {
    (void)state;
    struct gguf_writer w = bpe_writer("gpt-2");
    struct opened o = open_writer(&w);
    assert_non_null(o.t);
    CHECK_IDS(&o, "", PLAIN, );
    CHECK_IDS(&o, "abc", PLAIN, GABC);     // bc first, then a with bc
    CHECK_IDS(&o, "ab", PLAIN, GAB_AGAIN); // of duplicate tokens, the last
    CHECK_IDS(&o, "aabcb", PLAIN, GA, GABC, GB);
    CHECK_IDS(&o, "a a", PLAIN, GA, GSPACE_A);
    CHECK_IDS(&o, "xxx", PLAIN, GXX, GX);
    CHECK_IDS(&o, "xxxx", PLAIN, GXX, GXX); // the last merge does not produce a token
    CHECK_IDS(&o, "\xe2", PLAIN, G_E2);
    assert_int_equal(tokenizer_bos(o.t), -1);
    assert_false(tokenizer_adds_bos(o.t));
    assert_string_equal(tokenizer_model_name(o.t), "gpt2");
    assert_string_equal(tokenizer_pre_name(o.t), "gpt-2");
    close_opened(&o);
}

// A file with an unknown pre-tokenizer still opens.
static void unknown_pretokenizers_fall_back(void **state) {
    (void)state;
    struct gguf_writer w = bpe_writer("of-tomorrow\n\x1b");
    struct opened o = open_writer(&w);
    assert_non_null(o.t);
    assert_string_equal(tokenizer_pre_name(o.t), "default (unknown: 'of-tomorrow?\?')");
    CHECK_IDS(&o, "a a", PLAIN, GA, GSPACE_A);
    close_opened(&o);
}

// "axx" is a token that merging cannot produce: llama-bpe takes it whole, others do not.
static void whole_pieces_depend_on_the_pretokenizer(void **state) {
    (void)state;
    static const struct row rows[] = {{"a", 0, 0}, {"x", 0, 0}, {"axx", 0, 0}, {"Ġaxx", 0, 0}};
    static const char *const merges[] = {"a x"};
    for (int is_llama = 0; is_llama < 2; is_llama++) {
        struct gguf_writer w = {0};
        gguf_writer_string(&w, KEY("model"), "gpt2");
        gguf_writer_string(&w, KEY("pre"), is_llama ? "llama-bpe" : "qwen2");
        gguf_writer_u32(&w, KEY("bos_token_id"), 1);
        put_rows(&w, rows, 4);
        put_merges(&w, merges, 1);
        struct opened o = open_writer(&w);
        if (is_llama) CHECK_IDS(&o, "axx axx", PLAIN, 2, 3);
        else CHECK_IDS(&o, "axx", PLAIN, 0, 1, 1);
        assert_int_equal(tokenizer_adds_bos(o.t), is_llama);
        close_opened(&o);
    }
}

// End of generation.

static struct opened open_ends(const struct row *rows, size_t n) {
    struct gguf_writer w = {0};
    gguf_writer_string(&w, KEY("model"), "gpt2");
    put_rows(&w, rows, n);
    put_merges(&w, (const char *const[]){"a b"}, 1);
    return open_writer(&w);
}

static void end_tokens_are_recognised(void **state) {
    (void)state;
    static const struct row rows[] = {{"<|end|>", 0, TOKEN_CONTROL},    {"<|im_end|>", 0, TOKEN_USER_DEFINED},
                                      {"</s>", 0, TOKEN_NORMAL},        {"<|start|>", 0, TOKEN_CONTROL},
                                      {"<|return|>", 0, TOKEN_CONTROL}, {"<|call|>", 0, TOKEN_CONTROL}};
    static const bool plain[] = {true, true, false, false, true}, harmony[] = {false, true, false, false, true, true};
    struct opened o = open_ends(rows, 5);
    for (int32_t id = 0; id < 5; id++) assert_int_equal(tokenizer_ends_generation(o.t, id), plain[id]);
    struct token_list ids = {0};
    tokenizer_encode(o.t, "<|im_end|>", 10, false, &ids); // although declared user-defined
    assert_int_equal(ids.count, 0);
    free(ids.ids);
    close_opened(&o);
    o = open_ends(rows, 6);
    for (int32_t id = 0; id < 6; id++) assert_int_equal(tokenizer_ends_generation(o.t, id), harmony[id]);
    close_opened(&o);
}

static void the_longest_special_token_wins(void **state) {
    (void)state;
    static const struct row rows[] = {
        {"<a", 0, TOKEN_USER_DEFINED}, {"<a>", 0, TOKEN_CONTROL}, {"<a>>", 0, TOKEN_USER_DEFINED}, {"a", 0, 0}};
    struct opened o = open_ends(rows, 4);
    CHECK_IDS(&o, "a<a<a>><a>a", PARSED, 3, 0, 2, 1, 3);
    CHECK_IDS(&o, "<a<aa", PLAIN, 0, 0, 3);
    close_opened(&o);
}

// Errors.

static void expect_rejected(struct gguf_writer *w, enum status_code code, const char *words) {
    struct opened o = open_writer(w);
    assert_null(o.t);
    assert_int_equal(o.status.code, code);
    assert_non_null(strstr(o.status.text, words));
    assert_non_null(strstr(o.status.text, "test.gguf"));
    close_opened(&o);
}

static void invalid_keys_are_rejected(void **state) {
    (void)state;
    struct gguf_writer w = {0};
    expect_rejected(&w, STATUS_FORMAT, KEY("model"));
    gguf_writer_string(&w, KEY("model"), "rwkv");
    expect_rejected(&w, STATUS_UNSUPPORTED, "unsupported tokenizer 'rwkv'");
    gguf_writer_string(&w, KEY("model"), "llama");
    expect_rejected(&w, STATUS_FORMAT, KEY("tokens"));

    static const char *const id_keys[] = {KEY("bos_token_id"), KEY("eos_token_id"),     KEY("eot_token_id"),
                                          KEY("eom_token_id"), KEY("unknown_token_id"), KEY("seperator_token_id")};
    for (size_t i = 0; i < sizeof id_keys / sizeof *id_keys; i++) {
        w = spm_writer();
        gguf_writer_u32(&w, id_keys[i], SPM_COUNT);
        expect_rejected(&w, STATUS_FORMAT, id_keys[i]);
    }
    w = spm_writer();
    gguf_writer_u32(&w, KEY("add_bos_token"), 1);
    expect_rejected(&w, STATUS_FORMAT, KEY("add_bos_token"));
}

// A vocabulary of one token, with invalid arrays.
static void invalid_arrays_are_rejected(void **state) {
    (void)state;
    static const struct {
        const char *key;
        enum gguf_type element;
        uint64_t count;
        uint32_t values[2];
        const char *words;
    } cases[] = {
        {KEY("scores"), GGUF_F32, 2, {0, 0}, "2 elements for 1 tokens"},
        {KEY("scores"), GGUF_F32, 1, {0x7fc00000}, "not a number"},
        {KEY("token_type"), GGUF_I32, 1, {7}, "type 7 of token 0 is out of range (0 to 6)"},
        {KEY("token_type"), GGUF_I32, 1, {TOKEN_BYTE}, "is not a byte token"},
        {KEY("token_type"), GGUF_I32, 2, {1, 1}, "2 elements for 1 tokens"},
        {KEY("token_type"), GGUF_F32, 1, {0x7fc00000}, "token_type"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gguf_writer w = {0};
        struct bytes text = {0};
        bytes_string(&text, "<0x4g>");
        gguf_writer_string(&w, KEY("model"), "llama");
        gguf_writer_array(&w, KEY("tokens"), GGUF_STRING, 1, text.data, text.size);
        gguf_writer_array(&w, cases[i].key, cases[i].element, cases[i].count, cases[i].values, 4 * cases[i].count);
        expect_rejected(&w, STATUS_FORMAT, cases[i].words);
        free(text.data);
    }
    struct gguf_writer w = {0};
    gguf_writer_string(&w, KEY("model"), "gpt2");
    put_rows(&w, bpe_rows, BPE_COUNT);
    expect_rejected(&w, STATUS_FORMAT, KEY("merges"));
    gguf_writer_string(&w, KEY("model"), "gpt2");
    put_rows(&w, bpe_rows, BPE_COUNT);
    put_merges(&w, (const char *const[]){"a b", " b"}, 2);
    expect_rejected(&w, STATUS_FORMAT, "merge 1");
}

// Real vocabularies.

static struct opened open_shared(const char *name) {
    char path[64];
    struct opened o = {0};
    snprintf(path, sizeof path, "vocabs/%s.gguf", name);
    assert_true(gguf_open(&o.file, shared_file(path), &o.status));
    o.t = tokenizer_open(&o.file, &o.status);
    return o;
}

static void real_vocabularies_give_published_ids(void **state) {
    (void)state;
    static const char *const names[] = {"llama-spm", "llama-bpe", "qwen2", "gpt-2", "phi-3", "deepseek-llm"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct opened o = open_shared(names[i]);
        size_t n = 0;
        char *texts = shared_vocabulary_text(names[i], "inp"), *lines = shared_vocabulary_text(names[i], "out");
        const char *text = texts, *line = lines;
        for (const char *end; *line && (end = strstr(text, SHARED_VOCABULARY_TEXT_END)); n++) {
            line = check_line_of_ids(o.t, text, (size_t)(end - text), line);
            check_round_trip(&o, text, (size_t)(end - text));
            text = end + strlen(SHARED_VOCABULARY_TEXT_END);
        }
        assert_int_equal(*line, 0);
        assert_true(n > 40);
        free(texts);
        free(lines);
        close_opened(&o);
    }
}

static void real_special_tokens_are_recognised(void **state) {
    (void)state;
    struct opened o = open_shared("llama-bpe");
    CHECK_IDS(&o, "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>", PARSED, 128006, 882, 128007, 271, 13347,
              128009);
    assert_true(tokenizer_ends_generation(o.t, 128009) && tokenizer_adds_bos(o.t));
    close_opened(&o);
    o = open_shared("phi-3");
    struct token_list ids = {0};
    tokenizer_encode(o.t, "<|user|>\nHi<|end|>\n<|assistant|>\n", 33, true, &ids);
    assert_int_equal(ids.count, 4);
    assert_memory_equal(ids.ids, ((int32_t[]){32010, 6324, 32007, 32001}), 4 * sizeof(int32_t));
    free(ids.ids);
    close_opened(&o);
    o = open_shared("qwen2");
    CHECK_IDS(&o, "<|im_start|>a</s>b", PARSED, 151644, 64, 522, 82, 51407); // its "</s>" is an ordinary token
    assert_false(tokenizer_ends_generation(o.t, 128247));
    close_opened(&o);
    o = open_shared("o200k-harmony");
    CHECK_IDS(&o, "<|start|>user<|message|>How's it GOING?<|end|>", PARSED, 200006, 1428, 200008, 5299, 885, 480, 22136,
              2694, 30, 200007);
    assert_false(tokenizer_ends_generation(o.t, 200007));
    close_opened(&o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spm_merges_by_score),
        cmocka_unit_test(spm_recognises_special_tokens),
        cmocka_unit_test(spm_keys_override_defaults),
        cmocka_unit_test(spm_words_merge_independently),
        cmocka_unit_test(phi3_markers_strip_white_space),
        cmocka_unit_test(pieces_are_the_bytes_of_tokens),
        cmocka_unit_test(parts_encode_as_one_text),
        cmocka_unit_test(bpe_merges_by_rank),
        cmocka_unit_test(unknown_pretokenizers_fall_back),
        cmocka_unit_test(whole_pieces_depend_on_the_pretokenizer),
        cmocka_unit_test(end_tokens_are_recognised),
        cmocka_unit_test(the_longest_special_token_wins),
        cmocka_unit_test(invalid_keys_are_rejected),
        cmocka_unit_test(invalid_arrays_are_rejected),
        cmocka_unit_test(real_vocabularies_give_published_ids),
        cmocka_unit_test(real_special_tokens_are_recognised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
