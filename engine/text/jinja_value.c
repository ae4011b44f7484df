#include "engine/text/jinja_value.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/utf8.h"

// ---- limits and failure ----

void jinja_fail(struct jinja *j, enum status_code code, const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    status_fail(j->st, code, "line %d: %s", j->line, text);
    longjmp(j->failure, 1);
}

void jinja_raise(struct jinja *j, struct jinja_string message) {
    int size = message.size < sizeof j->st->text ? (int)message.size : (int)sizeof j->st->text;
    status_fail(j->st, STATUS_UNSUPPORTED, "%.*s", size, message.data ? message.data : "");
    longjmp(j->failure, 1);
}

void jinja_fail_undefined(struct jinja *j, struct jinja_value v) {
    const struct jinja_missing *m = v.missing;
    if (!m) jinja_fail(j, STATUS_FORMAT, "value is undefined");
    int size = m->name.size < 100 ? (int)m->name.size : 100;
    if (!m->owner) jinja_fail(j, STATUS_FORMAT, "'%.*s' is undefined", size, m->name.data);
    jinja_fail(j, STATUS_FORMAT, "'%s object' has no attribute '%.*s'", m->owner, size, m->name.data);
}

void jinja_spend(struct jinja *j, size_t steps) {
    if (steps >= (uint64_t)j->steps) jinja_fail(j, STATUS_LIMIT, "template exceeds %d steps", JINJA_STEPS_LIMIT);
    j->steps -= (int64_t)steps;
}

void jinja_enter(struct jinja *j) {
    if (j->depth >= JINJA_DEPTH_LIMIT)
        jinja_fail(j, STATUS_LIMIT, "template is nested too deep (maximum %d)", JINJA_DEPTH_LIMIT);
    j->depth++;
}

void *jinja_alloc(struct jinja *j, uint64_t count, size_t size) {
    uint64_t total;
    void *p = NULL;
    if (checked_mul(count, size, &total) && total <= JINJA_MEMORY_LIMIT && j->arena.used <= JINJA_MEMORY_LIMIT - total)
        p = arena_array(&j->arena, count, size, j->st);
    if (!p) jinja_fail(j, STATUS_LIMIT, "template exceeds %d MB of memory", JINJA_MEMORY_LIMIT >> 20);
    return p;
}

struct jinja_value jinja_undefined(struct jinja *j, const char *owner, struct jinja_string name) {
    struct jinja_missing *missing = jinja_alloc(j, 1, sizeof *missing);
    *missing = (struct jinja_missing){owner, name};
    return (struct jinja_value){.type = JINJA_UNDEFINED, .missing = missing};
}

// ---- lists and dicts ----

// Room for one more item of `size` bytes.
static void *grow(struct jinja *j, void *items, size_t count, size_t *capacity, size_t size) {
    if (count < *capacity) return items;
    size_t larger = *capacity < 4 ? 8 : 2 * *capacity;
    void *copy = jinja_alloc(j, larger, size);
    if (count) memcpy(copy, items, count * size);
    *capacity = larger;
    return copy;
}

struct jinja_list *jinja_list(struct jinja *j, size_t capacity) {
    struct jinja_list *list = jinja_alloc(j, 1, sizeof *list);
    list->capacity = capacity;
    if (capacity) list->items = jinja_alloc(j, capacity, sizeof *list->items);
    return list;
}

void jinja_push(struct jinja *j, struct jinja_list *list, struct jinja_value v) {
    list->items = grow(j, list->items, list->count, &list->capacity, sizeof v);
    list->items[list->count++] = v;
}

struct jinja_value jinja_pair(struct jinja *j, struct jinja_value a, struct jinja_value b) {
    struct jinja_list *pair = jinja_list(j, 2);
    jinja_push(j, pair, a);
    jinja_push(j, pair, b);
    return jinja_sequence(JINJA_TUPLE, pair);
}

struct jinja_dict *jinja_dict(struct jinja *j, size_t capacity) {
    struct jinja_dict *dict = jinja_alloc(j, 1, sizeof *dict);
    dict->capacity = capacity;
    if (capacity) dict->entries = jinja_alloc(j, capacity, sizeof *dict->entries);
    return dict;
}

struct jinja_entry *jinja_dict_find(struct jinja *j, const struct jinja_dict *dict, struct jinja_value key) {
    jinja_spend(j, dict->count / 4);
    for (size_t i = 0; i < dict->count; i++) {
        struct jinja_entry *e = &dict->entries[i];
        // The usual case; only long keys are charged.
        bool texts = key.type == JINJA_STRING && e->key.type == JINJA_STRING;
        if (texts && key.string.size == e->key.string.size) jinja_scan(j, key.string.size);
        if (texts ? jinja_string_equal(key.string, e->key.string) : jinja_equal(j, key, e->key)) return e;
    }
    return NULL;
}

void jinja_dict_set(struct jinja *j, struct jinja_dict *dict, struct jinja_value key, struct jinja_value v) {
    if (key.type == JINJA_LIST || key.type == JINJA_DICT)
        jinja_fail(j, STATUS_FORMAT, "unhashable type: '%s'", jinja_type_name(key));
    struct jinja_entry *found = jinja_dict_find(j, dict, key);
    if (found) {
        found->value = v;
        return;
    }
    dict->entries = grow(j, dict->entries, dict->count, &dict->capacity, sizeof *dict->entries);
    dict->entries[dict->count++] = (struct jinja_entry){key, v};
}

static const struct jinja_list *characters(struct jinja *j, struct jinja_string s) {
    struct jinja_list *list = jinja_list(j, jinja_length(j, s));
    for (size_t at = 0, next; at < s.size; at = next) {
        uint32_t code;
        next = at + utf8_decode(s.data + at, s.size - at, &code);
        jinja_push(j, list, jinja_text(jinja_substring(s, at, next)));
    }
    return list;
}

static const struct jinja_list *keys(struct jinja *j, const struct jinja_dict *dict) {
    struct jinja_list *list = jinja_list(j, dict->count);
    for (size_t i = 0; i < dict->count; i++) jinja_push(j, list, dict->entries[i].key);
    return list;
}

const struct jinja_list *jinja_iterate(struct jinja *j, struct jinja_value v) {
    switch (v.type) {
    case JINJA_LIST:
    case JINJA_TUPLE:
    case JINJA_ITERATOR: return v.list;
    case JINJA_STRING: return characters(j, v.string);
    case JINJA_DICT: return keys(j, v.dict);
    case JINJA_UNDEFINED: return jinja_list(j, 0);
    default: jinja_fail(j, STATUS_FORMAT, "'%s' object is not iterable", jinja_type_name(v));
    }
}

// ---- all values ----

const char *jinja_type_name(struct jinja_value v) {
    static const char *const names[JINJA_TYPE_COUNT] = {
#define X(type, name) [type] = name,
        JINJA_TYPES(X)
#undef X
    };
    return v.safe ? "Markup" : names[v.type];
}

bool jinja_is_number(struct jinja_value v) {
    return v.type == JINJA_INTEGER || v.type == JINJA_FLOAT || v.type == JINJA_BOOLEAN;
}

static int64_t whole(struct jinja_value v) { return v.type == JINJA_BOOLEAN ? v.boolean : v.integer; }

double jinja_as_double(struct jinja_value v) { return v.type == JINJA_FLOAT ? v.number : (double)whole(v); }

int64_t jinja_as_integer(struct jinja *j, struct jinja_value v, const char *what) {
    if (v.type == JINJA_UNDEFINED) jinja_fail_undefined(j, v);
    if (v.type != JINJA_INTEGER && v.type != JINJA_BOOLEAN)
        jinja_fail(j, STATUS_FORMAT, "%s must be an int, not '%s'", what, jinja_type_name(v));
    return whole(v);
}

struct jinja_string jinja_as_string(struct jinja *j, struct jinja_value v, const char *what) {
    if (v.type == JINJA_UNDEFINED) jinja_fail_undefined(j, v);
    if (v.type != JINJA_STRING) jinja_fail(j, STATUS_FORMAT, "%s must be a str, not '%s'", what, jinja_type_name(v));
    return v.string;
}

bool jinja_truth(struct jinja_value v) {
    switch (v.type) {
    case JINJA_UNDEFINED:
    case JINJA_NONE: return false;
    case JINJA_BOOLEAN: return v.boolean;
    case JINJA_INTEGER: return v.integer != 0;
    case JINJA_FLOAT: return v.number != 0;
    case JINJA_STRING: return v.string.size > 0;
    case JINJA_LIST:
    case JINJA_TUPLE: return v.list->count > 0;
    case JINJA_DICT: return v.dict->count > 0;
    default: return true;
    }
}

static bool lists_equal(struct jinja *j, const struct jinja_list *a, const struct jinja_list *b) {
    if (a == b) return true;
    if (a->count != b->count) return false;
    for (size_t i = 0; i < a->count; i++)
        if (!jinja_equal(j, a->items[i], b->items[i])) return false;
    return true;
}

static bool dicts_equal(struct jinja *j, const struct jinja_dict *a, const struct jinja_dict *b) {
    if (a == b) return true;
    if (a->count != b->count) return false;
    for (size_t i = 0; i < a->count; i++) {
        const struct jinja_entry *other = jinja_dict_find(j, b, a->entries[i].key);
        if (!other || !jinja_equal(j, a->entries[i].value, other->value)) return false;
    }
    return true;
}

static bool numbers_equal(struct jinja_value a, struct jinja_value b) {
    if (a.type != JINJA_FLOAT && b.type != JINJA_FLOAT) return whole(a) == whole(b);
    return jinja_as_double(a) == jinja_as_double(b);
}

static bool same_type_equal(struct jinja *j, struct jinja_value a, struct jinja_value b) {
    switch (a.type) {
    case JINJA_UNDEFINED:
    case JINJA_NONE: return true;
    case JINJA_STRING: jinja_scan(j, a.string.size); return jinja_string_equal(a.string, b.string);
    case JINJA_LIST:
    case JINJA_TUPLE: return lists_equal(j, a.list, b.list);
    case JINJA_ITERATOR: return a.list == b.list;
    case JINJA_DICT: return dicts_equal(j, a.dict, b.dict);
    case JINJA_NAMESPACE: return a.dict == b.dict;
    case JINJA_LOOP: return a.loop == b.loop;
    case JINJA_MACRO: return a.macro == b.macro;
    default: return a.function.builtin == b.function.builtin && a.function.self == b.function.self;
    }
}

bool jinja_equal(struct jinja *j, struct jinja_value a, struct jinja_value b) {
    jinja_spend(j, 1);
    if (jinja_is_number(a) && jinja_is_number(b)) return numbers_equal(a, b);
    if (a.type != b.type) return false;
    jinja_enter(j);
    bool equal = same_type_equal(j, a, b);
    jinja_leave(j);
    return equal;
}

static int compare_strings(struct jinja_string a, struct jinja_string b) {
    size_t size = a.size < b.size ? a.size : b.size;
    int order = size ? memcmp(a.data, b.data, size) : 0; // UTF-8 sorts like code points
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

static int compare_lists(struct jinja *j, const struct jinja_list *a, const struct jinja_list *b, const char *sign) {
    for (size_t i = 0; i < a->count && i < b->count; i++)
        if (!jinja_equal(j, a->items[i], b->items[i])) return jinja_compare(j, a->items[i], b->items[i], sign);
    return (a->count > b->count) - (a->count < b->count);
}

int jinja_compare(struct jinja *j, struct jinja_value a, struct jinja_value b, const char *sign) {
    if (jinja_is_number(a) && jinja_is_number(b)) {
        if (a.type != JINJA_FLOAT && b.type != JINJA_FLOAT) return (whole(a) > whole(b)) - (whole(a) < whole(b));
        double x = jinja_as_double(a), y = jinja_as_double(b);
        return (x > y) - (x < y);
    }
    if (a.type == JINJA_UNDEFINED) jinja_fail_undefined(j, a);
    if (b.type == JINJA_UNDEFINED) jinja_fail_undefined(j, b);
    if (a.type != b.type || (a.type != JINJA_STRING && a.type != JINJA_LIST && a.type != JINJA_TUPLE))
        jinja_fail(j, STATUS_FORMAT, "'%s' not supported between instances of '%s' and '%s'", sign, jinja_type_name(a),
                   jinja_type_name(b));
    jinja_enter(j);
    if (a.type == JINJA_STRING) jinja_scan(j, a.string.size);
    int order = a.type == JINJA_STRING ? compare_strings(a.string, b.string) : compare_lists(j, a.list, b.list, sign);
    jinja_leave(j);
    return order;
}

static bool list_contains(struct jinja *j, const struct jinja_list *list, struct jinja_value part) {
    jinja_spend(j, list->count);
    for (size_t i = 0; i < list->count; i++)
        if (jinja_equal(j, list->items[i], part)) return true;
    return false;
}

bool jinja_contains(struct jinja *j, struct jinja_value whole_value, struct jinja_value part) {
    switch (whole_value.type) {
    case JINJA_STRING:
        if (part.type != JINJA_STRING)
            jinja_fail(j, STATUS_FORMAT, "'in <string>' requires string as left operand, not %s",
                       jinja_type_name(part));
        return jinja_find(j, whole_value.string, part.string, 0) != SIZE_MAX;
    case JINJA_DICT: return jinja_dict_find(j, whole_value.dict, part);
    case JINJA_UNDEFINED: return false;
    case JINJA_LIST:
    case JINJA_TUPLE:
    case JINJA_ITERATOR: return list_contains(j, whole_value.list, part);
    default: jinja_fail(j, STATUS_FORMAT, "argument of type '%s' is not iterable", jinja_type_name(whole_value));
    }
}
