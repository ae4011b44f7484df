#include "engine/grammar/json_text.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/base/panic.h"

enum { INDENTATION = 24 }; // blanks behind a line end

static const struct expression *set_of(struct rules *r, size_t n, const struct code_range *ranges) {
    struct code_set set = {0};
    for (size_t i = 0; i < n; i++) code_set_add(&r->arena, &set, ranges[i].first, ranges[i].last);
    code_set_settle(&set);
    return expression_set(r, &set);
}

#define SET_OF(r, ...)                                                                                                 \
    set_of(r, sizeof((const struct code_range[]){__VA_ARGS__}) / sizeof(struct code_range),                            \
           (const struct code_range[]){__VA_ARGS__})

static const struct {
    char code;
    const char *escape;
} escapes[] = {{'"', "\\\""}, {'\\', "\\\\"}, {'\b', "\\b"}, {'\f', "\\f"},
               {'\n', "\\n"}, {'\r', "\\r"},  {'\t', "\\t"}};
enum { ESCAPES = sizeof escapes / sizeof *escapes };

static bool set_has(const struct code_set *s, uint32_t code) {
    for (size_t i = 0; i < s->count; i++)
        if (code >= s->ranges[i].first && code <= s->ranges[i].last) return true;
    return false;
}

static const char *escape_of(uint32_t code) {
    for (int i = 0; i < ESCAPES; i++)
        if ((uint32_t)escapes[i].code == code) return escapes[i].escape;
    return NULL;
}

// The characters of a set that are spelled with an escape.
static void add_escaped(struct rules *r, const struct code_set *set, struct expression_list *list) {
    struct expression_list texts = {0};
    for (int i = 0; i < ESCAPES; i++)
        if (set_has(set, (uint8_t)escapes[i].code))
            expression_list_add(r, &texts, expression_literal(r, escapes[i].escape));
    for (uint32_t code = 1; code < 0x20; code++) {
        char text[8];
        if (!set_has(set, code) || escape_of(code)) continue;
        for (int upper = 0; upper <= (code % 16 > 9); upper++) {
            snprintf(text, sizeof text, upper ? "\\u00%02X" : "\\u00%02x", code);
            expression_list_add(r, &texts, expression_literal(r, text));
        }
    }
    expression_list_add(r, list, expression_choice(r, &texts));
}

static const struct code_range usual[] = {{0x20, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, 0x7F}};
static const struct code_range unusual[] = {{1, 0x1F}, {'"', '"'}, {'\\', '\\'}, {0x80, CODE_LAST}};
static const struct code_set usual_set = {(struct code_range *)usual, 3, 3},
                             unusual_set = {(struct code_range *)unusual, 4, 4};

static void add_character(struct rules *r, const struct code_set *set, struct expression_list *list) {
    static const struct code_range above[] = {{0x80, CODE_LAST}};
    const struct code_set above_set = {(struct code_range *)above, 1, 1},
                          high = code_set_common(&r->arena, set, &above_set);
    expression_list_add(r, list, expression_set(r, &high));
    add_escaped(r, set, list);
}

// Most sets have all unusual characters, which are a rule of their own then.
static bool has_unusual(struct rules *r, const struct code_set *set) {
    const struct code_set common = code_set_common(&r->arena, set, &unusual_set);
    return common.count == unusual_set.count && !memcmp(common.ranges, unusual, sizeof unusual);
}

const struct expression *json_text_character(struct rules *r, const struct code_set *set) {
    struct expression_list list = {0};
    const struct code_set plain = code_set_common(&r->arena, set, &usual_set);
    expression_list_add(r, &list, expression_set(r, &plain));
    if (!has_unusual(r, set)) add_character(r, set, &list);
    else {
        if (!r->unusual) {
            struct expression_list all = {0};
            const int rule = rules_add(r, span_of("character"), NULL);
            if (rule < 0) return expression_nothing(r); // there are too many rules: others will say so
            add_character(r, set, &all);
            r->rules[rule].body = expression_choice(r, &all);
            r->unusual = rule + 1;
        }
        expression_list_add(r, &list, expression_rule(r, r->unusual - 1));
    }
    return expression_choice(r, &list);
}

// What \u may be followed by: no NUL, and surrogates in pairs only.
static const struct expression *json_code_units(struct rules *r) {
    const struct expression *hex = SET_OF(r, {'0', '9'}, {'a', 'f'}, {'A', 'F'});
    const struct expression *hex3 = expression_repeat(r, hex, 3, 3), *hex2 = expression_repeat(r, hex, 2, 2);
    const struct expression *digit = SET_OF(r, {'1', '9'}, {'a', 'f'}, {'A', 'F'}), *zero = expression_literal(r, "0");
    const struct expression *below = EXPRESSION_CHOICE_OF(r, EXPRESSION_SEQUENCE_OF(r, zero, digit, hex2),
                                                          EXPRESSION_SEQUENCE_OF(r, zero, zero, digit, hex),
                                                          EXPRESSION_SEQUENCE_OF(r, zero, zero, zero, digit));
    const struct expression *others = SET_OF(r, {'1', '9'}, {'a', 'c'}, {'A', 'C'}, {'e', 'f'}, {'E', 'F'});
    const struct expression *d = SET_OF(r, {'d', 'd'}, {'D', 'D'}), *low = SET_OF(r, {'0', '7'});
    const struct expression *high = SET_OF(r, {'8', '9'}, {'a', 'b'}, {'A', 'B'}),
                            *second = SET_OF(r, {'c', 'f'}, {'C', 'F'});
    const struct expression *pair =
        EXPRESSION_SEQUENCE_OF(r, d, high, hex2, expression_literal(r, "\\u"), d, second, hex2);
    return EXPRESSION_CHOICE_OF(r, below, EXPRESSION_SEQUENCE_OF(r, others, hex3),
                                EXPRESSION_SEQUENCE_OF(r, d, low, hex2), pair);
}

const struct expression *json_text_any_character(struct rules *r) {
    const struct expression *plain = SET_OF(r, {0x20, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, CODE_LAST});
    const struct expression *letter =
        SET_OF(r, {'"', '"'}, {'\\', '\\'}, {'/', '/'}, {'b', 'b'}, {'f', 'f'}, {'n', 'n'}, {'r', 'r'}, {'t', 't'});
    const struct expression *units = EXPRESSION_SEQUENCE_OF(r, expression_literal(r, "u"), json_code_units(r));
    const struct expression *escape =
        EXPRESSION_SEQUENCE_OF(r, expression_literal(r, "\\"), EXPRESSION_CHOICE_OF(r, letter, units));
    return EXPRESSION_CHOICE_OF(r, plain, escape);
}

const struct expression *json_text_space(struct rules *r) {
    const struct expression *blank = SET_OF(r, {' ', ' '}, {'\t', '\t'});
    const struct expression *line =
        EXPRESSION_SEQUENCE_OF(r, expression_optional(r, expression_literal(r, "\r")), expression_literal(r, "\n"),
                               expression_repeat(r, blank, 0, INDENTATION));
    return expression_optional(r, EXPRESSION_CHOICE_OF(r, expression_literal(r, " "), line));
}

const struct expression *json_text_quoted(struct rules *r, const char *text, size_t size) {
    char *out = xmalloc(6 * size + 2);
    size_t n = 0;
    out[n++] = '"';
    for (size_t i = 0; i < size; i++) {
        const uint8_t byte = (uint8_t)text[i];
        const char *escape = escape_of(byte);
        if (escape) n += (size_t)sprintf(out + n, "%s", escape);
        else if (byte < 0x20) n += (size_t)sprintf(out + n, "\\u%04x", byte);
        else out[n++] = text[i];
    }
    out[n++] = '"';
    const struct expression *e = expression_text(r, (struct span){out, n});
    free(out);
    return e;
}

// ---- values ----

struct value_maker {
    struct rules *rules;
    const struct expression *space;
    int depth;
    struct status *st;
};

static const struct expression *make_value(struct value_maker *m, const json_t *value);

// The shortest digits that mean the same; 1.0 may be written as 1, too.
static const struct expression *make_real(struct rules *r, double value) {
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    const struct expression *e = expression_literal(r, text);
    if (strpbrk(text, ".e")) return e;
    return EXPRESSION_SEQUENCE_OF(r, e, expression_optional(r, expression_literal(r, ".0")));
}

static const struct expression *make_scalar(struct value_maker *m, const json_t *value) {
    if (json_is_string(value)) return json_text_quoted(m->rules, json_string_value(value), json_string_length(value));
    if (json_is_real(value)) return make_real(m->rules, json_real_value(value));
    char *text = json_dumps(value, JSON_ENCODE_ANY);
    const struct expression *e = expression_literal(m->rules, text);
    free(text);
    return e;
}

// Items between brackets, with commas.
static const struct expression *make_enclosed(struct value_maker *m, const char *open, const char *close,
                                              const struct expression_list *items) {
    struct rules *r = m->rules;
    struct expression_list list = {0};
    expression_list_add(r, &list, expression_literal(r, open));
    expression_list_add(r, &list, m->space);
    for (int i = 0; i < items->n; i++) {
        if (i) expression_list_add(r, &list, EXPRESSION_SEQUENCE_OF(r, expression_literal(r, ","), m->space));
        expression_list_add(r, &list, items->items[i]);
        if (i == items->n - 1) expression_list_add(r, &list, m->space);
    }
    expression_list_add(r, &list, expression_literal(r, close));
    return expression_sequence(r, &list);
}

static const struct expression *make_array(struct value_maker *m, const json_t *value) {
    struct expression_list items = {0};
    size_t i;
    json_t *item;
    json_array_foreach(value, i, item) {
        const struct expression *e = make_value(m, item);
        if (!e) return NULL;
        expression_list_add(m->rules, &items, e);
    }
    return make_enclosed(m, "[", "]", &items);
}

static const struct expression *make_object(struct value_maker *m, const json_t *value) {
    struct rules *r = m->rules;
    struct expression_list items = {0};
    const char *name;
    json_t *item;
    json_object_foreach((json_t *)value, name, item) {
        const struct expression *e = make_value(m, item);
        if (!e) return NULL;
        const struct expression *colon = expression_literal(r, ":");
        e = EXPRESSION_SEQUENCE_OF(r, json_text_quoted(r, name, strlen(name)), colon, m->space, e);
        expression_list_add(r, &items, e);
    }
    return make_enclosed(m, "{", "}", &items);
}

static const struct expression *make_value(struct value_maker *m, const json_t *value) {
    if (!rules_have_room(m->rules, m->st)) return NULL;
    if (!json_is_array(value) && !json_is_object(value)) return make_scalar(m, value);
    if (m->depth == RULES_NESTING)
        return status_fail(m->st, STATUS_LIMIT, "a value nests too deeply (maximum %d)", RULES_NESTING), NULL;
    m->depth++;
    const struct expression *e = json_is_array(value) ? make_array(m, value) : make_object(m, value);
    m->depth--;
    return e;
}

const struct expression *json_text_value(struct rules *r, const json_t *value, const struct expression *space,
                                         struct status *st) {
    struct value_maker m = {.rules = r, .space = space, .st = st};
    return make_value(&m, value);
}

// ---- numbers ----

const struct expression *json_text_integer(struct rules *r) {
    const struct expression *digits = expression_repeat(r, SET_OF(r, {'0', '9'}), 0, RULES_UNLIMITED);
    const struct expression *whole =
        EXPRESSION_CHOICE_OF(r, expression_literal(r, "0"), EXPRESSION_SEQUENCE_OF(r, SET_OF(r, {'1', '9'}), digits));
    return EXPRESSION_SEQUENCE_OF(r, expression_optional(r, expression_literal(r, "-")), whole);
}

const struct expression *json_text_number(struct rules *r) {
    const struct expression *digits = expression_repeat(r, SET_OF(r, {'0', '9'}), 1, RULES_UNLIMITED);
    const struct expression *fraction = EXPRESSION_SEQUENCE_OF(r, expression_literal(r, "."), digits);
    const struct expression *sign = expression_optional(r, SET_OF(r, {'+', '+'}, {'-', '-'}));
    const struct expression *exponent = EXPRESSION_SEQUENCE_OF(r, SET_OF(r, {'e', 'e'}, {'E', 'E'}), sign,
                                                               expression_repeat(r, SET_OF(r, {'0', '9'}), 1, 2));
    return EXPRESSION_SEQUENCE_OF(r, json_text_integer(r), expression_optional(r, fraction),
                                  expression_optional(r, exponent));
}
