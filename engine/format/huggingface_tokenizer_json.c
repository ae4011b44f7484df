// tokenizer.json: the model, its vocabulary and the added tokens; also vocab.json and merges.txt of older folders.
#include <math.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/format/huggingface_tokenizer_parts.h"

struct span token_import_string(const json_t *object, const char *member) {
    const json_t *s = json_object_get(object, member);
    return json_is_string(s) ? (struct span){json_string_value(s), json_string_length(s)} : (struct span){0};
}

bool token_import_is(const json_t *object, const char *member, const char *text) {
    struct span s = token_import_string(object, member);
    return s.data && span_equals(s, text);
}

bool token_import_bool(const json_t *object, const char *member, bool missing) {
    const json_t *value = json_object_get(object, member);
    return json_is_boolean(value) ? json_is_true(value) : missing;
}

struct span token_import_text(const json_t *token) {
    if (json_is_string(token)) return (struct span){json_string_value(token), json_string_length(token)};
    return token_import_string(token, "content");
}

// {"text": id, …} to tokens.
static bool read_vocabulary(struct token_import *t, const json_t *vocabulary, bool byte_fallback, struct status *st) {
    const char *text;
    size_t size;
    json_t *id;
    if (!json_is_object(vocabulary) || json_object_size(vocabulary) == 0)
        return status_fail(st, STATUS_FORMAT, "vocab: expected an object of tokens and ids");
    token_import_expect(t, json_object_size(vocabulary));
    json_object_keylen_foreach((json_t *)vocabulary, text, size, id) {
        struct span s = {text, size};
        if (!json_is_integer(id))
            return status_fail(st, STATUS_FORMAT, "vocab: '%.*s': id is not an integer", token_import_shown(s), text);
        int32_t type = byte_fallback && token_byte(s) >= 0 ? TOKEN_BYTE : TOKEN_NORMAL;
        if (!token_import_put(t, json_integer_value(id), (struct token_import_entry){.text = s, .type = type}, st))
            return status_prefix(st, "vocab");
    }
    return true;
}

static bool mark_unknown(struct token_import *t, int64_t id, const char *member, struct status *st) {
    if (id < 0 || id >= t->count || !t->tokens[id].type)
        return status_fail(st, STATUS_FORMAT, "%s: no such token in the vocabulary", member);
    t->tokens[id].type = TOKEN_UNKNOWN;
    t->specials[IMPORT_UNK] = (int32_t)id;
    return true;
}

// Requires a member to be absent, null or empty: no key can express it.
static bool check_empty(const json_t *model, const char *member, struct status *st) {
    const json_t *value = json_object_get(model, member);
    if (!value || json_is_null(value) || json_is_false(value)) return true;
    if (json_is_string(value) && json_string_length(value) == 0) return true;
    if (json_is_number(value) && json_number_value(value) == 0) return true;
    return status_fail(st, STATUS_UNSUPPORTED, "%s: not supported", member);
}

static bool read_bpe(struct token_import *t, const json_t *model, const struct token_import_scheme *scheme,
                     struct status *st) {
    const json_t *vocabulary = json_object_get(model, "vocab");
    bool byte_fallback = token_import_bool(model, "byte_fallback", false) && !scheme->byte_level;
    if (!check_empty(model, "dropout", st) || !check_empty(model, "continuing_subword_prefix", st) ||
        !check_empty(model, "end_of_word_suffix", st) || !read_vocabulary(t, vocabulary, byte_fallback, st) ||
        !token_import_merges(t, json_object_get(model, "merges"), st))
        return false;
    struct span unknown = token_import_string(model, "unk_token");
    if (byte_fallback && unknown.data && !mark_unknown(t, token_import_find(t, unknown), "unk_token", st)) return false;
    if (scheme->byte_level) {
        t->model = "gpt2";
        t->ignore_merges = token_import_bool(model, "ignore_merges", false) ? IMPORT_YES : IMPORT_NO;
        return true;
    }
    if (!byte_fallback)
        return status_fail(st, STATUS_UNSUPPORTED, "BPE without ByteLevel or byte_fallback is not supported");
    if (!scheme->marks_spaces)
        return status_fail(st, STATUS_UNSUPPORTED, "BPE that does not replace spaces by U+2581 is not supported");
    return true; // token_import_json handles the merges once the added tokens are known
}

// [["text", score], …], ids from 0.
static bool read_unigram(struct token_import *t, const json_t *model, const struct token_import_scheme *scheme,
                         struct status *st) {
    const json_t *vocabulary = json_object_get(model, "vocab"), *unknown = json_object_get(model, "unk_id");
    bool byte_fallback = token_import_bool(model, "byte_fallback", false);
    if (!json_is_array(vocabulary) || json_array_size(vocabulary) == 0)
        return status_fail(st, STATUS_FORMAT, "vocab: expected a list of tokens and scores");
    token_import_expect(t, json_array_size(vocabulary));
    for (size_t i = 0; i < json_array_size(vocabulary); i++) {
        const json_t *pair = json_array_get(vocabulary, i), *score = json_array_get(pair, 1);
        struct token_import_entry token = {.text = token_import_text(json_array_get(pair, 0)), .type = TOKEN_NORMAL};
        if (!token.text.data || !json_is_number(score) || !isfinite((float)json_number_value(score)))
            return status_fail(st, STATUS_FORMAT, "vocab: element %zu is not a token with a score", i);
        token.score = (float)json_number_value(score);
        if (byte_fallback && token_byte(token.text) >= 0) token.type = TOKEN_BYTE;
        if (!token_import_put(t, (int64_t)i, token, st)) return status_prefix(st, "vocab");
    }
    if (json_is_integer(unknown) && !mark_unknown(t, json_integer_value(unknown), "unk_id", st)) return false;
    if (!scheme->marks_spaces)
        return status_fail(st, STATUS_UNSUPPORTED, "Unigram without a Metaspace pre-tokenizer is not supported");
    t->model = "t5";
    t->has_scores = true;
    if (t->space_prefix == IMPORT_UNSET) t->space_prefix = IMPORT_NO;
    if (t->removes_spaces == IMPORT_UNSET) t->removes_spaces = IMPORT_NO;
    return true;
}

// In the keys, a token that starts a word has U+2581 in front and one that continues a word has no mark.
static struct span respell_word(struct token_import *t, struct span text) {
    if (text.size > 2 && !memcmp(text.data, "##", 2)) return (struct span){text.data + 2, text.size - 2};
    if (text.size > 2 && text.data[0] == '[' && text.data[text.size - 1] == ']') return text;
    char *word = arena_printf(&t->arena, SPACE_MARK "%.*s", (int)text.size, text.data);
    return (struct span){word, text.size + 3};
}

static bool read_word_piece(struct token_import *t, const json_t *model, const struct token_import_scheme *scheme,
                            struct status *st) {
    struct span prefix = token_import_string(model, "continuing_subword_prefix");
    struct span unknown = token_import_string(model, "unk_token");
    if (!scheme->bert)
        return status_fail(st, STATUS_UNSUPPORTED, "WordPiece without a BertPreTokenizer is not supported");
    if (prefix.data && !span_equals(prefix, "##"))
        return status_fail(st, STATUS_UNSUPPORTED,
                           "continuing_subword_prefix: unsupported value '%.*s' (expected '##')",
                           token_import_shown(prefix), prefix.data);
    if (!read_vocabulary(t, json_object_get(model, "vocab"), false, st)) return false;
    if (unknown.data && !mark_unknown(t, token_import_find(t, unknown), "unk_token", st)) return false;
    t->model = "bert";
    t->add_eos = IMPORT_UNSET; // a text ends with the separator
    return true;
}

static bool read_model(struct token_import *t, const json_t *model, const struct token_import_scheme *scheme,
                       struct status *st) {
    static const struct {
        const char *type;
        bool (*read)(struct token_import *, const json_t *, const struct token_import_scheme *, struct status *);
    } models[] = {{"BPE", read_bpe}, {"Unigram", read_unigram}, {"WordPiece", read_word_piece}};
    struct span type = token_import_string(model, "type");
    // Old files have no type: a list of scores means Unigram, merges mean BPE.
    if (!type.data && json_is_array(json_object_get(model, "vocab"))) type = (struct span){"Unigram", 7};
    if (!type.data && json_is_array(json_object_get(model, "merges"))) type = (struct span){"BPE", 3};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (type.data && span_equals(type, models[i].type))
            return models[i].read(t, model, scheme, st) || status_prefix(st, "model");
    return status_fail(st, STATUS_UNSUPPORTED, "model: unsupported type '%.*s' (expected BPE, Unigram or WordPiece)",
                       token_import_shown(type), type.data ? type.data : "");
}

bool token_import_json(struct token_import *t, const json_t *root, struct status *st) {
    struct token_import_scheme scheme = {0};
    const json_t *model = json_object_get(root, "model");
    if (!json_is_object(model)) return status_fail(st, STATUS_FORMAT, "model: expected an object");
    t->add_bos = t->add_eos = IMPORT_NO; // unless the post-processor or a setting overrides it
    if (!token_import_scheme_read(t, root, &scheme, st) || !read_model(t, model, &scheme, st) ||
        !token_import_added_list(t, json_object_get(root, "added_tokens"), st))
        return false;
    if (scheme.byte_level) {
        t->pre = token_import_pre_name(&scheme);
        if (t->pre) return true;
        const char *first = scheme.n_splits ? scheme.splits[0] : "";
        return status_fail(st, STATUS_UNSUPPORTED, "pre_tokenizer: unsupported splits (%zu, the first by %.300s)",
                           scheme.n_splits, first);
    }
    if (scheme.n_splits)
        return status_fail(st, STATUS_UNSUPPORTED, "pre_tokenizer: Split without ByteLevel is not supported");
    for (int64_t id = 0; t->model && !strcmp(t->model, "bert") && id < t->count; id++)
        if (t->tokens[id].type == TOKEN_NORMAL) t->tokens[id].text = respell_word(t, t->tokens[id].text);
    return t->model || token_import_byte_fallback(t, json_object_get(model, "vocab"), &scheme, st);
}

bool token_import_vocabulary_json(struct token_import *t, const json_t *vocabulary, struct status *st) {
    t->model = "gpt2";
    return read_vocabulary(t, vocabulary, false, st);
}
