// Objects: named members in their order, then others, whose names are any but those.
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/base/utf8.h"
#include "engine/grammar/regex.h"
#include "engine/grammar/schema_state.h"

enum { LONGEST_NAME = 200 }; // characters of a name that others must not have

struct names {
    const char *names[SCHEMA_PROPERTIES];
    bool required[SCHEMA_PROPERTIES];
    int n, n_required;
    bool all; // there are no others
};

// ---- the names that a conjunction knows ----

static bool add_name(struct schema *s, const json_t *part, struct names *names, const char *name, bool required) {
    int i = 0;
    while (i < names->n && strcmp(names->names[i], name)) i++;
    if (!schema_compare(s, (size_t)i)) return schema_fail_complex(s, part);
    if (i == SCHEMA_PROPERTIES)
        return schema_fail(s, part, STATUS_LIMIT, "too many properties (maximum %d)", SCHEMA_PROPERTIES);
    if (i == names->n) names->names[names->n++] = name;
    names->n_required += required && !names->required[i];
    names->required[i] |= required;
    return true;
}

static bool is_listed(const json_t *list, const char *name) {
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item) if (json_is_string(item) && !strcmp(json_string_value(item), name)) return true;
    return false;
}

// Where names are listed that must be there, all are known.
static bool collect_listed(struct schema *s, const struct conjunction *c, struct names *names) {
    const json_t *list =
        names->n && c->n == 1 ? shape_listed(s, json_object_get(c->parts[0].schema, "propertyNames")) : NULL;
    size_t i;
    json_t *item;
    for (int k = 0; k < names->n; k++)
        if (!schema_compare(s, json_array_size(list)) || !is_listed(list, names->names[k])) return true;
    json_array_foreach(list, i, item) {
        if (json_is_string(item) && !add_name(s, c->parts[0].schema, names, json_string_value(item), false))
            return false;
    }
    names->all = list;
    return true;
}

static bool collect_names(struct schema *s, const struct conjunction *c, struct names *names) {
    for (int i = 0; i < c->n; i++) {
        const json_t *part = c->parts[i].schema;
        json_t *properties = json_object_get(part, "properties"), *value;
        const char *name;
        if (properties && !json_is_object(properties))
            return schema_fail(s, part, STATUS_FORMAT, "properties: expected an object");
        json_object_foreach(properties, name, value) if (!add_name(s, part, names, name, false)) return false;
    }
    for (int i = 0; i < c->n; i++) {
        const json_t *part = c->parts[i].schema, *required = json_object_get(part, "required"), *item;
        size_t k;
        if (json_is_boolean(required)) continue; // of a property, in draft 3
        if (required && !json_is_array(required))
            return schema_fail(s, part, STATUS_FORMAT, "required: expected an array");
        json_array_foreach(required, k, item) {
            if (!json_is_string(item)) return schema_fail(s, part, STATUS_FORMAT, "required: expected strings");
            if (!add_name(s, part, names, json_string_value(item), true)) return false;
        }
    }
    return collect_listed(s, c, names);
}

// ---- members ----

// name : value. NULL as name: any that `key` spells.
static const struct expression *make_member(struct schema *s, const struct conjunction *c, const char *name,
                                            const struct expression *key, const json_t *pattern_owner) {
    struct rules *r = s->rules;
    struct conjunction value = {0};
    bool never = false;
    for (int i = 0; i < c->n; i++) {
        const json_t *part = c->parts[i].schema;
        const json_t *schema = name ? json_object_get(json_object_get(part, "properties"), name) : NULL;
        if (part == pattern_owner)
            schema = json_object_iter_value(json_object_iter(json_object_get(part, "patternProperties")));
        if (!schema) schema = json_object_get(part, "additionalProperties");
        if (schema && !conjunction_add(s, &value, schema, 0, &never)) return NULL;
    }
    if (never) return expression_nothing(r);
    const struct expression *rule = schema_rule(s, &value, name ? name : "others");
    if (!rule) return NULL;
    return EXPRESSION_SEQUENCE_OF(r, key, expression_literal(r, ":"), s->space, rule);
}

// Names without those that are known: as a tree by characters, sorted names[from .. to) having the first `at` bytes in
// common.
static const struct expression *other_names(struct schema *s, const char *const *names, int from, int to, size_t at,
                                            const struct expression *any) {
    struct rules *r = s->rules;
    struct code_set next = {0};
    struct expression_list list = {0};
    if (from < to && !names[from][at]) from++; // this one ends here
    else expression_list_add(r, &list, expression_literal(r, ""));
    for (int i = from, end; i < to; i = end) {
        uint32_t code, other;
        const size_t size = utf8_decode(names[i] + at, strlen(names[i] + at), &code);
        for (end = i + 1; end < to; end++)
            if (utf8_decode(names[end] + at, strlen(names[end] + at), &other) != size || other != code) break;
        code_set_add(&r->arena, &next, code, code);
        struct code_range one = {code, code};
        const struct expression *first = json_text_character(r, &(struct code_set){&one, 1, 1});
        const struct expression *rest = other_names(s, names, i, end, at + size, any);
        expression_list_add(r, &list, EXPRESSION_SEQUENCE_OF(r, first, rest));
    }
    code_set_settle(&next);
    const struct code_set others = code_set_complement(&r->arena, &next);
    expression_list_add(r, &list, EXPRESSION_SEQUENCE_OF(r, json_text_character(r, &others), any));
    return expression_choice(r, &list);
}

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

// A name in quotes that is none of these.
static const struct expression *other_key(struct schema *s, const struct conjunction *c, const struct names *names) {
    struct rules *r = s->rules;
    static const struct code_range all = {0, CODE_LAST};
    const struct code_set set = {(struct code_range *)&all, 1, 1};
    const struct expression *any = expression_repeat(r, json_text_character(r, &set), 0, RULES_UNLIMITED);
    const struct expression *quote = expression_literal(r, "\"");
    if (!names->n) return s->string;
    for (int i = 0; i < names->n; i++)
        if (strlen(names->names[i]) > LONGEST_NAME)
            return schema_fail(s, c->parts[0].schema, STATUS_LIMIT,
                               "a name of more than %d bytes beside other properties is not supported", LONGEST_NAME),
                   NULL;
    const char **sorted = xmalloc((size_t)names->n * sizeof *sorted);
    memcpy(sorted, names->names, (size_t)names->n * sizeof *sorted);
    qsort(sorted, (size_t)names->n, sizeof *sorted, by_text);
    const struct expression *inside = other_names(s, sorted, 0, names->n, 0, any);
    free(sorted);
    return EXPRESSION_SEQUENCE_OF(r, quote, inside, quote);
}

// Of patternProperties one pattern is supported, where it says all there is about names; others are left out, even
// where they would be allowed.
static bool find_pattern(struct schema *s, const struct conjunction *c, const struct names *names,
                         const json_t **owner) {
    *owner = NULL;
    for (int i = 0; i < c->n; i++) {
        const json_t *part = c->parts[i].schema, *patterns = json_object_get(part, "patternProperties");
        if (!json_object_size(patterns)) continue;
        const json_t *others = json_object_get(part, "additionalProperties");
        const bool alone =
            json_object_size(patterns) == 1 && c->n == 1 && !names->n && (!others || json_is_false(others));
        if (!alone)
            return schema_fail(s, part, STATUS_UNSUPPORTED,
                               "patternProperties is supported for one pattern, without properties and "
                               "additionalProperties");
        *owner = part;
    }
    return true;
}

// What propertyNames of all parts ask of a name, as a string; *any: nothing.
static const struct expression *named_key(struct schema *s, const struct conjunction *c, const struct names *names,
                                          bool *any) {
    struct conjunction key = {0};
    bool never = false;
    const json_t *owner = NULL;
    for (int i = 0; i < c->n; i++) {
        const json_t *schema = json_object_get(c->parts[i].schema, "propertyNames");
        if (schema && !conjunction_add(s, &key, schema, 0, &never)) return NULL;
        if (schema) owner = c->parts[i].schema;
    }
    *any = !never && !key.n;
    if (*any) return expression_nothing(s->rules);
    struct shape shape;
    const bool strings = key.n == 1 && !never && shape_read(s, &key, &shape) && shape.types & TYPE_STRING &&
                         json_object_size(key.parts[0].schema) == 1 && json_object_get(key.parts[0].schema, "type");
    if ((*any = strings)) return expression_nothing(s->rules);
    if (names->n)
        return schema_fail(s, owner, STATUS_UNSUPPORTED, "'propertyNames' beside properties is not supported"), NULL;
    if (never) return expression_nothing(s->rules);
    return conjunction_add(s, &key, schema_of_strings(s), 0, &never) ? schema_rule(s, &key, "propertyNames") : NULL;
}

static const struct expression *make_others(struct schema *s, const struct conjunction *c, const struct names *names) {
    const json_t *owner;
    const struct expression *key = NULL, *quote = expression_literal(s->rules, "\"");
    if (names->all) return expression_nothing(s->rules);
    if (!find_pattern(s, c, names, &owner)) return NULL;
    if (owner) {
        struct status why;
        const char *pattern = json_object_iter_key(json_object_iter(json_object_get(owner, "patternProperties")));
        key = regex_parse(s->rules, span_of(pattern), (struct regex_options){.json = true, .searches = true}, &why);
        if (!key) return schema_fail(s, owner, why.code, "patternProperties: %s", why.text), NULL;
        key = EXPRESSION_SEQUENCE_OF(s->rules, quote, key, quote);
    } else {
        bool any;
        for (int i = 0; i < c->n; i++)
            if (json_is_false(json_object_get(c->parts[i].schema, "additionalProperties")))
                return expression_nothing(s->rules);
        key = named_key(s, c, names, &any);
        if (key && any) key = other_key(s, c, names);
    }
    return key ? make_member(s, c, NULL, key, owner) : NULL;
}

// ---- objects ----

static bool count_fits(struct schema *s, const struct conjunction *c, const struct shape *shape,
                       const struct names *names, bool others) {
    const bool least = shape->min_properties > names->n_required,
               most = shape->max_properties != RULES_UNLIMITED && (others || shape->max_properties < names->n);
    if (!names->n || (!least && !most)) return true;
    return schema_fail(s, c->parts[0].schema, STATUS_UNSUPPORTED, "%s beside properties is not supported",
                       least ? "minProperties" : "maxProperties");
}

// From the last member to the first: what may follow once there is one, and what without one.
static const struct expression *make_members(struct schema *s, const struct shape *shape,
                                             const struct expression **members, const struct names *names,
                                             const struct expression *others) {
    struct rules *r = s->rules;
    const struct expression *comma = EXPRESSION_SEQUENCE_OF(r, expression_literal(r, ","), s->space);
    const int most = names->n || shape->max_properties == RULES_UNLIMITED ? RULES_UNLIMITED : shape->max_properties - 1,
              least = names->n || shape->min_properties < 2 ? 0 : shape->min_properties - 1;
    const struct expression *after = expression_repeat(r, EXPRESSION_SEQUENCE_OF(r, comma, others), least, most);
    const struct expression *first = EXPRESSION_SEQUENCE_OF(r, others, after);
    for (int i = names->n - 1; i >= 0; i--) {
        const bool required = names->required[i];
        const struct expression *with = EXPRESSION_SEQUENCE_OF(r, members[i], after);
        first = required ? with : EXPRESSION_CHOICE_OF(r, with, first);
        const struct expression *next = EXPRESSION_SEQUENCE_OF(r, comma, members[i]);
        after = EXPRESSION_SEQUENCE_OF(r, required ? next : expression_optional(r, next), after);
        const int rule = rules_add(r, span_of("members"), s->st);
        if (rule < 0) return NULL;
        r->rules[rule].body = after;
        after = expression_rule(r, rule);
    }
    return first;
}

static const struct expression *make_object(struct schema *s, const struct conjunction *c, const struct shape *shape,
                                            const struct names *names, const struct expression **members) {
    struct rules *r = s->rules;
    for (int i = 0; i < names->n; i++) {
        const struct expression *key = json_text_quoted(r, names->names[i], strlen(names->names[i]));
        if (!(members[i] = make_member(s, c, names->names[i], key, NULL))) return NULL;
    }
    const struct expression *others = make_others(s, c, names);
    if (!others || !count_fits(s, c, shape, names, !expression_is_nothing(others))) return NULL;
    if (shape->max_properties != RULES_UNLIMITED && shape->min_properties > shape->max_properties)
        return expression_nothing(r);
    const struct expression *first = make_members(s, shape, members, names, others);
    if (!first) return NULL;
    const struct expression *inside = EXPRESSION_SEQUENCE_OF(r, first, s->space);
    if (!names->n_required && !(shape->min_properties > 0)) inside = expression_optional(r, inside);
    if (shape->max_properties == 0) inside = expression_literal(r, "");
    return EXPRESSION_SEQUENCE_OF(r, expression_literal(r, "{"), s->space, inside, expression_literal(r, "}"));
}

const struct expression *schema_object(struct schema *s, const struct conjunction *c, const struct shape *shape) {
    struct names *names = xcalloc(1, sizeof *names);
    const struct expression *e = NULL;
    if (collect_names(s, c, names)) {
        const struct expression **members = xcalloc((size_t)names->n + 1, sizeof *members);
        e = make_object(s, c, shape, names, members);
        free(members);
    }
    free(names);
    return e;
}
