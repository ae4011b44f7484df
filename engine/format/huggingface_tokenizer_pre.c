// Which pre-tokenizer of ours splits as the regular expressions of a tokenizer.json do.
//
// The expressions are compared as texts, after variants of spelling that mean the same have been made one.
#include <string.h>

#include "engine/format/huggingface_tokenizer_parts.h"

// Endings of English words in any case: what the canonical spelling says for all of the others.
#define ENDINGS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"

static const struct {
    const char *from, *to;
} spellings[] = {
    {"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])", ENDINGS},
    {"'(?i:[sdmt]|ll|ve|re)", ENDINGS},
    {"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])", ENDINGS},
    {"\n", "\\n"},
    {"\r", "\\r"},
    {"\t", "\\t"},
    {"{1}", ""},
};

// Where in a regular expression the next character is.
struct place {
    bool in_class;     // [ … ]
    bool after_repeat; // ?, *, + or {…}, which a further + makes possessive: the same where nothing follows that backs
                       // up
};

// "\n", "\p{L}"
static size_t escape_size(struct span rest) {
    if (rest.size > 2 && strchr("pPxu", rest.data[1]) && rest.data[2] == '{') {
        const char *end = memchr(rest.data, '}', rest.size);
        if (end) return (size_t)(end - rest.data) + 1;
    }
    return rest.size > 1 ? 2 : 1;
}

// The bytes of the element that comes next, and whether it stays.
static size_t next_element(struct span rest, struct place *place, bool *kept) {
    bool possessive = place->after_repeat && *rest.data == '+' && !place->in_class, escaped = *rest.data == '\\';
    size_t n = escaped ? escape_size(rest) : 1;
    *kept = !possessive;
    place->after_repeat = !escaped && !place->in_class && !possessive && strchr("?*+}", *rest.data);
    if (!escaped && *rest.data == '[') place->in_class = true;
    if (!escaped && *rest.data == ']') place->in_class = false;
    return n;
}

const char *token_import_regex(struct token_import *t, struct span regex) {
    enum { GROWTH = sizeof ENDINGS }; // the most that one element becomes longer
    char *out = arena_alloc(&t->arena, GROWTH * regex.size + 1);
    size_t n = 0;
    struct place place = {0};
    while (regex.size) {
        size_t taken = 0;
        for (size_t i = 0; i < sizeof spellings / sizeof *spellings && !taken; i++) {
            size_t size = strlen(spellings[i].from);
            if (size > regex.size || memcmp(regex.data, spellings[i].from, size)) continue;
            if (place.in_class && size > 1) continue;
            memcpy(out + n, spellings[i].to, strlen(spellings[i].to));
            n += strlen(spellings[i].to);
            taken = size;
            place.after_repeat = false;
        }
        if (!taken) {
            bool kept;
            taken = next_element(regex, &place, &kept);
            if (kept) memcpy(out + n, regex.data, taken), n += taken;
        }
        regex.data += taken, regex.size -= taken;
    }
    out[n] = 0;
    return out;
}

#define LEAD        "[^\\r\\n\\p{L}\\p{N}]?"
#define SIGNS       " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
#define PATHS       " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*"
#define SPACES      "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define UPPER       "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER       "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define GPT2        "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define LLAMA3      ENDINGS "|" LEAD "\\p{L}+|\\p{N}{1,3}|" SIGNS "|" SPACES
#define CASED(e)    LEAD UPPER "*" LOWER "+" e "|" LEAD UPPER "+" LOWER "*" e
#define ASCII_SIGNS "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
#define DEEPSEEK3   ASCII_SIGNS "|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" SPACES
#define IDEOGRAPHS  "[一-龥\u0800-一가-\ud7ff]+"
// Of alphabets that have upper and lower case.
#define CASED_LETTERS                                                                                                                                                                                        \
    "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-"                                                     \
    "ᶚḀ-"                                                                                                                                                                                                \
    "ἕἘ-"                                                                                                                                                                                                \
    "Ἕἠ-"                                                                                                                                                                                                \
    "ὅὈ-"                                                                                                                                                                                                \
    "Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼ"                                                                                                                                                                \
    "ιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-" \
    "ﬗＡ-"                                                                                                                                                                                                \
    "Ｚａ-"                                                                                                                                                                                                \
    "ｚ𐐀-"                                                                                                                                                                                               \
    "𐑏𐒰-"                                                                                                                                                                                              \
    "𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+"

// As published with the models. Whether whole pieces are taken before merging and whether BOS is put in front is said
// by keys of their own, so that of several names that split alike any will do.
static const struct {
    const char *name;
    const char *splits[6];
} known[] = {
    {"gpt-2", {GPT2}},
    {"llama-bpe", {LLAMA3}},
    {"qwen2", {ENDINGS "|" LEAD "\\p{L}+|\\p{N}|" SIGNS "|" SPACES}},
    {"qwen35", {ENDINGS "|" LEAD "[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" SPACES}},
    {"gpt-4o", {CASED(ENDINGS "?") "|\\p{N}{1,3}|" PATHS "|" SPACES}},
    {"tekken", {CASED("") "|\\p{N}|" PATHS "|" SPACES}},
    {"smollm", {"\\p{N}", GPT2}},
    {"ufakzeka", {LEAD "\\p{L}+|\\p{N}|" SIGNS "|" SPACES}},
    {"seed-coder", {ENDINGS "|" LEAD "\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" SPACES}},
    {"exaone-moe",
     {ENDINGS
      "|" LEAD
      "(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"}},
    {"deepseek-llm",
     {"[\\r\\n]", CASED_LETTERS, "\\s?[!-/:-~！-／：-～‘-‟\u3000-。]+", "\\s+$", IDEOGRAPHS, "\\p{N}+"}},
    {"deepseek-llm", {"[\\r\\n]", CASED_LETTERS, "\\s?[!-/:-~！-／：-～‘-‟\u3000-。]+", "\\s+$", IDEOGRAPHS, "\\p{N}"}},
    {"deepseek-coder", {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", IDEOGRAPHS, "\\p{N}"}},
    {"deepseek-v3", {"\\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+", DEEPSEEK3}},
};

const char *token_import_pre_name(const struct token_import_scheme *scheme) {
    enum { MOST = sizeof known->splits / sizeof *known->splits };
    if (scheme->n_splits == 0 || scheme->n_splits > MOST) return NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t n = 0;
        while (n < scheme->n_splits && known[i].splits[n] && !strcmp(known[i].splits[n], scheme->splits[n])) n++;
        if (n == scheme->n_splits && (n == MOST || !known[i].splits[n])) return known[i].name;
    }
    return NULL;
}
