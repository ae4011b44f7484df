// The table of pre-tokenizers. Each list of rules is preceded by its regular expression: L letters, M marks, N numbers,
// P punctuation, S symbols, \s white space, C = (?i:'s|'t|'re|'ve|'m|'ll|'d), c = the same in lower case.
#include "engine/text/pretokenize.h"

#include <string.h>

#define RANGES(name, ...)                                                                                              \
    static const uint32_t name##_list[][2] = {__VA_ARGS__};                                                            \
    static const struct character_ranges name = {sizeof name##_list / sizeof *name##_list, name##_list}

// Ranges listed in expressions.
RANGES(slash, {'/', '/'});
RANGES(low_line, {'_', '_'});
RANGES(tab, {'\t', '\t'});
RANGES(falcon_symbols, {'$', '$'}, {'+', '+'}, {'<', '>'}, {'^', '^'}, {'`', '`'}, {'|', '|'}, {'~', '~'});
RANGES(default_symbols, {'$', '$'}, {'+', '+'}, {'<', '>'}, {'^', '^'}, {'|', '|'}, {'~', '~'});
RANGES(bloom_stops, {'!', '!'}, {'(', ')'}, {',', ','}, {'.', '.'}, {'?', '?'}, {'|', '|'}, {0x60c, 0x60c},
       {0x6d4, 0x6d4}, {0x964, 0x964}, {0x2026, 0x2026}, {0x3001, 0x3002}, {0xff0c, 0xff0c});
RANGES(deepseek_letters, {0x41, 0x5a}, {0x61, 0x7a}, {0xb5, 0xb5}, {0xc0, 0xd6}, {0xd8, 0xf6}, {0xf8, 0x1ba},
       {0x1bc, 0x1bf}, {0x1c4, 0x293}, {0x295, 0x2af}, {0x370, 0x373}, {0x376, 0x377}, {0x37b, 0x37d}, {0x37f, 0x37f},
       {0x386, 0x386}, {0x388, 0x38a}, {0x38c, 0x38c}, {0x38e, 0x3a1}, {0x3a3, 0x3f5}, {0x3f7, 0x481}, {0x48a, 0x52f},
       {0x531, 0x556}, {0x10a0, 0x10c5}, {0x13a0, 0x13f5}, {0x13f8, 0x13fd}, {0x1c90, 0x1cba}, {0x1cbd, 0x1cbf},
       {0x1d00, 0x1d2b}, {0x1d6b, 0x1d77}, {0x1d79, 0x1d9a}, {0x1e00, 0x1f15}, {0x1f18, 0x1f1d}, {0x1f20, 0x1f45},
       {0x1f48, 0x1f4d}, {0x1f50, 0x1f57}, {0x1f59, 0x1f59}, {0x1f5b, 0x1f5b}, {0x1f5d, 0x1f5d}, {0x1f5f, 0x1f7d},
       {0x1f80, 0x1fb4}, {0x1fb6, 0x1fbc}, {0x1fbe, 0x1fbe}, {0x1fc2, 0x1fc4}, {0x1fc6, 0x1fcc}, {0x1fd0, 0x1fd3},
       {0x1fd6, 0x1fdb}, {0x1fe0, 0x1fec}, {0x1ff2, 0x1ff4}, {0x1ff6, 0x1ffc}, {0x2102, 0x2102}, {0x2107, 0x2107},
       {0x210a, 0x2113}, {0x2115, 0x2115}, {0x2119, 0x211d}, {0x2124, 0x2124}, {0x2126, 0x2126}, {0x2128, 0x2128},
       {0x212a, 0x212d}, {0x212f, 0x2134}, {0x2139, 0x2139}, {0x213c, 0x213f}, {0x2145, 0x2149}, {0x214e, 0x214e},
       {0x2183, 0x2184}, {0x2c00, 0x2c7b}, {0x2c7e, 0x2ce4}, {0x2ceb, 0x2cee}, {0x2cf2, 0x2cf3}, {0xa640, 0xa66d},
       {0xa680, 0xa69b}, {0xa722, 0xa76f}, {0xa771, 0xa787}, {0xa78b, 0xa78e}, {0xab70, 0xabbf}, {0xfb00, 0xfb06},
       {0xfb13, 0xfb17}, {0xff21, 0xff3a}, {0xff41, 0xff5a}, {0x10400, 0x1044f}, {0x104b0, 0x104d3}, {0x104d8, 0x104fb},
       {0x10c80, 0x10cb2}, {0x10cc0, 0x10cf2}, {0x118a0, 0x118df}, {0x1e900, 0x1e943});
RANGES(deepseek_marks, {0x21, 0x2f}, {0x3a, 0x7e}, {0x2018, 0x201f}, {0x3000, 0x3002}, {0xff01, 0xff0f},
       {0xff1a, 0xff5e});
RANGES(deepseek_cjk, {0x800, 0x9fa5}, {0xac00, 0xd7ff});
RANGES(cjk_and_kana, {0x3040, 0x30ff}, {0x4e00, 0x9fa5});
RANGES(youtu_hangul, {0x3131, 0x318e}, {0xac00, 0xd7a3});
RANGES(youtu_marks, {0x2014, 0x2014}, {0x2018, 0x2019}, {0x201c, 0x201d}, {0x2026, 0x2026}, {0x3001, 0x303f},
       {0xfe30, 0xfe4f}, {0xff01, 0xff01}, {0xff0c, 0xff0c}, {0xff1a, 0xff1b});
RANGES(youtu_bopomofo, {0x3105, 0x312f});
RANGES(afmoe_scripts, {0xe40, 0xeff}, {0x1000, 0x109f}, {0x1100, 0x11ff}, {0x1780, 0x17ff}, {0x2f00, 0x2fdf},
       {0x3040, 0x30ff}, {0x3400, 0x4dbf}, {0x4e00, 0xfaff}, {0xff65, 0xff9f});
// Han script.
RANGES(han, {0x2e80, 0x2e99}, {0x2e9b, 0x2ef3}, {0x2f00, 0x2fd5}, {0x3005, 0x3005}, {0x3007, 0x3007}, {0x3021, 0x3029},
       {0x3038, 0x303b}, {0x3400, 0x4dbf}, {0x4e00, 0x9fff}, {0xf900, 0xfa6d}, {0xfa70, 0xfad9}, {0x16fe2, 0x16fe3},
       {0x16ff0, 0x16ff1}, {0x20000, 0x2a6df}, {0x2a700, 0x2b739}, {0x2b740, 0x2b81d}, {0x2b820, 0x2cea1},
       {0x2ceb0, 0x2ebe0}, {0x2ebf0, 0x2ee5d}, {0x2f800, 0x2fa1d}, {0x30000, 0x3134a}, {0x31350, 0x323af});

// Shared rules. Each macro is an alternative of an expression.

#define IN(c)                                                                                                          \
    { .classes = (c) }
#define OF(r)                                                                                                          \
    { .ranges = &(r) }
#define IN_AND(c, r)                                                                                                   \
    { .classes = (c), .ranges = &(r) }
enum {
    NOT_WORD = CLASSES_ALL & ~(CLASSES_LINE_END | CLASSES_LETTER | CLASSES_NUMBER), // [^\r\nLN]
    NOT_PUNCTUATION = CLASSES_ALL & ~(CLASSES_LINE_END | CLASSES_LETTER | CLASSES_PUNCTUATION | CLASSES_SYMBOL),
    OTHERS = CLASSES_ALL & ~(CLASSES_SPACE | CLASSES_LETTER | CLASSES_NUMBER), // [^\sLN]
    SIGNS = CLASSES_PUNCTUATION | CLASSES_SYMBOL,
    UPPER = CLASS_ASCII_UPPER | CLASS_WIDE_UPPER | CLASS_UNCASED | CLASS_MARK,
    LOWER = CLASS_ASCII_LOWER | CLASS_WIDE_LOWER | CLASS_UNCASED | CLASS_MARK,
};
#define END                                                                                                            \
    { .kind = RULE_END }
#define CONTRACTIONS(any)                                                                                              \
    { .kind = RULE_CONTRACTION, .any_case = (any) }
#define RUN(leads, bodies, ...)                                                                                        \
    { .kind = RULE_RUN, .lead = leads, .body = bodies, __VA_ARGS__ }
#define WORDS                  RUN(IN(NOT_WORD), IN(CLASSES_LETTER))
#define DIGITS(n)              RUN(IN(0), IN(CLASSES_NUMBER), .most = (n))
#define OTHERS_AND(tails, ...) RUN(IN(CLASS_BLANK), IN(OTHERS), .tail = tails, __VA_ARGS__)
#define CASED(any)                                                                                                     \
    { .kind = RULE_CASED, .lead = IN(NOT_WORD), .body = IN(UPPER), .tail = IN(LOWER), .any_case = (any) }
#define LINE_ENDS                                                                                                      \
    { .kind = RULE_LINE_END }
#define SPACES {.kind = RULE_SPACE_IN_FRONT}, RUN(IN(0), IN(CLASSES_SPACE))
#define SPACES_OF(n, m)                                                                                                \
    { .kind = RULE_SPACE_IN_FRONT, .least = (n), .most = (m) }
#define THREES(bodies, ...)                                                                                            \
    { .kind = RULE_THREES, .body = bodies, __VA_ARGS__ }

// c| ?L+| ?N+| ?[^\sLN]+|\s+(?!\S)|\s+
static const struct rule gpt2[] = {CONTRACTIONS(false),
                                   RUN(IN(CLASS_BLANK), IN(CLASSES_LETTER)),
                                   RUN(IN(CLASS_BLANK), IN(CLASSES_NUMBER)),
                                   RUN(IN(CLASS_BLANK), IN(OTHERS)),
                                   SPACES,
                                   END};
// C|[^\r\nLN]?L+|N{1,3}| ?[^\sLN]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+; also with other numbers of digits
#define LLAMA(...)                                                                                                     \
    { CONTRACTIONS(true), WORDS, __VA_ARGS__, OTHERS_AND(IN(CLASSES_LINE_END)), LINE_ENDS, SPACES, END }
static const struct rule llama3[] = LLAMA(DIGITS(3));
static const struct rule qwen2[] = LLAMA(DIGITS(1));
static const struct rule minicpm5[] = LLAMA(DIGITS(0));
// C|[^\r\nLN]?[LM]+|N| ?[^\sLMN]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
static const struct rule qwen35[] = {CONTRACTIONS(true),
                                     RUN(IN(NOT_WORD), IN(CLASSES_LETTER | CLASS_MARK)),
                                     DIGITS(1),
                                     RUN(IN(CLASS_BLANK), IN(OTHERS & ~CLASS_MARK), .tail = IN(CLASSES_LINE_END)),
                                     LINE_ENDS,
                                     SPACES,
                                     END};
// qwen2 without C
static const struct rule ufakzeka[] = {WORDS, DIGITS(1), OTHERS_AND(IN(CLASSES_LINE_END)), LINE_ENDS, SPACES, END};
// C|[^\r\nLN]?L+|N| ?[^\sLN\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+
static const struct rule seed_coder[] = {CONTRACTIONS(true), WORDS,  DIGITS(1), RUN(IN(CLASS_BLANK), IN(OTHERS)),
                                         LINE_ENDS,          SPACES, END};
// C|[^\r\nLN]?(?:LM*(?: LM*)*)+|N| ?[^\sLN]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+
static const struct rule exaone_moe[] = {CONTRACTIONS(true),
                                         {.kind = RULE_SPACED, .lead = IN(NOT_WORD)},
                                         DIGITS(1),
                                         OTHERS_AND(IN_AND(CLASSES_LINE_END, slash), .tail_most = 1),
                                         LINE_ENDS,
                                         SPACES,
                                         END};
// C|[^\r\nLN]?L+|N{1,3}| ?[^\sLN]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|…|\s{4}(?!\S)|\s{1,2}(?!\S)|\s
static const struct rule jais2[] = {CONTRACTIONS(true),
                                    WORDS,
                                    DIGITS(3),
                                    OTHERS_AND(IN(CLASSES_LINE_END)),
                                    LINE_ENDS,
                                    SPACES_OF(512, 512),
                                    SPACES_OF(256, 256),
                                    SPACES_OF(128, 128),
                                    SPACES_OF(64, 64),
                                    SPACES_OF(32, 32),
                                    SPACES_OF(16, 16),
                                    SPACES_OF(8, 8),
                                    SPACES_OF(4, 4),
                                    SPACES_OF(1, 2),
                                    RUN(IN(0), IN(CLASSES_SPACE), .most = 1),
                                    END};
// Upper: Lu Lt Lm Lo M; lower: Ll Lm Lo M.
// [^\r\nLN]?upper*lower+C?|[^\r\nLN]?upper+lower*C?|N{1,3}| ?[^\sLN]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
#define O200K(suffix, digits)                                                                                          \
    { CASED(suffix), DIGITS(digits), OTHERS_AND(IN_AND(CLASSES_LINE_END, slash)), LINE_ENDS, SPACES, END }
static const struct rule gpt4o[] = O200K(true, 3);
static const struct rule youtu[] = O200K(true, 1);
static const struct rule tekken[] = O200K(false, 1);
// [Han]+|[^\r\nLN]?upper*lower+C?|[^\r\nLN]?upper+lower*C?|N{1,3}| ?[^\sLN]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+,
// upper and lower without Han: runs of Han match first and end words (RULE_CASED stops at forbids).
static const struct rule kimi_k2[] = {RUN(IN(0), OF(han)),
                                      {.kind = RULE_CASED,
                                       .lead = IN(NOT_WORD),
                                       .body = IN(UPPER),
                                       .tail = IN(LOWER),
                                       .any_case = true,
                                       .forbids = OF(han)},
                                      DIGITS(3),
                                      OTHERS_AND(IN(CLASSES_LINE_END)),
                                      LINE_ENDS,
                                      SPACES,
                                      END};
// [ASCII punctuation and symbols][A-Za-z]+|[^\r\nLPS]?[LM]+| ?[PS]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
#define SIGN_AND_LETTERS                                                                                               \
    RUN(IN(CLASS_ASCII_PUNCTUATION | CLASS_ASCII_SYMBOL), IN(CLASSES_ASCII_LETTER), .needs_lead = true)
#define NAMES RUN(IN(NOT_PUNCTUATION), IN(CLASSES_LETTER | CLASS_MARK))
static const struct rule deepseek3[] = {
    SIGN_AND_LETTERS, NAMES, RUN(IN(CLASS_BLANK), IN(SIGNS), .tail = IN(CLASSES_LINE_END)), LINE_ENDS, SPACES, END};
// the same with | ?[PS]+|[\r\n]|\s+(?!\S)|\s+
static const struct rule spark25[] = {
    SIGN_AND_LETTERS, NAMES, RUN(IN(CLASS_BLANK), IN(SIGNS)), RUN(IN(0), IN(CLASSES_LINE_END), .most = 1), SPACES, END};
// \s?[letters with a case]+, \s?[some punctuation]+, \s+$ and further stages of one expression
static const struct rule line_end[] = {RUN(IN(0), IN(CLASSES_LINE_END), .most = 1), END};
static const struct rule cased_letters[] = {RUN(IN(CLASSES_SPACE), OF(deepseek_letters)), END};
static const struct rule some_punctuation[] = {RUN(IN(CLASSES_SPACE), OF(deepseek_marks)), END};
static const struct rule spaced_letters[] = {RUN(IN(CLASSES_SPACE), IN(CLASSES_LETTER)), END};
static const struct rule spaced_punctuation[] = {RUN(IN(CLASSES_SPACE), IN(CLASSES_PUNCTUATION)), END};
static const struct rule space_at_end[] = {{.kind = RULE_SPACE_AT_END}, END};
static const struct rule cjk[] = {RUN(IN(0), OF(deepseek_cjk)), END};
static const struct rule han_and_kana[] = {RUN(IN(0), OF(cjk_and_kana)), END};
static const struct rule asian[] = {RUN(IN(0), OF(afmoe_scripts)), END};
static const struct rule asian_apart[] = {RUN(IN(0), OF(youtu_hangul)), RUN(IN(0), OF(youtu_marks)),
                                          RUN(IN(0), OF(youtu_bopomofo)), RUN(IN(0), OF(cjk_and_kana)), END};
static const struct rule digit[] = {DIGITS(1), END};
static const struct rule digits[] = {DIGITS(0), END};
static const struct rule three_digits[] = {DIGITS(3), END};
static const struct rule ascii_threes[] = {RUN(IN(0), IN(CLASS_DIGIT), .least = 3, .most = 3), END};
static const struct rule lines[] = {RUN(IN(0), IN(CLASSES_ALL & ~CLASS_LINE_FEED)), RUN(IN(0), IN(CLASS_LINE_FEED)),
                                    END};
// digits in threes from the right: N; \d{1,3}(?=(?:\d{3})*\b)
static const struct rule threes[] = {THREES(IN(CLASSES_NUMBER)), END};
static const struct rule threes_not_before_word[] = {
    THREES(IN(CLASS_DIGIT | CLASS_WIDE_DIGIT),
           .forbids = IN_AND(CLASSES_LETTER | CLASS_MARK | CLASSES_NUMBER, low_line)),
    END};
// [P and some symbols]+
static const struct rule falcon_punctuation[] = {RUN(IN(0), IN_AND(CLASSES_PUNCTUATION, falcon_symbols)), END};
static const struct rule default_punctuation[] = {RUN(IN(0), IN_AND(CLASSES_PUNCTUATION, default_symbols)), END};
//  ?[^(\s|.,!?…。，、।۔،)]+
static const struct rule bloom[] = {
    RUN(IN(CLASS_BLANK), {.classes = CLASSES_SPACE, .ranges = &bloom_stops, .negated = true}), END};
// [\t\n]|    |  , then [P and ASCII symbols]. Image tokens, which chameleon's expressions name too, are special tokens.
static const struct rule chameleon_spaces[] = {RUN(IN(0), IN_AND(CLASS_LINE_FEED, tab), .most = 1),
                                               RUN(IN(0), IN(CLASS_BLANK), .least = 4, .most = 4),
                                               RUN(IN(0), IN(CLASS_BLANK), .least = 2, .most = 2), END};
static const struct rule each_sign[] = {RUN(IN(0), IN(CLASSES_PUNCTUATION | CLASS_ASCII_SYMBOL), .most = 1), END};

static const struct pretokenizer pretokenizers[] = {
    {.names = {"default", ""}, .stages = {default_punctuation, gpt2, digits, ascii_threes}},
    {.names = {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
               "jina-v5-nano"},
     .stages = {llama3},
     .whole_pieces = true,
     .adds_bos = true},
    {.names = {"smaug-bpe", "dbrx"}, .stages = {llama3}},
    {.names = {"chatglm-bpe", "glm4"}, .stages = {llama3}, .without_bos = true},
    {.names = {"minicpm5"}, .stages = {three_digits, minicpm5}, .whole_pieces = true},
    {.names = {"jais-2"}, .stages = {jais2}},
    {.names = {"qwen2", "deepseek-r1-qwen", "stablelm2", "hunyuan", "megrez", "kormo", "f2llmv2", "grok-2",
               "solar-open"},
     .stages = {qwen2}},
    {.names = {"bailingmoe", "bailingmoe2", "llada-moe"}, .stages = {qwen2}},
    {.names = {"qwen35"}, .stages = {qwen35}},
    {.names = {"ufakzeka"}, .stages = {ufakzeka}},
    {.names = {"seed-coder"}, .stages = {seed_coder}},
    {.names = {"laguna"}, .stages = {lines, qwen2}},
    {.names = {"exaone-moe"}, .stages = {exaone_moe}},
    {.names = {"gpt-4o", "o200k", "llama4", "kanana2", "talkie", "minimax-m2"}, .stages = {gpt4o}},
    {.names = {"granite-embed-multi-97m"}, .stages = {gpt4o}, .whole_pieces = true},
    {.names = {"tiny_aya", "cohere2moe"}, .stages = {threes_not_before_word, gpt4o}},
    {.names = {"tekken", "mistral-nemo"}, .stages = {tekken}, .whole_pieces = true, .adds_bos = true},
    {.names = {"youtu"}, .stages = {asian_apart, youtu}, .whole_pieces = true},
    {.names = {"kimi-k2"}, .stages = {kimi_k2}},
    {.names = {"deepseek-llm"}, .stages = {line_end, cased_letters, some_punctuation, space_at_end, cjk, digits}},
    {.names = {"deepseek-coder"}, .stages = {line_end, spaced_letters, spaced_punctuation, cjk, digit}},
    {.names = {"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"},
     .stages = {three_digits, han_and_kana, deepseek3}},
    {.names = {"spark2_5"}, .stages = {three_digits, han_and_kana, spark25, digit}},
    {.names = {"afmoe"}, .stages = {threes, asian, deepseek3}},
    {.names = {"gpt-2", "gpt2", "phi-2", "mpt", "olmo", "jais", "trillion", "granite-docling", "exaone4", "gigachat",
               "mellum"},
     .stages = {gpt2}},
    {.names = {"roberta-bpe", "jina-v1-en", "jina-v2-code", "jina-v2-es", "jina-v2-de", "jina-es", "jina-de", "a.x-4.0",
               "modern-bert"},
     .stages = {gpt2}},
    {.names = {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"},
     .stages = {digit, gpt2}},
    {.names = {"falcon"}, .stages = {falcon_punctuation, gpt2, ascii_threes}},
    {.names = {"chameleon"}, .stages = {chameleon_spaces, digit, each_sign, gpt2}, .adds_bos = true},
    {.names = {"bloom", "poro-chat", "gpt3-finnish"}, .stages = {bloom}},
    {.names = {"viking"}, .stages = {bloom, digit}},
    {.names = {"superbpe"}, .stages = {threes}},
    {.names = {"gemma4", "granite-embed-multi-311m"},
     .stages = {lines},
     .raw = true,
     .whole_lines = true,
     .needs_bos = true},
    {.names = {"sarvam-moe"}, .stages = {lines}, .raw = true},
};
enum { PRETOKENIZERS = sizeof pretokenizers / sizeof *pretokenizers };

const struct pretokenizer *const pretokenizer_default = &pretokenizers[0];

const struct pretokenizer *pretokenizer_at(size_t i) { return i < PRETOKENIZERS ? &pretokenizers[i] : NULL; }

const struct pretokenizer *pretokenizer_find(struct span name) {
    for (size_t i = 0; i < PRETOKENIZERS; i++)
        for (const char *const *known = pretokenizers[i].names; *known; known++)
            if (span_equals(name, *known)) return &pretokenizers[i];
    return NULL;
}
