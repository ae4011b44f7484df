#include "engine/grammar/regex.h"

#include "engine/grammar/json_text.h"
#include "engine/grammar/source.h"

struct regex {
    struct source s;
    struct regex_options o;
};

// ---- sets ----

static const struct code_range digits[] = {{'0', '9'}};
static const struct code_range words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
static const struct code_range spaces[] = {{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680},
                                           {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                                           {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
static const struct code_range line_ends[] = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

static struct code_set class_set(char letter) {
    switch (letter | 0x20) {
    case 'd': return (struct code_set){(struct code_range *)digits, 1, 1};
    case 'w': return (struct code_set){(struct code_range *)words, 4, 4};
    default: return (struct code_set){(struct code_range *)spaces, 10, 10};
    }
}

static const struct expression *set_expression(struct regex *x, const struct code_set *set) {
    return x->o.json ? json_text_character(x->s.rules, set) : expression_set(x->s.rules, set);
}

// ---- characters ----

static bool read_braced(struct source *s, uint32_t *code) {
    int n = 0;
    while (s->at + n < s->end && s->at[n] != '}' && n < 7) n++;
    return source_hexadecimal(s, n, code) && (source_take(s, '}') || source_fail(s, STATUS_FORMAT, "expected '}'"));
}

// Behind a backslash: one character.
static bool read_escape(struct source *s, uint32_t *code) {
    static const char letters[] = "nrtfv0", codes[] = "\n\r\t\f\v";
    const char c = *s->at;
    const char *letter = c ? strchr(letters, c) : NULL;
    if (letter) {
        s->at++;
        *code = (uint8_t)codes[letter - letters];
        return c != '0' || !source_is_digit(s) || source_fail(s, STATUS_UNSUPPORTED, "octal escapes are not supported");
    }
    if (source_take(s, 'x')) return source_hexadecimal(s, 2, code);
    if (source_take(s, 'u')) return source_take(s, '{') ? read_braced(s, code) : source_hexadecimal(s, 4, code);
    if (c >= '1' && c <= '9') return source_fail(s, STATUS_UNSUPPORTED, "references to groups are not supported");
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
        return source_fail(s, STATUS_UNSUPPORTED, "'\\%c' is not supported", c);
    return source_character(s, code);
}

static bool read_class_part(struct source *s, struct code_set *set, uint32_t *code, bool *is_set) {
    if (!source_take(s, '\\')) return source_character(s, code);
    if (s->at == s->end) return source_fail(s, STATUS_FORMAT, "unexpected end");
    if (*s->at == 'b') return *code = '\b', s->at++, true;
    if (!strchr("dwsDWS", *s->at) || !*s->at) return read_escape(s, code);
    struct code_set part = class_set(*s->at);
    if (*s->at < 'a') part = code_set_complement(&s->rules->arena, &part);
    code_set_add_all(&s->rules->arena, set, &part);
    s->at++;
    return *is_set = true;
}

static const struct expression *read_class(struct regex *x) {
    struct code_set set;
    return source_class(&x->s, read_class_part, &set) ? set_expression(x, &set) : NULL;
}

// ---- expressions ----

static const struct expression *read_alternatives(struct regex *x);

// Behind "(?": what makes no difference to what matches is skipped.
static bool skip_group_kind(struct source *s) {
    if (!source_take(s, '?')) return true;
    if (source_take(s, ':')) return true;
    source_take(s, 'P');
    if (source_take(s, '<') && s->at < s->end && *s->at != '=' && *s->at != '!') {
        while (s->at < s->end && *s->at != '>' && *s->at != ')') s->at++;
        if (source_take(s, '>')) return true;
    }
    return source_fail(s, STATUS_UNSUPPORTED, "groups that look ahead or back, or change flags, are not supported");
}

static const struct expression *read_group(struct regex *x) {
    struct source *s = &x->s;
    const char *begin = s->at - 1;
    if (!source_nest(s) || !skip_group_kind(s)) return NULL;
    const struct expression *e = read_alternatives(x);
    if (!e) return NULL;
    s->nesting--;
    if (source_take(s, ')')) return e;
    s->at = begin;
    return source_fail(s, STATUS_FORMAT, "unterminated group"), NULL;
}

static const struct expression *read_escaped(struct regex *x) {
    struct source *s = &x->s;
    if (s->at == s->end) return source_fail(s, STATUS_FORMAT, "unexpected end"), NULL;
    if (*s->at == 'b' || *s->at == 'B')
        return source_fail(s, STATUS_UNSUPPORTED, "'\\%c' is not supported", *s->at), NULL;
    if (strchr("dwsDWS", *s->at) && *s->at) {
        struct code_set set = class_set(*s->at);
        if (*s->at < 'a') set = code_set_complement(&s->rules->arena, &set);
        s->at++;
        return set_expression(x, &set);
    }
    struct code_range one = {0};
    if (!read_escape(s, &one.first)) return NULL;
    one.last = one.first;
    return set_expression(x, &(struct code_set){&one, 1, 1});
}

static const struct expression *read_item(struct regex *x) {
    struct source *s = &x->s;
    if (source_take(s, '[')) return read_class(x);
    if (source_take(s, '(')) return read_group(x);
    if (source_take(s, '\\')) return read_escaped(x);
    if (source_take(s, '.')) {
        const struct code_set ends = {(struct code_range *)line_ends, 3, 3};
        const struct code_set set = code_set_complement(&s->rules->arena, &ends);
        return set_expression(x, &set);
    }
    if (*s->at == '^' || *s->at == '$')
        return source_fail(s, STATUS_UNSUPPORTED, "'%c' is supported only at the %s of the whole expression", *s->at,
                           *s->at == '^' ? "beginning" : "end"),
               NULL;
    if (*s->at && strchr("*+?{", *s->at)) return source_fail(s, STATUS_FORMAT, "nothing to repeat"), NULL;
    struct code_range one = {0};
    if (!source_character(s, &one.first)) return NULL;
    one.last = one.first;
    return set_expression(x, &(struct code_set){&one, 1, 1});
}

// One operator behind an item, which may be lazy: what matches is the same.
static bool read_operator(struct source *s, const struct expression **e) {
    if (s->at == s->end || !*s->at || !strchr("*+?{", *s->at)) return true;
    int least = *s->at == '+', most = *s->at == '?' ? 1 : RULES_UNLIMITED;
    if (*s->at++ == '{' && !source_times(s, &least, &most)) return false;
    *e = expression_repeat(s->rules, *e, least, most);
    source_take(s, '?');
    return !source_is_at(s, '+') || source_fail(s, STATUS_UNSUPPORTED, "possessive repetition is not supported");
}

static bool at_end(const struct source *s) { return s->at == s->end || *s->at == '|' || *s->at == ')'; }

// At the top, ^ and $ decide whether anything may stand before and behind.
static const struct expression *read_sequence(struct regex *x) {
    struct source *s = &x->s;
    struct rules *r = s->rules;
    static const struct code_range all = {0, CODE_LAST};
    const bool top = !s->nesting, open = top && x->o.searches;
    const struct expression *anything = NULL;
    struct expression_list list = {0};
    if (open) {
        const struct code_set set = {(struct code_range *)&all, 1, 1};
        anything = expression_repeat(r, set_expression(x, &set), 0, RULES_UNLIMITED);
    }
    const bool begins = top && source_take(s, '^');
    bool ends = false;
    if (open && !begins) expression_list_add(r, &list, anything);
    while (!at_end(s)) {
        if (top && *s->at == '$' && (s->at + 1 == s->end || s->at[1] == '|')) {
            s->at++;
            ends = true;
            break;
        }
        const struct expression *e = rules_have_room(r, s->st) ? read_item(x) : NULL;
        if (!e || !read_operator(s, &e)) return NULL;
        expression_list_add(r, &list, e);
    }
    if (open && !ends) expression_list_add(r, &list, anything);
    return expression_sequence(r, &list);
}

static const struct expression *read_alternatives(struct regex *x) {
    struct expression_list list = {0};
    do {
        const struct expression *e = rules_have_room(x->s.rules, x->s.st) ? read_sequence(x) : NULL;
        if (!e) return NULL;
        expression_list_add(x->s.rules, &list, e);
    } while (source_take(&x->s, '|'));
    return expression_choice(x->s.rules, &list);
}

const struct expression *regex_parse(struct rules *r, struct span text, struct regex_options o, struct status *st) {
    struct regex x = {.s = {.rules = r, .begin = text.data, .at = text.data, .end = text.data + text.size, .st = st},
                      .o = o};
    const struct expression *e = read_alternatives(&x);
    if (!e || x.s.at == x.s.end) return e;
    return source_fail(&x.s, STATUS_FORMAT, "')' without '('"), NULL;
}
