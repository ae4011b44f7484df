// Python's two ways of formatting: '%s, %d' % (a, b) and '{}, {name}'.format(a, name=b).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/text/jinja_builtin.h"

enum { WIDTH_LIMIT = 1000 };

// ---- percent ----

struct percent {
    char flags[6];
    int width, precision; // −1: none
    char kind;
};

static bool is_digit(struct jinja_string s, size_t at) { return at < s.size && s.data[at] >= '0' && s.data[at] <= '9'; }

static int read_digits(struct jinja *j, struct jinja_string s, size_t *at) {
    int number = 0;
    for (; is_digit(s, *at); ++*at)
        if ((number = number * 10 + (s.data[*at] - '0')) > WIDTH_LIMIT)
            jinja_fail(j, STATUS_LIMIT, "format width is too large (maximum %d)", WIDTH_LIMIT);
    return number;
}

// Parses a conversion after '%', starting at *at.
static struct percent read_percent(struct jinja *j, struct jinja_string s, size_t *at) {
    struct percent p = {.width = -1, .precision = -1};
    size_t n = 0;
    while (*at < s.size && s.data[*at] && strchr("-+ 0#", s.data[*at]) && n + 1 < sizeof p.flags)
        p.flags[n++] = s.data[(*at)++];
    if (is_digit(s, *at)) p.width = read_digits(j, s, at);
    if (*at < s.size && s.data[*at] == '.') {
        ++*at;
        p.precision = read_digits(j, s, at);
    }
    if (*at >= s.size) jinja_fail(j, STATUS_FORMAT, "incomplete format");
    p.kind = s.data[(*at)++];
    return p;
}

static void append_padded(struct jinja *j, struct jinja_builder *b, const struct percent *p, struct jinja_string text) {
    if (p->precision >= 0) text = jinja_substring(text, 0, jinja_offset(j, text, (size_t)p->precision));
    int64_t missing = p->width - (int64_t)jinja_length(j, text);
    bool left = strchr(p->flags, '-');
    for (int64_t i = 0; i < missing && !left; i++) jinja_append_text(j, b, " ");
    jinja_append(j, b, text);
    for (int64_t i = 0; i < missing && left; i++) jinja_append_text(j, b, " ");
}

static void append_number(struct jinja *j, struct jinja_builder *b, const struct percent *p, struct jinja_value v) {
    char format[16], text[WIDTH_LIMIT * 2 + 400];
    bool whole = strchr("diuxXo", p->kind), binary = strchr("xXo", p->kind);
    if (!jinja_is_number(v) || (binary && v.type == JINJA_FLOAT))
        jinja_fail(j, STATUS_FORMAT, "%%%c format: a number is required, not %s", p->kind, jinja_type_name(v));
    double number = jinja_as_double(v);
    if (whole && v.type == JINJA_FLOAT && !(number > -9e18 && number < 9e18))
        jinja_fail(j, STATUS_LIMIT, "integer exceeds 64 bits");
    long long integer = 0;
    if (whole) integer = v.type == JINJA_FLOAT ? (long long)number : jinja_as_integer(j, v, "number");
    int width = p->width < 0 ? 0 : p->width;
    const char *point = p->precision < 0 ? "" : ".*";
    snprintf(format, sizeof format, "%%%s*%s%s%c", p->flags, point, whole ? "ll" : "", p->kind == 'u' ? 'd' : p->kind);
    if (whole && p->precision < 0) snprintf(text, sizeof text, format, width, integer);
    else if (whole) snprintf(text, sizeof text, format, width, p->precision, integer);
    else if (p->precision < 0) snprintf(text, sizeof text, format, width, number);
    else snprintf(text, sizeof text, format, width, p->precision, number);
    jinja_append_text(j, b, text);
}

// The text of a value in a conversion.
static struct jinja_string taken(struct jinja *j, struct jinja_value v, bool repr, bool escapes) {
    if (repr) v = jinja_text(jinja_repr(j, v));
    return escapes ? jinja_escape(j, v) : jinja_to_string(j, v);
}

static void append_percent(struct jinja *j, struct jinja_builder *b, const struct percent *p, struct jinja_value v,
                           bool escapes) {
    bool repr = p->kind == 'r';
    if (v.type == JINJA_UNDEFINED && p->kind != 's') jinja_fail_undefined(j, v);
    if (p->kind == 's' || repr) append_padded(j, b, p, taken(j, v, repr, escapes));
    else if (p->kind && strchr("diuxXoeEfFgG", p->kind)) append_number(j, b, p, v);
    else jinja_fail(j, STATUS_FORMAT, "unsupported format character '%c'", p->kind);
}

struct jinja_value jinja_percent_format(struct jinja *j, struct jinja_value text, struct jinja_value values) {
    const struct jinja_string format = text.string;
    struct jinja_list *one = jinja_list(j, 1);
    jinja_push(j, one, values);
    const struct jinja_list *list = values.type == JINJA_TUPLE ? values.list : one;
    struct jinja_builder b = {0};
    size_t used = 0, at = 0;
    for (;;) {
        size_t mark = jinja_find(j, format, jinja_literal("%"), at);
        jinja_append(j, &b, jinja_substring(format, at, mark == SIZE_MAX ? format.size : mark));
        if (mark == SIZE_MAX) break;
        at = mark + 1;
        struct percent p = read_percent(j, format, &at);
        jinja_spend(j, 1 + (at - mark) / 16);
        if (p.kind == '%') {
            jinja_append(j, &b, jinja_substring(format, mark, mark + 1));
            continue;
        }
        if (used == list->count) jinja_fail(j, STATUS_FORMAT, "not enough arguments for format string");
        append_percent(j, &b, &p, list->items[used++], text.safe);
    }
    bool may_stay =
        values.type == JINJA_LIST || values.type == JINJA_DICT || values.type == JINJA_UNDEFINED; // as in Python
    if (used < list->count && !may_stay)
        jinja_fail(j, STATUS_FORMAT, "not all arguments converted during string formatting");
    return jinja_text_like(text, jinja_built(&b));
}

// ---- braces ----

// The argument named by "0.name"; "" is the next one.
static struct jinja_value brace_field(struct jinja *j, struct jinja_string field, const struct jinja_arguments *a,
                                      size_t *next) {
    size_t dot = jinja_find(j, field, jinja_literal("."), 0), digits = 0;
    struct jinja_string head = jinja_substring(field, 0, dot == SIZE_MAX ? field.size : dot);
    struct jinja_value v;
    while (is_digit(head, digits)) digits++;
    if (digits == head.size) {
        size_t zero = 0, index = head.size ? (size_t)read_digits(j, head, &zero) : (*next)++;
        if (index >= a->count)
            jinja_fail(j, STATUS_FORMAT, "Replacement index %zu out of range for positional args tuple", index);
        v = a->values[index];
    } else {
        const struct jinja_entry *named = a->named ? jinja_dict_find(j, a->named, jinja_text(head)) : NULL;
        if (!named) jinja_fail(j, STATUS_FORMAT, "format() is missing an argument");
        v = named->value;
    }
    if (dot == SIZE_MAX) return v;
    return jinja_path(j, v, jinja_text(jinja_substring(field, dot + 1, field.size)));
}

// "{field}", "{field!r}"
static struct jinja_string brace_text(struct jinja *j, struct jinja_string field, const struct jinja_arguments *a,
                                      size_t *next, bool escapes) {
    if (field.size && memchr(field.data, ':', field.size))
        jinja_fail(j, STATUS_FORMAT, "format() with a format specification is not supported");
    bool repr = field.size >= 2 && !memcmp(field.data + field.size - 2, "!r", 2);
    if (repr) field.size -= 2;
    return taken(j, brace_field(j, field, a, next), repr, escapes);
}

struct jinja_value jinja_brace_format(struct jinja *j, struct jinja_value text, const struct jinja_arguments *a) {
    const struct jinja_string format = text.string;
    struct jinja_builder b = {0};
    size_t next = 0;
    for (size_t at = 0; at < format.size;) {
        size_t mark = at;
        jinja_spend(j, 1);
        while (mark < format.size && format.data[mark] != '{' && format.data[mark] != '}') mark++;
        jinja_append(j, &b, jinja_substring(format, at, mark));
        if (mark == format.size) break;
        bool twice = mark + 1 < format.size && format.data[mark + 1] == format.data[mark]; // escaped
        size_t end = twice ? mark + 1 : jinja_find(j, format, jinja_literal("}"), mark);
        if (end == SIZE_MAX || (!twice && format.data[mark] == '}'))
            jinja_fail(j, STATUS_FORMAT, "Single '%c' encountered in format string", format.data[mark]);
        jinja_append(j, &b,
                     twice ? jinja_substring(format, mark, mark + 1)
                           : brace_text(j, jinja_substring(format, mark + 1, end), a, &next, text.safe));
        at = end + 1;
    }
    return jinja_text_like(text, jinja_built(&b));
}
