// tokenizer.model files: models trained here give the same ids as the SentencePiece library; invalid ones are rejected.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/panic.h"
#include "engine/format/huggingface_tokenizer.h"
#include "engine/text/tokenizer.h"
#include "tests/unit/exact_copy.h"
#include "tests/unit/huggingface_seeds.h"
#include "tests/unit/sentencepiece_library.h"

#define KEY(name) "tokenizer.ggml." name

static const char *const sentences[] = {
    "The quick brown fox jumps over the lazy dog, and the dog does not mind.",
    "A model that runs on your own machine answers without asking anybody else.",
    "She sells sea shells by the sea shore; the shells that she sells are sea shells.",
    "In 1984 there were 256 of them, in 2024 there are 65536, and 3.14159 is no integer.",
    "def main():\n\treturn [x * 2 for x in range(10) if x % 3 == 0]",
    "#include <stdio.h> int main(void) { printf(\"hello, world\\n\"); return 0; }",
    "Größe, Übermut und Äußerungen: ein Fußball für alle Straßen.",
    "Le café était fermé, le garçon rêvait d'un été à Nîmes.",
    "El niño comió piñas en la mañana; ¿cuándo volverá?",
    "Быстрая коричневая лиса прыгает через ленивую собаку.",
    "素早い茶色の狐がのろまな犬を飛び越える。日本語の文章です。",
    "敏捷的棕色狐狸跳过了懒狗。这是一个中文句子。",
    "다람쥐 헌 쳇바퀴에 타고파. 한국어 문장입니다.",
    "الثعلب البني السريع يقفز فوق الكلب الكسول",
    "ﬁne print, Ⅷ centuries, ½ a cup, ①②③, ｆｕｌｌ ｗｉｄｔｈ",
    "to be or not to be, that is the question: whether 'tis nobler in the mind to suffer",
    "the theory of the thing that they thought through with their other brothers",
    "answering, asking, running, jumping, thinking, singing, bringing, wondering",
    "nation, station, relation, translation, information, organisation, explanation",
    "unhappy undo unlike unless until under underneath understanding",
    "😀 emoji 😀 in 🎉 text 🎉, ok?",
    "a b c d e f g h i j k l m n o p q r s t u v w x y z A B C D E F G H I J K L M N O P Q R S T U V W X Y Z",
};
enum { SENTENCES = sizeof sentences / sizeof *sentences };

#define COMMON " --hard_vocab_limit=false --character_coverage=1.0 --num_threads=1 --minloglevel=2"
#define PLAIN  " --normalization_rule_name=identity --remove_extra_whitespaces=false"

static const struct {
    const char *options, *model;
    bool any_bytes; // all bytes have tokens
} models[] = {
    {"--model_type=bpe --vocab_size=700 --byte_fallback=true" PLAIN COMMON, "llama", true},
    {"--model_type=bpe --vocab_size=900 --byte_fallback=true --add_dummy_prefix=false "
     "--user_defined_symbols=<sep>,ing,▁▁,▁▁▁▁ --split_digits=true --pad_id=3" PLAIN COMMON,
     "llama", true},
    {"--model_type=bpe --vocab_size=800 --byte_fallback=true --split_by_whitespace=false "
     "--max_sentencepiece_length=24" PLAIN COMMON,
     "llama", true},
    {"--model_type=unigram --vocab_size=600 --normalization_rule_name=nmt_nfkc" COMMON, "t5", false},
    {"--model_type=unigram --vocab_size=600 --normalization_rule_name=nfkc_cf" COMMON, "t5", false},
    {"--model_type=unigram --vocab_size=800 --byte_fallback=true --add_dummy_prefix=false" PLAIN COMMON, "t5", true},
};
enum { MODELS = sizeof models / sizeof *models };

struct trained {
    char *bytes;
    size_t size;
};

static struct trained train(size_t k) {
    struct trained t = {0};
    t.bytes = sentencepiece_train(models[k].options, sentences, SENTENCES, &t.size);
    assert_non_null(t.bytes);
    return t;
}

static struct huggingface_opened open_model(const char *bytes, size_t size) {
    struct huggingface_texts texts = {.folder = "folder", .files[HUGGINGFACE_SENTENCEPIECE] = {bytes, size}};
    return huggingface_open_texts(&texts);
}

static double score_of(const struct gguf *g, const int32_t *ids, size_t n) {
    const struct gguf_pair *scores = gguf_find(g, KEY("scores"));
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += gguf_number(scores, (uint64_t)ids[i]);
    return sum;
}

// Unigram may choose any of several equally good splits ("I" "II", "II" "I"); returns whether it chose another one.
static bool check_text(const struct sentencepiece_model *library, const struct huggingface_opened *o, const char *text,
                       size_t size) {
    int32_t expected[4096];
    size_t n = sentencepiece_encode(library, text, size, expected, sizeof expected / sizeof *expected);
    struct token_list ids = {0};
    tokenizer_encode(o->t, text, size, false, &ids);
    bool same = n == ids.count && (n == 0 || !memcmp(ids.ids, expected, n * sizeof *expected));
    bool as_good = !strcmp(tokenizer_model_name(o->t), "t5") &&
                   fabs(score_of(&o->file, ids.ids, ids.count) - score_of(&o->file, expected, n)) < 1e-4;
    if (!same && !as_good) {
        for (size_t i = 0; i < n; i++) print_message("%d ", expected[i]);
        print_message("expected; have\n");
        for (size_t i = 0; i < ids.count; i++) print_message("%d ", ids.ids[i]);
        fail_msg("of \"%.*s\"", (int)size, text);
    }
    free(ids.ids);
    return !same;
}

// Random pieces of the sentences and of other text.
static size_t random_text(char *out, size_t room) {
    static const char *const bits[] = {
        " ", "  ",      "\n",     "\t",           "the", "THE", "<sep>", "ing", "</s>",         "<unk>", "ж",  "語",
        "é", "e\u0301", "\u00a0", "\u3000",       "ﬁ",   "Ⅷ",   "ｗ",    "😀",   "\u200b",       "0",     "19", "<0x41>",
        "ß", "İ",       "…",      "\u0915\u094d", "!",   "~",   "\r\n",  "한",  "\u1100\u1161", "x"};
    size_t n = 0;
    for (int i = rand() % 12 + 1; i > 0 && n + 64 < room; i--) {
        const char *bit = bits[(size_t)rand() % (sizeof bits / sizeof *bits)];
        const char *sentence = sentences[rand() % SENTENCES];
        size_t from = (size_t)rand() % strlen(sentence), size = (size_t)rand() % 24;
        if (rand() % 2) {
            while ((sentence[from] & 0xc0) == 0x80) from++;
            size_t end = from + size < strlen(sentence) ? from + size : strlen(sentence);
            while ((sentence[end] & 0xc0) == 0x80) end++;
            bit = sentence + from, size = end - from;
        } else size = strlen(bit);
        memcpy(out + n, bit, size);
        n += size;
    }
    return n;
}

static void ids_match_the_library(void **state) {
    (void)state;
    enum { ROUNDS = 4000 };
    srand(3);
    for (size_t k = 0; k < MODELS; k++) {
        struct trained file = train(k);
        struct sentencepiece_model *library = sentencepiece_open(file.bytes, file.size);
        struct huggingface_opened o = open_model(file.bytes, file.size);
        if (!o.t) fail_msg("%s", o.status.text);
        assert_string_equal(tokenizer_model_name(o.t), models[k].model);
        int others = 0;
        for (size_t i = 0; i < SENTENCES; i++) others += check_text(library, &o, sentences[i], strlen(sentences[i]));
        for (int round = 0; round < ROUNDS; round++) {
            char text[1024];
            others += check_text(library, &o, text, random_text(text, sizeof text));
        }
        assert_in_range(others, 0, ROUNDS / 10);
        huggingface_opened_close(&o);
        sentencepiece_close(library);
        free(file.bytes);
    }
}

// The seeds of the fuzzer are valid.
static void fuzzing_seeds_are_valid(void **state) {
    (void)state;
    for (size_t k = 0; k < SENTENCEPIECE_SEEDS; k++) {
        size_t size;
        char *bytes = (char *)sentencepiece_seed(k, &size);
        struct sentencepiece_model *library = sentencepiece_open(bytes, size);
        struct huggingface_opened o = open_model(bytes, size);
        assert_true(library && o.t);
        check_text(library, &o, "aab é 語語 b ab<sep>", 23);
        huggingface_opened_close(&o);
        sentencepiece_close(library);
        free(bytes);
    }
}

static void settings_of_the_model_become_keys(void **state) {
    (void)state;
    struct trained file = train(1);
    struct huggingface_opened o = open_model(file.bytes, file.size);
    assert_int_equal(tokenizer_bos(o.t), 1);
    assert_int_equal(tokenizer_eos(o.t), 2);
    assert_true(tokenizer_adds_bos(o.t));
    int32_t sep = tokenizer_find(o.t, "<sep>", 5);
    const struct gguf_pair *types = gguf_find(&o.file, KEY("token_type"));
    assert_int_equal(gguf_number(types, (uint64_t)sep), TOKEN_USER_DEFINED);
    assert_int_equal(gguf_number(types, 0), TOKEN_UNKNOWN);
    assert_int_equal(gguf_number(types, 1), TOKEN_CONTROL);
    assert_int_equal(gguf_number(types, (uint64_t)tokenizer_find(o.t, "<0x41>", 6)), TOKEN_BYTE);
    assert_int_equal(gguf_number(gguf_find(&o.file, KEY("padding_token_id")), 0), 3);
    huggingface_opened_close(&o);
    free(file.bytes);
}

// Settings in the other files of the folder.
static void the_other_files_add_settings(void **state) {
    (void)state;
    struct trained file = train(0);
    static const char added[] = "{\"<|im_start|>\": 905, \"<|im_end|>\": 906}",
                      config[] =
                          "{\"eos_token\": \"<|im_end|>\", \"add_bos_token\": false, \"added_tokens_decoder\": {\"2\": "
                          "{\"content\": \"<end>\", \"special\": true}, \"905\": {\"content\": \"<|im_start|>\", "
                          "\"special\": true}}}";
    struct huggingface_texts texts = {.folder = "folder"};
    texts.files[HUGGINGFACE_SENTENCEPIECE] = (struct span){file.bytes, file.size};
    texts.files[HUGGINGFACE_ADDED_TOKENS] = (struct span){added, strlen(added)};
    texts.files[HUGGINGFACE_TOKENIZER_CONFIG] = (struct span){config, strlen(config)};
    struct gguf g;
    struct status st = {0};
    gguf_begin(&g, "test");
    assert_true(huggingface_tokenizer_add_texts(&g, &texts, &st) && gguf_finish(&g, &st));
    struct tokenizer *t = tokenizer_open(&g, &st);
    assert_int_equal(tokenizer_count(t), 907);
    assert_int_equal(tokenizer_eos(t), 906);
    assert_false(tokenizer_adds_bos(t));
    struct token_list ids = {0};
    tokenizer_encode(t, "<|im_start|><end><|im_end|>", 27, true, &ids);
    assert_int_equal(ids.count, 3);
    assert_memory_equal(ids.ids, ((int32_t[]){905, 2, 906}), 3 * sizeof(int32_t));
    free(ids.ids);
    tokenizer_close(t);
    gguf_close(&g);
    free(file.bytes);
}

static void invalid_and_unsupported_models_are_rejected(void **state) {
    (void)state;
    static const struct {
        const char *options, *words;
    } cases[] = {
        {"--model_type=word --vocab_size=100" COMMON, "unsupported model type 3 (expected unigram or BPE)"},
        {"--model_type=char --vocab_size=300" COMMON, "unsupported model type 4"},
        {"--model_type=bpe --vocab_size=400" PLAIN COMMON, "BPE without byte_fallback"},
        {"--model_type=bpe --vocab_size=600 --byte_fallback=true --normalization_rule_name=nfkc" COMMON,
         "BPE that normalises characters"},
        {"--model_type=bpe --vocab_size=600 --byte_fallback=true --normalization_rule_name=identity" COMMON,
         "BPE that removes extra spaces"},
        {"--model_type=unigram --vocab_size=400 --treat_whitespace_as_suffix=true" COMMON,
         "treat_whitespace_as_suffix is not supported"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t size;
        char *bytes = sentencepiece_train(cases[i].options, sentences, SENTENCES, &size);
        assert_non_null(bytes);
        struct huggingface_opened o = open_model(bytes, size);
        if (o.t || strncmp(o.status.text, "folder/tokenizer.model: ", 24) || !strstr(o.status.text, cases[i].words))
            fail_msg("%s: %s", cases[i].options, o.status.text);
        free(bytes);
    }
    struct huggingface_opened o = open_model("\x0a\xff\xff\xff\xff\x7f", 6);
    assert_non_null(strstr(o.status.text, "not a SentencePiece model"));
    struct trained file = train(0);
    char *byte = memmem(file.bytes, file.size, "<0x41>", 6);
    byte[4] = '2';
    o = open_model(file.bytes, file.size);
    assert_string_equal(o.status.text, "folder/tokenizer.model: byte_fallback: only 255 of 256 bytes have pieces");
    free(file.bytes);
    o = open_model("\x12\x00", 2);
    assert_string_equal(o.status.text, "folder/tokenizer.model: no unknown piece");
    o = open_model("\x0a\x04\x0a\x00\x18\x02", 6);
    assert_non_null(strstr(o.status.text, "piece 0: '': invalid text"));
}

// Each byte changed in turn, and the file cut there: it is rejected, or works.
static void every_changed_byte_is_handled(void **state) {
    (void)state;
    for (size_t k = 0; k < MODELS; k += 3) {
        struct trained file = train(k);
        for (size_t i = 0; i < file.size; i += i < 2000 ? 1 : 37) {
            char *bytes = xmalloc(file.size);
            for (int cut = 0; cut < 2; cut++) {
                memcpy(bytes, file.bytes, file.size);
                bytes[i] = (char)(bytes[i] ^ (1 << i % 8));
                size_t size = cut ? i + 1 : file.size;
                char *exact = exact_copy(bytes, size);
                struct huggingface_opened o = open_model(exact, size);
                assert_true(o.t || o.status.text[0]);
                if (o.t) {
                    struct token_list ids = {0};
                    tokenizer_encode(o.t, "the quick\xff brown 語 ﬁ <sep>", 29, true, &ids);
                    for (size_t n = 0; n < ids.count; n++) assert_in_range(ids.ids[n], 0, tokenizer_count(o.t) - 1);
                    free(ids.ids);
                }
                huggingface_opened_close(&o);
                free(exact);
            }
            free(bytes);
        }
        free(file.bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_match_the_library),
        cmocka_unit_test(fuzzing_seeds_are_valid),
        cmocka_unit_test(settings_of_the_model_become_keys),
        cmocka_unit_test(the_other_files_add_settings),
        cmocka_unit_test(invalid_and_unsupported_models_are_rejected),
        cmocka_unit_test(every_changed_byte_is_handled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
