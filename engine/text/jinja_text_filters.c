// Jinja filters for strings and numbers.
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/text/jinja_builtin.h"

typedef struct jinja_arguments arguments;

static bool given(const arguments *a, size_t i) { return a->values[i].type != JINJA_UNDEFINED; }
static bool flag(const arguments *a, size_t i) { return jinja_truth(a->values[i]); }

static int64_t integer_or(struct jinja *j, const arguments *a, size_t i, int64_t otherwise, const char *what) {
    return given(a, i) ? jinja_as_integer(j, a->values[i], what) : otherwise;
}

// ---- texts ----

static struct jinja_value filter_string(struct jinja *j, struct jinja_value self, const arguments *a) {
    (void)a;
    return jinja_text_like(self, jinja_to_string(j, self));
}

static struct jinja_value filter_safe(struct jinja *j, struct jinja_value self, const arguments *a) {
    (void)a;
    return jinja_safe(jinja_to_string(j, self));
}

#define CASE_FILTER(name, to)                                                                                          \
    static struct jinja_value name(struct jinja *j, struct jinja_value self, const arguments *a) {                     \
        (void)a;                                                                                                       \
        return jinja_text_like(self, jinja_change_case(j, jinja_to_string(j, self), to));                              \
    }
CASE_FILTER(filter_upper, JINJA_UPPER)
CASE_FILTER(filter_lower, JINJA_LOWER)
CASE_FILTER(filter_capitalize, JINJA_CAPITALIZE)

static struct jinja_value filter_title(struct jinja *j, struct jinja_value self, const arguments *a) {
    (void)a;
    return jinja_text(jinja_change_case(j, jinja_to_string(j, self), JINJA_TITLE_WORDS)); // not safe, as in Jinja2
}

static struct jinja_value filter_trim(struct jinja *j, struct jinja_value self, const arguments *a) {
    struct jinja_string set = {0};
    bool has_set = given(a, 0) && a->values[0].type != JINJA_NONE;
    if (has_set) set = jinja_as_string(j, a->values[0], "chars");
    return jinja_text_like(self, jinja_strip(j, jinja_to_string(j, self), has_set ? &set : NULL, true, true));
}

static struct jinja_value filter_replace(struct jinja *j, struct jinja_value self, const arguments *a) {
    int64_t most = given(a, 2) && a->values[2].type != JINJA_NONE ? jinja_as_integer(j, a->values[2], "count") : -1;
    struct jinja_string old = jinja_to_string(j, a->values[0]), new = jinja_to_string(j, a->values[1]);
    return jinja_text(jinja_replace(j, jinja_to_string(j, self), old, new, most));
}

static struct jinja_string indention(struct jinja *j, struct jinja_value width) {
    if (width.type == JINJA_STRING) return width.string;
    struct jinja_builder b = {0};
    int64_t n = width.type == JINJA_UNDEFINED ? 4 : jinja_as_integer(j, width, "width");
    for (int64_t i = 0; i < n; i++) jinja_spend(j, 1), jinja_append_text(j, &b, " ");
    return jinja_built(&b);
}

static struct jinja_value filter_indent(struct jinja *j, struct jinja_value self, const arguments *a) {
    struct jinja_string by = indention(j, a->values[0]);
    struct jinja_builder with_end = {0}, out = {0};
    jinja_append(j, &with_end, jinja_as_string(j, self, "value"));
    jinja_append_text(j, &with_end, "\n"); // a final line end counts
    const struct jinja_list *lines = jinja_split_lines(j, jinja_built(&with_end));
    bool first = flag(a, 1), blank = flag(a, 2);
    for (size_t i = 0; i < lines->count; i++) {
        struct jinja_string line = lines->items[i].string;
        if (i) jinja_append_text(j, &out, "\n");
        if (i ? blank || line.size : first) jinja_append(j, &out, by);
        jinja_append(j, &out, line);
    }
    return jinja_text_like(self, jinja_built(&out));
}

struct jinja_string jinja_escape(struct jinja *j, struct jinja_value v) {
    static const struct {
        char c;
        const char *text;
    } escapes[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'\'', "&#39;"}, {'"', "&#34;"}};
    struct jinja_string s = jinja_to_string(j, v);
    if (v.safe) return s;
    for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++) {
        struct jinja_string one = {&escapes[i].c, NULL, 1};
        s = jinja_replace(j, s, one, jinja_literal(escapes[i].text), -1);
    }
    return s;
}

static struct jinja_value filter_escape(struct jinja *j, struct jinja_value self, const arguments *a) {
    (void)a;
    return jinja_safe(jinja_escape(j, self));
}

static struct jinja_value filter_forceescape(struct jinja *j, struct jinja_value self, const arguments *a) {
    (void)a;
    return jinja_safe(jinja_escape(j, jinja_text(jinja_to_string(j, self))));
}

static struct jinja_value filter_wordcount(struct jinja *j, struct jinja_value self, const arguments *a) {
    (void)a;
    struct jinja_string s = jinja_to_string(j, self);
    int64_t words = 0;
    bool inside = false;
    for (size_t at = 0; at < s.size;) {
        uint32_t code;
        at += utf8_decode(s.data + at, s.size - at, &code);
        bool part = code == '_' || jinja_is_letter(code) || jinja_is_digit(code);
        words += part && !inside;
        inside = part;
    }
    jinja_scan(j, s.size);
    return jinja_integer(words);
}

static struct jinja_value filter_format(struct jinja *j, struct jinja_value self, const arguments *a) {
    struct jinja_list list = {a->values, a->count, a->count};
    struct jinja_value values = a->named ? jinja_mapping(a->named) : jinja_sequence(JINJA_TUPLE, &list);
    return jinja_percent_format(j, jinja_text_like(self, jinja_to_string(j, self)), values);
}

// ---- JSON ----

static struct jinja_value filter_tojson(struct jinja *j, struct jinja_value self, const arguments *a) {
    struct jinja_json_style style = {.ascii = flag(a, 0), .sort = flag(a, 3)};
    bool indented = given(a, 1) && a->values[1].type != JINJA_NONE;
    style.item = jinja_literal(indented ? "," : ", ");
    style.key = jinja_literal(": ");
    if (indented) style.indent = indention(j, a->values[1]);
    if (given(a, 2) && a->values[2].type != JINJA_NONE) {
        const struct jinja_list *pair = jinja_iterate(j, a->values[2]);
        if (pair->count != 2) jinja_fail(j, STATUS_FORMAT, "tojson() needs two separators");
        style.item = jinja_as_string(j, pair->items[0], "separator");
        style.key = jinja_as_string(j, pair->items[1], "separator");
    }
    return jinja_text(jinja_to_json(j, self, &style));
}

// ---- numbers ----

// Strips white space and underscores; false if the text cannot be a number.
static bool number_text(struct jinja *j, struct jinja_string s, char out[64]) {
    size_t n = 0;
    s = jinja_strip(j, s, NULL, true, true);
    jinja_scan(j, s.size);
    for (size_t i = 0; i < s.size; i++) {
        if (s.data[i] == '_') continue;
        if (n + 1 == 64 || !s.data[i] || (unsigned char)s.data[i] >= 0x80) return false;
        out[n++] = s.data[i];
    }
    out[n] = 0;
    return n > 0;
}

static bool parse_float(struct jinja *j, struct jinja_string s, double *out) {
    char text[64], *end;
    if (!number_text(j, s, text) || strpbrk(text, "xXpP(")) return false;
    *out = strtod(text, &end);
    return !*end;
}

static struct jinja_value filter_float(struct jinja *j, struct jinja_value self, const arguments *a) {
    struct jinja_value otherwise = given(a, 0) ? a->values[0] : jinja_number(0);
    double number;
    if (self.type == JINJA_UNDEFINED) jinja_fail_undefined(j, self);
    if (jinja_is_number(self)) return jinja_number(jinja_as_double(self));
    if (self.type != JINJA_STRING || !parse_float(j, self.string, &number)) return otherwise;
    return jinja_number(number);
}

static bool parse_integer(struct jinja *j, struct jinja_string s, int base, int64_t *out) {
    char text[64], *end;
    if (!number_text(j, s, text)) return false;
    const char *digits = text + (*text == '-' || *text == '+');
    bool prefixed = digits[0] == '0' && digits[1] && strchr("xXoObB", digits[1]);
    if (prefixed && !(base == 16 && (digits[1] | 32) == 'x')) return false;
    errno = 0;
    *out = strtoll(text, &end, base);
    return !*end && end > text && !errno;
}

static struct jinja_value truncate_float(double number, struct jinja_value otherwise) {
    return number > -9.2e18 && number < 9.2e18 ? jinja_integer((int64_t)number) : otherwise;
}

static struct jinja_value filter_int(struct jinja *j, struct jinja_value self, const arguments *a) {
    struct jinja_value otherwise = given(a, 0) ? a->values[0] : jinja_integer(0);
    int64_t base = integer_or(j, a, 1, 10, "base"), integer;
    double number;
    if (base < 2 || base > 36) jinja_fail(j, STATUS_FORMAT, "int() base must be from 2 to 36");
    if (self.type == JINJA_UNDEFINED) jinja_fail_undefined(j, self);
    if (self.type == JINJA_FLOAT) return truncate_float(self.number, otherwise);
    if (jinja_is_number(self)) return jinja_integer(jinja_as_integer(j, self, "number"));
    if (self.type != JINJA_STRING) return otherwise;
    if (parse_integer(j, self.string, (int)base, &integer)) return jinja_integer(integer);
    return parse_float(j, self.string, &number) ? truncate_float(number, otherwise) : otherwise;
}

static double as_number(struct jinja *j, struct jinja_value v) {
    if (v.type == JINJA_UNDEFINED) jinja_fail_undefined(j, v);
    if (!jinja_is_number(v)) jinja_fail(j, STATUS_FORMAT, "a number is required, not '%s'", jinja_type_name(v));
    return jinja_as_double(v);
}

static struct jinja_value filter_abs(struct jinja *j, struct jinja_value self, const arguments *a) {
    (void)a;
    double number = as_number(j, self);
    if (self.type == JINJA_FLOAT) return jinja_number(fabs(number));
    int64_t integer = jinja_as_integer(j, self, "number");
    if (integer == INT64_MIN) jinja_fail(j, STATUS_LIMIT, "integer exceeds 64 bits");
    return jinja_integer(integer < 0 ? -integer : integer);
}

// Rounds to the nearest decimal, ties of the exact value to even, like printf.
static double round_decimal(double number, int64_t precision) {
    char text[400];
    if (precision > 22 || !isfinite(number)) return number;
    if (precision < -DBL_MAX_10_EXP) return 0 * number; // the unit exceeds every double
    if (precision < 0) {
        double unit = pow(10, -(double)precision);
        return nearbyint(number / unit) * unit;
    }
    snprintf(text, sizeof text, "%.*f", (int)precision, number);
    return strtod(text, NULL);
}

static struct jinja_value filter_round(struct jinja *j, struct jinja_value self, const arguments *a) {
    double number = as_number(j, self);
    int64_t precision = integer_or(j, a, 0, 0, "precision");
    struct jinja_string method = given(a, 1) ? jinja_as_string(j, a->values[1], "method") : jinja_literal("common");
    bool up = jinja_string_is(method, "ceil"), down = jinja_string_is(method, "floor");
    if (!up && !down && !jinja_string_is(method, "common"))
        jinja_fail(j, STATUS_FORMAT, "method must be common, ceil or floor");
    if (up || down) {
        double unit = pow(10, (double)precision);
        return jinja_number((up ? ceil(number * unit) : floor(number * unit)) / unit);
    }
    if (self.type == JINJA_FLOAT) return jinja_number(round_decimal(number, precision));
    if (precision >= 0) return jinja_integer(jinja_as_integer(j, self, "number"));
    return truncate_float(round_decimal(number, precision), jinja_integer(0));
}

// ---- others ----

static struct jinja_value filter_default(struct jinja *j, struct jinja_value self, const arguments *a) {
    (void)j;
    bool missing = self.type == JINJA_UNDEFINED || (flag(a, 1) && !jinja_truth(self));
    if (!missing) return self;
    return given(a, 0) ? a->values[0] : jinja_text(jinja_literal(""));
}

static struct jinja_value filter_length(struct jinja *j, struct jinja_value self, const arguments *a) {
    (void)a;
    switch (self.type) {
    case JINJA_UNDEFINED: return jinja_integer(0);
    case JINJA_STRING: return jinja_integer((int64_t)jinja_length(j, self.string));
    case JINJA_LIST:
    case JINJA_TUPLE: return jinja_integer((int64_t)self.list->count);
    case JINJA_DICT: return jinja_integer((int64_t)self.dict->count);
    case JINJA_LOOP: return jinja_integer((int64_t)self.loop->items->count);
    default: jinja_fail(j, STATUS_FORMAT, "object of type '%s' has no len()", jinja_type_name(self));
    }
}

const struct jinja_builtin jinja_text_filters[] = {
    {"abs", "", 0, filter_abs},
    {"capitalize", "", 0, filter_capitalize},
    {"count", "", 0, filter_length},
    {"d", "default_value boolean", 0, filter_default},
    {"default", "default_value boolean", 0, filter_default},
    {"e", "", 0, filter_escape},
    {"escape", "", 0, filter_escape},
    {"float", "default", 0, filter_float},
    {"forceescape", "", 0, filter_forceescape},
    {"format", "*", 0, filter_format},
    {"indent", "width first blank", 0, filter_indent},
    {"int", "default base", 0, filter_int},
    {"length", "", 0, filter_length},
    {"lower", "", 0, filter_lower},
    {"replace", "old new count", 2, filter_replace},
    {"round", "precision method", 0, filter_round},
    {"safe", "", 0, filter_safe},
    {"string", "", 0, filter_string},
    {"title", "", 0, filter_title},
    {"tojson", "ensure_ascii indent separators sort_keys", 0, filter_tojson},
    {"trim", "chars", 0, filter_trim},
    {"upper", "", 0, filter_upper},
    {"wordcount", "", 0, filter_wordcount},
    {0},
};
