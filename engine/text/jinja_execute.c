// Jinja statements, scopes and macros.
#include "engine/text/jinja_evaluate.h"

// ---- scopes and assignments ----

struct jinja_scope *jinja_scope_open(struct jinja *j, struct jinja_scope *parent) {
    struct jinja_scope *scope = jinja_alloc(j, 1, sizeof *scope);
    scope->parent = parent;
    return j->scope = scope;
}

void jinja_set(struct jinja *j, struct jinja_string name, struct jinja_value v) {
    jinja_dict_set(j, &j->scope->variables, jinja_text(name), v);
}

static void assign(struct jinja *j, const struct jinja_node *target, struct jinja_value v);

static void assign_tuple(struct jinja *j, const struct jinja_nodes *targets, struct jinja_value v) {
    const struct jinja_list *values = jinja_iterate(j, v);
    if (values->count != targets->count)
        jinja_fail(j, STATUS_FORMAT, "cannot unpack %zu values to %zu names", values->count, targets->count);
    for (size_t i = 0; i < targets->count; i++) assign(j, targets->at[i], values->items[i]);
}

static void assign_attribute(struct jinja *j, const struct jinja_node *target, struct jinja_value v) {
    struct jinja_value namespace = jinja_evaluate(j, target->a);
    if (namespace.type != JINJA_NAMESPACE)
        jinja_fail(j, STATUS_FORMAT, "cannot assign attribute on non-namespace object");
    jinja_dict_set(j, namespace.dict, jinja_text(target->name), v);
}

static void assign(struct jinja *j, const struct jinja_node *target, struct jinja_value v) {
    if (target->kind == JINJA_NODE_TUPLE) assign_tuple(j, &target->items, v);
    else if (target->kind == JINJA_NODE_ATTRIBUTE) assign_attribute(j, target, v);
    else jinja_set(j, target->name, v);
}

// ---- statements ----

static void execute_if(struct jinja *j, const struct jinja_node *n) {
    for (size_t i = 0; i < n->items.count; i++) {
        const struct jinja_node *branch = n->items.at[i];
        if (branch->a && !jinja_truth(jinja_evaluate(j, branch->a))) continue;
        jinja_execute(j, &branch->items);
        return;
    }
}

static const struct jinja_list *filter_items(struct jinja *j, const struct jinja_node *n,
                                             const struct jinja_list *items) {
    struct jinja_scope *outer = j->scope;
    struct jinja_list *kept = jinja_list(j, 0);
    for (size_t i = 0; i < items->count; i++) {
        jinja_scope_open(j, outer);
        assign(j, n->a, items->items[i]);
        if (jinja_truth(jinja_evaluate(j, n->c))) jinja_push(j, kept, items->items[i]);
    }
    j->scope = outer;
    return kept;
}

// Every iteration has its own scope; assignments do not carry over.
static void execute_rounds(struct jinja *j, const struct jinja_node *n, struct jinja_loop *loop) {
    struct jinja_value self = {.type = JINJA_LOOP, .loop = loop};
    struct jinja_scope *outer = j->scope;
    for (; loop->index < loop->items->count; loop->index++) {
        jinja_spend(j, 1);
        jinja_scope_open(j, outer);
        jinja_set(j, jinja_literal("loop"), self);
        assign(j, n->a, loop->items->items[loop->index]);
        jinja_execute(j, &n->items);
        enum jinja_flow flow = j->flow;
        j->flow = JINJA_FLOW_ON;
        if (flow == JINJA_FLOW_BREAK) break;
    }
    j->scope = outer;
}

static void execute_for(struct jinja *j, const struct jinja_node *n) {
    const struct jinja_list *items = jinja_iterate(j, jinja_evaluate(j, n->b));
    if (n->c) items = filter_items(j, n, items);
    if (!items->count) {
        struct jinja_scope *outer = j->scope;
        jinja_scope_open(j, outer);
        jinja_execute(j, &n->rest);
        j->scope = outer;
        return;
    }
    struct jinja_loop *loop = jinja_alloc(j, 1, sizeof *loop);
    loop->items = items;
    execute_rounds(j, n, loop);
}

static void execute_scope(struct jinja *j, const struct jinja_node *n) {
    struct jinja_list *values = jinja_list(j, n->rest.count);
    for (size_t i = 0; i < n->rest.count; i++) jinja_push(j, values, jinja_evaluate(j, n->rest.at[i]->b));
    struct jinja_scope *outer = j->scope;
    jinja_scope_open(j, outer);
    for (size_t i = 0; i < n->rest.count; i++) assign(j, n->rest.at[i]->a, values->items[i]);
    jinja_execute(j, &n->items);
    j->scope = outer;
}

static void execute(struct jinja *j, const struct jinja_node *n) {
    switch (n->kind) {
    case JINJA_NODE_DATA: jinja_append(j, j->out, n->constant.string); break;
    case JINJA_NODE_OUTPUT: jinja_append(j, j->out, jinja_to_string(j, jinja_evaluate(j, n->a))); break;
    case JINJA_NODE_IF: execute_if(j, n); break;
    case JINJA_NODE_FOR: execute_for(j, n); break;
    case JINJA_NODE_SET: assign(j, n->a, jinja_evaluate(j, n->b)); break;
    case JINJA_NODE_SCOPE: execute_scope(j, n); break;
    case JINJA_NODE_BREAK: j->flow = JINJA_FLOW_BREAK; break;
    default: j->flow = JINJA_FLOW_CONTINUE; break;
    }
}

void jinja_execute(struct jinja *j, const struct jinja_nodes *body) {
    jinja_enter(j);
    for (size_t i = 0; i < body->count && j->flow == JINJA_FLOW_ON; i++) {
        j->line = body->at[i]->line;
        jinja_spend(j, 1);
        execute(j, body->at[i]);
    }
    jinja_leave(j);
}

// ---- captures and macros ----

static struct jinja_string capture_here(struct jinja *j, const struct jinja_nodes *body) {
    struct jinja_builder b = {0}, *outer = j->out;
    j->out = &b;
    jinja_execute(j, body);
    j->out = outer;
    return jinja_built(&b);
}

struct jinja_string jinja_capture(struct jinja *j, const struct jinja_nodes *body) {
    struct jinja_scope *outer = j->scope;
    jinja_scope_open(j, outer);
    struct jinja_string text = capture_here(j, body);
    j->scope = outer;
    return text;
}

// The value of parameter i; its default sees the parameters before it.
static struct jinja_value parameter_value(struct jinja *j, const struct jinja_node *macro, size_t i,
                                          const struct jinja_arguments *a, size_t *used) {
    const struct jinja_node *parameter = macro->rest.at[i];
    const struct jinja_entry *named = a->named ? jinja_dict_find(j, a->named, jinja_text(parameter->name)) : NULL;
    if (named && i < a->count) jinja_fail(j, STATUS_FORMAT, "duplicate argument");
    *used += named != NULL;
    if (i < a->count) return a->values[i];
    if (named) return named->value;
    return parameter->a ? jinja_evaluate(j, parameter->a) : jinja_undefined(j, NULL, parameter->name);
}

static bool is_parameter(const struct jinja_node *macro, struct jinja_string name) {
    for (size_t i = 0; i < macro->rest.count; i++)
        if (jinja_string_equal(macro->rest.at[i]->name, name)) return true;
    return false;
}

static int name_size(struct jinja_string name) { return name.size < 60 ? (int)name.size : 60; }

// Remaining arguments: varargs, kwargs and caller, if the macro names them.
static void bind_rest(struct jinja *j, const struct jinja_node *n, const struct jinja_arguments *a, size_t used) {
    struct jinja_list *rest = jinja_list(j, 0);
    struct jinja_dict *named = jinja_dict(j, 0);
    struct jinja_value caller = jinja_undefined(j, NULL, jinja_literal("caller"));
    for (size_t i = n->rest.count; i < a->count; i++) jinja_push(j, rest, a->values[i]);
    for (size_t i = 0; a->named && used < a->named->count && i < a->named->count; i++) {
        struct jinja_entry e = a->named->entries[i];
        if (is_parameter(n, e.key.string)) continue;
        if (jinja_string_is(e.key.string, "caller") && n->takes & JINJA_TAKES_CALLER) caller = e.value;
        else if (n->takes & JINJA_TAKES_KWARGS) jinja_dict_set(j, named, e.key, e.value);
        else
            jinja_fail(j, STATUS_FORMAT, "macro '%.*s' takes no keyword argument '%.*s'", name_size(n->name),
                       n->name.data, name_size(e.key.string), e.key.string.data);
    }
    if (rest->count && !(n->takes & JINJA_TAKES_VARARGS))
        jinja_fail(j, STATUS_FORMAT, "macro '%.*s' takes at most %zu argument(s)", name_size(n->name), n->name.data,
                   n->rest.count);
    if (n->takes & JINJA_TAKES_CALLER && !is_parameter(n, jinja_literal("caller")))
        jinja_set(j, jinja_literal("caller"), caller);
    if (n->takes & JINJA_TAKES_VARARGS) jinja_set(j, jinja_literal("varargs"), jinja_sequence(JINJA_TUPLE, rest));
    if (n->takes & JINJA_TAKES_KWARGS) jinja_set(j, jinja_literal("kwargs"), jinja_mapping(named));
}

struct jinja_value jinja_call_macro(struct jinja *j, const struct jinja_macro *macro, const struct jinja_arguments *a) {
    const struct jinja_node *n = macro->node;
    struct jinja_scope *outer = j->scope;
    size_t used = 0;
    jinja_scope_open(j, macro->scope);
    for (size_t i = 0; i < n->rest.count; i++) jinja_set(j, n->rest.at[i]->name, parameter_value(j, n, i, a, &used));
    bind_rest(j, n, a, used);
    struct jinja_string text = capture_here(j, &n->items);
    j->scope = outer;
    return jinja_text(text);
}
