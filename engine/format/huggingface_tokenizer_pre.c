// Maps the regular expressions of a tokenizer.json to one of our pre-tokenizers.
//
// Expressions are compared as texts, after equivalent spellings have been unified.
#include <string.h>

#include "engine/format/huggingface_tokenizer_parts.h"

// English contractions in any case; the canonical form of the spellings below.
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

// Parser state in a regular expression.
struct place {
    bool in_class;     // [ … ]
    bool after_repeat; // ?, *, + or {…}; a + here is possessive, which is equivalent if nothing backtracks
};

// "\n", "\p{L}"
static size_t escape_size(struct span rest) {
    if (rest.size > 2 && strchr("pPxu", rest.data[1]) && rest.data[2] == '{') {
        const char *end = memchr(rest.data, '}', rest.size);
        if (end) return (size_t)(end - rest.data) + 1;
    }
    return rest.size > 1 ? 2 : 1;
}

// The size of the next element, and whether to keep it.
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
    enum { GROWTH = sizeof ENDINGS }; // maximum growth of an element
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

#define LEAD          "[^\\r\\n\\p{L}\\p{N}]?"
#define SYMBOLS       " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
#define PATHS         " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*"
#define SPACES        "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define UPPER         "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER         "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define LLAMA3        ENDINGS "|" LEAD "\\p{L}+|\\p{N}{1,3}|" SYMBOLS "|" SPACES
#define CASED(e)      LEAD UPPER "*" LOWER "+" e "|" LEAD UPPER "+" LOWER "*" e
#define ASCII_SYMBOLS "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
#define DEEPSEEK3     ASCII_SYMBOLS "|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" SPACES
#define IDEOGRAPHS    "[一-龥\u0800-一가-\ud7ff]+"
// Letters of alphabets with upper and lower case.
// clang-format off
#define CASED_LETTERS \
    "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕ" \
    "ἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛ" \
    "Ꜣ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+"
// clang-format on

// As published with the models. ignore_merges and BOS have their own keys, so any name with the same splits will do.
static const struct {
    const char *name;
    const char *splits[6];
} known[] = {
    {"gpt-2", {TOKEN_IMPORT_GPT2}},
    {"llama-bpe", {LLAMA3}},
    {"qwen2", {ENDINGS "|" LEAD "\\p{L}+|\\p{N}|" SYMBOLS "|" SPACES}},
    {"qwen35", {ENDINGS "|" LEAD "[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" SPACES}},
    {"gpt-4o", {CASED(ENDINGS "?") "|\\p{N}{1,3}|" PATHS "|" SPACES}},
    {"tekken", {CASED("") "|\\p{N}|" PATHS "|" SPACES}},
    {"smollm", {"\\p{N}", TOKEN_IMPORT_GPT2}},
    {"ufakzeka", {LEAD "\\p{L}+|\\p{N}|" SYMBOLS "|" SPACES}},
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
    enum { MAX_SPLITS = sizeof known->splits / sizeof *known->splits };
    if (scheme->n_splits == 0 || scheme->n_splits > MAX_SPLITS) return NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t n = 0;
        while (n < scheme->n_splits && known[i].splits[n] && !strcmp(known[i].splits[n], scheme->splits[n])) n++;
        if (n == scheme->n_splits && (n == MAX_SPLITS || !known[i].splits[n])) return known[i].name;
    }
    return NULL;
}
