// Tokenizers of Hugging Face folders: small ones and invalid ones.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/panic.h"
#include "engine/format/huggingface_tokenizer.h"
#include "engine/text/tokenizer.h"
#include "tests/unit/exact_copy.h"
#include "tests/unit/huggingface_seeds.h"
#include "tests/unit/huggingface_splits.h"

#define KEY(name) "tokenizer.ggml." name

// A folder whose files the test adds one by one, with ` for ".
struct folder {
    struct huggingface_texts texts;
    char *owned[HUGGINGFACE_FILE_COUNT];
};

static void put(struct folder *f, enum huggingface_file file, const char *text) {
    free(f->owned[file]);
    f->owned[file] = huggingface_quoted(text);
    f->texts.folder = "folder";
    f->texts.files[file] = (struct span){f->owned[file], strlen(f->owned[file])};
}

static struct huggingface_opened open_folder(struct folder *f) {
    struct huggingface_opened o = huggingface_open_texts(&f->texts);
    for (int i = 0; i < HUGGINGFACE_FILE_COUNT; i++) free(f->owned[i]);
    *f = (struct folder){0};
    return o;
}

static struct huggingface_opened open_json(const char *text) {
    struct folder f = {0};
    put(&f, HUGGINGFACE_TOKENIZER, text);
    return open_folder(&f);
}

static void check_ids(const struct huggingface_opened *o, const char *text, const int32_t *ids, size_t n) {
    struct token_list list = {0};
    if (!o->t) fail_msg("%s", o->status.text);
    tokenizer_encode(o->t, text, strlen(text), true, &list);
    assert_int_equal(list.count, n);
    for (size_t i = 0; i < n; i++) assert_int_equal(list.ids[i], ids[i]);
    free(list.ids);
}
#define CHECK_IDS(o, text, ...)                                                                                        \
    check_ids(o, text, (const int32_t[]){__VA_ARGS__}, sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

static void check_string(const struct huggingface_opened *o, const char *key, const char *value) {
    struct span s = {"", 0};
    assert_true(gguf_get_string(&o->file, key, GGUF_OPTIONAL, &s, NULL));
    assert_true(span_equals(s, value));
}

static int64_t number_of(const struct huggingface_opened *o, const char *key) { // −1: absent
    const struct gguf_pair *p = gguf_find(&o->file, key);
    return p ? (int64_t)gguf_number(p, 0) : -1;
}

static double element_of(const struct huggingface_opened *o, const char *key, uint64_t i) {
    const struct gguf_pair *p = gguf_find(&o->file, key);
    assert_true(p && i < p->count);
    return gguf_number(p, i);
}

// ---- byte-level BPE ----

static void byte_level_bpe_gives_its_ids(void **state) {
    (void)state;
    struct huggingface_opened o = open_json(HUGGINGFACE_BYTE_LEVEL);
    CHECK_IDS(&o, "abc ab c", 4, 6, 1, 5, 2); // "Ġa" ranks before "ab"
    CHECK_IDS(&o, "ab<end>c\xc3\xa9", 3, 12, 2, 9, 10);
    check_string(&o, KEY("model"), "gpt2");
    check_string(&o, KEY("pre"), "gpt-2");
    assert_int_equal(tokenizer_count(o.t), 14);
    assert_int_equal(element_of(&o, KEY("token_type"), 11), TOKEN_UNUSED); // an unused id
    assert_int_equal(element_of(&o, KEY("token_type"), 12), TOKEN_CONTROL);
    assert_int_equal(element_of(&o, KEY("token_type"), 13), TOKEN_USER_DEFINED);
    assert_int_equal(number_of(&o, KEY("bos_token_id")), -1);
    huggingface_opened_close(&o);
}

static void ignore_merges_takes_whole_pieces(void **state) {
    (void)state;
    static const char with[] = "{`pre_tokenizer`: " HUGGINGFACE_GPT2 ", `model`: {`type`: `BPE`, `ignore_merges`: %s, "
                               "`vocab`: {`a`: 0, `b`: 1, `ab`: 2, `aba`: 3}, `merges`: [[`a`, `b`]]}}";
    for (int whole = 0; whole < 2; whole++) {
        char *text = xasprintf(with, whole ? "true" : "false");
        struct huggingface_opened o = open_json(text);
        if (whole) CHECK_IDS(&o, "aba", 3);
        else CHECK_IDS(&o, "aba", 2, 0);
        huggingface_opened_close(&o);
        free(text);
    }
}

// Every named pre-tokenizer, as published.
static void published_splits_have_names(void **state) {
    (void)state;
    static const struct {
        const char *parts, *pre;
    } cases[] = {
        {SPLIT(ENDINGS "|" WORDS("{1,3}")) BYTES, "llama-bpe"},
        {SPLIT("(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|" WORDS("{1,3}")) BYTES, "llama-bpe"},
        {SPLIT("'(?i:[sdmt]|ll|ve|re)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?+\\\\p{L}++|\\\\p{N}{1,3}+| "
               "?[^\\\\s\\\\p{L}\\\\p{N}]++[\\\\r\\\\n]*+|"
               "\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+") BYTES,
         "llama-bpe"},
        {SPLIT(ENDINGS "|" WORDS("")) BYTES, "qwen2"},
        {SPLIT(ENDINGS "|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{L}\\\\p{M}]+|\\\\p{N}| "
                       "?[^\\\\s\\\\p{L}\\\\p{M}\\\\p{N}]+[\\\\r\\\\n]*|"
                       "\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+") BYTES,
         "qwen35"},
        {SPLIT(CASED(ENDINGS "?") "|\\\\p{N}{1,3}" PATHS) BYTES, "gpt-4o"},
        {SPLIT(CASED("") "|\\\\p{N}" PATHS) BYTES, "tekken"},
        {HUGGINGFACE_GPT2, "gpt-2"},
        {DIGITS HUGGINGFACE_GPT2, "smollm"},
        {SPLIT("\\\\p{N}{1,3}") SPLIT("[一-龥\u3040-ゟ゠-ヿ]+") SPLIT(
             "[!\\\"#$%&'()*+,\\\\-./"
             ":;<=>?@\\\\[\\\\\\\\\\\\]^_\x01{|}~][A-Za-z]+|[^\\r\\n\\\\p{L}\\\\p{P}\\\\p{S}]?[\\\\p{L}\\\\p{M}]+|"
             " ?[\\\\p{P}\\\\p{S}]+[\\r\\n]*|\\\\s*[\\r\\n]+|\\\\s+(?!\\\\S)|\\\\s+") BYTES,
         "deepseek-v3"},
        {SPLIT("[\\r\\n]") SPLIT("\\\\s?\\\\p{L}+") SPLIT("\\\\s?\\\\p{P}+") SPLIT("[一-龥\u0800-一가-\ud7ff]+")
             DIGITS BYTES,
         "deepseek-coder"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text =
            xasprintf("{`pre_tokenizer`: {`type`: `Sequence`, `pretokenizers`: [%s]}, `model`: {`type`: `BPE`, "
                      "`vocab`: {`a`: 0, `b`: 1, `ab`: 2}, `merges`: [`a b`]}}",
                      cases[i].parts);
        struct huggingface_opened o = open_json(text);
        if (!o.t) fail_msg("%s: %s", cases[i].pre, o.status.text);
        check_string(&o, KEY("pre"), cases[i].pre);
        assert_null(strstr(tokenizer_pre_name(o.t), "default"));  // the pre-tokenizer for unknown names
        assert_int_equal(number_of(&o, KEY("add_bos_token")), 0); // no post-processor adds it
        huggingface_opened_close(&o);
        free(text);
    }
}

static void added_tokens_strip_white_space(void **state) {
    (void)state;
    struct huggingface_opened o =
        open_json("{`pre_tokenizer`: " HUGGINGFACE_GPT2
                  ", `added_tokens`: [{`id`: 5, `content`: `<l>`, `special`: true, `lstrip`: true}, "
                  "{`id`: 6, `content`: `<r>`, `special`: true, `rstrip`: true}, {`id`: 7, `content`: `<n>`, "
                  "`special`: true}], `model`: "
                  "{`type`: `BPE`, `vocab`: {`a`: 0, `Ġ`: 1, `Ġa`: 2, `Ċ`: 3}, `merges`: [`Ġ a`]}}");
    CHECK_IDS(&o, "a <l> a", 0, 5, 2);
    CHECK_IDS(&o, "a \n<r> \n a", 0, 1, 3, 6, 0);
    CHECK_IDS(&o, "a <n> a", 0, 1, 7, 2);
    CHECK_IDS(&o, " \n <l><r>  ", 5, 6);
    const struct tokenizer_part parts[] = {{"a \n", 3, false}, {"<l><r>", 6, true}, {" a", 2, false}};
    struct token_list ids = {0};
    tokenizer_encode_parts(o.t, parts, 3, false, &ids);
    assert_int_equal(ids.count, 4);
    assert_memory_equal(ids.ids, ((int32_t[]){0, 5, 6, 0}), 4 * sizeof(int32_t));
    free(ids.ids);
    huggingface_opened_close(&o);
}

// ---- other models ----

static void sentencepiece_merges_become_scores(void **state) {
    (void)state;
    struct huggingface_opened o = open_json(HUGGINGFACE_BYTE_FALLBACK);
    check_string(&o, KEY("model"), "llama");
    CHECK_IDS(&o, "aab", 264, 265);
    CHECK_IDS(&o, "ab", 266);           // through "▁a", the better score
    CHECK_IDS(&o, "b\n", 261, 263, 13); // a byte
    assert_true(tokenizer_adds_bos(o.t));
    assert_int_equal(tokenizer_bos(o.t), 1);
    assert_true(tokenizer_ends_generation(o.t, 2));
    assert_int_equal(element_of(&o, KEY("token_type"), 0), TOKEN_UNKNOWN);
    assert_int_equal(element_of(&o, KEY("token_type"), 3), TOKEN_BYTE);
    huggingface_opened_close(&o);
}

// Merges that lack one that the tokens would allow are not SentencePiece's: they cannot become scores.
static void other_merges_are_kept(void **state) {
    (void)state;
    static const char text[] =
        "{`normalizer`: {`type`: `Replace`, `pattern`: {`String`: ` `}, `content`: `▁`}, `pre_tokenizer`: {`type`: "
        "`Split`, "
        "`pattern`: {`String`: ` `}, `behavior`: `MergedWithPrevious`}, `model`: {`type`: `BPE`, `byte_fallback`: "
        "true, "
        "`unk_token`: `?`, `vocab`: {`?`: 0, `a`: 1, `b`: 2, `c`: 3, `ab`: 4, `bc`: 5, `abc`: 6, `▁`: 7, `▁a`: 8, "
        "`<0x21>`: 9}, `merges`: [`b c`, `▁ a`, [`a`, `b`], [`ab`, `c`]]}}";
    struct huggingface_opened o = open_json(text);
    CHECK_IDS(&o, "abc", 1, 5); // "a" + "bc" make "abc" by score, but there is no such merge
    CHECK_IDS(&o, "ab a!", 4, 8, 9);
    huggingface_opened_close(&o);
}

static void a_space_is_added_where_the_file_says(void **state) {
    (void)state;
    static const struct {
        const char *normalizer, *pre_tokenizer;
        int32_t plain[4], spaced[4], after_special[4]; // of "b", " b" and "<s> b", up to −1
    } cases[] = {
        {"{`type`: `Sequence`, `normalizers`: [{`type`: `Prepend`, `prepend`: `▁`}, {`type`: `Replace`, `pattern`: "
         "{`String`: ` `}, `content`: `▁`}]}",
         "null",
         {4, -1},
         {2, 4, -1},
         {1, 2, 4, -1}},
        {"{`type`: `Replace`, `pattern`: {`String`: ` `}, `content`: `▁`}", "null", {3, -1}, {4, -1}, {1, 4, -1}},
        {"null",
         "{`type`: `Metaspace`, `replacement`: `▁`, `prepend_scheme`: `always`, `split`: false}",
         {4, -1},
         {4, -1},
         {1, 4, -1}},
        {"null",
         "{`type`: `Metaspace`, `replacement`: `▁`, `prepend_scheme`: `first`, `split`: false}",
         {4, -1},
         {4, -1},
         {1, 4, -1}},
        {"null", "{`type`: `Metaspace`, `replacement`: `▁`, `prepend_scheme`: `never`}", {3, -1}, {4, -1}, {1, 4, -1}},
        {"null", "{`type`: `Metaspace`, `replacement`: `▁`, `add_prefix_space`: true}", {4, -1}, {4, -1}, {1, 4, -1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = xasprintf(
            "{`normalizer`: %s, `pre_tokenizer`: %s, `added_tokens`: [{`id`: 1, `content`: `<s>`, `special`: true}], "
            "`model`: {`type`: `BPE`, `byte_fallback`: true, `unk_token`: `?`, `vocab`: {`?`: 0, `<s>`: 1, "
            "`▁`: 2, `b`: 3, `▁b`: 4}, `merges`: [`▁ b`]}}",
            cases[i].normalizer, cases[i].pre_tokenizer);
        struct huggingface_opened o = open_json(text);
        const struct {
            const char *text;
            const int32_t *ids;
        } checks[] = {{"b", cases[i].plain}, {" b", cases[i].spaced}, {"<s> b", cases[i].after_special}};
        for (size_t k = 0; k < 3; k++) {
            size_t n = 0;
            while (checks[k].ids[n] >= 0) n++;
            check_ids(&o, checks[k].text, checks[k].ids, n);
        }
        // A space is added to the first text only, or to each.
        if (i == 3) CHECK_IDS(&o, "<s>b", 1, 3);
        if (i == 2) CHECK_IDS(&o, "<s>b", 1, 4);
        huggingface_opened_close(&o);
        free(text);
    }
}

static void unigram_gives_its_ids(void **state) {
    (void)state;
    struct huggingface_opened o = open_json(HUGGINGFACE_UNIGRAM);
    check_string(&o, KEY("model"), "t5");
    CHECK_IDS(&o, "ab", 5, 4);
    CHECK_IDS(&o, "a  b</s>", 5, 6, 1); // spaces become one
    assert_int_equal(tokenizer_closing(o.t), 1);
    assert_false(tokenizer_adds_bos(o.t));
    const struct gguf_pair *map = gguf_find(&o.file, KEY("precompiled_charsmap"));
    assert_null(map);
    huggingface_opened_close(&o);
}

static void wordpiece_gives_its_ids(void **state) {
    (void)state;
    struct huggingface_opened o = open_json(HUGGINGFACE_WORD_PIECE);
    check_string(&o, KEY("model"), "bert");
    CHECK_IDS(&o, "Hello, HELLOO", 4, 7, 4, 5);
    CHECK_IDS(&o, "[CLS]xyz", 1, 3);
    assert_true(tokenizer_adds_bos(o.t));
    assert_int_equal(tokenizer_bos(o.t), 1);
    assert_int_equal(tokenizer_closing(o.t), 2);
    huggingface_opened_close(&o);
}

// ---- other files of the folder ----

static void settings_come_from_all_files(void **state) {
    (void)state;
    struct folder f = {0};
    put(&f, HUGGINGFACE_TOKENIZER, HUGGINGFACE_BYTE_LEVEL);
    put(&f, HUGGINGFACE_TOKENIZER_CONFIG,
        "{`bos_token`: {`content`: `<end>`, `lstrip`: false}, `eos_token`: `a`, `add_bos_token`: true, "
        "`model_max_length`: 1000000000000000019884624838656, `added_tokens_decoder`: {`15`: {`content`: `<more>`, "
        "`special`: true}}, `chat_template`: [{`name`: `tools`, `template`: `T`}, {`name`: `default`, `template`: "
        "`D`}]}");
    put(&f, HUGGINGFACE_SPECIAL_TOKENS, "{`eos_token`: `b`, `pad_token`: `c`, `additional_special_tokens`: [`{`]}");
    put(&f, HUGGINGFACE_ADDED_TOKENS, "{`<end>`: 12, `<new>`: 16}");
    put(&f, HUGGINGFACE_CONFIG, "{`vocab_size`: 20, `unk_token_id`: 9}");
    put(&f, HUGGINGFACE_GENERATION_CONFIG, "{`eos_token_id`: [12, 0, 15, 16]}");
    struct huggingface_opened o = open_folder(&f);
    assert_non_null(o.t);
    assert_int_equal(tokenizer_bos(o.t), 12);
    assert_int_equal(tokenizer_eos(o.t), 0);
    assert_true(tokenizer_adds_bos(o.t));
    assert_int_equal(number_of(&o, KEY("padding_token_id")), 2);
    assert_int_equal(number_of(&o, KEY("unknown_token_id")), 9);
    assert_true(tokenizer_ends_generation(o.t, 12) && tokenizer_ends_generation(o.t, 15));
    assert_false(tokenizer_ends_generation(o.t, 16)); // no key left for it
    assert_int_equal(tokenizer_count(o.t), 20);
    assert_int_equal(element_of(&o, KEY("token_type"), 13), TOKEN_CONTROL); // from special_tokens_map.json
    assert_int_equal(element_of(&o, KEY("token_type"), 14), TOKEN_UNUSED);
    assert_int_equal(element_of(&o, KEY("token_type"), 16), TOKEN_USER_DEFINED);
    assert_int_equal(element_of(&o, KEY("token_type"), 19), TOKEN_UNUSED);
    check_string(&o, "tokenizer.chat_template", "D");
    huggingface_opened_close(&o);
}

static void chat_templates_come_from_all_files(void **state) {
    (void)state;
    static const struct {
        enum huggingface_file file;
        const char *text, *template;
    } cases[] = {{HUGGINGFACE_TOKENIZER_CONFIG, "{`chat_template`: `one`}", "one"},
                 {HUGGINGFACE_CHAT_TEMPLATE_JSON, "{`chat_template`: `two`}", "two"},
                 {HUGGINGFACE_CHAT_TEMPLATE, "three", "three"}};
    struct folder f = {0};
    for (size_t i = 0; i < 3; i++) { // in ascending precedence
        put(&f, HUGGINGFACE_TOKENIZER, HUGGINGFACE_BYTE_LEVEL);
        for (size_t k = 0; k <= i; k++) put(&f, cases[k].file, cases[k].text);
        struct huggingface_opened o = open_folder(&f);
        check_string(&o, "tokenizer.chat_template", cases[i].template);
        huggingface_opened_close(&o);
    }
}

static void vocab_json_and_merges_txt_are_read(void **state) {
    (void)state;
    struct folder f = {0};
    put(&f, HUGGINGFACE_VOCABULARY, "{`a`: 0, `b`: 1, `ab`: 2, `Ġ`: 3, `<|endoftext|>`: 4}");
    put(&f, HUGGINGFACE_MERGES, "#version: 0.2\na b\n");
    put(&f, HUGGINGFACE_SPECIAL_TOKENS, "{`eos_token`: `<|endoftext|>`}");
    struct huggingface_opened o = open_folder(&f);
    CHECK_IDS(&o, "ab a<|endoftext|>", 2, 3, 0, 4);
    check_string(&o, KEY("pre"), "gpt-2");
    huggingface_opened_close(&o);
    put(&f, HUGGINGFACE_VOCABULARY, "{`a`: 0}");
    put(&f, HUGGINGFACE_MERGES, "");
    put(&f, HUGGINGFACE_TOKENIZER_CONFIG, "{`tokenizer_class`: `OddTokenizer`}");
    o = open_folder(&f);
    assert_string_equal(o.status.text,
                        "folder/tokenizer_config.json: tokenizer_class: 'OddTokenizer' is supported only with a "
                        "tokenizer.json");
}

// A folder on disk.
static void a_folder_on_disk_is_read(void **state) {
    (void)state;
    char folder[] = "/tmp/confab-test-XXXXXX";
    assert_non_null(mkdtemp(folder));
    char *path = xasprintf("%s/tokenizer.json", folder), *text = huggingface_quoted(HUGGINGFACE_BYTE_LEVEL);
    struct gguf g;
    struct status st = {0};
    gguf_begin(&g, folder);
    assert_false(huggingface_tokenizer_add(&g, folder, &st));
    assert_non_null(strstr(st.text, "no tokenizer (expected tokenizer.json, tokenizer.model or vocab.json)"));
    FILE *file = fopen(path, "w");
    assert_true(file && fputs(text, file) >= 0 && fclose(file) == 0);
    assert_true(huggingface_tokenizer_add(&g, folder, &st));
    assert_true(gguf_finish(&g, &st));
    struct tokenizer *t = tokenizer_open(&g, &st);
    assert_int_equal(tokenizer_count(t), 14);
    tokenizer_close(t);
    gguf_close(&g);
    unlink(path);
    rmdir(folder);
    free(path);
    free(text);
}

// ---- invalid and unsupported tokenizers ----

static void invalid_and_unsupported_files_are_rejected(void **state) {
    (void)state;
#define MODEL      "`model`: {`type`: `BPE`, `vocab`: {`a`: 0, `b`: 1, `ab`: 2}, `merges`: [`a b`]}"
#define BYTE_MODEL "`pre_tokenizer`: " HUGGINGFACE_GPT2 ", `model`: "
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "tokenizer.json: invalid JSON: line 1"},
        {"[]", "tokenizer.json: not a JSON object"},
        {"{}", "tokenizer.json: model: expected an object"},
        {"{`model`: {`type`: `WordLevel`}}", "model: unsupported type 'WordLevel'"},
        {"{`normalizer`: {`type`: `NFKC`}, " MODEL "}", "normalizer: unsupported type 'NFKC'"},
        {"{`normalizer`: {}, " MODEL "}", "normalizer: missing type"},
        {"{`pre_tokenizer`: {`type`: `ByteLevel`, `add_prefix_space`: true}, " MODEL "}",
         "pre_tokenizer: ByteLevel: add_prefix_space: true is not supported"},
        {"{`pre_tokenizer`: {`type`: `Sequence`, `pretokenizers`: [{`type`: `Split`, `pattern`: {`Regex`: `x+y`}, "
         "`behavior`: `Isolated`}, {`type`: `ByteLevel`, `use_regex`: false}]}, " MODEL "}",
         "pre_tokenizer: unsupported splits (1, the first by x+y)"},
        {"{`pre_tokenizer`: {`type`: `Split`, `pattern`: {`Regex`: `x`}, `behavior`: `Removed`}, " MODEL "}",
         "pre_tokenizer: Split: behavior: 'Removed' is not supported"},
        {"{" MODEL "}", "model: BPE without ByteLevel or byte_fallback"},
        {"{" BYTE_MODEL "{`type`: `BPE`, `dropout`: 0.1, `vocab`: {`a`: 0}, `merges`: []}}",
         "model: dropout: not supported"},
        {"{" BYTE_MODEL "{`type`: `BPE`, `end_of_word_suffix`: `</w>`, `vocab`: {`a`: 0}, `merges`: []}}",
         "model: end_of_word_suffix: not supported"},
        {"{" BYTE_MODEL "{`type`: `BPE`, `vocab`: {}, `merges`: []}}", "model: vocab: expected an object"},
        {"{" BYTE_MODEL "{`type`: `BPE`, `vocab`: {`a`: 0, `b`: 0}, `merges`: []}}",
         "model: vocab: tokens 'a' and 'b' have the same id 0"},
        {"{" BYTE_MODEL "{`type`: `BPE`, `vocab`: {`a`: -1}, `merges`: []}}", "token 'a': id -1 is out of range"},
        {"{" BYTE_MODEL "{`type`: `BPE`, `vocab`: {`a`: 4000000000000}, `merges`: []}}",
         "id 4000000000000 is out of range"},
        {"{" BYTE_MODEL "{`type`: `BPE`, `vocab`: {`a`: 99999999999999999999}, `merges`: []}}", "too big integer"},
        {"{" BYTE_MODEL "{`type`: `BPE`, `vocab`: {`a`: `b`}, `merges`: []}}", "'a': id is not an integer"},
        {"{" BYTE_MODEL "{`type`: `BPE`, `vocab`: {`a`: 0}, `merges`: {}}}", "model: merges: expected a list"},
        {"{" BYTE_MODEL "{`type`: `BPE`, `vocab`: {`a`: 0}, `merges`: [`aa`]}}",
         "merges: merge 0: 'aa' does not have two parts"},
        {"{" BYTE_MODEL "{`type`: `BPE`, `vocab`: {`a`: 0}, `merges`: [[`a b`, `c`]]}}",
         "'a b c' has a space in one of its parts"},
        {"{" BYTE_MODEL "{`type`: `BPE`, `vocab`: {`a`: 0}, `merges`: [[`a`]]}}",
         "expected a string or a pair of strings"},
        {"{`post_processor`: {`type`: `TemplateProcessing`, `single`: [{`SpecialToken`: {`id`: `a`}}, {`SpecialToken`: "
         "{`id`: "
         "`a`}}], `special_tokens`: {`a`: {`ids`: [0]}}}, " MODEL "}",
         "post_processor: TemplateProcessing: single: too many special tokens: 2 before the text"},
        {"{`added_tokens`: [{`id`: 0, `content`: `x`}], " BYTE_MODEL
         "{`type`: `BPE`, `vocab`: {`a`: 0}, `merges`: []}}",
         "added_tokens: tokens 'a' and 'x' have the same id 0"},
        {"{`added_tokens`: [{`id`: 0}], " BYTE_MODEL "{`type`: `BPE`, `vocab`: {`a`: 0}, `merges`: []}}",
         "added_tokens: token 0: missing id or content"},
        {"{`normalizer`: {`type`: `Precompiled`, `precompiled_charsmap`: `ab!d`}, `model`: {`type`: `Unigram`, "
         "`vocab`: [[`a`, 0]]}}",
         "precompiled_charsmap: invalid base64 at byte 2"},
        {"{`model`: {`type`: `Unigram`, `vocab`: [[`a`, 0]]}}", "model: Unigram without a Metaspace pre-tokenizer"},
        {"{`pre_tokenizer`: {`type`: `Metaspace`, `replacement`: `▁`}, `model`: {`type`: `Unigram`, `unk_id`: 7, "
         "`vocab`: [[`a`, 0]]}}",
         "unk_id: no such token"},
        {"{`pre_tokenizer`: {`type`: `Metaspace`, `replacement`: `▁`}, `model`: {`type`: `Unigram`, `vocab`: [[`a`, "
         "1e300]]}}",
         "vocab: element 0 is not a token with a score"},
        {"{`model`: {`type`: `WordPiece`, `vocab`: {`a`: 0}}}", "model: WordPiece without a BertPreTokenizer"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct huggingface_opened o = open_json(cases[i].text);
        if (o.t || !strstr(o.status.text, cases[i].words) || strncmp(o.status.text, "folder/tokenizer.json: ", 23))
            fail_msg("%s\ngives: %s\nexpected: %s", cases[i].text, o.status.text, cases[i].words);
    }
}

static void check_rejected(char *text, size_t size, const char *words) {
    struct huggingface_texts texts = {.folder = "folder"};
    texts.files[HUGGINGFACE_TOKENIZER] = (struct span){text, size};
    struct huggingface_opened o = huggingface_open_texts(&texts);
    assert_null(o.t);
    assert_non_null(strstr(o.status.text, words));
    free(text);
}

static void sizes_are_limited(void **state) {
    (void)state;
    // Deeply nested lists.
    enum { DEPTH = 1000000, LONG = 100 << 20 };
    char *deep = xmalloc(DEPTH);
    memset(deep, '[', DEPTH);
    check_rejected(deep, DEPTH, "maximum parsing depth");
    // Too many values.
    enum { VALUES = 9 << 20 };
    char *many = xmalloc(2 * VALUES);
    for (size_t i = 0; i < VALUES; i++) memcpy(many + 2 * i, i ? "0," : " [", 2);
    check_rejected(many, 2 * VALUES, "tokenizer.json: too many JSON values (maximum 8388608)");
    // A regular expression that is too long.
    char *expression = xmalloc(20001);
    memset(expression, 'x', 20000);
    expression[20000] = 0;
    char *split = xasprintf(
             "{`pre_tokenizer`: {`type`: `Split`, `behavior`: `Isolated`, `pattern`: {`Regex`: `%s`}}, " MODEL "}",
             expression),
         *split_text = huggingface_quoted(split);
    check_rejected(split_text, strlen(split_text),
                   "pre_tokenizer: Split: regex of 20000 bytes is too long (maximum 16384)");
    free(split);
    free(expression);
    // Deeply nested sequences.
    char *nested = xstrdup("{`type`: `Sequence`, `normalizers`: []}");
    for (int i = 0; i < 8; i++) {
        char *outer = xasprintf("{`type`: `Sequence`, `normalizers`: [%s]}", nested);
        free(nested);
        nested = outer;
    }
    char *whole = xasprintf("{`normalizer`: %s, " MODEL "}", nested), *text = huggingface_quoted(whole);
    check_rejected(text, strlen(text), "normalizer: sequences are nested too deep (maximum 4)");
    free(nested);
    free(whole);
    // A token of 100 MiB.
    static const char front[] =
        "{\"pre_tokenizer\": {\"type\": \"ByteLevel\"}, \"model\": {\"merges\": [], \"vocab\": {\"",
                      back[] = "\": 0}}}";
    char *large = xmalloc(sizeof front + LONG + sizeof back);
    memcpy(large, front, sizeof front - 1);
    memset(large + sizeof front - 1, 'a', LONG);
    memcpy(large + sizeof front - 1 + LONG, back, sizeof back);
    check_rejected(large, strlen(large), "model: vocab: token 0: 104857600 bytes are too long");
    // Far more ids than tokens.
    struct folder f = {0};
    put(&f, HUGGINGFACE_TOKENIZER, HUGGINGFACE_BYTE_LEVEL);
    put(&f, HUGGINGFACE_CONFIG, "{`vocab_size`: 1000000000}");
    struct huggingface_opened o = open_folder(&f);
    assert_null(o.t);
    assert_non_null(strstr(o.status.text, "folder/config.json: vocab_size: 1e+09"));
}

// ---- mutations ----

// Each byte of a small file changed and removed in turn, and the file cut there.
static void every_changed_byte_is_handled(void **state) {
    (void)state;
    for (size_t k = 0; k < HUGGINGFACE_SEEDS; k++) {
        char *whole = huggingface_quoted(huggingface_seed(k));
        size_t size = strlen(whole);
        for (size_t i = 0; i < size; i++) {
            static const char others[] = "\"{[,:0-\xff";
            char *text = exact_copy(whole, size);
            text[i] = others[i % (sizeof others - 1)];
            huggingface_try(HUGGINGFACE_TOKENIZER, text, size);
            memcpy(text + i, whole + i + 1, size - i - 1);
            huggingface_try(HUGGINGFACE_TOKENIZER, text, size - 1);
            huggingface_try(HUGGINGFACE_TOKENIZER, whole, i);
            free(text);
        }
        free(whole);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(byte_level_bpe_gives_its_ids),
        cmocka_unit_test(ignore_merges_takes_whole_pieces),
        cmocka_unit_test(published_splits_have_names),
        cmocka_unit_test(added_tokens_strip_white_space),
        cmocka_unit_test(sentencepiece_merges_become_scores),
        cmocka_unit_test(other_merges_are_kept),
        cmocka_unit_test(a_space_is_added_where_the_file_says),
        cmocka_unit_test(unigram_gives_its_ids),
        cmocka_unit_test(wordpiece_gives_its_ids),
        cmocka_unit_test(settings_come_from_all_files),
        cmocka_unit_test(chat_templates_come_from_all_files),
        cmocka_unit_test(vocab_json_and_merges_txt_are_read),
        cmocka_unit_test(a_folder_on_disk_is_read),
        cmocka_unit_test(invalid_and_unsupported_files_are_rejected),
        cmocka_unit_test(sizes_are_limited),
        cmocka_unit_test(every_changed_byte_is_handled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
