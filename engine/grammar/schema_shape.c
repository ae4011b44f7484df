// What the parts of a conjunction say about a value itself, as one shape.
#include <math.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/grammar/schema_state.h"

// ---- keywords ----

enum keyword_kind {
    KEYWORD_NOTE,        // says nothing about values
    KEYWORD_SHAPE,       // read here, or asked by the builders of arrays and objects
    KEYWORD_TAKEN,       // part of a conjunction
    KEYWORD_UNSUPPORTED, // not enforced, so refused
};

static const struct keyword {
    const char *name;
    enum keyword_kind kind;
    unsigned taken;
} keywords[] = {
    {"type", KEYWORD_SHAPE, 0},
    {"enum", KEYWORD_SHAPE, 0},
    {"const", KEYWORD_SHAPE, 0},
    {"minimum", KEYWORD_SHAPE, 0},
    {"maximum", KEYWORD_SHAPE, 0},
    {"exclusiveMinimum", KEYWORD_SHAPE, 0},
    {"exclusiveMaximum", KEYWORD_SHAPE, 0},
    {"multipleOf", KEYWORD_SHAPE, 0},
    {"minLength", KEYWORD_SHAPE, 0},
    {"maxLength", KEYWORD_SHAPE, 0},
    {"pattern", KEYWORD_SHAPE, 0},
    {"format", KEYWORD_SHAPE, 0},
    {"properties", KEYWORD_SHAPE, 0},
    {"required", KEYWORD_SHAPE, 0},
    {"additionalProperties", KEYWORD_SHAPE, 0},
    {"patternProperties", KEYWORD_SHAPE, 0},
    {"minProperties", KEYWORD_SHAPE, 0},
    {"maxProperties", KEYWORD_SHAPE, 0},
    {"items", KEYWORD_SHAPE, 0},
    {"prefixItems", KEYWORD_SHAPE, 0},
    {"additionalItems", KEYWORD_SHAPE, 0},
    {"minItems", KEYWORD_SHAPE, 0},
    {"maxItems", KEYWORD_SHAPE, 0},
    {"uniqueItems", KEYWORD_SHAPE, 0},
    {"$ref", KEYWORD_TAKEN, TAKEN_REF},
    {"allOf", KEYWORD_TAKEN, TAKEN_ALL_OF},
    {"anyOf", KEYWORD_TAKEN, TAKEN_ANY_OF},
    {"oneOf", KEYWORD_TAKEN, TAKEN_ONE_OF},
    {"not", KEYWORD_SHAPE, 0},
    {"if", KEYWORD_UNSUPPORTED, 0},
    {"then", KEYWORD_NOTE, 0}, // without "if" they say nothing
    {"else", KEYWORD_NOTE, 0},
    {"contains", KEYWORD_UNSUPPORTED, 0},
    {"minContains", KEYWORD_NOTE, 0}, // likewise without "contains"
    {"maxContains", KEYWORD_NOTE, 0},
    {"propertyNames", KEYWORD_SHAPE, 0},
    {"dependencies", KEYWORD_TAKEN, TAKEN_DEPENDENT},
    {"dependentRequired", KEYWORD_TAKEN, TAKEN_DEPENDENT},
    {"dependentSchemas", KEYWORD_TAKEN, TAKEN_DEPENDENT},
    {"unevaluatedItems", KEYWORD_UNSUPPORTED, 0},
    {"unevaluatedProperties", KEYWORD_UNSUPPORTED, 0},
    {"$dynamicRef", KEYWORD_UNSUPPORTED, 0},
    {"$recursiveRef", KEYWORD_UNSUPPORTED, 0},
};
enum { KEYWORDS = sizeof keywords / sizeof *keywords };

static const struct keyword *find_keyword(const char *name) {
    for (int i = 0; i < KEYWORDS; i++)
        if (!strcmp(keywords[i].name, name)) return &keywords[i];
    return NULL; // a note
}

bool shape_has_assertions(const json_t *schema, unsigned taken) {
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)schema, name, value) {
        const struct keyword *k = find_keyword(name);
        if (k && k->kind != KEYWORD_NOTE && !(k->taken & taken)) return true;
    }
    return false;
}

// ---- types and values ----

static const struct {
    const char *name;
    unsigned types;
} type_names[] = {{"null", TYPE_NULL},     {"boolean", TYPE_BOOLEAN}, {"integer", TYPE_INTEGER},
                  {"number", TYPE_NUMBER}, {"string", TYPE_STRING},   {"array", TYPE_ARRAY},
                  {"object", TYPE_OBJECT}};

static unsigned type_named(const char *name) {
    for (size_t i = 0; name && i < sizeof type_names / sizeof *type_names; i++)
        if (!strcmp(type_names[i].name, name)) return type_names[i].types;
    return 0;
}

unsigned shape_type_of(const json_t *value) {
    switch (json_typeof(value)) {
    case JSON_OBJECT: return TYPE_OBJECT;
    case JSON_ARRAY: return TYPE_ARRAY;
    case JSON_STRING: return TYPE_STRING;
    case JSON_INTEGER: return TYPE_INTEGER;
    case JSON_REAL: return json_real_value(value) == floor(json_real_value(value)) ? TYPE_INTEGER : TYPE_FRACTION;
    case JSON_NULL: return TYPE_NULL;
    default: return TYPE_BOOLEAN;
    }
}

static bool read_types(struct schema *s, const json_t *part, struct shape *out) {
    const json_t *type = json_object_get(part, "type");
    unsigned types = 0;
    if (!type) return true;
    for (size_t i = 0; i < (json_is_array(type) ? json_array_size(type) : 1); i++) {
        const unsigned one = type_named(json_string_value(json_is_array(type) ? json_array_get(type, i) : type));
        if (!one) return schema_fail(s, part, STATUS_FORMAT, "type: expected the name of a type, or a list of them");
        types |= one;
    }
    out->types &= types;
    return true;
}

const json_t *shape_listed(struct schema *s, const json_t *schema) {
    const char *reference = json_string_value(json_object_get(schema, "$ref")), *name;
    struct shape shape = {.types = TYPE_ALL};
    json_t *value;
    size_t i;
    if (reference && json_object_size(schema) == 1) schema = schema_resolve(s, schema, reference);
    json_object_foreach((json_t *)schema, name, value) {
        const struct keyword *k = find_keyword(name);
        if (k && k->kind != KEYWORD_NOTE && strcmp(name, "enum") && strcmp(name, "type")) return NULL;
    }
    const json_t *list = json_object_get(schema, "enum");
    if (!list || !read_types(s, schema, &shape)) return NULL;
    json_array_foreach(list, i, value) if (!(shape_type_of(value) & shape.types)) return NULL;
    return list;
}

// Of "not" only what it says about types.
static bool read_not(struct schema *s, const json_t *part, struct shape *out) {
    const json_t *not = json_object_get(part, "not");
    struct shape other = {.types = TYPE_ALL};
    const char *name;
    json_t *value;
    if (!not || json_is_false(not )) return true;
    json_object_foreach((json_t *)not, name, value) if (strcmp(name, "type") && find_keyword(name)) return schema_fail(
        s, part, STATUS_UNSUPPORTED, "'not' is not supported but for a type");
    if (json_is_object(not ) && !read_types(s, not, &other)) return false;
    out->types &= ~other.types;
    if ((out->types & TYPE_NUMBER) != TYPE_FRACTION) return true;
    return schema_fail(s, part, STATUS_UNSUPPORTED, "'not' is not supported for integers alone");
}

// ---- numbers ----

static bool read_number(struct schema *s, const json_t *part, const char *name, bool *given, double *out) {
    const json_t *value = json_object_get(part, name);
    *given = value;
    *out = json_number_value(value);
    return !value || json_is_number(value) || schema_fail(s, part, STATUS_FORMAT, "%s: expected a number", name);
}

static void raise_least(struct bound *b, double value, bool excluded) {
    if (b->given && (b->value > value || (b->value == value && b->excluded >= excluded))) return;
    *b = (struct bound){true, excluded, value};
}

static void lower_most(struct bound *b, double value, bool excluded) {
    if (b->given && (b->value < value || (b->value == value && b->excluded >= excluded))) return;
    *b = (struct bound){true, excluded, value};
}

// Before draft 6 "exclusive…" was a flag of the other keyword.
static bool read_bounds(struct schema *s, const json_t *part, struct shape *out) {
    const bool old_least = json_is_boolean(json_object_get(part, "exclusiveMinimum")),
               old_most = json_is_boolean(json_object_get(part, "exclusiveMaximum"));
    bool given;
    double value;
    if (!read_number(s, part, "minimum", &given, &value)) return false;
    if (given) raise_least(&out->least, value, json_is_true(json_object_get(part, "exclusiveMinimum")));
    if (!read_number(s, part, "maximum", &given, &value)) return false;
    if (given) lower_most(&out->most, value, json_is_true(json_object_get(part, "exclusiveMaximum")));
    if (!old_least && !read_number(s, part, "exclusiveMinimum", &given, &value)) return false;
    if (!old_least && given) raise_least(&out->least, value, true);
    if (!old_most && !read_number(s, part, "exclusiveMaximum", &given, &value)) return false;
    if (!old_most && given) lower_most(&out->most, value, true);
    if (!read_number(s, part, "multipleOf", &given, &value)) return false;
    if (!given) return true;
    if (!(value > 0)) return schema_fail(s, part, STATUS_FORMAT, "multipleOf: expected a number above 0");
    if (out->multiple > 0 && out->multiple != value)
        return schema_fail(s, part, STATUS_UNSUPPORTED, "multipleOf: several at once are not supported");
    out->multiple = value;
    return true;
}

// ---- counts ----

static bool read_count(struct schema *s, const json_t *part, const char *name, bool most, int *out) {
    const json_t *value = json_object_get(part, name);
    const double count = json_number_value(value);
    if (!value) return true;
    if (!json_is_number(value) || count < 0 || count != floor(count))
        return schema_fail(s, part, STATUS_FORMAT, "%s: expected a number of at least 0", name);
    if (count > RULES_REPEATS)
        return schema_fail(s, part, STATUS_LIMIT, "%s: %.0f is too large (maximum %d)", name, count, RULES_REPEATS);
    if (most ? *out == RULES_UNLIMITED || count < *out : count > *out) *out = (int)count;
    return true;
}

static bool read_counts(struct schema *s, const json_t *part, struct shape *out) {
    return read_count(s, part, "minLength", false, &out->min_length) &&
           read_count(s, part, "maxLength", true, &out->max_length) &&
           read_count(s, part, "minItems", false, &out->min_items) &&
           read_count(s, part, "maxItems", true, &out->max_items) &&
           read_count(s, part, "minProperties", false, &out->min_properties) &&
           read_count(s, part, "maxProperties", true, &out->max_properties);
}

// ---- strings ----

static bool read_text(struct schema *s, const json_t *part, const char *name, const char **out) {
    const json_t *value = json_object_get(part, name);
    if (!value) return true;
    const char *text = json_string_value(value);
    if (!text) return schema_fail(s, part, STATUS_FORMAT, "%s: expected a string", name);
    if (*out && strcmp(*out, text))
        return schema_fail(s, part, STATUS_UNSUPPORTED, "%s: several at once are not supported", name);
    *out = text;
    return true;
}

// ---- shapes ----

static bool check_supported(struct schema *s, const json_t *part) {
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)part, name, value) {
        const struct keyword *k = find_keyword(name);
        const bool idle = !strcmp(name, "if") && !json_object_get(part, "then") && !json_object_get(part, "else");
        if (k && k->kind == KEYWORD_UNSUPPORTED && !idle)
            return schema_fail(s, part, STATUS_UNSUPPORTED, "'%s' is not supported", name);
    }
    return true;
}

bool shape_read(struct schema *s, const struct conjunction *c, struct shape *out) {
    *out = (struct shape){.types = TYPE_ALL,
                          .max_length = RULES_UNLIMITED,
                          .max_items = RULES_UNLIMITED,
                          .max_properties = RULES_UNLIMITED};
    for (int i = 0; i < c->n; i++) {
        const json_t *part = c->parts[i].schema;
        if (json_object_get(part, "pattern") || json_object_get(part, "format")) out->pattern_of = part;
        if (!check_supported(s, part) || !read_types(s, part, out) || !read_not(s, part, out) ||
            !read_bounds(s, part, out) || !read_counts(s, part, out) || !read_text(s, part, "pattern", &out->pattern) ||
            !read_text(s, part, "format", &out->format))
            return false;
    }
    return true;
}

static size_t characters(const json_t *text) {
    size_t n = 0;
    for (size_t i = 0; i < json_string_length(text); i++) n += ((uint8_t)json_string_value(text)[i] & 0xc0) != 0x80;
    return n;
}

static bool number_allowed(const struct shape *shape, double value) {
    const struct bound *least = &shape->least, *most = &shape->most;
    if (least->given && (value < least->value || (least->excluded && value == least->value))) return false;
    if (most->given && (value > most->value || (most->excluded && value == most->value))) return false;
    if (!(shape->multiple > 0)) return true;
    const double times = value / shape->multiple;
    return fabs(times - round(times)) < 1e-9 * fmax(1, fabs(times));
}

static bool size_allowed(size_t n, int least, int most) {
    return n >= (size_t)least && (most == RULES_UNLIMITED || n <= (size_t)most);
}

bool shape_allows(const struct shape *shape, const json_t *value) {
    if (!(shape_type_of(value) & shape->types)) return false;
    if (json_is_number(value)) return number_allowed(shape, json_number_value(value));
    if (json_is_string(value)) return size_allowed(characters(value), shape->min_length, shape->max_length);
    if (json_is_array(value)) return size_allowed(json_array_size(value), shape->min_items, shape->max_items);
    if (json_is_object(value))
        return size_allowed(json_object_size(value), shape->min_properties, shape->max_properties);
    return true;
}
