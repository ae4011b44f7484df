// Source: the text of a grammar while it is parsed; messages name the line and the column.
#ifndef CONFAB_GRAMMAR_SOURCE_H
#define CONFAB_GRAMMAR_SOURCE_H

#include "engine/grammar/rules.h"

struct source {
    struct rules *rules;
    const char *begin, *at, *end;
    int nesting; // open brackets
    bool spaced; // white space may stand in "{…}"
    struct status *st;
};

static inline bool source_is_at(const struct source *s, char c) { return s->at < s->end && *s->at == c; }
static inline bool source_take(struct source *s, char c) {
    if (!source_is_at(s, c)) return false;
    s->at++;
    return true;
}
static inline bool source_is_digit(const struct source *s) { return s->at < s->end && *s->at >= '0' && *s->at <= '9'; }

// "line 2, column 7: …"; returns false.
bool source_fail(struct source *s, enum status_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));
// An opening bracket; false where there are too many. A closing one: s->nesting--.
bool source_nest(struct source *s);

// A character, valid UTF-8.
bool source_character(struct source *s, uint32_t *code);
// `digits` hexadecimal digits, of a character.
bool source_hexadecimal(struct source *s, int digits, uint32_t *code);
// A character of a class, or a whole set, which is added; then *is_set, which is false before.
typedef bool source_class_part(struct source *s, struct code_set *set, uint32_t *code, bool *is_set);
// Behind "[": parts and ranges of them up to "]", those with "^" before them inverted; *out is settled.
bool source_class(struct source *s, source_class_part *part, struct code_set *out);
// A decimal number up to RULES_REPEATS.
bool source_number(struct source *s, int *out);
// Behind "{": "n}", "n,}" or "n,m}".
bool source_times(struct source *s, int *least, int *most);

#endif
