#include "app/server/fields.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "engine/base/status.h"
#include "engine/base/utf8.h"

#define MOST_STOPS 16

enum { BAD_REQUEST = 400, VALUE_DEPTH = 3 };

// Cut at a character: clients name fields, too.
static void set_field(struct refusal *r, const char *text) {
    size_t size = strlen(text), room = sizeof r->field - 1;
    if (size > room) size = room - utf8_incomplete(text, room);
    memcpy(r->field, text, size);
    r->field[size] = 0;
}

bool refuse(struct refusal *r, int status, const char *field, const char *format, ...) {
    va_list arguments;
    struct status clean;
    char text[sizeof r->text];
    *r = (struct refusal){.status = status};
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    status_fail(&clean, STATUS_USAGE, "%s%s%.400s", field ? field : "", field ? ": " : "", text);
    snprintf(r->text, sizeof r->text, "%s", clean.text);
    set_field(r, field ? field : "");
    return false;
}

bool refuse_within(struct refusal *r, const char *name) {
    const struct refusal inner = *r;
    char *field = xasprintf("%s.%s", name, inner.field);
    refuse(r, inner.status, NULL, "%s.%s", name, inner.text);
    set_field(r, field);
    free(field);
    return false;
}

static bool refuse_below(struct refusal *r, const json_t *object, const json_t *value, const char *text, int depth) {
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)object, name, member) {
        const bool below = member != value && depth && refuse_below(r, member, value, text, depth - 1);
        if (below) refuse_within(r, name);
        else if (member == value) refuse(r, BAD_REQUEST, name, "%s", text);
        if (below || member == value) return true;
    }
    return false;
}

bool refuse_value(struct refusal *r, const json_t *object, const json_t *value, const char *text) {
    return refuse_below(r, object, value, text, VALUE_DEPTH);
}

void ask_arrange(struct ask *a) {
    if (a->prompt && !a->raw) {
        a->messages = xcalloc(2, sizeof *a->messages);
        a->messages[a->n_messages++] = (struct engine_message){"user", a->prompt, NULL};
    }
    if (!a->system || !a->n_messages) return;
    memmove(a->messages + 1, a->messages, (size_t)a->n_messages++ * sizeof *a->messages);
    a->messages[0] = (struct engine_message){"system", a->system, NULL};
}

bool ask_compile_grammar(struct ask *a, struct status *st) {
    const json_t *source = a->grammar_source;
    const bool is_text = a->grammar_kind == GRAMMAR_JSON || json_is_string(source);
    char *dumped = is_text ? NULL : json_dumps(source, 0);
    const char *text = dumped ? dumped : a->grammar_kind == GRAMMAR_JSON ? "" : json_string_value(source);
    a->grammar = grammar_compile(a->grammar_kind, text, strlen(text), st);
    free(dumped);
    return a->grammar;
}

void ask_free(struct ask *a) {
    for (int i = 0; i < a->n_parts; i++) free(a->parts[i]);
    for (int i = 0; i < a->n_others; i++) free(a->others[i].ids);
    free(a->others);
    free(a->parts), free(a->messages), free(a->stops), free(a->ids);
    grammar_drop(a->grammar);
    *a = (struct ask){0};
}

// ---- one field ----

static const char *type_name(const json_t *value) {
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "a list";
    case JSON_STRING: return "a string";
    case JSON_INTEGER:
    case JSON_REAL: return "a number";
    case JSON_TRUE:
    case JSON_FALSE: return "true or false";
    case JSON_NULL: return "null";
    }
    return "";
}

static bool wrong_type(struct refusal *r, const char *field, const char *expected, const json_t *value) {
    return refuse(r, BAD_REQUEST, field, "expected %s, got %s", expected, type_name(value));
}

static bool read_number(const json_t *value, const struct field *f, bool whole, double low, double high, double *out,
                        struct refusal *r) {
    const char *expected = whole ? "a whole number" : "a number";
    const double number = json_number_value(value);
    if (!json_is_number(value)) return wrong_type(r, f->name, expected, value);
    if (whole && number != floor(number)) return refuse(r, BAD_REQUEST, f->name, "%g is not %s", number, expected);
    if (number < low || number > high)
        return refuse(r, BAD_REQUEST, f->name, "%.10g is out of range (%.10g to %.10g)", number, low, high);
    *out = number;
    return true;
}

// To confab a seed of 0 is none; whoever gives one wants the same answer again.
static bool read_knob(const json_t *value, const struct field *f, struct sampling *s, struct refusal *r) {
    const struct sampling_knob *knob = &sampling_knobs[f->place];
    double number;
    if (!read_number(value, f, knob->kind != SAMPLING_FLOAT, knob->low, knob->high, &number, r)) return false;
    sampling_set(s, (enum sampling_knob_id)f->place, f->place == KNOB_seed && number == 0 ? knob->high : number);
    return true;
}

static bool read_grammar(const json_t *value, const struct field *f, struct ask *a, struct refusal *r) {
    const enum grammar_kind kind = (enum grammar_kind)f->place;
    const bool fits = kind == GRAMMAR_JSON || json_is_string(value) ||
                      (kind == GRAMMAR_SCHEMA && json_is_object(value)) ||
                      (kind == GRAMMAR_CHOICE && json_is_array(value));
    const char *expected = kind == GRAMMAR_SCHEMA ? "an object" : kind == GRAMMAR_CHOICE ? "a list" : "a string";
    if (!fits) return wrong_type(r, f->name, expected, value);
    if (a->grammar_source) return refuse(r, BAD_REQUEST, f->name, "the answer is held to something else already");
    a->grammar_kind = kind;
    a->grammar_source = value;
    return true;
}

static bool is_nothing(const json_t *value) {
    const char *text = json_string_value(value);
    return json_is_false(value) || (text && (!*text || !strcmp(text, "none"))) ||
           (json_is_array(value) && !json_array_size(value)) || (json_is_object(value) && !json_object_size(value));
}

static bool read_field(const json_t *value, const struct field *f, struct ask *a, struct refusal *r) {
    void *place = (char *)a + f->place;
    double number;
    switch (f->kind) {
    case FIELD_TABLE: break;
    case FIELD_KNOB: return read_knob(value, f, &a->sampling, r);
    case FIELD_INT:
        if (!read_number(value, f, true, f->low, f->high, &number, r)) return false;
        *(int *)place = (int)number;
        return true;
    case FIELD_FLAG:
        if (!json_is_boolean(value)) return wrong_type(r, f->name, "true or false", value);
        *(bool *)place = json_is_true(value);
        return true;
    case FIELD_TEXT:
        if (!json_is_string(value)) return wrong_type(r, f->name, "a string", value);
        *(const char **)place = json_string_value(value);
        return true;
    case FIELD_GRAMMAR: return read_grammar(value, f, a, r);
    case FIELD_READ: return f->read(value, f->name, a, r);
    case FIELD_IGNORED: return true;
    case FIELD_REFUSED: return is_nothing(value) || refuse(r, BAD_REQUEST, f->name, "not supported");
    }
    return true;
}

const struct field field_knobs[] = {
#define X(field, key, ...) {#field, FIELD_KNOB, .place = KNOB_##field}, {key, FIELD_KNOB, .place = KNOB_##field},
    SAMPLING_KNOBS(X)
#undef X
        {0},
};

static const struct field *find(const struct field *table, const char *name) {
    const struct field *found = NULL;
    for (const struct field *f = table; f->name && !found; f++)
        found = f->kind == FIELD_TABLE ? find(f->table, name) : strcmp(f->name, name) ? NULL : f;
    return found;
}

bool fields_read(const json_t *object, const struct field *table, bool strict, struct ask *a, struct refusal *r) {
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value) {
        const struct field *f = find(table, name);
        if (json_is_null(value)) continue;
        if (!f && strict) return refuse(r, BAD_REQUEST, name, "unknown field");
        if (f && !read_field(value, f, a, r)) return false;
    }
    return true;
}

bool fields_read_within(const json_t *value, const char *name, const struct field *table, bool strict, struct ask *a,
                        struct refusal *r) {
    if (!json_is_object(value)) return wrong_type(r, name, "an object", value);
    return fields_read(value, table, strict, a, r) || refuse_within(r, name);
}

// ---- stops ----

static bool add_stop(const json_t *value, const char *name, struct ask *a, struct refusal *r) {
    if (!json_is_string(value)) return wrong_type(r, name, "a string, or a list of strings", value);
    if (!json_string_length(value)) return refuse(r, BAD_REQUEST, name, "is empty");
    if (a->n_stops == MOST_STOPS) return refuse(r, BAD_REQUEST, name, "too many texts (maximum %d)", MOST_STOPS);
    a->stops = xrealloc(a->stops, (size_t)(a->n_stops + 1) * sizeof *a->stops);
    a->stops[a->n_stops++] = json_string_value(value);
    return true;
}

bool field_stops(const json_t *value, const char *name, struct ask *a, struct refusal *r) {
    size_t i;
    json_t *stop;
    if (!json_is_array(value)) return add_stop(value, name, a, r);
    json_array_foreach((json_t *)value, i, stop) if (!add_stop(stop, name, a, r)) return false;
    return true;
}

// ---- messages ----

static const char *keep(struct ask *a, char *text) {
    a->parts = xrealloc(a->parts, (size_t)(a->n_parts + 1) * sizeof *a->parts);
    return a->parts[a->n_parts++] = text;
}

static bool is_of_type(const json_t *part, const char *const *types) {
    const char *type = json_string_value(json_object_get(part, "type"));
    while (type && *types && strcmp(type, *types)) types++;
    return type && *types;
}

static bool is_text(const json_t *part) {
    static const char *const types[] = {"text", "input_text", "output_text", NULL};
    return is_of_type(part, types) && json_is_string(json_object_get(part, "text"));
}

static bool is_thinking(const json_t *part) { // which is not asked again
    static const char *const types[] = {"thinking", "redacted_thinking", NULL};
    return is_of_type(part, types);
}

static const char *read_parts(const json_t *list, const char *field, struct ask *a, struct refusal *r) {
    struct bytes text = {0};
    size_t i;
    json_t *part;
    bool good = true;
    json_array_foreach((json_t *)list, i, part) {
        if (is_thinking(part)) continue;
        good = is_text(part) || refuse(r, BAD_REQUEST, field, "part %zu is not of the type text", i);
        if (!good) break;
        const json_t *words = json_object_get(part, "text");
        bytes_add(&text, json_string_value(words), json_string_length(words));
    }
    bytes_add(&text, "", 1);
    if (good) return keep(a, text.data);
    bytes_free(&text);
    return NULL;
}

// A text, or a list of parts that are texts; NULL: refused.
static const char *read_content(const json_t *content, const char *field, struct ask *a, struct refusal *r) {
    if (json_is_string(content)) return json_string_value(content);
    if (json_is_array(content)) return read_parts(content, field, a, r);
    if (!content) refuse(r, BAD_REQUEST, field, "is missing");
    else wrong_type(r, field, "a string, or a list of parts", content);
    return NULL;
}

// The role as models know it; NULL: refused.
static const char *read_role(const json_t *role, const char *field, struct refusal *r) {
    static const char *const roles[][2] = {
        {"system", "system"}, {"developer", "system"}, {"user", "user"}, {"assistant", "assistant"}};
    if (!json_is_string(role)) {
        if (role) wrong_type(r, field, "a string", role);
        else refuse(r, BAD_REQUEST, field, "is missing");
        return NULL;
    }
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (!strcmp(json_string_value(role), roles[i][0])) return roles[i][1];
    refuse(r, BAD_REQUEST, field, "unknown value '%.40s' (expected system, developer, user or assistant)",
           json_string_value(role));
    return NULL;
}

static const char *read_thinking(const json_t *message) {
    const char *text = json_string_value(json_object_get(message, "reasoning_content"));
    return text ? text : json_string_value(json_object_get(message, "thinking"));
}

static bool read_message(const json_t *message, const char *list, size_t place, struct ask *a, struct refusal *r) {
    static const char *const refused[] = {"tool_calls", "function_call", "images", "audio"};
    char field[64];
    struct engine_message *m = &a->messages[a->n_messages++];
    snprintf(field, sizeof field, "%s[%zu]", list, place);
    if (!json_is_object(message)) return wrong_type(r, field, "an object", message);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const json_t *value = json_object_get(message, refused[i]);
        snprintf(field, sizeof field, "%s[%zu].%s", list, place, refused[i]);
        if (value && !json_is_null(value) && !is_nothing(value)) return refuse(r, BAD_REQUEST, field, "not supported");
    }
    snprintf(field, sizeof field, "%s[%zu].role", list, place);
    m->role = read_role(json_object_get(message, "role"), field, r);
    snprintf(field, sizeof field, "%s[%zu].content", list, place);
    m->text = m->role ? read_content(json_object_get(message, "content"), field, a, r) : NULL;
    m->thinking = read_thinking(message);
    return m->text;
}

bool field_messages(const json_t *value, const char *name, struct ask *a, struct refusal *r) {
    size_t i;
    json_t *message;
    if (!json_is_array(value)) return wrong_type(r, name, "a list", value);
    a->messages = xcalloc(json_array_size(value) + 1, sizeof *a->messages); // one for what the system says
    json_array_foreach((json_t *)value, i, message) if (!read_message(message, name, i, a, r)) return false;
    return true;
}

bool field_system(const json_t *value, const char *name, struct ask *a, struct refusal *r) {
    a->system = read_content(value, name, a, r);
    return a->system;
}

bool field_effort(const json_t *value, const char *name, struct ask *a, struct refusal *r) {
    static const struct {
        const char *name;
        enum reasoning reasoning;
    } efforts[] = {{"none", REASONING_OFF},
                   {"minimal", REASONING_LOW},
                   {"low", REASONING_LOW},
                   {"medium", REASONING_MEDIUM},
                   {"high", REASONING_HIGH}};
    if (!json_is_string(value)) return wrong_type(r, name, "a string", value);
    for (size_t i = 0; i < sizeof efforts / sizeof *efforts; i++)
        if (!strcmp(json_string_value(value), efforts[i].name)) {
            a->reasoning = efforts[i].reasoning;
            return true;
        }
    return refuse(r, BAD_REQUEST, name, "unknown value '%.40s' (expected none, minimal, low, medium or high)",
                  json_string_value(value));
}
