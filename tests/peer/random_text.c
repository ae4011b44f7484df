#include "tests/peer/random_text.h"

#include <string.h>

#include "engine/base/utf8.h"

uint32_t random_below(struct random_text *r, uint32_t end) {
    r->state ^= r->state << 13;
    r->state ^= r->state >> 7;
    r->state ^= r->state << 17;
    return (uint32_t)((r->state >> 32) * end >> 32);
}

static void put(struct random_text *r, const char *text, size_t size) {
    if (r->size + size > sizeof r->text) return;
    memcpy(r->text + r->size, text, size);
    r->size += size;
}

static void put_code(struct random_text *r, uint32_t code) {
    char utf8[4];
    put(r, utf8, utf8_encode(code, utf8));
}

// Code points of the scripts and kinds that patterns tell apart.
static const uint32_t ranges[][2] = {
    {'a', 'z'},         {'A', 'Z'},         {'0', '9'},         {'!', '/'},         {':', '@'},
    {'[', '`'},         {'{', '~'},         {0x00, 0x1f},       {0x7f, 0xa0},       {0xa1, 0xff},
    {0x100, 0x24f},     {0x250, 0x2ff},     {0x300, 0x36f},     {0x370, 0x52f},     {0x531, 0x58a},
    {0x591, 0x5f4},     {0x600, 0x6ff},     {0x900, 0x97f},     {0xe01, 0xe5b},     {0x10a0, 0x10ff},
    {0x1100, 0x11ff},   {0x1780, 0x17f9},   {0x1c80, 0x1cff},   {0x1e00, 0x1fff},   {0x2000, 0x206f},
    {0x2070, 0x218b},   {0x2190, 0x23ff},   {0x2460, 0x24ff},   {0x2c00, 0x2dff},   {0x2e80, 0x2fdf},
    {0x3000, 0x303f},   {0x3040, 0x30ff},   {0x3100, 0x318f},   {0x3400, 0x3500},   {0x4e00, 0x9fff},
    {0xa720, 0xa7ff},   {0xab30, 0xabff},   {0xac00, 0xd7a3},   {0xe000, 0xe0ff},   {0xf900, 0xfaff},
    {0xfb00, 0xfb4f},   {0xfe00, 0xfe6f},   {0xff01, 0xffee},   {0x10400, 0x1044f}, {0x1d400, 0x1d7ff},
    {0x1f300, 0x1faff}, {0x20000, 0x200ff}, {0xe0000, 0xe007f}, {0x1e900, 0x1e95f}, {0x660, 0x669},
};
enum { RANGES = sizeof ranges / sizeof *ranges };

static uint32_t code_of_range(struct random_text *r, uint32_t range) {
    return ranges[range][0] + random_below(r, ranges[range][1] - ranges[range][0] + 1);
}

static void put_script(struct random_text *r) {
    uint32_t range = random_below(r, RANGES);
    for (uint32_t n = 1 + random_below(r, 12); n > 0; n--) put_code(r, code_of_range(r, range));
}

static void put_mixed(struct random_text *r) {
    for (uint32_t n = 1 + random_below(r, 10); n > 0; n--) put_code(r, code_of_range(r, random_below(r, RANGES)));
}

static void put_any(struct random_text *r) {
    for (uint32_t n = 1 + random_below(r, 6); n > 0; n--) put_code(r, random_below(r, 0x110000));
}

static void put_word(struct random_text *r) {
    static const char *const words[] = {"<|start|>",
                                        "<|end|>",
                                        "<|im_end|>",
                                        "</s>",
                                        "<|endoftext|>",
                                        "Hello",
                                        " world",
                                        "the",
                                        " The",
                                        "don't",
                                        "I'LL",
                                        " we've",
                                        "HTTPServer",
                                        "camelCase",
                                        "élan",
                                        " Straße",
                                        "ÀÉ",
                                        " naïve",
                                        "Привет",
                                        " мир",
                                        "你好",
                                        "世界",
                                        "こんにちは",
                                        "カタカナ",
                                        "안녕",
                                        " مرحبا",
                                        "नमस्ते",
                                        "สวัสดี",
                                        "e\u0301",
                                        "ﬁ",
                                        "ﷺ",
                                        "①",
                                        "½",
                                        "Å",
                                        "'s",
                                        "'S",
                                        "'ſ",
                                        "'re",
                                        "'Ve",
                                        "'d",
                                        "''",
                                        " '",
                                        "1234567",
                                        " 42",
                                        "3.14",
                                        "1,000",
                                        "x1y22",
                                        "<sentinel:5>",
                                        "...",
                                        "!?",
                                        " ->",
                                        "://",
                                        "\\n",
                                        "/*",
                                        "a/b/",
                                        "_id",
                                        "$x",
                                        "(a)",
                                        "`~",
                                        "\u2581",
                                        "👍",
                                        "👨‍👩‍👧‍👦",
                                        "🇩🇪",
                                        "❤️",
                                        "🏽",
                                        "\u200b",
                                        "\u200d",
                                        "\ufeff",
                                        "\u00ad",
                                        "\ufffd"};
    const char *word = words[random_below(r, sizeof words / sizeof *words)];
    put(r, word, strlen(word));
}

static void put_space(struct random_text *r) {
    static const char *const spaces[] = {" ",      " ",      "  ",  "    ", "\n",     "\n\n",     "\r\n",
                                         "\r",     "\t",     "\v",  "\f",   "\u00a0", "\xc2\x85", "\u2003",
                                         "\u2028", "\u3000", " \n", "\n ",  "\t\t",   "\u1680",   "\u202f"};
    for (uint32_t n = 1 + random_below(r, 5); n > 0; n--) {
        const char *space = spaces[random_below(r, sizeof spaces / sizeof *spaces)];
        put(r, space, strlen(space));
    }
}

static void put_run(struct random_text *r) {
    char utf8[4];
    size_t size = utf8_encode(random_below(r, 3) ? code_of_range(r, random_below(r, RANGES)) : ' ', utf8);
    for (uint32_t n = 1 + random_below(r, random_below(r, 8) ? 20 : 300); n > 0; n--) put(r, utf8, size);
}

static void put_broken(struct random_text *r) {
    static const char *const broken[] = {"\xff",         "\x80",         "\xe2\x82",         "\xf0\x9f\x98",
                                         "\xc0\xaf",     "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc3",
                                         "\xe0\x80\x80", "\xfe"};
    const char *bytes = broken[random_below(r, sizeof broken / sizeof *broken)];
    put(r, bytes, strlen(bytes));
}

static void put_token(struct random_text *r, const struct tokenizer *t) {
    uint32_t count = (uint32_t)tokenizer_count(t);
    // Special tokens stand at either end of most vocabularies.
    uint32_t near = random_below(r, count < 300 ? count : 300), where = random_below(r, 3);
    struct span piece = tokenizer_piece(t,
                                        (int32_t)(where == 0   ? near
                                                  : where == 1 ? count - 1 - near
                                                               : random_below(r, count)),
                                        true);
    size_t size = piece.size < 64 ? piece.size : 64;
    if (size && !random_below(r, 6)) size = random_below(r, (uint32_t)size);
    put(r, piece.data, size);
}

void random_text_next(struct random_text *r, const struct tokenizer *t) {
    r->size = 0;
    bool may_break = !random_below(r, 4);
    for (uint32_t n = 1 + random_below(r, 12); n > 0; n--) {
        switch (random_below(r, 10)) {
        case 0: put_script(r); break;
        case 1: put_mixed(r); break;
        case 2: put_any(r); break;
        case 3: put_space(r); break;
        case 4: put_run(r); break;
        case 5: may_break ? put_broken(r) : put_word(r); break;
        case 6: put_token(r, t); break;
        default: put_word(r); break;
        }
    }
}
