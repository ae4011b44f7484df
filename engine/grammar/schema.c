#include "engine/grammar/schema_state.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/base/panic.h"

enum { POINTER_SIZE = 200 };

// ---- messages ----

// Appends the pointer from `at` to `target`; false: it is not there.
static bool find_pointer(const json_t *at, const json_t *target, char *out, size_t n, int depth) {
    if (at == target) return true;
    if (depth == 0 || n + 40 > POINTER_SIZE) return false;
    const char *name;
    json_t *item;
    size_t i;
    if (json_is_object(at)) {
        json_object_foreach((json_t *)at, name, item) {
            const int size = snprintf(out + n, POINTER_SIZE - n, "/%.36s", name);
            if (find_pointer(item, target, out, n + (size_t)size, depth - 1)) return true;
        }
    }
    if (json_is_array(at)) {
        json_array_foreach(at, i, item) {
            const int size = snprintf(out + n, POINTER_SIZE - n, "/%zu", i);
            if (find_pointer(item, target, out, n + (size_t)size, depth - 1)) return true;
        }
    }
    out[n] = 0;
    return false;
}

bool schema_fail(struct schema *s, const json_t *where, enum status_code code, const char *format, ...) {
    char text[256], pointer[POINTER_SIZE] = "";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    find_pointer(s->root, where, pointer, 0, 16);
    return status_fail(s->st, code, "%s%s%s", pointer, *pointer ? ": " : "", text);
}

bool schema_fail_complex(struct schema *s, const json_t *where) {
    return schema_fail(s, where, STATUS_LIMIT, "the schema is too complex");
}

// ---- references ----

// A name of a JSON pointer, decoded in place.
static void decode_name(char *name) {
    char *out = name;
    for (const char *at = name; *at; at++) {
        unsigned code;
        if (*at == '~' && (at[1] == '0' || at[1] == '1')) *out++ = *++at == '0' ? '~' : '/';
        else if (*at == '%' && sscanf(at + 1, "%2x", &code) == 1 && at[1] && at[2]) *out++ = (char)code, at += 2;
        else *out++ = *at;
    }
    *out = 0;
}

static const json_t *step_into(const json_t *at, const char *name) {
    if (json_is_object(at)) return json_object_get(at, name);
    return json_is_array(at) ? json_array_get(at, (size_t)strtoul(name, NULL, 10)) : NULL;
}

static const json_t *follow_pointer(const json_t *root, const char *pointer) {
    char *copy = xstrdup(pointer), *rest = copy;
    const json_t *at = root;
    while (at && rest) {
        char *name = rest;
        rest = strchr(name, '/');
        if (rest) *rest++ = 0;
        decode_name(name);
        at = step_into(at, name);
    }
    free(copy);
    return at;
}

static const json_t *find_anchor(struct schema *s, const json_t *at, const char *anchor, int depth) {
    static const char *const keywords[] = {"$anchor", "$dynamicAnchor", "$id", "id"}; // of drafts before 2019: "#name"
    const json_t *found = NULL;
    const char *name;
    if (!schema_compare(s, 1)) return NULL;
    for (size_t k = 0; k < sizeof keywords / sizeof *keywords; k++) {
        const char *own = json_string_value(json_object_get(at, keywords[k]));
        if (own && k >= 2 && *own++ != '#') continue;
        if (own && !strcmp(own, anchor)) return at;
    }
    json_t *item;
    size_t i;
    if (json_is_object(at) && depth) {
        json_object_foreach((json_t *)at, name, item) if (!found) found = find_anchor(s, item, anchor, depth - 1);
    }
    if (json_is_array(at) && depth) {
        json_array_foreach(at, i, item) if (!found) found = find_anchor(s, item, anchor, depth - 1);
    }
    return found;
}

const json_t *schema_resolve(struct schema *s, const json_t *schema, const char *reference) {
    const char *id = json_string_value(json_object_get(s->root, "$id"));
    if (id && *id && !strncmp(reference, id, strlen(id)) && strchr("#", reference[strlen(id)])) reference += strlen(id);
    const json_t *found = NULL;
    schema_compare(s, strlen(reference));
    if (!*reference || !strcmp(reference, "#")) found = s->root;
    else if (!strncmp(reference, "#/", 2)) found = follow_pointer(s->root, reference + 2);
    else if (*reference == '#') found = find_anchor(s, s->root, reference + 1, 32);
    else {
        schema_fail(s, schema, STATUS_UNSUPPORTED, "$ref: '%.80s': references to other documents are not supported",
                    reference);
        return NULL;
    }
    if (!schema_work(s, 0)) return schema_fail_complex(s, schema), NULL;
    if (!found) schema_fail(s, schema, STATUS_FORMAT, "$ref: '%.80s' is not in the schema", reference);
    return found;
}

// ---- conjunctions ----

static bool add_part(struct schema *s, struct conjunction *c, struct part part) {
    for (int i = 0; i < c->n; i++) {
        if (c->parts[i].schema != part.schema) continue;
        if (c->parts[i].taken == part.taken) return true;
        // One of its anyOf was chosen, which may have led back here.
        return schema_fail(s, part.schema, STATUS_UNSUPPORTED, "the schema contains itself as one of its alternatives");
    }
    if (c->n == SCHEMA_PARTS)
        return schema_fail(s, part.schema, STATUS_LIMIT, "too many schemas at once (maximum %d)", SCHEMA_PARTS);
    c->parts[c->n++] = part;
    return true;
}

bool conjunction_add(struct schema *s, struct conjunction *c, const json_t *schema, unsigned taken, bool *never) {
    // References and members of allOf wait here.
    struct part waiting[SCHEMA_PARTS] = {{schema, taken}};
    int n = 1;
    const json_t *seen[SCHEMA_PARTS];
    int n_seen = 0;
    while (n) {
        const struct part part = waiting[--n];
        if (++s->work > SCHEMA_WORK) return schema_fail_complex(s, part.schema);
        if (json_is_boolean(part.schema)) {
            *never |= json_is_false(part.schema);
            continue;
        }
        if (!json_is_object(part.schema))
            return schema_fail(s, part.schema, STATUS_FORMAT, "expected a schema, that is an object, true or false");
        const json_t *reference = json_object_get(part.schema, "$ref"), *all = json_object_get(part.schema, "allOf");
        if (reference && !json_is_string(reference))
            return schema_fail(s, part.schema, STATUS_FORMAT, "$ref: expected a string");
        if (all && !json_is_array(all)) return schema_fail(s, part.schema, STATUS_FORMAT, "allOf: expected an array");
        for (int i = 0; i < n_seen; i++)
            if (seen[i] == part.schema) goto next;
        const size_t n_all = json_array_size(all);
        const bool depends = json_object_get(part.schema, "dependentRequired") ||
                             json_object_get(part.schema, "dependentSchemas") ||
                             json_object_get(part.schema, "dependencies");
        if (n_seen == SCHEMA_PARTS || (size_t)n + n_all + 2 > SCHEMA_PARTS)
            return schema_fail(s, part.schema, STATUS_LIMIT, "too many schemas at once (maximum %d)", SCHEMA_PARTS);
        seen[n_seen++] = part.schema;
        const unsigned own = part.taken | TAKEN_REF | TAKEN_ALL_OF | TAKEN_DEPENDENT;
        if (shape_has_assertions(part.schema, own) && !add_part(s, c, (struct part){part.schema, own})) return false;
        for (size_t i = n_all; i > 0; i--) waiting[n++] = (struct part){json_array_get(all, i - 1), 0};
        if (reference) {
            waiting[n].schema = schema_resolve(s, part.schema, json_string_value(reference));
            waiting[n].taken = 0;
            if (!waiting[n++].schema) return false;
        }
        if (depends) {
            waiting[n] = (struct part){schema_dependent(s, part.schema), 0};
            if (!waiting[n++].schema) return false;
        }
    next:;
    }
    return true;
}

// The order of parts does not matter to whether two are the same.
static uint32_t hash_of(const struct conjunction *c) {
    uint64_t sum = 0;
    for (int i = 0; i < c->n; i++)
        sum += ((uint64_t)(uintptr_t)c->parts[i].schema + c->parts[i].taken) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(sum >> 32) % SCHEMA_BUCKETS;
}

static bool same(const struct conjunction *a, const struct conjunction *b) {
    if (a->n != b->n) return false;
    for (int i = 0; i < a->n; i++) {
        int k = 0;
        while (k < b->n && b->parts[k].schema != a->parts[i].schema) k++;
        if (k == b->n || b->parts[k].taken != a->parts[i].taken) return false;
    }
    return true;
}

static struct conjunction *keep(const struct conjunction *c) {
    const size_t size = offsetof(struct conjunction, parts) + (size_t)c->n * sizeof *c->parts;
    return memcpy(xmalloc(size), c, size);
}

const struct expression *schema_rule(struct schema *s, const struct conjunction *c, const char *name) {
    int *latest = &s->latest[hash_of(c)];
    for (int i = *latest; i >= 0; i = s->others[i])
        if (same(s->made[i], c)) return expression_rule(s->rules, i);
    const int rule = rules_add(s->rules, span_of(name), s->st);
    if (rule < 0) return NULL;
    if (rule >= s->capacity) {
        s->capacity = 2 * rule + 64;
        s->made = xrealloc(s->made, (size_t)s->capacity * sizeof(struct conjunction *));
        s->others = xrealloc(s->others, (size_t)s->capacity * sizeof *s->others);
    }
    while (s->n_made < rule) s->made[s->n_made++] = NULL;
    s->made[s->n_made++] = keep(c);
    s->others[rule] = *latest;
    *latest = rule;
    return expression_rule(s->rules, rule);
}

// ---- rules ----

// OpenAPI's: the member whose value tells the schemas of a oneOf apart, so it has to be there.
static const char *discriminator_of(const json_t *owner) {
    return json_string_value(json_object_get(json_object_get(owner, "discriminator"), "propertyName"));
}

// One rule for each schema of an anyOf or oneOf, together with all the other parts.
static const struct expression *build_branches(struct schema *s, const struct conjunction *c, int part,
                                               const char *keyword, unsigned taken) {
    const json_t *owner = c->parts[part].schema, *schemas = json_object_get(owner, keyword);
    struct expression_list list = {0};
    if (!json_is_array(schemas) || !json_array_size(schemas))
        return schema_fail(s, owner, STATUS_FORMAT, "%s: expected an array of schemas", keyword), NULL;
    const char *discriminator = taken == TAKEN_ONE_OF ? discriminator_of(owner) : NULL;
    if (taken == TAKEN_ONE_OF && !disjoint_check(s, owner, schemas, discriminator)) return NULL;
    for (size_t i = 0; i < json_array_size(schemas); i++) {
        struct conjunction branch = {0};
        bool never = false;
        if ((s->work += c->n) > SCHEMA_WORK)
            return schema_fail(s, owner, STATUS_LIMIT, "the schema is too complex"), NULL;
        for (int k = 0; k < c->n; k++) {
            const unsigned own = c->parts[k].taken | (k == part ? taken : 0);
            if (shape_has_assertions(c->parts[k].schema, own))
                branch.parts[branch.n++] = (struct part){c->parts[k].schema, own};
        }
        if (!conjunction_add(s, &branch, json_array_get(schemas, i), 0, &never)) return NULL;
        if (discriminator && !conjunction_add(s, &branch, schema_requiring(s, discriminator), 0, &never)) return NULL;
        if (never) continue;
        const struct expression *e = schema_rule(s, &branch, keyword);
        if (!e) return NULL;
        expression_list_add(s->rules, &list, e);
    }
    return expression_choice(s->rules, &list);
}

static const struct expression *build(struct schema *s, const struct conjunction *c) {
    for (int i = 0; i < c->n; i++) {
        const struct part *p = &c->parts[i];
        if (!(p->taken & TAKEN_ANY_OF) && json_object_get(p->schema, "anyOf"))
            return build_branches(s, c, i, "anyOf", TAKEN_ANY_OF);
        if (!(p->taken & TAKEN_ONE_OF) && json_object_get(p->schema, "oneOf"))
            return build_branches(s, c, i, "oneOf", TAKEN_ONE_OF);
    }
    struct shape shape;
    return shape_read(s, c, &shape) ? schema_value(s, c, &shape) : NULL;
}

// A rule of the grammar's own.
static const struct expression *own_rule(struct schema *s, const char *name, const struct expression *body) {
    const int rule = rules_add(s->rules, span_of(name), s->st);
    if (rule < 0) return NULL;
    s->rules->rules[rule].body = body;
    return expression_rule(s->rules, rule);
}

static bool build_all(struct schema *s) {
    struct conjunction root = {0};
    struct rules *r = s->rules;
    bool never = false;
    s->space = own_rule(s, "space", json_text_space(r));
    s->character = own_rule(s, "character", json_text_any_character(r));
    const struct expression *quote = expression_literal(r, "\"");
    s->string = own_rule(
        s, "string", EXPRESSION_SEQUENCE_OF(r, quote, expression_repeat(r, s->character, 0, RULES_UNLIMITED), quote));
    if (!conjunction_add(s, &root, s->root, 0, &never)) return false;
    if (never) return schema_fail(s, s->root, STATUS_FORMAT, "the schema allows nothing");
    const struct expression *e = schema_rule(s, &root, "the schema");
    if (!e) return false;
    r->root = e->rule;
    for (int i = 0; i < s->n_made; i++) {
        if (!s->made[i]) continue;
        const struct expression *body = build(s, s->made[i]); // may move what is made, not this one
        if (!body || !rules_have_room(r, s->st)) return false;
        r->rules[i].body = body;
    }
    return true;
}

bool schema_parse(struct rules *r, struct span text, struct status *st) {
    json_error_t error;
    struct schema s = {.rules = r, .st = st};
    memset(s.latest, -1, sizeof s.latest);
    s.root = json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (!s.root) return status_fail(st, STATUS_FORMAT, "line %d, column %d: %s", error.line, error.column, error.text);
    const bool ok = build_all(&s);
    for (int i = 0; i < s.n_made; i++) free(s.made[i]);
    free(s.made);
    free(s.others);
    json_decref(s.derived);
    json_decref(s.root);
    return ok;
}
