// Converts the normalizer, pre-tokenizer and post-processor of a tokenizer.json to settings that our keys can express.
#include <stdlib.h>
#include <string.h>

#include "engine/format/huggingface_tokenizer_parts.h"

enum {
    NESTING = 4,           // depth of sequences
    REGEX_LIMIT = 1 << 14, // bytes; the longest published one has about 1500
};

// A component, by its "type". `read` is NULL if it has no effect here.
struct part {
    const char *type;
    bool (*read)(struct token_import *, const json_t *, struct token_import_scheme *, struct status *);
};

static bool read_part(struct token_import *t, const json_t *part, const struct part *parts, size_t n_parts,
                      const char *list, int depth, struct token_import_scheme *scheme, struct status *st) {
    if (!part || json_is_null(part)) return true;
    struct span type = token_import_string(part, "type");
    if (!type.data) return status_fail(st, STATUS_FORMAT, "missing type");
    if (span_equals(type, "Sequence")) {
        const json_t *members = json_object_get(part, list);
        if (depth == NESTING)
            return status_fail(st, STATUS_LIMIT, "sequences are nested too deep (maximum %d)", NESTING);
        for (size_t i = 0; i < json_array_size(members); i++)
            if (!read_part(t, json_array_get(members, i), parts, n_parts, list, depth + 1, scheme, st)) return false;
        return true;
    }
    for (size_t i = 0; i < n_parts; i++)
        if (span_equals(type, parts[i].type)) {
            if (!parts[i].read || parts[i].read(t, part, scheme, st)) return true;
            return status_prefix(st, "%s", parts[i].type);
        }
    return status_fail(st, STATUS_UNSUPPORTED, "unsupported type '%.*s'", token_import_shown(type), type.data);
}

// ---- the normalizer ----

static struct span pattern_of(const json_t *part, const char *kind) {
    return token_import_string(json_object_get(part, "pattern"), kind);
}

static bool read_prepend(struct token_import *t, const json_t *part, struct token_import_scheme *scheme,
                         struct status *st) {
    (void)scheme;
    if (!token_import_is(part, "prepend", SPACE_MARK))
        return status_fail(st, STATUS_UNSUPPORTED, "prepend: expected U+2581");
    t->space_prefix = IMPORT_YES;
    return true;
}

static bool read_replace(struct token_import *t, const json_t *part, struct token_import_scheme *scheme,
                         struct status *st) {
    struct span text = pattern_of(part, "String"), regex = pattern_of(part, "Regex");
    if (text.data && span_equals(text, " ") && token_import_is(part, "content", SPACE_MARK))
        scheme->marks_spaces = true;
    else if (regex.data && span_equals(regex, " {2,}")) t->removes_spaces = IMPORT_YES;
    else
        return status_fail(st, STATUS_UNSUPPORTED, "unsupported pattern '%.*s'",
                           token_import_shown(text.data ? text : regex),
                           text.data    ? text.data
                           : regex.data ? regex.data
                                        : "");
    return true;
}

static int base64_digit(char c) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

static bool read_precompiled(struct token_import *t, const json_t *part, struct token_import_scheme *scheme,
                             struct status *st) {
    struct span text = token_import_string(part, "precompiled_charsmap");
    uint32_t bits = 0;
    size_t n = 0;
    (void)scheme;
    char *out = arena_array(&t->arena, text.size + 1, 1, st);
    if (!out) return false;
    while (text.size && text.data[text.size - 1] == '=') text.size--;
    for (size_t i = 0; i < text.size; i++) {
        int digit = base64_digit(text.data[i]);
        if (digit < 0) return status_fail(st, STATUS_FORMAT, "precompiled_charsmap: invalid base64 at byte %zu", i);
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4) out[n++] = (char)(bits >> (6 - 2 * (i % 4)));
    }
    t->charsmap = (struct span){out, n};
    return true;
}

// Stripping and splitting at white space both come with Unigram, which collapses it.
static bool read_removed_spaces(struct token_import *t, const json_t *part, struct token_import_scheme *scheme,
                                struct status *st) {
    (void)part, (void)scheme, (void)st;
    t->removes_spaces = IMPORT_YES;
    return true;
}

static bool read_bert_normalizer(struct token_import *t, const json_t *part, struct token_import_scheme *scheme,
                                 struct status *st) {
    bool lowercase = token_import_bool(part, "lowercase", true);
    (void)scheme;
    if (!token_import_bool(part, "clean_text", true) || !token_import_bool(part, "handle_chinese_chars", true))
        return status_fail(st, STATUS_UNSUPPORTED, "clean_text or handle_chinese_chars: false is not supported");
    t->lowercase = lowercase ? IMPORT_YES : IMPORT_NO;
    t->strips_accents = token_import_bool(part, "strip_accents", lowercase) ? IMPORT_YES : IMPORT_NO;
    return true;
}

// NFC leaves nearly all real text alone, and no key expresses it; decoding returns the text unchanged.
static const struct part normalizers[] = {
    {"NFC", NULL},
    {"Prepend", read_prepend},
    {"Replace", read_replace},
    {"Precompiled", read_precompiled},
    {"Strip", read_removed_spaces},
    {"BertNormalizer", read_bert_normalizer},
};

// ---- the pre-tokenizer ----

static bool add_split(struct token_import *t, struct token_import_scheme *scheme, struct span regex,
                      struct status *st) {
    if (scheme->n_splits == sizeof scheme->splits / sizeof *scheme->splits)
        return status_fail(st, STATUS_UNSUPPORTED, "too many splits (maximum %zu)", scheme->n_splits);
    if (regex.size > REGEX_LIMIT)
        return status_fail(st, STATUS_LIMIT, "regex of %zu bytes is too long (maximum %d)", regex.size, REGEX_LIMIT);
    scheme->splits[scheme->n_splits++] = token_import_regex(t, regex);
    return true;
}

static bool add_split_text(struct token_import *t, struct token_import_scheme *scheme, const char *regex,
                           struct status *st) {
    return add_split(t, scheme, span_of(regex), st);
}

static bool read_byte_level(struct token_import *t, const json_t *part, struct token_import_scheme *scheme,
                            struct status *st) {
    if (token_import_bool(part, "add_prefix_space", false))
        return status_fail(st, STATUS_UNSUPPORTED, "add_prefix_space: true is not supported");
    scheme->byte_level = true;
    return !token_import_bool(part, "use_regex", true) || add_split_text(t, scheme, TOKEN_IMPORT_GPT2, st);
}

// Isolated and inverted Removed are equivalent if the expression matches everything.
static bool read_split(struct token_import *t, const json_t *part, struct token_import_scheme *scheme,
                       struct status *st) {
    struct span text = pattern_of(part, "String"), regex = pattern_of(part, "Regex");
    bool invert = token_import_bool(part, "invert", false);
    // Spaces have become U+2581, so there is nothing to split.
    if (text.data && span_equals(text, " ") && scheme->marks_spaces) return true;
    if (!regex.data) return status_fail(st, STATUS_UNSUPPORTED, "pattern: expected a Regex");
    if (!(token_import_is(part, "behavior", "Isolated") && !invert) &&
        !(token_import_is(part, "behavior", "Removed") && invert)) {
        struct span behavior = token_import_string(part, "behavior");
        return status_fail(st, STATUS_UNSUPPORTED, "behavior: '%.*s'%s is not supported", token_import_shown(behavior),
                           behavior.data ? behavior.data : "", invert ? " inverted" : "");
    }
    return add_split(t, scheme, regex, st);
}

static bool read_digits(struct token_import *t, const json_t *part, struct token_import_scheme *scheme,
                        struct status *st) {
    return add_split_text(t, scheme, token_import_bool(part, "individual_digits", false) ? "\\p{N}" : "\\p{N}+", st);
}

static bool read_metaspace(struct token_import *t, const json_t *part, struct token_import_scheme *scheme,
                           struct status *st) {
    struct span when = token_import_string(part, "prepend_scheme");
    bool prepends = when.data ? !span_equals(when, "never") : token_import_bool(part, "add_prefix_space", true);
    if (!token_import_is(part, "replacement", SPACE_MARK))
        return status_fail(st, STATUS_UNSUPPORTED, "replacement: expected U+2581");
    scheme->marks_spaces = true;
    scheme->cuts_words = token_import_bool(part, "split", true);
    t->space_prefix = prepends ? IMPORT_YES : IMPORT_NO;
    if (prepends) t->prefix_scheme = when.data && span_equals(when, "first") ? "first" : "always";
    return true;
}

static bool read_bert(struct token_import *t, const json_t *part, struct token_import_scheme *scheme,
                      struct status *st) {
    (void)t, (void)part, (void)st;
    scheme->bert = true;
    return true;
}

static const struct part pre_tokenizers[] = {
    {"ByteLevel", read_byte_level},
    {"Split", read_split},
    {"Digits", read_digits},
    {"Metaspace", read_metaspace},
    {"WhitespaceSplit", read_removed_spaces},
    {"BertPreTokenizer", read_bert},
};

// ---- the post-processor ----

// A number as an id; −1 if it cannot be one.
static int32_t id_of(const json_t *number) {
    json_int_t id = json_is_integer(number) ? json_integer_value(number) : -1;
    return id >= 0 && id <= INT32_MAX ? (int32_t)id : -1;
}

// The tokens before and after the text, at most one each.
static bool read_template(struct token_import *t, const json_t *part, struct token_import_scheme *scheme,
                          struct status *st) {
    const json_t *items = json_object_get(part, "single"), *tokens = json_object_get(part, "special_tokens");
    size_t counts[2] = {0}; // before and after
    int after = 0;
    (void)scheme;
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *special = json_object_get(json_array_get(items, i), "SpecialToken");
        const char *name = json_string_value(json_object_get(special, "id"));
        const json_t *ids = json_object_get(name ? json_object_get(tokens, name) : NULL, "ids");
        if (!special) {
            after = 1;
            continue;
        }
        if (json_array_size(ids) != 1)
            return status_fail(st, STATUS_UNSUPPORTED, "special_tokens: '%.64s': expected exactly one id",
                               name ? name : "");
        *(after ? &t->last : &t->first) = id_of(json_array_get(ids, 0));
        counts[after]++;
    }
    if (counts[0] > 1 || counts[1] > 1)
        return status_fail(st, STATUS_UNSUPPORTED,
                           "single: too many special tokens: %zu before the text, %zu after it (maximum 1 each)",
                           counts[0], counts[1]);
    t->add_bos = counts[0] ? IMPORT_YES : IMPORT_NO;
    t->add_eos = counts[1] ? IMPORT_YES : IMPORT_NO;
    return true;
}

static bool read_bert_processing(struct token_import *t, const json_t *part, struct token_import_scheme *scheme,
                                 struct status *st) {
    (void)scheme, (void)st;
    t->first = id_of(json_array_get(json_object_get(part, "cls"), 1));
    t->last = id_of(json_array_get(json_object_get(part, "sep"), 1));
    t->add_bos = t->add_eos = IMPORT_YES;
    return true;
}

static const struct part post_processors[] = {
    {"ByteLevel", NULL},
    {"TemplateProcessing", read_template},
    {"BertProcessing", read_bert_processing},
    {"RobertaProcessing", read_bert_processing},
};

#define COUNT(parts) (sizeof parts / sizeof *parts)

bool token_import_scheme_read(struct token_import *t, const json_t *root, struct token_import_scheme *scheme,
                              struct status *st) {
    const struct {
        const char *member, *list;
        const struct part *parts;
        size_t n_parts;
    } all[] = {
        {"normalizer", "normalizers", normalizers, COUNT(normalizers)},
        {"pre_tokenizer", "pretokenizers", pre_tokenizers, COUNT(pre_tokenizers)},
        {"post_processor", "processors", post_processors, COUNT(post_processors)},
    };
    for (size_t i = 0; i < COUNT(all); i++)
        if (!read_part(t, json_object_get(root, all[i].member), all[i].parts, all[i].n_parts, all[i].list, 0, scheme,
                       st))
            return status_prefix(st, "%s", all[i].member);
    return true;
}
