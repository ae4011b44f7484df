// oneOf: a value may match only one of its schemas. A grammar cannot count, so two of them must not have a value in
// common; it is enough that they differ in type, in the values that they list, or in those of a member that one of them
// requires, and both.
#include "engine/grammar/schema_state.h"

enum { DEPTH = 8 };

static bool differ(struct schema *s, const json_t *a, const json_t *b, const char *discriminator, int depth);

static const json_t *resolved(struct schema *s, const json_t *schema) {
    for (int i = 0; i < DEPTH && schema; i++) {
        const char *reference = json_string_value(json_object_get(schema, "$ref"));
        if (!reference) return schema;
        schema = schema_resolve(s, schema, reference);
    }
    return schema;
}

// The type that a value has to have; 0: not known.
static unsigned types_of(const json_t *schema) {
    struct schema quiet = {0};
    struct status why;
    struct shape shape;
    struct conjunction c = {.n = 1, .parts = {{schema, TAKEN_REF | TAKEN_ALL_OF}}};
    quiet.st = &why;
    const json_t *only = json_object_get(schema, "const"), *type = json_object_get(schema, "type");
    if (only) return shape_type_of(only);
    if (!type) return TYPE_ALL;
    return shape_read(&quiet, &c, &shape) ? shape.types : TYPE_ALL;
}

static const json_t *values_of(const json_t *schema, size_t *n, size_t i) {
    const json_t *only = json_object_get(schema, "const"), *list = json_object_get(schema, "enum");
    *n = only ? 1 : json_array_size(list);
    return only ? only : json_array_get(list, i);
}

static bool equal(const json_t *a, const json_t *b) {
    if (json_is_number(a) && json_is_number(b)) return json_number_value(a) == json_number_value(b);
    return json_equal(a, b);
}

static bool values_differ(struct schema *s, const json_t *a, const json_t *b) {
    size_t n, m;
    values_of(a, &n, 0);
    values_of(b, &m, 0);
    if (!schema_compare(s, n * m)) return false;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < m; k++)
            if (equal(values_of(a, &n, i), values_of(b, &m, k))) return false;
    return n && m;
}

static bool requires(const json_t *schema, const char *name) {
    const json_t *required = json_object_get(schema, "required"), *item;
    size_t i;
    json_array_foreach(required, i,
                       item) if (json_is_string(item) && !strcmp(json_string_value(item), name)) return true;
    return false;
}

// A member that one of them requires and the other one does not allow.
static bool refuses(const json_t *a, const json_t *b) {
    const json_t *required = json_object_get(b, "required"), *item;
    size_t i;
    if (!json_is_false(json_object_get(a, "additionalProperties")) || json_object_get(a, "patternProperties"))
        return false;
    json_array_foreach(required, i,
                       item) if (json_is_string(item) && !json_object_get(json_object_get(a, "properties"),
                                                                          json_string_value(item))) return true;
    return false;
}

static bool members_differ(struct schema *s, const json_t *a, const json_t *b, const char *discriminator, int depth) {
    json_t *properties = json_object_get(a, "properties"), *value;
    const char *name;
    const size_t required =
        json_array_size(json_object_get(a, "required")) + json_array_size(json_object_get(b, "required"));
    if (!schema_compare(s, json_object_size(properties) * (required + 1))) return false;
    json_object_foreach(properties, name, value) {
        const json_t *other = json_object_get(json_object_get(b, "properties"), name);
        const bool there = requires(a, name) || requires(b, name) || (discriminator && !strcmp(name, discriminator));
        if (other && there && differ(s, value, other, NULL, depth - 1)) return true;
    }
    return refuses(a, b) || refuses(b, a);
}

static bool differ(struct schema *s, const json_t *a, const json_t *b, const char *discriminator, int depth) {
    a = resolved(s, a);
    b = resolved(s, b);
    if (!schema_work(s, 1) || !a || !b || depth == 0) return false;
    if (json_is_false(a) || json_is_false(b)) return true;
    if (!json_is_object(a) || !json_is_object(b)) return false;
    const unsigned common = types_of(a) & types_of(b);
    return !common || values_differ(s, a, b) ||
           (common == TYPE_OBJECT && members_differ(s, a, b, discriminator, depth));
}

bool disjoint_check(struct schema *s, const json_t *owner, const json_t *schemas, const char *discriminator) {
    for (size_t i = 0; i < json_array_size(schemas); i++) {
        for (size_t k = 0; k < i; k++) {
            if (differ(s, json_array_get(schemas, k), json_array_get(schemas, i), discriminator, DEPTH)) continue;
            if (!schema_work(s, 0)) return schema_fail_complex(s, owner);
            return schema_fail(s, owner, STATUS_UNSUPPORTED,
                               "oneOf: a value may match both schema %zu and %zu; anyOf would allow it", k, i);
        }
    }
    return true;
}
