// Parses Jinja expressions, with Jinja's precedence, which differs from Python's for ** and unary signs.
#include <string.h>

#include "engine/text/jinja_ast.h"
#include "engine/text/jinja_builtin.h"
#include "engine/text/jinja_lex.h"

const char *jinja_operation_text(enum jinja_operation operation) {
    static const char *const texts[] = {
#define X(id, text) [id] = text,
        JINJA_OPERATIONS(X)
#undef X
    };
    return texts[operation];
}

// ---- tokens and nodes ----

struct jinja_node *jinja_node(struct jinja_parser *p, enum jinja_node_kind kind) {
    struct jinja_node *n = jinja_alloc(p->j, 1, sizeof *n);
    n->kind = kind;
    n->line = p->token->line;
    return n;
}

void jinja_nodes_add(struct jinja *j, struct jinja_nodes *nodes, struct jinja_node *n) {
    if (nodes->count == nodes->capacity) {
        struct jinja_node **old = nodes->at;
        nodes->capacity = nodes->capacity ? 2 * nodes->capacity : 4;
        nodes->at = jinja_alloc(j, nodes->capacity, sizeof *nodes->at);
        if (old) memcpy(nodes->at, old, nodes->count * sizeof(struct jinja_node *));
    }
    nodes->at[nodes->count++] = n;
}

static struct jinja_node *node_of(struct jinja_parser *p, enum jinja_node_kind kind, struct jinja_node *a,
                                  struct jinja_node *b) {
    struct jinja_node *n = jinja_node(p, kind);
    n->a = a;
    n->b = b;
    return n;
}

bool jinja_at(const struct jinja_parser *p, const char *text) {
    return (p->token->kind == JINJA_TOKEN_NAME || p->token->kind == JINJA_TOKEN_OPERATOR) &&
           jinja_string_is(p->token->text, text);
}

bool jinja_skip(struct jinja_parser *p, const char *text) {
    bool there = jinja_at(p, text);
    p->token += there;
    return there;
}

void jinja_unexpected(struct jinja_parser *p, const char *wanted) {
    const struct jinja_token *t = p->token;
    int size = t->text.size < 60 ? (int)t->text.size : 60;
    p->j->line = t->line;
    if (t->kind == JINJA_TOKEN_END) jinja_fail(p->j, STATUS_FORMAT, "expected %s, got end of template", wanted);
    jinja_fail(p->j, STATUS_FORMAT, "expected %s, got '%.*s'", wanted, size, t->text.data);
}

void jinja_expect(struct jinja_parser *p, const char *text) {
    char wanted[16] = "'";
    if (!jinja_skip(p, text)) jinja_unexpected(p, strcat(strncat(wanted, text, 12), "'"));
}

struct jinja_string jinja_expect_name(struct jinja_parser *p) {
    if (p->token->kind != JINJA_TOKEN_NAME) jinja_unexpected(p, "a name");
    return (p->token++)->text;
}

// ---- primary expressions ----

static bool is_end(const struct jinja_parser *p) {
    return p->token->kind == JINJA_TOKEN_VARIABLE_END || p->token->kind == JINJA_TOKEN_BLOCK_END || jinja_at(p, ")");
}

static struct jinja_node *parse_or(struct jinja_parser *p);

struct jinja_node *jinja_parse_tuple(struct jinja_parser *p, bool conditional) {
    struct jinja_node *tuple = jinja_node(p, JINJA_NODE_TUPLE);
    bool comma = false;
    while (!is_end(p)) {
        jinja_nodes_add(p->j, &tuple->items, conditional ? jinja_parse_expression(p) : parse_or(p));
        if (!jinja_skip(p, ",")) break;
        comma = true;
    }
    if (!tuple->items.count) jinja_unexpected(p, "an expression");
    return comma ? tuple : tuple->items.at[0];
}

static struct jinja_node *parse_parentheses(struct jinja_parser *p) {
    struct jinja_node *n = jinja_at(p, ")") ? jinja_node(p, JINJA_NODE_TUPLE) : jinja_parse_tuple(p, true);
    jinja_expect(p, ")");
    return n;
}

static struct jinja_node *parse_list(struct jinja_parser *p) {
    struct jinja_node *n = jinja_node(p, JINJA_NODE_LIST);
    while (!jinja_skip(p, "]")) {
        if (n->items.count) jinja_expect(p, ",");
        if (jinja_skip(p, "]")) break;
        jinja_nodes_add(p->j, &n->items, jinja_parse_expression(p));
    }
    return n;
}

static struct jinja_node *parse_dict(struct jinja_parser *p) {
    struct jinja_node *n = jinja_node(p, JINJA_NODE_DICT);
    while (!jinja_skip(p, "}")) {
        if (n->items.count) jinja_expect(p, ",");
        if (jinja_skip(p, "}")) break;
        jinja_nodes_add(p->j, &n->items, jinja_parse_expression(p));
        jinja_expect(p, ":");
        jinja_nodes_add(p->j, &n->items, jinja_parse_expression(p));
    }
    return n;
}

static const struct {
    const char *name;
    struct jinja_value value;
} constants[] = {
    {"true", {.type = JINJA_BOOLEAN, .boolean = true}},
    {"True", {.type = JINJA_BOOLEAN, .boolean = true}},
    {"false", {.type = JINJA_BOOLEAN, .boolean = false}},
    {"False", {.type = JINJA_BOOLEAN, .boolean = false}},
    {"none", {.type = JINJA_NONE}},
    {"None", {.type = JINJA_NONE}},
};

static bool is_constant(const struct jinja_parser *p, struct jinja_value *value) {
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (jinja_at(p, constants[i].name)) return *value = constants[i].value, true;
    return false;
}

static void note_special_name(struct jinja_parser *p, struct jinja_string name) {
    if (jinja_string_is(name, "caller")) p->takes |= JINJA_TAKES_CALLER;
    if (jinja_string_is(name, "varargs")) p->takes |= JINJA_TAKES_VARARGS;
    if (jinja_string_is(name, "kwargs")) p->takes |= JINJA_TAKES_KWARGS;
}

static struct jinja_node *parse_name(struct jinja_parser *p) {
    struct jinja_node *n = jinja_node(p, JINJA_NODE_CONSTANT);
    if (!is_constant(p, &n->constant)) {
        n->kind = JINJA_NODE_NAME;
        n->name = p->token->text;
        note_special_name(p, n->name);
    }
    p->token++;
    return n;
}

// Adjacent strings are concatenated.
static struct jinja_node *parse_literal(struct jinja_parser *p) {
    struct jinja_node *n = jinja_node(p, JINJA_NODE_CONSTANT);
    n->constant = (p->token++)->literal;
    if (n->constant.type != JINJA_STRING) return n;
    struct jinja_builder b = {0};
    jinja_append(p->j, &b, n->constant.string);
    for (; p->token->kind == JINJA_TOKEN_LITERAL && p->token->literal.type == JINJA_STRING; p->token++)
        jinja_append(p->j, &b, p->token->literal.string);
    n->constant.string = jinja_built(&b);
    return n;
}

static struct jinja_node *parse_primary(struct jinja_parser *p) {
    if (p->token->kind == JINJA_TOKEN_NAME) return parse_name(p);
    if (p->token->kind == JINJA_TOKEN_LITERAL) return parse_literal(p);
    if (jinja_skip(p, "(")) return parse_parentheses(p);
    if (jinja_skip(p, "[")) return parse_list(p);
    if (jinja_skip(p, "{")) return parse_dict(p);
    jinja_unexpected(p, "an expression");
}

// ---- suffixes of a primary expression ----

static void parse_arguments(struct jinja_parser *p, struct jinja_nodes *arguments) {
    bool named = false;
    while (!jinja_skip(p, ")")) {
        if (arguments->count) jinja_expect(p, ",");
        if (jinja_skip(p, ")")) break;
        struct jinja_node *n = jinja_node(p, JINJA_NODE_ARGUMENT);
        const struct jinja_token *next = p->token + (p->token->kind != JINJA_TOKEN_END);
        if (jinja_skip(p, "*")) n->kind = JINJA_NODE_ARGUMENT_LIST;
        else if (jinja_skip(p, "**")) n->kind = JINJA_NODE_ARGUMENT_DICT;
        else if (p->token->kind == JINJA_TOKEN_NAME && next->kind == JINJA_TOKEN_OPERATOR &&
                 jinja_string_is(next->text, "=")) {
            n->name = p->token->text;
            p->token += 2;
        }
        bool positional = n->kind == JINJA_NODE_ARGUMENT && !n->name.data;
        if (positional && named) jinja_unexpected(p, "a keyword argument");
        named |= !positional;
        n->a = jinja_parse_expression(p);
        jinja_nodes_add(p->j, arguments, n);
    }
}

static struct jinja_node *parse_subscript(struct jinja_parser *p) {
    struct jinja_node *part[3] = {NULL}, *n = jinja_node(p, JINJA_NODE_SLICE);
    int i = 0;
    for (; i < 3; i++) {
        if (!jinja_at(p, ":") && !jinja_at(p, "]") && !jinja_at(p, ",")) part[i] = jinja_parse_expression(p);
        if (i == 2 || !jinja_skip(p, ":")) break;
    }
    if (!i && !part[0]) jinja_unexpected(p, "an expression");
    if (!i) return part[0];
    n->a = part[0], n->b = part[1], n->c = part[2];
    return n;
}

static struct jinja_node *parse_index(struct jinja_parser *p, struct jinja_node *a) {
    struct jinja_node *index = parse_subscript(p);
    if (jinja_at(p, ",")) { // a tuple, as a key
        struct jinja_node *tuple = jinja_node(p, JINJA_NODE_TUPLE);
        jinja_nodes_add(p->j, &tuple->items, index);
        while (jinja_skip(p, ",")) jinja_nodes_add(p->j, &tuple->items, jinja_parse_expression(p));
        index = tuple;
    }
    jinja_expect(p, "]");
    return node_of(p, JINJA_NODE_INDEX, a, index);
}

static struct jinja_node *parse_dot(struct jinja_parser *p, struct jinja_node *a) {
    struct jinja_node *n = node_of(p, JINJA_NODE_ATTRIBUTE, a, NULL);
    if (p->token->kind == JINJA_TOKEN_NAME) {
        n->name = (p->token++)->text;
    } else if (p->token->kind == JINJA_TOKEN_LITERAL && p->token->literal.type == JINJA_INTEGER) {
        n->kind = JINJA_NODE_INDEX;
        n->b = parse_literal(p);
    } else {
        jinja_unexpected(p, "a name or a number after '.'");
    }
    return n;
}

static struct jinja_node *parse_call(struct jinja_parser *p, struct jinja_node *a) {
    struct jinja_node *n = node_of(p, JINJA_NODE_CALL, a, NULL);
    parse_arguments(p, &n->items);
    return n;
}

static struct jinja_node *parse_postfix(struct jinja_parser *p, struct jinja_node *a) {
    for (;;) {
        if (jinja_skip(p, ".")) a = parse_dot(p, a);
        else if (jinja_skip(p, "[")) a = parse_index(p, a);
        else if (jinja_skip(p, "(")) a = parse_call(p, a);
        else return a;
    }
}

static struct jinja_node *parse_filter(struct jinja_parser *p, struct jinja_node *a) {
    struct jinja_node *n = node_of(p, JINJA_NODE_FILTER, a, NULL);
    n->name = jinja_expect_name(p);
    n->builtin = jinja_filter_find(n->name);
    if (jinja_skip(p, "(")) parse_arguments(p, &n->items);
    return n;
}

struct jinja_node *jinja_parse_filters(struct jinja_parser *p, struct jinja_node *a, bool begun) {
    if (begun) a = parse_filter(p, a);
    while (jinja_skip(p, "|")) a = parse_filter(p, a);
    return a;
}

static bool begins_test_argument(const struct jinja_parser *p) {
    if (p->token->kind == JINJA_TOKEN_NAME)
        return !jinja_at(p, "else") && !jinja_at(p, "or") && !jinja_at(p, "and") && !jinja_at(p, "if");
    return p->token->kind == JINJA_TOKEN_LITERAL || jinja_at(p, "[") || jinja_at(p, "{");
}

static struct jinja_node *parse_test(struct jinja_parser *p, struct jinja_node *a) {
    bool negated = jinja_skip(p, "not");
    struct jinja_node *n = node_of(p, JINJA_NODE_TEST, a, NULL);
    n->name = jinja_expect_name(p);
    n->builtin = jinja_builtin_find(jinja_tests, n->name);
    if (jinja_skip(p, "(")) {
        parse_arguments(p, &n->items);
    } else if (begins_test_argument(p)) {
        if (jinja_at(p, "is")) jinja_unexpected(p, "at most one test");
        struct jinja_node *argument = jinja_node(p, JINJA_NODE_ARGUMENT);
        argument->a = parse_postfix(p, parse_primary(p));
        jinja_nodes_add(p->j, &n->items, argument);
    }
    return negated ? node_of(p, JINJA_NODE_NOT, n, NULL) : n;
}

static struct jinja_node *parse_filters_and_tests(struct jinja_parser *p, struct jinja_node *a) {
    for (;;) {
        if (jinja_skip(p, "|")) a = parse_filter(p, a);
        else if (jinja_skip(p, "is")) a = parse_test(p, a);
        else if (jinja_skip(p, "(")) a = parse_call(p, a);
        else return a;
    }
}

// ---- operators, from highest to lowest precedence ----

static struct jinja_node *parse_unary(struct jinja_parser *p, bool filters) {
    jinja_enter(p->j);
    struct jinja_node *n = jinja_node(p, JINJA_NODE_NEGATIVE);
    if (jinja_skip(p, "-")) {
        n->a = parse_unary(p, false);
    } else if (jinja_skip(p, "+")) {
        n->kind = JINJA_NODE_POSITIVE;
        n->a = parse_unary(p, false);
    } else {
        n = parse_postfix(p, parse_primary(p));
    }
    if (filters) n = parse_filters_and_tests(p, n);
    jinja_leave(p->j);
    return n;
}

static bool skip_operation(struct jinja_parser *p, enum jinja_operation first, enum jinja_operation last,
                           enum jinja_operation *found) {
    for (enum jinja_operation o = first; o <= last; o++)
        if (p->token->kind == JINJA_TOKEN_OPERATOR && jinja_skip(p, jinja_operation_text(o))) return *found = o, true;
    return false;
}

// Left-associative binary operators of one level.
static struct jinja_node *parse_level(struct jinja_parser *p, enum jinja_operation first, enum jinja_operation last,
                                      struct jinja_node *(*operand)(struct jinja_parser *)) {
    struct jinja_node *a = operand(p);
    enum jinja_operation operation;
    while (skip_operation(p, first, last, &operation)) {
        a = node_of(p, JINJA_NODE_BINARY, a, NULL);
        a->operation = operation;
        a->b = operand(p);
    }
    return a;
}

static struct jinja_node *parse_signed(struct jinja_parser *p) { return parse_unary(p, true); }
static struct jinja_node *parse_power(struct jinja_parser *p) {
    return parse_level(p, JINJA_POWER, JINJA_POWER, parse_signed);
}
static struct jinja_node *parse_product(struct jinja_parser *p) {
    return parse_level(p, JINJA_MULTIPLY, JINJA_MODULO, parse_power);
}
static struct jinja_node *parse_concat(struct jinja_parser *p) {
    struct jinja_node *a = parse_product(p);
    while (jinja_skip(p, "~")) a = node_of(p, JINJA_NODE_CONCAT, a, parse_product(p));
    return a;
}
static struct jinja_node *parse_sum(struct jinja_parser *p) {
    return parse_level(p, JINJA_ADD, JINJA_SUBTRACT, parse_concat);
}

static bool skip_comparison(struct jinja_parser *p, enum jinja_operation *found) {
    if (skip_operation(p, JINJA_EQUAL, JINJA_GREATER_EQUAL, found)) return true;
    *found = JINJA_IN;
    if (jinja_skip(p, "in")) return true;
    const struct jinja_token *next = p->token + (p->token->kind != JINJA_TOKEN_END);
    if (!jinja_at(p, "not") || next->kind != JINJA_TOKEN_NAME || !jinja_string_is(next->text, "in")) return false;
    p->token += 2;
    *found = JINJA_NOT_IN;
    return true;
}

static struct jinja_node *parse_comparison(struct jinja_parser *p) {
    struct jinja_node *a = parse_sum(p), *n = NULL;
    enum jinja_operation operation;
    while (skip_comparison(p, &operation)) {
        if (!n) n = node_of(p, JINJA_NODE_COMPARE, a, NULL);
        struct jinja_node *operand = jinja_node(p, JINJA_NODE_OPERAND);
        operand->operation = operation;
        operand->a = parse_sum(p);
        jinja_nodes_add(p->j, &n->items, operand);
    }
    return n ? n : a;
}

static struct jinja_node *parse_not(struct jinja_parser *p) {
    jinja_enter(p->j);
    struct jinja_node *n = jinja_node(p, JINJA_NODE_NOT);
    if (jinja_skip(p, "not")) n->a = parse_not(p);
    else n = parse_comparison(p);
    jinja_leave(p->j);
    return n;
}

static struct jinja_node *parse_and(struct jinja_parser *p) {
    struct jinja_node *a = parse_not(p);
    while (jinja_skip(p, "and")) a = node_of(p, JINJA_NODE_AND, a, parse_not(p));
    return a;
}

static struct jinja_node *parse_or(struct jinja_parser *p) {
    struct jinja_node *a = parse_and(p);
    while (jinja_skip(p, "or")) a = node_of(p, JINJA_NODE_OR, a, parse_and(p));
    return a;
}

struct jinja_node *jinja_parse_expression(struct jinja_parser *p) {
    jinja_enter(p->j);
    struct jinja_node *n = parse_or(p);
    while (jinja_skip(p, "if")) {
        n = node_of(p, JINJA_NODE_CHOICE, NULL, n);
        n->a = parse_or(p);
        if (jinja_skip(p, "else")) n->c = jinja_parse_expression(p);
    }
    jinja_leave(p->j);
    return n;
}

// ---- assignment targets ----

static struct jinja_node *parse_simple_target(struct jinja_parser *p, bool namespaces) {
    struct jinja_value ignored;
    if (is_constant(p, &ignored)) jinja_unexpected(p, "a name to assign to");
    struct jinja_node *n = jinja_node(p, JINJA_NODE_NAME);
    if (jinja_skip(p, "(")) {
        n = jinja_parse_target(p, false);
        jinja_expect(p, ")");
        return n;
    }
    n->name = jinja_expect_name(p);
    if (!namespaces || !jinja_skip(p, ".")) return n;
    struct jinja_node *attribute = node_of(p, JINJA_NODE_ATTRIBUTE, n, NULL);
    attribute->name = jinja_expect_name(p);
    return attribute;
}

struct jinja_node *jinja_parse_target(struct jinja_parser *p, bool namespaces) {
    jinja_enter(p->j);
    struct jinja_node *first = parse_simple_target(p, namespaces), *tuple = NULL;
    while (jinja_skip(p, ",")) {
        if (!tuple) jinja_nodes_add(p->j, &(tuple = jinja_node(p, JINJA_NODE_TUPLE))->items, first);
        if (jinja_at(p, "in") || jinja_at(p, "=") || jinja_at(p, ")")) break;
        jinja_nodes_add(p->j, &tuple->items, parse_simple_target(p, namespaces));
    }
    jinja_leave(p->j);
    return tuple ? tuple : first;
}
