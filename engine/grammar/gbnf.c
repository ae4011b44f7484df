#include "engine/grammar/gbnf.h"

#include <stdlib.h>

#include "engine/base/hash_seed.h"
#include "engine/base/panic.h"
#include "engine/base/utf8.h"
#include "engine/grammar/source.h"

enum { TABLE_SIZE = 1 << 16 }; // > 2 × RULES_MOST

struct gbnf {
    struct source s;
    uint16_t *table;   // number of a rule + 1 by its name's hash
    const char **used; // [rules] where a rule is named first
};

// ---- names ----

static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static struct span read_name(struct source *s) {
    const char *begin = s->at;
    while (s->at < s->end && is_name(*s->at)) s->at++;
    return (struct span){begin, (size_t)(s->at - begin)};
}

// White space and comments.
static void skip_space(struct source *s) {
    for (; s->at < s->end; s->at++) {
        if (*s->at == '#') {
            while (s->at < s->end && *s->at != '\n') s->at++;
            if (s->at == s->end) return;
        } else if (!strchr(" \t\r\n", *s->at) || !*s->at) return;
    }
}

// At the name and "::=" of a rule; then *name is the name, and behind it goes on.
static bool take_definition(struct source *s, struct span *name) {
    const char *begin = s->at;
    *name = read_name(s);
    skip_space(s);
    if (name->size && s->end - s->at >= 3 && !memcmp(s->at, "::=", 3)) return s->at += 3, true;
    s->at = begin;
    return false;
}

static uint32_t hash_name(struct span name) {
    uint32_t h = 2166136261u ^ (uint32_t)hash_seed();
    for (size_t i = 0; i < name.size; i++) h = (h ^ (uint8_t)name.data[i]) * 16777619u;
    return h ^ h >> 16;
}

// The rule of this name, added if it is new; −1: there are too many.
static int find_rule(struct gbnf *g, struct span name) {
    struct rules *r = g->s.rules;
    uint32_t at = hash_name(name) % TABLE_SIZE;
    for (; g->table[at]; at = (at + 1) % TABLE_SIZE)
        if (span_equals(name, r->rules[g->table[at] - 1].name)) return g->table[at] - 1;
    const int rule = rules_add(r, name, g->s.st);
    if (rule < 0) return -1;
    g->table[at] = (uint16_t)(rule + 1);
    g->used[rule] = name.data;
    return rule;
}

// ---- characters ----

// In a literal or a class.
static bool read_character(struct source *s, uint32_t *code) {
    static const char letters[] = "nrt\\\"[]-^'/.", codes[] = "\n\r\t\\\"[]-^'/.";
    if (!source_take(s, '\\')) return source_character(s, code);
    if (s->at == s->end) return source_fail(s, STATUS_FORMAT, "unexpected end");
    if (source_take(s, 'x')) return source_hexadecimal(s, 2, code);
    if (source_take(s, 'u')) return source_hexadecimal(s, 4, code);
    if (source_take(s, 'U')) return source_hexadecimal(s, 8, code);
    const char *letter = *s->at ? strchr(letters, *s->at) : NULL;
    if (!letter) return source_fail(s, STATUS_FORMAT, "unknown escape '\\%c'", *s->at);
    *code = (uint8_t)codes[letter - letters];
    s->at++;
    return true;
}

static const struct expression *read_literal(struct source *s) {
    const char *begin = s->at++;
    char *bytes = xmalloc((size_t)(s->end - begin) + 4); // an escape is longer than its character
    size_t n = 0;
    const struct expression *e = NULL;
    while (s->at < s->end && *s->at != '"') {
        uint32_t code;
        if (!read_character(s, &code)) goto failed;
        n += utf8_encode(code, bytes + n);
    }
    if (source_take(s, '"')) e = expression_text(s->rules, (struct span){bytes, n});
    else s->at = begin, source_fail(s, STATUS_FORMAT, "unterminated literal");
failed:
    free(bytes);
    return e;
}

static bool read_class_part(struct source *s, struct code_set *set, uint32_t *code, bool *is_set) {
    (void)set, (void)is_set;
    return read_character(s, code);
}

static const struct expression *read_class(struct source *s) {
    struct code_set set;
    s->at++;
    return source_class(s, read_class_part, &set) ? expression_set(s->rules, &set) : NULL;
}

// ---- expressions ----

static const struct expression *read_alternatives(struct gbnf *g);

static const struct expression *read_group(struct gbnf *g) {
    struct source *s = &g->s;
    const char *begin = s->at;
    if (!source_nest(s)) return NULL;
    s->at++;
    const struct expression *e = read_alternatives(g);
    if (!e) return NULL;
    s->nesting--;
    if (source_take(s, ')')) return e;
    if (s->at == s->end) s->at = begin;
    return source_fail(s, STATUS_FORMAT, s->at == begin ? "unterminated group" : "expected ')'"), NULL;
}

static const struct expression *read_item(struct gbnf *g) {
    struct source *s = &g->s;
    static const struct code_range any = {0, CODE_LAST};
    switch (*s->at) {
    case '"': return read_literal(s);
    case '[': return read_class(s);
    case '(': return read_group(g);
    case '.': s->at++; return expression_set(s->rules, &(struct code_set){(struct code_range *)&any, 1, 1});
    case '<': return source_fail(s, STATUS_UNSUPPORTED, "tokens in a grammar are not supported"), NULL;
    default: break;
    }
    const struct span name = read_name(s);
    if (!name.size) return source_fail(s, STATUS_FORMAT, "unexpected '%c'", *s->at), NULL;
    const int rule = find_rule(g, name);
    return rule < 0 ? NULL : expression_rule(s->rules, rule);
}

// Whether a sequence ends here.
static bool ends_here(struct source *s) {
    struct span name;
    if (s->at == s->end || *s->at == '|' || *s->at == ')') return true;
    const char *begin = s->at;
    const bool next = take_definition(s, &name);
    s->at = begin;
    return next;
}

// The operators *, +, ? and "{…}" behind an item, as many as there are; *e is what they apply to.
static bool read_operators(struct source *s, const struct expression **e) {
    for (int n = 0; n < RULES_NESTING; n++) {
        skip_space(s);
        if (s->at == s->end || !*s->at || !strchr("*+?{", *s->at)) return true;
        int least = *s->at == '+', most = *s->at == '?' ? 1 : RULES_UNLIMITED;
        if (*s->at++ == '{' && !source_times(s, &least, &most)) return false;
        *e = expression_repeat(s->rules, *e, least, most);
    }
    return true;
}

static const struct expression *read_sequence(struct gbnf *g) {
    struct source *s = &g->s;
    struct expression_list list = {0};
    for (skip_space(s); !ends_here(s); skip_space(s)) {
        const struct expression *e = rules_have_room(s->rules, s->st) ? read_item(g) : NULL;
        if (!e || !read_operators(s, &e)) return NULL;
        expression_list_add(s->rules, &list, e);
    }
    return expression_sequence(s->rules, &list);
}

static const struct expression *read_alternatives(struct gbnf *g) {
    struct expression_list list = {0};
    do {
        const struct expression *e = rules_have_room(g->s.rules, g->s.st) ? read_sequence(g) : NULL;
        if (!e) return NULL;
        expression_list_add(g->s.rules, &list, e);
    } while (source_take(&g->s, '|'));
    return expression_choice(g->s.rules, &list);
}

// ---- rules ----

static bool read_rules(struct gbnf *g) {
    struct source *s = &g->s;
    struct rules *r = s->rules;
    for (skip_space(s); s->at < s->end; skip_space(s)) {
        struct span name;
        const char *begin = s->at;
        if (!take_definition(s, &name)) {
            if (*s->at == ')') return source_fail(s, STATUS_FORMAT, "')' without '('");
            return source_fail(s, STATUS_FORMAT, "expected a rule, such as: root ::= \"yes\" | \"no\"");
        }
        const int rule = find_rule(g, name);
        if (rule < 0) return false;
        if (r->rules[rule].body) {
            s->at = begin;
            return source_fail(s, STATUS_FORMAT, "rule '%.60s' is defined twice", r->rules[rule].name);
        }
        const struct expression *body = read_alternatives(g);
        if (!body) return false;
        r->rules[rule].body = body;
    }
    return true;
}

static bool check_defined(struct gbnf *g) {
    struct source *s = &g->s;
    for (int i = 0; i < s->rules->n; i++) {
        if (s->rules->rules[i].body) continue;
        s->at = g->used[i];
        return source_fail(s, STATUS_FORMAT, "rule '%.60s' is not defined", s->rules->rules[i].name);
    }
    return true;
}

bool gbnf_parse(struct rules *r, struct span text, struct status *st) {
    struct gbnf g = {
        .s = {.rules = r, .begin = text.data, .at = text.data, .end = text.data + text.size, .spaced = true, .st = st},
        .table = xcalloc(TABLE_SIZE, sizeof *g.table),
        .used = xcalloc(RULES_MOST, sizeof *g.used)};
    const bool read = read_rules(&g) && check_defined(&g);
    const int n = r->n;
    if (read) r->root = find_rule(&g, span_of("root"));
    const bool ok = read && r->n == n;
    if (read && !ok) status_fail(st, STATUS_FORMAT, "there is no rule 'root'");
    free(g.table);
    free(g.used);
    return ok;
}
