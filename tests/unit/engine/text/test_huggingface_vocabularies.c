// The real vocabularies of ../shared, converted back to their published tokenizer.json and imported again.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "engine/base/panic.h"
#include "tests/unit/huggingface_seeds.h"
#include "tests/unit/huggingface_splits.h"
#include "tests/unit/opened_tokenizer.h"
#include "tests/unit/shared_files.h"

#define KEY(name) "tokenizer.ggml." name

// Settings of the published file.
struct published {
    const char *name, *pre, *normalizer, *pre_tokenizer;
    bool ignore_merges, byte_fallback, pairs;
};

static const char no_normalizer[] = "null";
static const char llama_normalizer[] = "{`type`: `Sequence`, `normalizers`: [{`type`: `Prepend`, `prepend`: `▁`}, "
                                       "{`type`: `Replace`, `pattern`: {`String`: ` `}, `content`: `▁`}]}";

static const struct published vocabularies[] = {
    {"llama-spm", "", llama_normalizer, "null", .byte_fallback = true},
    {"phi-3", "", llama_normalizer, "null", .byte_fallback = true, .pairs = true},
    {"gpt-2", "gpt-2", no_normalizer, HUGGINGFACE_GPT2, .pairs = false},
    {"llama-bpe", "llama-bpe", no_normalizer,
     "{`type`: `Sequence`, `pretokenizers`: [" SPLIT(ENDINGS "|" WORDS("{1,3}")) BYTES "]}", .ignore_merges = true},
    {"qwen2", "qwen2", "{`type`: `NFC`}",
     "{`type`: `Sequence`, `pretokenizers`: [" SPLIT(ENDINGS "|" WORDS("")) BYTES "]}", .pairs = true},
    {"o200k-harmony", "gpt-4o", no_normalizer,
     "{`type`: `Sequence`, `pretokenizers`: [" SPLIT(CASED(ENDINGS "?") "|\\\\p{N}{1,3}" PATHS) BYTES "]}",
     .pairs = true},
    {"deepseek-llm", "deepseek-llm", no_normalizer,
     "{`type`: `Sequence`, `pretokenizers`: [" SPLIT("[\\r\\n]")
         SPLIT("\\\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-"
               "Ჿᴀ-"
               "ᴫᵫ-"
               "ᵷᵹ-"
               "ᶚḀ-"
               "ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥ"
               "ῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-"
               "Ｚａ-"
               "ｚ𐐀-"
               "𐑏𐒰-"
               "𐓓𐓘-"
               "𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+") SPLIT("\\\\s?[!-/:-~！-／：-～‘-‟\u3000-。]+")
             SPLIT("\\\\s+$") SPLIT("[一-龥\u0800-一가-\ud7ff]+") DIGITS BYTES "]}",
     .pairs = false},
};

static json_t *string_of(struct span s) { return json_stringn(s.data, s.size); }

struct candidate {
    float score;
    uint32_t id; // of the merged token
    struct span left, right;
};

static int compare_candidates(const void *a, const void *b) {
    const struct candidate *p = a, *q = b;
    return p->score != q->score ? (p->score < q->score) - (p->score > q->score) : (p->id > q->id) - (p->id < q->id);
}

// All pairs of tokens that form a token, by falling score: the merges of a vocabulary with scores.
static json_t *merges_of_scores(const struct span *texts, const struct gguf_pair *scores, uint64_t n, json_t *ids) {
    struct candidate *found = NULL;
    size_t count = 0, room = 0;
    for (uint64_t id = 0; id < n; id++)
        for (size_t at = 1; at < texts[id].size; at++) {
            struct span left = {texts[id].data, at}, right = {texts[id].data + at, texts[id].size - at};
            if (!json_object_getn(ids, texts[id].data, texts[id].size) ||
                !json_object_getn(ids, left.data, left.size) || !json_object_getn(ids, right.data, right.size))
                continue;
            if (count == room) found = xrealloc(found, (room = 2 * room + 64) * sizeof *found);
            found[count++] = (struct candidate){(float)gguf_number(scores, id), (uint32_t)id, left, right};
        }
    qsort(found, count, sizeof *found, compare_candidates);
    json_t *merges = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(merges, json_pack("[o, o]", string_of(found[i].left), string_of(found[i].right)));
    free(found);
    return merges;
}

static json_t *merges_of_file(const struct gguf *g, bool pairs) {
    struct arena arena = {0};
    uint64_t n;
    const struct span *texts = gguf_get_strings(g, KEY("merges"), &arena, &n, NULL);
    json_t *merges = json_array();
    for (uint64_t i = 0; i < n; i++) {
        const char *cut = memchr(texts[i].data + 1, ' ', texts[i].size - 1);
        struct span left = {texts[i].data, (size_t)(cut - texts[i].data)},
                    right = {cut + 1, texts[i].size - left.size - 1};
        json_array_append_new(merges,
                              pairs ? json_pack("[o, o]", string_of(left), string_of(right)) : string_of(texts[i]));
    }
    arena_free(&arena);
    return merges;
}

static char *published_json(const struct gguf *g, const struct published *v) {
    struct arena arena = {0};
    uint64_t n;
    const struct span *texts = gguf_get_strings(g, KEY("tokens"), &arena, &n, NULL);
    const struct gguf_pair *types = gguf_find(g, KEY("token_type"));
    json_t *ids = json_object(), *added = json_array();
    for (uint64_t id = 0; id < n; id++) {
        int type = (int)gguf_number(types, id);
        if (type == TOKEN_NORMAL || type == TOKEN_BYTE)
            json_object_setn_new(ids, texts[id].data, texts[id].size, json_integer((json_int_t)id));
        else
            json_array_append_new(added, json_pack("{s:I, s:o, s:b}", "id", (json_int_t)id, "content",
                                                   string_of(texts[id]), "special", type != TOKEN_USER_DEFINED));
    }
    json_t *merges =
        v->byte_fallback ? merges_of_scores(texts, gguf_find(g, KEY("scores")), n, ids) : merges_of_file(g, v->pairs);
    char *normalizer = huggingface_quoted(v->normalizer), *pre_tokenizer = huggingface_quoted(v->pre_tokenizer);
    json_t *root = json_pack(
        "{s:o, s:o, s:o, s:{s:s, s:b, s:b, s:o, s:o}}", "normalizer", json_loads(normalizer, JSON_DECODE_ANY, NULL),
        "pre_tokenizer", json_loads(pre_tokenizer, JSON_DECODE_ANY, NULL), "added_tokens", added, "model", "type",
        "BPE", "ignore_merges", v->ignore_merges, "byte_fallback", v->byte_fallback, "vocab", ids, "merges", merges);
    assert_non_null(root);
    char *text = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    free(normalizer);
    free(pre_tokenizer);
    arena_free(&arena);
    return text;
}

static void check_same(const struct tokenizer *a, const struct tokenizer *b, const char *text, size_t size) {
    struct token_list p = {0}, q = {0};
    tokenizer_encode(a, text, size, true, &p);
    tokenizer_encode(b, text, size, true, &q);
    assert_int_equal(p.count, q.count);
    if (p.count) assert_memory_equal(p.ids, q.ids, p.count * sizeof *p.ids);
    free(p.ids);
    free(q.ids);
}

// Compares with the published ids, if any, and with those of the GGUF file.
static void check_texts(const struct published *v, const struct tokenizer *published,
                        const struct tokenizer *imported) {
    bool has_ids = strcmp(v->name, "o200k-harmony");
    size_t n = 0;
    const char *name = has_ids ? v->name : "llama-bpe";
    char *texts = shared_vocabulary_text(name, "inp"), *lines = shared_vocabulary_text(name, "out");
    const char *text = texts, *line = lines;
    for (const char *end; (end = strstr(text, SHARED_VOCABULARY_TEXT_END)); n++) {
        if (has_ids) line = check_line_of_ids(imported, text, (size_t)(end - text), line);
        check_same(published, imported, text, (size_t)(end - text));
        text = end + strlen(SHARED_VOCABULARY_TEXT_END);
    }
    assert_true(n > 40);
    free(texts);
    free(lines);
}

static void imported_vocabularies_give_the_same_ids(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof vocabularies / sizeof *vocabularies; i++) {
        const struct published *v = &vocabularies[i];
        char path[64];
        struct gguf g;
        struct status st = {0};
        snprintf(path, sizeof path, "vocabs/%s.gguf", v->name);
        assert_true(gguf_open(&g, shared_file(path), &st));
        struct tokenizer *published = tokenizer_open(&g, &st);
        char *text = published_json(&g, v);
        struct huggingface_texts texts = {.folder = v->name};
        texts.files[HUGGINGFACE_TOKENIZER] = (struct span){text, strlen(text)};
        struct huggingface_opened o = huggingface_open_texts(&texts);
        if (!o.t) fail_msg("%s: %s", v->name, o.status.text);
        assert_string_equal(tokenizer_model_name(o.t), v->byte_fallback ? "llama" : "gpt2");
        assert_string_equal(tokenizer_pre_name(o.t), v->pre);
        check_texts(v, published, o.t);
        huggingface_opened_close(&o);
        free(text);
        tokenizer_close(published);
        gguf_close(&g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(imported_vocabularies_give_the_same_ids)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
