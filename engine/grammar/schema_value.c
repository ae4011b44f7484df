// Values: what a shape means for each type.
#include <string.h>

#include "engine/grammar/regex.h"
#include "engine/grammar/schema_state.h"

enum { UNIQUE_VALUES = 8 };

// ---- enum and const ----

static bool equal(const json_t *a, const json_t *b) {
    if (json_is_number(a) && json_is_number(b)) return json_number_value(a) == json_number_value(b);
    return json_equal(a, b);
}

static bool has(const json_t *values, const json_t *value) {
    for (size_t i = 0; i < json_array_size(values); i++)
        if (equal(json_array_get(values, i), value)) return true;
    return false;
}

// Every part that lists values has to list this one, which is from one of these lists.
static bool listed_by_all(struct schema *s, const struct conjunction *c, const json_t *from, const json_t *value) {
    for (int i = 0; i < c->n; i++) {
        const json_t *list = json_object_get(c->parts[i].schema, "enum"),
                     *only = json_object_get(c->parts[i].schema, "const");
        if (only && !equal(only, value)) return false;
        if (!list || list == from) continue;
        schema_compare(s, json_array_size(list));
        if (!has(list, value)) return false;
    }
    return true;
}

static const char *const of_objects[] = {"properties",        "required",      "additionalProperties",
                                         "patternProperties", "propertyNames", NULL};
static const char *const of_arrays[] = {"items", "prefixItems", "additionalItems", "uniqueItems", NULL};
static const char *const of_strings[] = {"pattern", "format", NULL};
static const char *const of_others[] = {NULL};

// What would have to be checked of a listed value, and is not.
static const char *unchecked(const json_t *part, const json_t *value) {
    const char *const *names = json_is_object(value)   ? of_objects
                               : json_is_array(value)  ? of_arrays
                               : json_is_string(value) ? of_strings
                                                       : of_others;
    while (*names && !json_object_get(part, *names)) names++;
    return *names;
}

static const struct expression *make_listed(struct schema *s, const struct conjunction *c, const struct shape *shape,
                                            const json_t *from, const json_t *value) {
    if (!schema_work(s, 1)) return schema_fail_complex(s, c->parts[0].schema), NULL;
    if (!shape_allows(shape, value) || !listed_by_all(s, c, from, value)) return expression_nothing(s->rules);
    for (int i = 0; i < c->n; i++) {
        const char *name = unchecked(c->parts[i].schema, value);
        if (name)
            return schema_fail(s, c->parts[i].schema, STATUS_UNSUPPORTED, "'%s' beside enum or const is not supported",
                               name),
                   NULL;
    }
    struct status why;
    const struct expression *e = json_text_value(s->rules, value, s->space, &why);
    if (!e) schema_fail(s, c->parts[0].schema, STATUS_LIMIT, "%s", why.text);
    return e;
}

// Of the first list of values those that are allowed; NULL with *any: there is no list.
static const struct expression *make_values(struct schema *s, const struct conjunction *c, const struct shape *shape,
                                            bool *any) {
    struct expression_list list = {0};
    *any = true;
    for (int i = 0; i < c->n && *any; i++) {
        const json_t *part = c->parts[i].schema, *values = json_object_get(part, "enum"),
                     *only = json_object_get(part, "const");
        if (values && !json_is_array(values)) {
            *any = false;
            return schema_fail(s, part, STATUS_FORMAT, "enum: expected an array"), NULL;
        }
        *any = !values && !only;
        for (size_t k = 0; k < (only ? 1 : json_array_size(values)); k++) {
            const json_t *value = only ? only : json_array_get(values, k);
            const struct expression *e = make_listed(s, c, shape, only ? NULL : values, value);
            if (!e) return NULL;
            expression_list_add(s->rules, &list, e);
        }
    }
    return *any ? NULL : expression_choice(s->rules, &list);
}

// ---- strings ----

static const struct expression *quoted(struct schema *s, const struct expression *inside) {
    const struct expression *quote = expression_literal(s->rules, "\"");
    return EXPRESSION_SEQUENCE_OF(s->rules, quote, inside, quote);
}

// The characters that an expression over plain ones matches, `most` up to RULES_REPEATS + 1.
struct lengths {
    long least, most;
};

static struct lengths lengths_of(const struct expression *e) {
    struct lengths all = {0, 0};
    if (e->kind == EXPRESSION_SET) return (struct lengths){1, 1};
    for (int i = 0; i < e->n; i++) {
        const struct lengths one = lengths_of(e->items[i]);
        if (e->kind == EXPRESSION_CHOICE) {
            all.least = !i || one.least < all.least ? one.least : all.least;
            all.most = one.most > all.most ? one.most : all.most;
        } else {
            const int times = e->kind == EXPRESSION_REPEAT ? e->most : 1;
            all.least += one.least * (e->kind == EXPRESSION_REPEAT ? e->least : 1);
            all.most += times == RULES_UNLIMITED ? RULES_REPEATS + 1 : one.most * times;
        }
        if (all.least > RULES_REPEATS) all.least = RULES_REPEATS + 1;
        if (all.most > RULES_REPEATS) all.most = RULES_REPEATS + 1;
    }
    return all;
}

// A pattern within bounds of its length: where that makes no difference, or it is one character repeated. NULL: it is
// neither.
static const struct expression *bound_pattern(struct schema *s, const struct expression *e, const char *pattern,
                                              bool searches, const struct shape *shape) {
    const long most = shape->max_length == RULES_UNLIMITED ? RULES_REPEATS + 1 : shape->max_length;
    const struct expression *plain =
        regex_parse(s->rules, span_of(pattern), (struct regex_options){.searches = searches}, NULL);
    if (!plain) return NULL;
    const struct lengths n = lengths_of(plain);
    if (n.least >= shape->min_length && n.most <= most) return e;
    if (plain->kind != EXPRESSION_REPEAT || e->kind != EXPRESSION_REPEAT || plain->items[0]->kind != EXPRESSION_SET)
        return NULL;
    const int low = plain->least > shape->min_length ? plain->least : shape->min_length;
    const int high = plain->most == RULES_UNLIMITED || plain->most > most ? shape->max_length : plain->most;
    if (high != RULES_UNLIMITED && low > high) return expression_nothing(s->rules);
    return expression_repeat(s->rules, e->items[0], low, high);
}

// A sequence that ends with a character which may be repeated for ever, as formats do: that is cut off where the whole
// might be too long. NULL: it is another, or too short.
static const struct expression *bound_end(struct schema *s, const struct expression *e, const struct shape *shape) {
    struct rules *r = s->rules;
    const struct lengths all = lengths_of(e);
    if (e->kind != EXPRESSION_SEQUENCE || shape->max_length == RULES_UNLIMITED || all.least < shape->min_length)
        return NULL;
    const struct expression *end = e->items[e->n - 1];
    const struct lengths before =
        lengths_of(expression_sequence(r, &(struct expression_list){e->items, e->n - 1, e->n - 1}));
    const long left = shape->max_length - before.most;
    if (end->kind != EXPRESSION_REPEAT || end->most != RULES_UNLIMITED || left < end->least || left > RULES_REPEATS)
        return NULL;
    struct expression_list list = {0};
    for (int i = 0; i < e->n - 1; i++) expression_list_add(r, &list, e->items[i]);
    expression_list_add(r, &list, expression_repeat(r, end->items[0], end->least, (int)left));
    return expression_sequence(r, &list);
}

static const struct expression *make_string(struct schema *s, const struct shape *shape) {
    const bool bounded = shape->min_length || shape->max_length != RULES_UNLIMITED;
    const bool formatted = shape->format && !shape->pattern && !schema_format_is_note(shape->format);
    const char *format = formatted ? schema_format(shape->format) : NULL;
    const char *pattern = shape->pattern ? schema_pattern(shape->pattern) : format;
    const json_t *where = shape->pattern_of;
    if (shape->max_length != RULES_UNLIMITED && shape->min_length > shape->max_length)
        return expression_nothing(s->rules);
    if (formatted && !format)
        return schema_fail(s, where, STATUS_UNSUPPORTED, "format '%.60s' is not supported", shape->format), NULL;
    if (pattern) {
        struct status why;
        const struct regex_options o = {.json = true, .searches = shape->pattern};
        const struct expression *e = regex_parse(s->rules, span_of(pattern), o, &why);
        if (!e) return schema_fail(s, where, why.code, "pattern: %s", why.text), NULL;
        const struct expression *whole = e;
        e = bounded ? bound_pattern(s, e, pattern, o.searches, shape) : e;
        if (!e && format) e = bound_end(s, whole, shape);
        if (e) return quoted(s, e);
        return schema_fail(s, where, STATUS_UNSUPPORTED, "%s with minLength or maxLength is not supported",
                           shape->pattern ? "this pattern" : "format"),
               NULL;
    }
    if (!bounded) return s->string;
    return quoted(s, expression_repeat(s->rules, s->character, shape->min_length, shape->max_length));
}

// ---- arrays ----

// What one part says about the item at a place; NULL: nothing. Before draft 2020 a list of `items` was what prefixItems
// is now, and additionalItems what items is.
static const json_t *item_of(const json_t *part, size_t i) {
    const json_t *items = json_object_get(part, "items");
    const bool old = json_is_array(items);
    const json_t *prefix = old ? items : json_object_get(part, "prefixItems");
    if (i < json_array_size(prefix)) return json_array_get(prefix, i);
    return old ? json_object_get(part, "additionalItems") : items;
}

static size_t prefix_of(const json_t *part) {
    const json_t *items = json_object_get(part, "items");
    return json_array_size(json_is_array(items) ? items : json_object_get(part, "prefixItems"));
}

static const struct expression *make_item(struct schema *s, const struct conjunction *c, size_t i, const char *name) {
    struct conjunction item = {0};
    bool never = false;
    for (int k = 0; k < c->n; k++) {
        const json_t *schema = item_of(c->parts[k].schema, i);
        if (schema && !conjunction_add(s, &item, schema, 0, &never)) return NULL;
    }
    return never ? expression_nothing(s->rules) : schema_rule(s, &item, name);
}

// Of two items or more.
static bool is_unique(const struct conjunction *c, const struct shape *shape) {
    bool unique = false;
    for (int i = 0; i < c->n; i++) unique |= json_is_true(json_object_get(c->parts[i].schema, "uniqueItems"));
    return unique && shape->max_items != 0 && shape->max_items != 1;
}

static const struct expression *bracketed(struct schema *s, const struct expression *items) {
    struct rules *r = s->rules;
    return EXPRESSION_SEQUENCE_OF(r, expression_literal(r, "["), s->space, items, expression_literal(r, "]"));
}

// What may follow those of n values that are used: one of the others, as long as there may be more.
static const struct expression *unused(struct schema *s, const struct expression *const *values, int n, unsigned used,
                                       int first, const struct shape *shape) {
    struct rules *r = s->rules;
    struct expression_list list = {0};
    const int count = __builtin_popcount(used);
    if (used && count >= shape->min_items) expression_list_add(r, &list, expression_literal(r, ""));
    for (int i = 0; i < n && (shape->max_items == RULES_UNLIMITED || count < shape->max_items); i++) {
        if (used >> i & 1) continue;
        const struct expression *next =
            EXPRESSION_SEQUENCE_OF(r, values[i], expression_rule(r, first + (int)(used | 1u << i)));
        if (used) next = EXPRESSION_SEQUENCE_OF(r, expression_literal(r, ","), s->space, next);
        expression_list_add(r, &list, next);
    }
    return expression_choice(r, &list);
}

// Different items, of a few values: a rule for each set of those that are used.
static const struct expression *unique_array(struct schema *s, const struct conjunction *c, const struct shape *shape) {
    struct rules *r = s->rules;
    const struct expression *values[UNIQUE_VALUES];
    const json_t *part = c->parts[0].schema;
    const json_t *list = c->n == 1 && !prefix_of(part) ? shape_listed(s, json_object_get(part, "items")) : NULL;
    const size_t size = json_array_size(list);
    bool few = size > 0 && size <= UNIQUE_VALUES;
    for (size_t i = 0; few && i < size; i++)
        for (size_t k = 0; k < i; k++) few &= !equal(json_array_get(list, i), json_array_get(list, k));
    if (!few)
        return schema_fail(s, part, STATUS_UNSUPPORTED, "'uniqueItems' is supported for up to %d values of an enum",
                           UNIQUE_VALUES),
               NULL;
    const int n = (int)size, first = r->n;
    for (int i = 0; i < n; i++)
        if (!(values[i] = json_text_value(r, json_array_get(list, (size_t)i), s->space, s->st))) return NULL;
    for (unsigned used = 0; used < 1u << n; used++)
        if (rules_add(r, span_of("unique"), s->st) < 0) return NULL;
    for (unsigned used = 0; used < 1u << n; used++)
        r->rules[first + (int)used].body = unused(s, values, n, used, first, shape);
    const struct expression *items = EXPRESSION_SEQUENCE_OF(r, expression_rule(r, first), s->space);
    return bracketed(s, shape->min_items ? items : expression_optional(r, items));
}

const struct expression *schema_array(struct schema *s, const struct conjunction *c, const struct shape *shape) {
    struct rules *r = s->rules;
    size_t n_prefix = 0;
    if (is_unique(c, shape)) return unique_array(s, c, shape);
    for (int i = 0; i < c->n; i++)
        if (prefix_of(c->parts[i].schema) > n_prefix) n_prefix = prefix_of(c->parts[i].schema);
    if (n_prefix > SCHEMA_PREFIX)
        return schema_fail(s, c->parts[0].schema, STATUS_LIMIT, "too many prefixItems (maximum %d)", SCHEMA_PREFIX),
               NULL;
    const int prefix = (int)n_prefix, least = shape->min_items,
              most = shape->max_items == RULES_UNLIMITED ? RULES_REPEATS + SCHEMA_PREFIX : shape->max_items;
    if (least > most) return expression_nothing(r);
    const struct expression *comma = EXPRESSION_SEQUENCE_OF(r, expression_literal(r, ","), s->space);
    const struct expression *rest = make_item(s, c, n_prefix, "item");
    if (!rest) return NULL;
    // From the last item to the first: what may follow it.
    const int more_least = least > prefix ? least - prefix : 0, more_most = most > prefix ? most - prefix : 0;
    const int unlimited = shape->max_items == RULES_UNLIMITED;
    const struct expression *after = expression_repeat(r, EXPRESSION_SEQUENCE_OF(r, comma, rest), more_least,
                                                       unlimited ? RULES_UNLIMITED : more_most);
    if (!prefix) { // the first of the rest has no comma before it
        after = expression_repeat(r, EXPRESSION_SEQUENCE_OF(r, comma, rest), more_least ? more_least - 1 : 0,
                                  unlimited   ? RULES_UNLIMITED
                                  : more_most ? more_most - 1
                                              : 0);
        after = EXPRESSION_SEQUENCE_OF(r, rest, after);
    }
    for (int i = prefix - 1; i >= 0; i--) {
        const struct expression *item = make_item(s, c, (size_t)i, "item");
        if (!item) return NULL;
        if (i >= most) continue;
        after = EXPRESSION_SEQUENCE_OF(r, item, after);
        if (i > 0) after = EXPRESSION_SEQUENCE_OF(r, comma, after);
        if (i > 0 && i >= least) after = expression_optional(r, after);
    }
    const struct expression *items = EXPRESSION_SEQUENCE_OF(r, after, s->space);
    if (!least) items = expression_optional(r, items);
    if (!most) items = expression_sequence(r, &(struct expression_list){0});
    return bracketed(s, items);
}

// ---- values ----

const struct expression *schema_value(struct schema *s, const struct conjunction *c, const struct shape *shape) {
    static const struct {
        unsigned type;
        const char *text;
    } words[] = {{TYPE_NULL, "null"}, {TYPE_BOOLEAN, "true"}, {TYPE_BOOLEAN, "false"}};
    struct expression_list list = {0};
    struct rules *r = s->rules;
    bool any;
    const struct expression *values = make_values(s, c, shape, &any);
    if (!any) return values;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (shape->types & words[i].type) expression_list_add(r, &list, expression_literal(r, words[i].text));
    const struct {
        unsigned type;
        const struct expression *e;
    } others[] = {
        {TYPE_NUMBER, shape->types & TYPE_NUMBER ? schema_number(s, c->n ? c->parts[0].schema : s->root, shape) : NULL},
        {TYPE_STRING, shape->types & TYPE_STRING ? make_string(s, shape) : NULL},
        {TYPE_ARRAY, shape->types & TYPE_ARRAY ? schema_array(s, c, shape) : NULL},
        {TYPE_OBJECT, shape->types & TYPE_OBJECT ? schema_object(s, c, shape) : NULL}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (!(shape->types & others[i].type)) continue;
        if (!others[i].e) return NULL;
        expression_list_add(r, &list, others[i].e);
    }
    return expression_choice(r, &list);
}
