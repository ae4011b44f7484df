// Jinja values as text: Python's str() and repr(), and JSON like Hugging Face's tojson.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "engine/base/utf8.h"
#include "engine/text/jinja_value.h"

// The shortest decimal that reads back as the same number.
size_t jinja_format_float(double number, char out[32]) {
    if (isnan(number)) return (size_t)sprintf(out, "nan");
    if (isinf(number)) return (size_t)sprintf(out, number < 0 ? "-inf" : "inf");
    int precision = 0;
    do snprintf(out, 32, "%.*e", precision, number);
    while (strtod(out, NULL) != number && ++precision < 17);
    int exponent = atoi(strchr(out, 'e') + 1);
    if (exponent < -4 || exponent >= 16) return strlen(out);
    int decimals = precision > exponent ? precision - exponent : 1;
    return (size_t)snprintf(out, 32, "%.*f", decimals, number);
}

static void append_integer(struct jinja *j, struct jinja_builder *b, int64_t integer) {
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)integer);
    jinja_append_text(j, b, text);
}

static void append_float(struct jinja *j, struct jinja_builder *b, double number) {
    char text[32];
    jinja_format_float(number, text);
    jinja_append_text(j, b, text);
}

// ---- repr ----

static bool is_printable(uint32_t code) {
    if (code < 0x7f) return code >= 0x20;
    switch (utf8proc_category((utf8proc_int32_t)code)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS: return false;
    default: return true;
    }
}

// The escape of a character in a repr; "" if it needs none.
static void repr_escape(uint32_t code, char quote, char out[16]) {
    static const struct {
        uint32_t code;
        const char *text;
    } named[] = {{'\n', "\\n"}, {'\r', "\\r"}, {'\t', "\\t"}, {'\\', "\\\\"}};
    out[0] = 0;
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (named[i].code == code) strcpy(out, named[i].text);
    if (out[0]) return;
    if (code == (uint32_t)quote) snprintf(out, 16, "\\%c", quote);
    else if (is_printable(code)) return;
    else if (code < 0x100) snprintf(out, 16, "\\x%02x", code);
    else if (code < 0x10000) snprintf(out, 16, "\\u%04x", code);
    else snprintf(out, 16, "\\U%08x", code);
}

// An ASCII text with the taint of these bytes.
static void append_as(struct jinja *j, struct jinja_builder *b, const char *text, bool tainted) {
    for (; *text; text++) jinja_append_code(j, b, (uint8_t)*text, tainted);
}

typedef void escape_function(uint32_t code, char argument, char out[16]);

// Runs without escapes are appended at once.
static void append_escaped(struct jinja *j, struct jinja_builder *b, struct jinja_string s, escape_function *escape,
                           char argument) {
    size_t done = 0;
    for (size_t at = 0, next; at < s.size; at = next) {
        uint32_t code;
        char escaped[16];
        next = at + utf8_decode(s.data + at, s.size - at, &code);
        escape(code, argument, escaped);
        if (!escaped[0]) continue;
        jinja_append(j, b, jinja_substring(s, done, at));
        append_as(j, b, escaped, s.taint && s.taint[at]);
        done = next;
    }
    jinja_append(j, b, jinja_substring(s, done, s.size));
    jinja_scan(j, s.size);
}

static void append_repr(struct jinja *j, struct jinja_builder *b, struct jinja_value v);

static void append_quoted(struct jinja *j, struct jinja_builder *b, struct jinja_string s) {
    bool single = s.size && memchr(s.data, '\'', s.size), twofold = s.size && memchr(s.data, '"', s.size);
    char quote = single && !twofold ? '"' : '\'', mark[2] = {quote, 0};
    jinja_append_text(j, b, mark);
    append_escaped(j, b, s, repr_escape, quote);
    jinja_append_text(j, b, mark);
}

static void append_list(struct jinja *j, struct jinja_builder *b, const struct jinja_list *list, const char *before,
                        const char *after) {
    jinja_append_text(j, b, before);
    for (size_t i = 0; i < list->count; i++) {
        if (i) jinja_append_text(j, b, ", ");
        append_repr(j, b, list->items[i]);
    }
    jinja_append_text(j, b, after);
}

static void append_dict(struct jinja *j, struct jinja_builder *b, const struct jinja_dict *dict) {
    jinja_append_text(j, b, "{");
    for (size_t i = 0; i < dict->count; i++) {
        if (i) jinja_append_text(j, b, ", ");
        append_repr(j, b, dict->entries[i].key);
        jinja_append_text(j, b, ": ");
        append_repr(j, b, dict->entries[i].value);
    }
    jinja_append_text(j, b, "}");
}

static void append_namespace(struct jinja *j, struct jinja_builder *b, const struct jinja_dict *dict) {
    jinja_append_text(j, b, "<Namespace ");
    append_dict(j, b, dict);
    jinja_append_text(j, b, ">");
}

static void append_repr(struct jinja *j, struct jinja_builder *b, struct jinja_value v) {
    jinja_spend(j, 1);
    jinja_enter(j);
    switch (v.type) {
    case JINJA_UNDEFINED: jinja_append_text(j, b, "Undefined"); break;
    case JINJA_NONE: jinja_append_text(j, b, "None"); break;
    case JINJA_BOOLEAN: jinja_append_text(j, b, v.boolean ? "True" : "False"); break;
    case JINJA_INTEGER: append_integer(j, b, v.integer); break;
    case JINJA_FLOAT: append_float(j, b, v.number); break;
    case JINJA_STRING:
        if (v.safe) jinja_append_text(j, b, "Markup(");
        append_quoted(j, b, v.string);
        if (v.safe) jinja_append_text(j, b, ")");
        break;
    case JINJA_LIST: append_list(j, b, v.list, "[", "]"); break;
    case JINJA_TUPLE: append_list(j, b, v.list, "(", v.list->count == 1 ? ",)" : ")"); break;
    case JINJA_DICT: append_dict(j, b, v.dict); break;
    case JINJA_NAMESPACE: append_namespace(j, b, v.dict); break;
    default:
        jinja_append_text(j, b, "<");
        jinja_append_text(j, b, jinja_type_name(v));
        jinja_append_text(j, b, ">");
    }
    jinja_leave(j);
}

struct jinja_string jinja_repr(struct jinja *j, struct jinja_value v) {
    struct jinja_builder b = {0};
    append_repr(j, &b, v);
    return jinja_built(&b);
}

struct jinja_string jinja_to_string(struct jinja *j, struct jinja_value v) {
    if (v.type == JINJA_STRING) return v.string;
    if (v.type == JINJA_UNDEFINED) return jinja_literal("");
    return jinja_repr(j, v);
}

// ---- JSON ----

struct json_writer {
    struct jinja *j;
    struct jinja_builder out;
    const struct jinja_json_style *style;
    size_t level;
};

static void json_escape(uint32_t code, char ascii, char out[16]) {
    static const char named[] = "\"\"\\\\\nn\rr\tt\bb\ff"; // pairs of a character and its escape letter
    out[0] = 0;
    for (size_t i = 0; i + 1 < sizeof named; i += 2)
        if (code == (uint8_t)named[i]) snprintf(out, 16, "\\%c", named[i + 1]);
    if (out[0]) return;
    if (code >= 0x10000 && ascii) snprintf(out, 16, "\\u%04x\\u%04x", 0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff));
    else if (code < 0x20 || (code >= 0x7f && ascii)) snprintf(out, 16, "\\u%04x", code);
    if (code == 0x7f) out[0] = 0;
}

static void json_value(struct json_writer *w, struct jinja_value v);

static void json_text(struct json_writer *w, struct jinja_string s) {
    jinja_append_text(w->j, &w->out, "\"");
    append_escaped(w->j, &w->out, s, json_escape, w->style->ascii);
    jinja_append_text(w->j, &w->out, "\"");
}

static void json_line(struct json_writer *w) {
    if (!w->style->indent.data) return;
    jinja_append_text(w->j, &w->out, "\n");
    for (size_t i = 0; i < w->level; i++) jinja_append(w->j, &w->out, w->style->indent);
}

static void json_list(struct json_writer *w, const struct jinja_list *list) {
    jinja_append_text(w->j, &w->out, "[");
    w->level++;
    for (size_t i = 0; i < list->count; i++) {
        if (i) jinja_append(w->j, &w->out, w->style->item);
        json_line(w);
        json_value(w, list->items[i]);
    }
    w->level--;
    if (list->count) json_line(w);
    jinja_append_text(w->j, &w->out, "]");
}

static void json_number(struct json_writer *w, double number) {
    if (isfinite(number)) append_float(w->j, &w->out, number);
    else jinja_append_text(w->j, &w->out, isnan(number) ? "NaN" : number < 0 ? "-Infinity" : "Infinity");
}

static void json_key(struct json_writer *w, struct jinja_value key) {
    bool simple = key.type == JINJA_NONE || jinja_is_number(key);
    if (key.type == JINJA_STRING) json_text(w, key.string);
    else if (!simple)
        jinja_fail(w->j, STATUS_FORMAT, "keys must be str, int, float, bool or None, not %s", jinja_type_name(key));
    else {
        jinja_append_text(w->j, &w->out, "\"");
        json_value(w, key);
        jinja_append_text(w->j, &w->out, "\"");
    }
}

// Insertion sort on a copy: dicts are small, and every comparison is charged.
static const struct jinja_dict *sorted_by_key(struct jinja *j, const struct jinja_dict *dict) {
    struct jinja_dict *sorted = jinja_dict(j, dict->count);
    for (size_t i = 0; i < dict->count; i++) {
        size_t at = sorted->count++;
        for (; at && jinja_compare(j, dict->entries[i].key, sorted->entries[at - 1].key, "<") < 0; at--) {
            jinja_spend(j, 1);
            sorted->entries[at] = sorted->entries[at - 1];
        }
        sorted->entries[at] = dict->entries[i];
    }
    return sorted;
}

static void json_dict(struct json_writer *w, const struct jinja_dict *dict) {
    if (w->style->sort) dict = sorted_by_key(w->j, dict);
    jinja_append_text(w->j, &w->out, "{");
    w->level++;
    for (size_t i = 0; i < dict->count; i++) {
        if (i) jinja_append(w->j, &w->out, w->style->item);
        json_line(w);
        json_key(w, dict->entries[i].key);
        jinja_append(w->j, &w->out, w->style->key);
        json_value(w, dict->entries[i].value);
    }
    w->level--;
    if (dict->count) json_line(w);
    jinja_append_text(w->j, &w->out, "}");
}

static void json_value(struct json_writer *w, struct jinja_value v) {
    jinja_spend(w->j, 1);
    jinja_enter(w->j);
    switch (v.type) {
    case JINJA_NONE: jinja_append_text(w->j, &w->out, "null"); break;
    case JINJA_BOOLEAN: jinja_append_text(w->j, &w->out, v.boolean ? "true" : "false"); break;
    case JINJA_INTEGER: append_integer(w->j, &w->out, v.integer); break;
    case JINJA_FLOAT: json_number(w, v.number); break;
    case JINJA_STRING: json_text(w, v.string); break;
    case JINJA_LIST:
    case JINJA_TUPLE: json_list(w, v.list); break;
    case JINJA_DICT: json_dict(w, v.dict); break;
    default: jinja_fail(w->j, STATUS_FORMAT, "Object of type %s is not JSON serializable", jinja_type_name(v));
    }
    jinja_leave(w->j);
}

struct jinja_string jinja_to_json(struct jinja *j, struct jinja_value v, const struct jinja_json_style *style) {
    struct json_writer w = {.j = j, .style = style};
    json_value(&w, v);
    return jinja_built(&w.out);
}
