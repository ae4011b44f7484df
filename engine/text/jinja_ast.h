// Jinja syntax tree: in the parser's arena, immutable once parsed.
#ifndef CONFAB_TEXT_JINJA_AST_H
#define CONFAB_TEXT_JINJA_AST_H

#include "engine/text/jinja_value.h"

struct jinja_nodes {
    struct jinja_node **at;
    size_t count, capacity;
};

enum jinja_node_kind {
    // Statements, with the fields they use.
    JINJA_NODE_DATA,   // constant
    JINJA_NODE_OUTPUT, // a
    JINJA_NODE_IF,     // items: branches (a: condition, NULL for else; items: body)
    JINJA_NODE_FOR,    // a: target, b: iterable, c: filter or NULL, items: body, rest: else
    JINJA_NODE_SET,    // a: target, b: value
    JINJA_NODE_SCOPE,  // rest: SETs evaluated in the outer scope, items: body
    JINJA_NODE_BREAK,
    JINJA_NODE_CONTINUE,
    // Expressions.
    JINJA_NODE_CONSTANT,  // constant
    JINJA_NODE_NAME,      // name
    JINJA_NODE_LIST,      // items
    JINJA_NODE_TUPLE,     // items
    JINJA_NODE_DICT,      // items: key, value, key, value …
    JINJA_NODE_ATTRIBUTE, // a, name
    JINJA_NODE_INDEX,     // a, b
    JINJA_NODE_SLICE,     // as an index: a: start, b: stop, c: step, each may be NULL
    JINJA_NODE_CALL,      // a, items: arguments
    JINJA_NODE_FILTER,    // a, name, builtin (NULL: unknown), items: arguments
    JINJA_NODE_TEST,      // the same
    JINJA_NODE_NOT,       // a
    JINJA_NODE_NEGATIVE,  // a
    JINJA_NODE_POSITIVE,  // a
    JINJA_NODE_BINARY,    // operation, a, b
    JINJA_NODE_CONCAT,    // a, b
    JINJA_NODE_AND,       // a, b
    JINJA_NODE_OR,        // a, b
    JINJA_NODE_COMPARE,   // a, items: operands (operation, a)
    JINJA_NODE_CHOICE,    // a: condition, b: then, c: else or NULL
    JINJA_NODE_CAPTURE,   // items: statements; their output is the value
    JINJA_NODE_MACRO,     // name, rest: parameters (name, a: default or NULL), items: body, takes
    // Parts of the above.
    JINJA_NODE_BRANCH,
    JINJA_NODE_OPERAND,
    JINJA_NODE_PARAMETER,
    JINJA_NODE_ARGUMENT,      // a; name: of a keyword argument, otherwise empty
    JINJA_NODE_ARGUMENT_LIST, // a: *a
    JINJA_NODE_ARGUMENT_DICT, // a: **a
};

// X(enumerator, operator)
#define JINJA_OPERATIONS(X)                                                                                            \
    X(JINJA_ADD, "+")                                                                                                  \
    X(JINJA_SUBTRACT, "-")                                                                                             \
    X(JINJA_MULTIPLY, "*")                                                                                             \
    X(JINJA_DIVIDE, "/")                                                                                               \
    X(JINJA_FLOOR_DIVIDE, "//")                                                                                        \
    X(JINJA_MODULO, "%")                                                                                               \
    X(JINJA_POWER, "**")                                                                                               \
    X(JINJA_EQUAL, "==")                                                                                               \
    X(JINJA_NOT_EQUAL, "!=")                                                                                           \
    X(JINJA_LESS, "<")                                                                                                 \
    X(JINJA_LESS_EQUAL, "<=")                                                                                          \
    X(JINJA_GREATER, ">")                                                                                              \
    X(JINJA_GREATER_EQUAL, ">=")                                                                                       \
    X(JINJA_IN, "in")                                                                                                  \
    X(JINJA_NOT_IN, "not in")

enum jinja_operation {
#define X(operation, text) operation,
    JINJA_OPERATIONS(X)
#undef X
};
const char *jinja_operation_text(enum jinja_operation operation);

// Implicit arguments of a macro, taken if its body names them.
enum { JINJA_TAKES_CALLER = 1, JINJA_TAKES_VARARGS = 2, JINJA_TAKES_KWARGS = 4 };

struct jinja_node {
    enum jinja_node_kind kind;
    enum jinja_operation operation;
    int line;
    unsigned takes;
    struct jinja_string name;
    struct jinja_value constant;
    const struct jinja_builtin *builtin;
    struct jinja_node *a, *b, *c;
    struct jinja_nodes items, rest;
};

// Parser state.
struct jinja_parser {
    struct jinja *j;
    const struct jinja_token *token; // the next one
    unsigned takes;                  // of the enclosing macro
    int loops;                       // enclosing loops
};

// The statements of a whole template.
struct jinja_nodes jinja_parse(struct jinja *j, struct span source);

// ---- expressions (jinja_parse_expression.c) ----
struct jinja_node *jinja_parse_expression(struct jinja_parser *p);
struct jinja_node *jinja_parse_tuple(struct jinja_parser *p, bool conditional); // a, b: a tuple; a: a itself
struct jinja_node *jinja_parse_target(struct jinja_parser *p, bool namespaces); // the left side of an assignment
// Parses the filters of a|f|g; `begun`: the first '|' has been read or is implied. Returns a if there is no filter.
struct jinja_node *jinja_parse_filters(struct jinja_parser *p, struct jinja_node *a, bool begun);

struct jinja_node *jinja_node(struct jinja_parser *p, enum jinja_node_kind kind);
void jinja_nodes_add(struct jinja *j, struct jinja_nodes *nodes, struct jinja_node *n);
bool jinja_at(const struct jinja_parser *p, const char *text); // the next token is this name or operator
bool jinja_skip(struct jinja_parser *p, const char *text);
void jinja_expect(struct jinja_parser *p, const char *text);
struct jinja_string jinja_expect_name(struct jinja_parser *p);
_Noreturn void jinja_unexpected(struct jinja_parser *p, const char *wanted);

#endif
