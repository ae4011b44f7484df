#include "engine/grammar/source.h"

#include <stdarg.h>
#include <stdio.h>

#include "engine/base/utf8.h"

bool source_fail(struct source *s, enum status_code code, const char *format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    int line = 1, column = 1;
    for (const char *c = s->begin; c < s->at; c++) {
        if (*c == '\n') line++, column = 1;
        else column += ((unsigned char)*c & 0xc0) != 0x80;
    }
    return status_fail(s->st, code, "line %d, column %d: %s", line, column, text);
}

bool source_nest(struct source *s) {
    if (s->nesting < RULES_NESTING) return s->nesting++, true;
    return source_fail(s, STATUS_LIMIT, "brackets are nested too deeply (maximum %d)", RULES_NESTING);
}

bool source_character(struct source *s, uint32_t *code) {
    if (s->at == s->end) return source_fail(s, STATUS_FORMAT, "unexpected end");
    const size_t size = utf8_decode(s->at, (size_t)(s->end - s->at), code);
    char again[4];
    if (utf8_encode(*code, again) != size || memcmp(again, s->at, size) != 0)
        return source_fail(s, STATUS_FORMAT, "not valid UTF-8");
    s->at += size;
    return true;
}

static int digit_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool source_hexadecimal(struct source *s, int digits, uint32_t *code) {
    *code = 0;
    for (int i = 0; i < digits; i++) {
        const int value = s->at < s->end ? digit_value(*s->at) : -1;
        if (value < 0) return source_fail(s, STATUS_FORMAT, "expected %d hexadecimal digits", digits);
        *code = *code * 16 + (uint32_t)value;
        s->at++;
    }
    if (*code <= CODE_LAST) return true;
    return source_fail(s, STATUS_FORMAT, "no character has this number");
}

static bool read_parts(struct source *s, source_class_part *part, struct code_set *set) {
    struct arena *a = &s->rules->arena;
    while (s->at < s->end && *s->at != ']') {
        uint32_t first, last;
        bool is_set = false, is_last_set = false;
        if (!part(s, set, &first, &is_set)) return false;
        if (is_set) continue;
        last = first;
        if (s->end - s->at >= 2 && s->at[0] == '-' && s->at[1] != ']') {
            s->at++;
            if (!part(s, set, &last, &is_last_set)) return false;
            if (is_last_set) code_set_add(a, set, '-', '-'), last = first;
        }
        if (first > last) return source_fail(s, STATUS_FORMAT, "the range ends before it begins");
        code_set_add(a, set, first, last);
    }
    return true;
}

bool source_class(struct source *s, source_class_part *part, struct code_set *out) {
    const char *begin = s->at - 1;
    const bool inverted = source_take(s, '^');
    *out = (struct code_set){0};
    if (!read_parts(s, part, out)) return false;
    if (!source_take(s, ']')) {
        s->at = begin;
        return source_fail(s, STATUS_FORMAT, "unterminated character class");
    }
    code_set_settle(out);
    if (inverted) *out = code_set_complement(&s->rules->arena, out);
    return true;
}

bool source_number(struct source *s, int *out) {
    if (!source_is_digit(s)) return source_fail(s, STATUS_FORMAT, "expected a number");
    *out = 0;
    for (; source_is_digit(s); s->at++) {
        *out = *out * 10 + (*s->at - '0');
        if (*out > RULES_REPEATS)
            return source_fail(s, STATUS_LIMIT, "too many repetitions (maximum %d)", RULES_REPEATS);
    }
    return true;
}

static void skip_blanks(struct source *s) {
    while (s->spaced && s->at < s->end && *s->at && strchr(" \t\r\n", *s->at)) s->at++;
}

bool source_times(struct source *s, int *least, int *most) {
    skip_blanks(s);
    if (!source_number(s, least)) return false;
    skip_blanks(s);
    *most = *least;
    if (source_take(s, ',')) {
        skip_blanks(s);
        *most = RULES_UNLIMITED;
        if (source_is_digit(s) && !source_number(s, most)) return false;
        skip_blanks(s);
    }
    if (!source_take(s, '}')) return source_fail(s, STATUS_FORMAT, "expected '}'");
    if (*most == RULES_UNLIMITED || *least <= *most) return true;
    return source_fail(s, STATUS_FORMAT, "the minimum of repetitions is above the maximum");
}
