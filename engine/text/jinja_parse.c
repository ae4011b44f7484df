// Parses Jinja statements, from a table of tags.
#include "engine/text/jinja_ast.h"
#include "engine/text/jinja_lex.h"

static struct jinja_nodes parse_body(struct jinja_parser *p, const char *const *ends);

static void expect_block_end(struct jinja_parser *p) {
    if (p->token->kind != JINJA_TOKEN_BLOCK_END) jinja_unexpected(p, "'%}'");
    p->token++;
}

// Parses a body up to and including the tag `end`.
static struct jinja_nodes parse_whole_body(struct jinja_parser *p, const char *end) {
    expect_block_end(p);
    struct jinja_nodes body = parse_body(p, (const char *const[]){end, NULL});
    p->token++;
    expect_block_end(p);
    return body;
}

static struct jinja_node *parse_if(struct jinja_parser *p) {
    struct jinja_node *n = jinja_node(p, JINJA_NODE_IF);
    bool last = false;
    do {
        struct jinja_node *branch = jinja_node(p, JINJA_NODE_BRANCH);
        if (!last) branch->a = jinja_parse_tuple(p, false);
        expect_block_end(p);
        branch->items = parse_body(p, last ? (const char *const[]){"endif", NULL}
                                           : (const char *const[]){"endif", "elif", "else", NULL});
        jinja_nodes_add(p->j, &n->items, branch);
        last = jinja_at(p, "else");
    } while (jinja_skip(p, "elif") || jinja_skip(p, "else"));
    jinja_expect(p, "endif");
    expect_block_end(p);
    return n;
}

static struct jinja_node *parse_for(struct jinja_parser *p) {
    struct jinja_node *n = jinja_node(p, JINJA_NODE_FOR);
    n->a = jinja_parse_target(p, false);
    jinja_expect(p, "in");
    n->b = jinja_parse_tuple(p, false);
    if (jinja_skip(p, "if")) n->c = jinja_parse_expression(p);
    if (jinja_at(p, "recursive")) jinja_unexpected(p, "'%}' (recursive loops are not supported)");
    expect_block_end(p);
    p->loops++;
    n->items = parse_body(p, (const char *const[]){"endfor", "else", NULL});
    p->loops--;
    if (jinja_skip(p, "else")) {
        expect_block_end(p);
        n->rest = parse_body(p, (const char *const[]){"endfor", NULL});
    }
    jinja_expect(p, "endfor");
    expect_block_end(p);
    return n;
}

static struct jinja_node *parse_set(struct jinja_parser *p) {
    struct jinja_node *n = jinja_node(p, JINJA_NODE_SET);
    n->a = jinja_parse_target(p, true);
    if (jinja_skip(p, "=")) {
        n->b = jinja_parse_tuple(p, true);
        expect_block_end(p);
        return n;
    }
    struct jinja_node *body = jinja_node(p, JINJA_NODE_CAPTURE);
    n->b = jinja_parse_filters(p, body, false);
    body->items = parse_whole_body(p, "endset");
    return n;
}

static void parse_parameters(struct jinja_parser *p, struct jinja_node *macro) {
    jinja_expect(p, "(");
    while (!jinja_skip(p, ")")) {
        if (macro->rest.count) jinja_expect(p, ",");
        if (jinja_skip(p, ")")) break;
        struct jinja_node *n = jinja_node(p, JINJA_NODE_PARAMETER);
        n->name = jinja_expect_name(p);
        if (jinja_skip(p, "=")) n->a = jinja_parse_expression(p);
        jinja_nodes_add(p->j, &macro->rest, n);
    }
}

// The body of a macro, or of a call block (a macro without a name).
static void parse_macro_body(struct jinja_parser *p, struct jinja_node *macro, const char *end) {
    unsigned takes = p->takes;
    int loops = p->loops;
    p->takes = 0;
    p->loops = 0;
    macro->items = parse_whole_body(p, end);
    macro->takes = p->takes;
    p->takes = takes;
    p->loops = loops;
}

static struct jinja_node *parse_macro(struct jinja_parser *p) {
    struct jinja_node *set = jinja_node(p, JINJA_NODE_SET), *macro = jinja_node(p, JINJA_NODE_MACRO);
    set->a = jinja_node(p, JINJA_NODE_NAME);
    set->a->name = macro->name = jinja_expect_name(p);
    set->b = macro;
    parse_parameters(p, macro);
    parse_macro_body(p, macro, "endmacro");
    return set;
}

static struct jinja_node *parse_call_block(struct jinja_parser *p) {
    struct jinja_node *output = jinja_node(p, JINJA_NODE_OUTPUT), *macro = jinja_node(p, JINJA_NODE_MACRO);
    macro->name = jinja_literal("caller");
    if (jinja_at(p, "(")) parse_parameters(p, macro);
    output->a = jinja_parse_expression(p);
    if (output->a->kind != JINJA_NODE_CALL) jinja_unexpected(p, "a macro call");
    struct jinja_node *argument = jinja_node(p, JINJA_NODE_ARGUMENT);
    argument->name = macro->name;
    argument->a = macro;
    jinja_nodes_add(p->j, &output->a->items, argument);
    parse_macro_body(p, macro, "endcall");
    return output;
}

static struct jinja_node *parse_filter_block(struct jinja_parser *p) {
    struct jinja_node *output = jinja_node(p, JINJA_NODE_OUTPUT), *body = jinja_node(p, JINJA_NODE_CAPTURE);
    output->a = jinja_parse_filters(p, body, true);
    body->items = parse_whole_body(p, "endfilter");
    return output;
}

static struct jinja_node *parse_with(struct jinja_parser *p) {
    struct jinja_node *n = jinja_node(p, JINJA_NODE_SCOPE);
    while (p->token->kind != JINJA_TOKEN_BLOCK_END) {
        if (n->rest.count) jinja_expect(p, ",");
        struct jinja_node *set = jinja_node(p, JINJA_NODE_SET);
        set->a = jinja_parse_target(p, false);
        jinja_expect(p, "=");
        set->b = jinja_parse_expression(p);
        jinja_nodes_add(p->j, &n->rest, set);
    }
    n->items = parse_whole_body(p, "endwith");
    return n;
}

// Marks assistant text for training; no effect here.
static struct jinja_node *parse_generation(struct jinja_parser *p) {
    struct jinja_node *n = jinja_node(p, JINJA_NODE_SCOPE);
    n->items = parse_whole_body(p, "endgeneration");
    return n;
}

static struct jinja_node *parse_loop_control(struct jinja_parser *p, enum jinja_node_kind kind) {
    struct jinja_node *n = jinja_node(p, kind);
    if (!p->loops) jinja_unexpected(p, "an enclosing loop");
    expect_block_end(p);
    return n;
}
static struct jinja_node *parse_break(struct jinja_parser *p) { return parse_loop_control(p, JINJA_NODE_BREAK); }
static struct jinja_node *parse_continue(struct jinja_parser *p) { return parse_loop_control(p, JINJA_NODE_CONTINUE); }

static const struct {
    const char *name;
    struct jinja_node *(*parse)(struct jinja_parser *p);
} tags[] = {
    {"if", parse_if},           {"for", parse_for},
    {"set", parse_set},         {"macro", parse_macro},
    {"call", parse_call_block}, {"filter", parse_filter_block},
    {"with", parse_with},       {"generation", parse_generation},
    {"break", parse_break},     {"continue", parse_continue},
};

static struct jinja_node *parse_statement(struct jinja_parser *p) {
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (jinja_skip(p, tags[i].name)) return tags[i].parse(p);
    jinja_unexpected(p, "a known tag");
}

static struct jinja_node *parse_output(struct jinja_parser *p) {
    struct jinja_node *n = jinja_node(p, JINJA_NODE_OUTPUT);
    n->a = jinja_parse_tuple(p, true);
    if (p->token->kind != JINJA_TOKEN_VARIABLE_END) jinja_unexpected(p, "'}}'");
    p->token++;
    return n;
}

static bool at_end(const struct jinja_parser *p, const char *const *ends) {
    for (; *ends; ends++)
        if (jinja_at(p, *ends)) return true;
    return false;
}

// Parses statements up to one of the tags `ends`, whose name is then the next token, or up to the end if there are
// none.
static struct jinja_nodes parse_body(struct jinja_parser *p, const char *const *ends) {
    struct jinja_nodes body = {0};
    jinja_enter(p->j);
    while (p->token->kind != JINJA_TOKEN_END) {
        const struct jinja_token *t = p->token++;
        struct jinja_node *n;
        if (t->kind == JINJA_TOKEN_DATA) {
            n = jinja_node(p, JINJA_NODE_DATA);
            n->constant = jinja_text(t->text);
        } else {
            if (t->kind == JINJA_TOKEN_BLOCK_BEGIN && at_end(p, ends)) break;
            n = t->kind == JINJA_TOKEN_BLOCK_BEGIN ? parse_statement(p) : parse_output(p);
        }
        jinja_nodes_add(p->j, &body, n);
    }
    jinja_leave(p->j);
    if (*ends && p->token->kind == JINJA_TOKEN_END) jinja_unexpected(p, *ends);
    return body;
}

struct jinja_nodes jinja_parse(struct jinja *j, struct span source) {
    struct jinja_parser p = {.j = j, .token = jinja_lex(j, source)};
    return parse_body(&p, (const char *const[]){NULL});
}
