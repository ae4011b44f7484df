#include "engine/text/character.h"

#include <utf8proc.h>

#include "engine/base/utf8.h"

static uint32_t wide_class(uint32_t code) {
    if (code == 0x85) return CLASS_OTHER_SPACE; // NEL is white space although its category is Cc
    switch (utf8proc_category((utf8proc_int32_t)code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT: return CLASS_WIDE_UPPER;
    case UTF8PROC_CATEGORY_LL: return CLASS_WIDE_LOWER;
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return CLASS_UNCASED;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME: return CLASS_MARK;
    case UTF8PROC_CATEGORY_ND: return CLASS_WIDE_DIGIT;
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return CLASS_NUMERAL;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return CLASS_OTHER_SPACE;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO: return CLASS_WIDE_PUNCTUATION;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO: return CLASS_WIDE_SYMBOL;
    case UTF8PROC_CATEGORY_CN: return CLASS_UNASSIGNED;
    default: return CLASS_CONTROL;
    }
}

#define C CLASS_CONTROL
#define O CLASS_OTHER_SPACE
#define N CLASS_LINE_FEED
#define R CLASS_CARRIAGE_RETURN
#define B CLASS_BLANK
#define P CLASS_ASCII_PUNCTUATION
#define S CLASS_ASCII_SYMBOL
#define D CLASS_DIGIT
#define U CLASS_ASCII_UPPER
#define L CLASS_ASCII_LOWER
// clang-format off
const uint32_t character_ascii_classes[128] = {
    C, C, C, C, C, C, C, C, C, O, N, O, O, R, C, C,
    C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C,
    B, P, P, P, S, P, P, P, P, P, P, S, P, P, P, P,
    D, D, D, D, D, D, D, D, D, D, P, P, S, S, S, P,
    P, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U,
    U, U, U, U, U, U, U, U, U, U, U, P, P, P, S, P,
    S, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L,
    L, L, L, L, L, L, L, L, L, L, L, P, S, P, S, C,
};
// clang-format on

uint32_t character_class(uint32_t code) { return code < 0x80 ? character_ascii_classes[code] : wide_class(code); }

struct character character_at_wide(const char *text, size_t size, size_t at) {
    struct character c;
    c.size = utf8_decode(text + at, size - at, &c.code);
    c.class = character_class(c.code);
    return c;
}

int character_in_ranges(const struct character_ranges *r, uint32_t code) {
    size_t low = 0, high = r->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (code > r->ranges[middle][1]) low = middle + 1;
        else high = middle;
    }
    return low < r->count && code >= r->ranges[low][0];
}
