// Letter case of Jinja strings; one character maps to one, except ß.
#include <utf8proc.h>

#include "engine/base/utf8.h"
#include "engine/text/jinja_builtin.h"

enum { SHARP_S = 0xdf };

static uint32_t upper(uint32_t code) { return (uint32_t)utf8proc_toupper((utf8proc_int32_t)code); }
static uint32_t lower(uint32_t code) { return (uint32_t)utf8proc_tolower((utf8proc_int32_t)code); }
static bool is_cased(uint32_t code) { return upper(code) != code || lower(code) != code; }

bool jinja_is_letter(uint32_t code) {
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)code);
    return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

bool jinja_is_digit(uint32_t code) { return utf8proc_category((utf8proc_int32_t)code) == UTF8PROC_CATEGORY_ND; }

static bool begins_word(uint32_t before) {
    return before == '-' || before == '(' || before == '{' || before == '[' || before == '<' || jinja_is_space(before);
}

// Whether the character after `before` (0: at the start) becomes upper case.
static bool becomes_upper(enum jinja_case to, uint32_t before) {
    switch (to) {
    case JINJA_UPPER: return true;
    case JINJA_LOWER: return false;
    case JINJA_CAPITALIZE: return !before;
    case JINJA_TITLE: return !before || !is_cased(before);
    default: return !before || begins_word(before);
    }
}

struct jinja_string jinja_change_case(struct jinja *j, struct jinja_string s, enum jinja_case to) {
    struct jinja_builder b = {0};
    uint32_t code, before = 0;
    for (size_t at = 0, next; at < s.size; at = next, before = code) {
        next = at + utf8_decode(s.data + at, s.size - at, &code);
        bool to_upper = becomes_upper(to, before), tainted = s.taint && s.taint[at];
        uint32_t changed = to_upper ? upper(code) : lower(code);
        if (code == SHARP_S && to_upper) {
            jinja_append_code(j, &b, 'S', tainted);
            jinja_append_code(j, &b, to == JINJA_UPPER || to == JINJA_TITLE_WORDS ? 'S' : 's', tainted);
        } else if (changed == code) {
            jinja_append(j, &b, jinja_substring(s, at, next)); // invalid bytes too
        } else {
            jinja_append_code(j, &b, changed, tainted);
        }
    }
    jinja_scan(j, s.size);
    return jinja_built(&b);
}

bool jinja_has_case(struct jinja *j, struct jinja_string s, enum jinja_case wanted) {
    bool any = false;
    jinja_scan(j, s.size);
    for (size_t at = 0; at < s.size;) {
        uint32_t code;
        at += utf8_decode(s.data + at, s.size - at, &code);
        if (!is_cased(code)) continue;
        if ((wanted == JINJA_UPPER ? upper(code) : lower(code)) != code) return false;
        any = true;
    }
    return any;
}
