// Our tokenizers against llama.cpp's, on random texts. CONFAB_PEER_STRINGS=100000 says how many for each vocabulary,
// CONFAB_PEER_ONLY=gpt-2 which vocabulary or pre-tokenizer alone.
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
#include "engine/text/character.h"
#include "engine/text/pretokenize.h"
#include "tests/peer/peer_tokenizer.h"
#include "tests/peer/random_text.h"
#include "tests/unit/gguf_writer.h"
#include "tests/unit/shared_files.h"
#include "tests/unit/tiny_vocab.h"
#include "tests/unit/tiny_vocab_parts.h"

// Where we mean to differ. The characters of a rule are taken out of a text before it is compared.
#define RANGES(...)                                                                                                    \
    &(const struct character_ranges) {                                                                                 \
        sizeof(const uint32_t[][2]){__VA_ARGS__} / sizeof(const uint32_t[2]), (const uint32_t[][2]) { __VA_ARGS__ }    \
    }
static const struct exception {
    const char *whom; // pre-tokenizers or vocabularies, comma-separated; NULL: all
    uint32_t classes;
    const struct character_ranges *ranges;
    bool broken;          // bytes that are no UTF-8
    uint32_t before;      // only directly before a character of these classes
    const char *texts[6]; // only where one of these begins
    bool plain;           // only where special tokens are not looked for
    const char *why;
} exceptions[] = {
    {NULL, .broken = true, .why = "the peer turns bytes that are no UTF-8 into U+FFFD; we keep them"},
    {NULL, .ranges = RANGES({0x2ffc, 0x2fff}, {0x31ef, 0x31ef}, {0x2ebf0, 0x2ee5d}),
     .why = "assigned in Unicode 15.1, which the peer knows and libutf8proc may not"},
    {"kimi-k2",
     .ranges = RANGES({0x2e80, 0x2fd5}, {0x3005, 0x3007}, {0x3021, 0x3029}, {0x3038, 0x303b}, {0x16fe2, 0x16ff1}),
     .why = "of the script Han, whose ideographs alone the peer counts"},
    {"gpt-4o,o200k,llama4,kanana2,talkie,minimax-m2,tekken,granite-embed-multi-97m",
     .classes = CLASS_WIDE_UPPER | CLASS_WIDE_LOWER | CLASS_MARK,
     .why = "the published expressions tell upper from lower case in all scripts and count marks as letters of either; "
            "the peer's know the case of ASCII alone, and take marks for symbols"},
    {"tiny_aya,cohere2moe,youtu", .classes = CLASS_ASCII_UPPER | CLASS_WIDE_UPPER,
     .why =
         "the published expressions tell upper from lower case; the peer's machine folds all letters into one class"},
    {"kimi-k2", .classes = CLASS_ASCII_UPPER | CLASS_WIDE_UPPER | CLASS_MARK,
     .why = "the published expression tells upper from lower case and counts marks as letters; the peer's does not"},
    {"afmoe,tiny_aya,cohere2moe", .classes = CLASSES_SPACE | CLASS_CONTROL | CLASS_UNASSIGNED, .before = CLASSES_NUMBER,
     .why = "the peer's first stage leaves what stands before a number in one piece with its first digits"},
    {"deepseek-llm,deepseek-coder",
     .ranges = RANGES({0x1680, 0x1680}, {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f},
                      {0x3000, 0x3000}),
     .why = "the peer turns white space past ASCII into a vertical tab, which its ranges of code points then lack"},
    {"bert,bert-characters", .ranges = RANGES({0xac00, 0xd7a3}),
     .why = "stripping accents decomposes a syllable of Hangul; the peer keeps the first of its letters alone"},
    {"t5,t5-prefix,t5-merged,t5-plain", .ranges = RANGES({'<', '<'}),
     .why = "where a user-defined token only begins, the peer leaves what there is of it without normalising"},
    {"vocabulary of qwen2", .ranges = RANGES({'<', '<'}), .texts = {"</s>"},
     .why = "an ordinary token of this file, though the peer takes its text for a special one"},
    {"vocabulary of harmony", .ranges = RANGES({'<', '<'}), .plain = true,
     .texts = {"<|start|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|end|>"},
     .why =
         "the peer finds harmony's control tokens in any text, so that whoever writes it can forge a message; we find "
         "them in trusted text alone"},
};

static bool is_excepted(const struct exception *e, struct character c, const char *bytes) {
    if (c.class & e->classes || (e->ranges && character_in_ranges(e->ranges, c.code))) return true;
    return e->broken && c.code == UTF8_REPLACEMENT && !(c.size == 3 && !memcmp(bytes, "\ufffd", 3));
}

static bool is_listed(const char *pres, const char *pre) {
    if (!pres) return true;
    size_t n = strlen(pre);
    for (const char *at = pres; n && (at = strstr(at, pre)); at++)
        if ((at == pres || at[-1] == ',') && (at[n] == ',' || !at[n])) return true;
    return false;
}

static bool begins_text(const struct exception *e, const char *bytes, size_t size) {
    for (const char *const *text = e->texts; *text; text++)
        if (strlen(*text) <= size && !memcmp(*text, bytes, strlen(*text))) return true;
    return !e->texts[0];
}

// c is the character at bytes[0..size), before what stays of the text; next is the class of the one after it.
static bool is_taken_out(const struct exception *e, struct character c, const char *bytes, size_t size, uint32_t next) {
    return is_excepted(e, c, bytes) && (!e->before || next & e->before) && begins_text(e, bytes, size);
}

// One vocabulary on both sides.
struct pair {
    const char *name;
    const char *pre, *vocabulary; // for the exceptions
    void *bytes;                  // of the file, where it is in memory
    struct gguf file;
    struct tokenizer *ours;
    struct peer_tokenizer *peer;
};

static bool concerns(const struct exception *e, const struct pair *p) {
    return is_listed(e->whom, p->pre) || is_listed(e->whom, p->vocabulary);
}

// From the right, so that what comes to stand before a character is looked at too. Returns where in `out` it begins.
static size_t take_out(const struct pair *p, bool parse_special, const struct random_text *r, char *out) {
    size_t starts[RANDOM_TEXT_MOST], count = 0, at = 0, from = RANDOM_TEXT_MOST;
    uint32_t next = 0;
    for (; at < r->size; at += character_at(r->text, r->size, at).size) starts[count++] = at;
    while (count-- > 0) {
        struct character c = character_at(r->text, r->size, starts[count]);
        bool stays = true;
        memcpy(out + (from -= c.size), r->text + starts[count], c.size);
        for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions && stays; i++)
            stays = !concerns(&exceptions[i], p) || (exceptions[i].plain && parse_special) ||
                    !is_taken_out(&exceptions[i], c, out + from, RANDOM_TEXT_MOST - from, next);
        if (stays) next = c.class;
        else from += c.size;
    }
    return from;
}

static void print_escaped(const char *text, size_t size) {
    for (size_t at = 0; at < size;) {
        struct character c = character_at(text, size, at);
        if (c.code >= ' ' && c.code < 0x7f) fprintf(stderr, "%c", (int)c.code);
        else fprintf(stderr, "{%x}", (unsigned)c.code);
        at += c.size;
    }
    fputc('\n', stderr);
}

static void print_ids(const struct pair *p, const char *whose, const struct token_list *ids, size_t from) {
    fprintf(stderr, "%s:", whose);
    for (size_t i = from; i < ids->count && i < from + 12; i++) {
        struct span piece = tokenizer_piece(p->ours, ids->ids[i], true);
        fprintf(stderr, " %d\"%.*s\"", ids->ids[i], (int)piece.size, piece.data);
    }
    fputc('\n', stderr);
}

// Whether both give the same ids; says so if not.
static bool agrees(const struct pair *p, const char *text, size_t size, bool parse_special) {
    struct token_list ours = {0}, peers = {0};
    tokenizer_encode(p->ours, text, size, parse_special, &ours);
    peers.ids = peer_encode(p->peer, text, size, parse_special, false, &peers.count);
    size_t same = 0;
    while (same < ours.count && same < peers.count && ours.ids[same] == peers.ids[same]) same++;
    bool equal = same == ours.count && same == peers.count;
    if (!equal) {
        fprintf(stderr, "%s%s: ", p->name, parse_special ? " with special tokens" : "");
        print_escaped(text, size);
        size_t from = same > 2 ? same - 2 : 0;
        print_ids(p, "  ours", &ours, from);
        print_ids(p, "  peer", &peers, from);
    }
    free(ours.ids);
    free(peers.ids);
    return equal;
}

// Files of deepseek-llm have tokens of the texts "þ", "ÿ" and their like, which are also how the alphabet of bytes
// spells bytes that are never part of UTF-8: such a byte comes back as that character.
static size_t take_out_bytes(const struct pair *p, struct random_text *r) {
    size_t n = 0;
    bool ambiguous = !strcmp(p->name, "deepseek-llm");
    for (size_t i = 0; i < r->size; i++) {
        uint8_t byte = (uint8_t)r->text[i];
        if (!ambiguous || (byte != 0xc0 && byte != 0xc1 && byte < 0xf5)) r->text[n++] = r->text[i];
    }
    return n;
}

static bool comes_back(const struct pair *p, const char *text, size_t size, bool parse_special) {
    struct token_list ids = {0};
    tokenizer_encode(p->ours, text, size, parse_special, &ids);
    size_t n;
    char *back = tokenizer_decode(p->ours, ids.ids, ids.count, true, &n);
    bool equal = n == size && !memcmp(back, text, size);
    if (!equal) {
        fprintf(stderr, "%s: does not come back: ", p->name);
        print_escaped(text, size);
        print_escaped(back, n);
    }
    free(back);
    free(ids.ids);
    return equal;
}

static size_t wanted_strings(size_t otherwise) {
    const char *wanted = getenv("CONFAB_PEER_STRINGS");
    return wanted ? strtoul(wanted, NULL, 10) : otherwise;
}

static bool is_wanted(const char *name) {
    const char *only = getenv("CONFAB_PEER_ONLY");
    return !only || is_listed(only, name);
}

// All code points of the planes in use, sixteen at a time, each between letters, and in a row.
static size_t compare_every_character(const struct pair *p) {
    static struct random_text r;
    static char text[RANDOM_TEXT_MOST];
    size_t different = 0;
    for (uint32_t first = 0; first < 0x33000 && different < 10; first += 16) {
        r.size = 0;
        for (uint32_t i = 0; i < 32; i++) {
            r.size += utf8_encode(first + i % 16, r.text + r.size);
            if (i < 16) r.text[r.size++] = "a A1"[i % 4];
        }
        size_t from = take_out(p, false, &r, text);
        different += !agrees(p, text + from, sizeof text - from, false);
    }
    return different;
}

static void compare(const struct pair *p, size_t strings) {
    static struct random_text r;
    static char text[RANDOM_TEXT_MOST];
    bool byte_level = !strcmp(tokenizer_model_name(p->ours), "gpt2");
    size_t different = 0;
    r.state = 88172645463325252u;
    for (size_t i = 0; i < strings && different < 10; i++) {
        random_text_next(&r, p->ours);
        bool parse_special = random_below(&r, 2);
        size_t from = take_out(p, parse_special, &r, text);
        different += !agrees(p, text + from, sizeof text - from, parse_special) ||
                     (byte_level && !comes_back(p, r.text, take_out_bytes(p, &r), parse_special));
    }
    if (getenv("CONFAB_PEER_STRINGS")) different += compare_every_character(p);
    if (different) fail_msg("%s: %zu texts differ", p->name, different);
    if (getenv("CONFAB_PEER_STRINGS")) print_message("%s: %zu texts agree\n", p->name, strings);
}

static void close_pair(struct pair *p) {
    tokenizer_close(p->ours);
    gguf_close(&p->file);
    free(p->bytes);
    if (p->peer) peer_close(p->peer);
}

static void test_vocabularies(void **state) {
    (void)state;
    static const char *const names[][3] = {{"llama-spm", "", ""},
                                           {"phi-3", "", ""},
                                           {"llama-bpe", "llama-bpe", ""},
                                           {"qwen2", "qwen2", "vocabulary of qwen2"},
                                           {"gpt-2", "gpt-2", ""},
                                           {"o200k-harmony", "gpt-4o", "vocabulary of harmony"},
                                           {"deepseek-llm", "deepseek-llm", ""}};
    peer_needed();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!is_wanted(names[i][0])) continue;
        char path[64];
        snprintf(path, sizeof path, "vocabs/%s.gguf", names[i][0]);
        struct pair p = {.name = names[i][0], .pre = names[i][1], .vocabulary = names[i][2]};
        struct status st = {0};
        assert_true(gguf_open(&p.file, shared_file(path), &st));
        p.ours = tokenizer_open(&p.file, &st);
        p.peer = peer_open(shared_file(path), NULL);
        assert_non_null(p.ours);
        assert_non_null(p.peer);
        compare(&p, wanted_strings(200));
        close_pair(&p);
    }
}

static void copy_strings(struct gguf_writer *w, const struct gguf *from, const char *key) {
    struct arena arena = {0};
    struct bytes list = {0};
    struct status st;
    uint64_t count;
    const struct span *texts = gguf_get_strings(from, key, &arena, &count, &st);
    assert_non_null(texts);
    for (uint64_t i = 0; i < count; i++) {
        bytes_u64(&list, texts[i].size);
        bytes_put(&list, texts[i].data, texts[i].size);
    }
    gguf_writer_array(w, key, GGUF_STRING, count, list.data, list.size);
    free(list.data);
    arena_free(&arena);
}

// The tokenizer of a byte-level file with another pre-tokenizer.
static void open_with_pre(struct pair *p, const char *path) {
    static const char types[] = "tokenizer.ggml.token_type";
    struct gguf base;
    struct gguf_writer w = {0};
    struct status st = {0};
    size_t size;
    assert_true(gguf_open(&base, path, &st));
    const struct gguf_pair *pair = gguf_find(&base, types);
    copy_strings(&w, &base, "tokenizer.ggml.tokens");
    copy_strings(&w, &base, "tokenizer.ggml.merges");
    gguf_writer_array(&w, types, pair->element, pair->count, pair->data, pair->size);
    gguf_writer_string(&w, "tokenizer.ggml.model", "gpt2");
    gguf_writer_string(&w, "tokenizer.ggml.pre", p->pre);
    gguf_close(&base);
    p->bytes = gguf_writer_finish(&w, &size);
    assert_true(gguf_open_memory(&p->file, path, p->bytes, size, &st));
    p->ours = tokenizer_open(&p->file, &st);
    assert_non_null(p->ours);
    p->peer = peer_open(path, p->pre);
}

// Each pre-tokenizer and alias over a vocabulary that has merges of many scripts.
static void test_pretokenizers(void **state) {
    (void)state;
    peer_needed();
    const struct pretokenizer *pre;
    for (size_t i = 0; (pre = pretokenizer_at(i)); i++) {
        for (const char *const *name = pre->names; *name; name++) {
            struct pair p = {.name = *name, .pre = *name, .vocabulary = "vocabulary of qwen2"};
            bool is_alias = name != pre->names; // of which the short run trusts that they are
            if (!is_wanted(*name) || pre->raw || (is_alias && !getenv("CONFAB_PEER_STRINGS"))) continue;
            open_with_pre(&p, shared_file("vocabs/qwen2.gguf"));
            if (p.peer) compare(&p, is_alias ? 20 : wanted_strings(50));
            else print_message("the peer does not know \"%s\"\n", *name);
            close_pair(&p);
        }
    }
}

// Small vocabularies of the families that no file in ../shared has, with the keys that change them.

static void write_file(const char *path, const void *bytes, size_t size) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

// What begins and ends a text.
static void check_whole(const struct pair *p) {
    static const char text[] = "Hello world";
    struct token_list ours = {0};
    size_t count;
    int32_t *peers = peer_encode(p->peer, text, sizeof text - 1, false, true, &count);
    if (tokenizer_adds_bos(p->ours)) token_list_push(&ours, tokenizer_bos(p->ours));
    tokenizer_encode(p->ours, text, sizeof text - 1, false, &ours);
    if (tokenizer_closing(p->ours) >= 0) token_list_push(&ours, tokenizer_closing(p->ours));
    assert_int_equal(ours.count, count);
    assert_memory_equal(ours.ids, peers, count * sizeof *peers);
    free(ours.ids);
    free(peers);
}

static void compare_small(const char *name, struct gguf_writer *w) {
    char path[] = "/tmp/confab-vocabulary-XXXXXX";
    size_t size;
    struct pair p = {.name = name, .pre = name, .vocabulary = ""};
    struct status st = {0};
    gguf_writer_string(w, "general.architecture", "llama");
    p.bytes = gguf_writer_finish(w, &size);
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    write_file(path, p.bytes, size);
    p.peer = peer_open(path, NULL);
    unlink(path);
    assert_true(gguf_open_memory(&p.file, name, p.bytes, size, &st));
    p.ours = tokenizer_open(&p.file, &st);
    assert_non_null(p.ours);
    assert_non_null(p.peer);
    check_whole(&p);
    compare(&p, wanted_strings(500));
    close_pair(&p);
}

// A token for every character, at the beginning of a word and within: the ids show what a text is normalised to.
static int write_characters(struct gguf_writer *w) {
    struct tiny_vocab v = {0};
    const char *const specials[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    for (int i = 0; i < 5; i++) tiny_vocab_add(&v, specials[i], 0, TOKEN_CONTROL);
    for (uint32_t code = 1; code < 0x30000; code++) {
        char text[8] = "▁";
        if (code == 0x2581 || (code >= 0xd800 && code < 0xe000)) continue;
        text[3 + utf8_encode(code, text + 3)] = 0;
        tiny_vocab_add(&v, text, 0, TOKEN_NORMAL);
        tiny_vocab_add(&v, text + 3, 0, TOKEN_NORMAL);
    }
    gguf_writer_string(w, "tokenizer.ggml.model", "bert");
    gguf_writer_u32(w, "tokenizer.ggml.unknown_token_id", 1);
    gguf_writer_u32(w, "tokenizer.ggml.bos_token_id", 2);
    gguf_writer_u32(w, "tokenizer.ggml.seperator_token_id", 3);
    return tiny_vocab_write(&v, w, false);
}

static void test_small_vocabularies(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int (*write)(struct gguf_writer *w);
        const char *keys[3]; // whose value is `value`
        bool value;
    } cases[] = {
        {"gemma4", tiny_vocab_gemma, {NULL}, false},
        {"bert", tiny_vocab_wordpiece, {NULL}, false},
        {"bert-cased", tiny_vocab_wordpiece, {"normalizer.lowercase"}, false},
        {"bert-accents", tiny_vocab_wordpiece, {"normalizer.strip_accents"}, false},
        {"bert-characters", write_characters, {NULL}, false},
        {"bert-cased-characters", write_characters, {"normalizer.lowercase"}, false},
        {"t5", tiny_vocab_unigram, {"add_space_prefix", "remove_extra_whitespaces"}, true},
        {"t5-prefix", tiny_vocab_unigram, {"add_space_prefix"}, true},
        {"t5-merged", tiny_vocab_unigram, {"remove_extra_whitespaces"}, true},
        {"t5-plain", tiny_vocab_unigram, {"add_eos_token"}, false},
    };
    peer_needed();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gguf_writer w = {0};
        if (!is_wanted(cases[i].name)) continue;
        cases[i].write(&w);
        for (const char *const *key = cases[i].keys; *key; key++) {
            char name[64];
            snprintf(name, sizeof name, "tokenizer.ggml.%s", *key);
            gguf_writer_bool(&w, name, cases[i].value);
        }
        compare_small(cases[i].name, &w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vocabularies),
        cmocka_unit_test(test_pretokenizers),
        cmocka_unit_test(test_small_vocabularies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
