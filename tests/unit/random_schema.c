#include "tests/unit/random_schema.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/xorshift.h"

static int below(uint64_t *random, int n) { return (int)xorshift_below(random, (uint32_t)n); }

static json_t *random_scalar(uint64_t *random) {
    static const char *const texts[] = {"red", "green", "a \"b\"", "é\n", ""};
    switch (below(random, 4)) {
    case 0: return json_integer(below(random, 2000) - 1000);
    case 1: return json_boolean(below(random, 2));
    case 2: return json_null();
    default: return json_string(texts[below(random, 5)]);
    }
}

static json_t *random_object(uint64_t *random, int depth) {
    json_t *properties = json_object(), *required = json_array();
    for (int i = below(random, 4); i > 0; i--) {
        char name[16];
        snprintf(name, sizeof name, "%s%d", below(random, 2) ? "n" : "näme ", i);
        json_object_set_new(properties, name, random_schema(random, depth - 1));
        if (below(random, 2)) json_array_append_new(required, json_string(name));
    }
    return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties, "required", required,
                     "additionalProperties", 0);
}

json_t *random_schema(uint64_t *random, int depth) {
    const int low = below(random, 300) - 150;
    switch (below(random, depth > 0 ? 8 : 5)) {
    case 0: return json_pack("{s:s, s:i, s:i}", "type", "integer", "minimum", low, "maximum", low + below(random, 200));
    case 1:
        return json_pack("{s:s, s:i, s:i}", "type", "string", "minLength", below(random, 3), "maxLength",
                         3 + below(random, 6));
    case 2:
        return json_pack("{s:[o, o, o]}", "enum", random_scalar(random), random_scalar(random), random_scalar(random));
    case 3: return json_pack("{s:[s, s]}", "type", "boolean", "null");
    case 4: return json_pack("{s:o}", "const", random_scalar(random));
    case 5:
        return json_pack("{s:s, s:o, s:i, s:i}", "type", "array", "items", random_schema(random, depth - 1), "minItems",
                         below(random, 2), "maxItems", 1 + below(random, 3));
    case 6: return json_pack("{s:[o, o]}", "anyOf", random_schema(random, depth - 1), random_schema(random, depth - 1));
    default: return random_object(random, depth);
    }
}

static json_int_t number(const json_t *schema, const char *name) {
    return json_integer_value(json_object_get(schema, name));
}

static bool within(const json_t *schema, const char *least, const char *most, json_int_t n) {
    return n >= number(schema, least) && n <= number(schema, most);
}

static bool is_in(const json_t *list, const json_t *value) {
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_equal(json_array_get(list, i), value)) return true;
    return false;
}

static json_int_t characters(const char *text) {
    json_int_t n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static bool object_matches(const json_t *schema, const json_t *value) {
    const json_t *properties = json_object_get(schema, "properties"), *required = json_object_get(schema, "required");
    const char *name;
    json_t *item;
    size_t i;
    json_array_foreach(required, i, item) if (!json_object_get(value, json_string_value(item))) return false;
    json_object_foreach((json_t *)value, name, item) {
        const json_t *of = json_object_get(properties, name);
        if (!of || !random_schema_matches(of, item)) return false;
    }
    return true;
}

bool random_schema_matches(const json_t *schema, const json_t *value) {
    const json_t *any = json_object_get(schema, "anyOf"), *list = json_object_get(schema, "enum"),
                 *only = json_object_get(schema, "const");
    const char *type = json_string_value(json_object_get(schema, "type"));
    if (any) {
        for (size_t i = 0; i < json_array_size(any); i++)
            if (random_schema_matches(json_array_get(any, i), value)) return true;
        return false;
    }
    if (list) return is_in(list, value);
    if (only) return json_equal(only, value);
    if (!type) return json_is_boolean(value) || json_is_null(value);
    if (!strcmp(type, "integer"))
        return json_is_integer(value) && within(schema, "minimum", "maximum", json_integer_value(value));
    if (!strcmp(type, "string"))
        return json_is_string(value) && within(schema, "minLength", "maxLength", characters(json_string_value(value)));
    if (!strcmp(type, "object")) return json_is_object(value) && object_matches(schema, value);
    if (!json_is_array(value) || !within(schema, "minItems", "maxItems", (json_int_t)json_array_size(value)))
        return false;
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!random_schema_matches(json_object_get(schema, "items"), json_array_get(value, i))) return false;
    return true;
}
