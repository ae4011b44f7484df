#include "engine/text/jinja_evaluate.h"

static struct jinja_value lookup(struct jinja *j, struct jinja_string name) {
    const struct jinja_entry *found = NULL;
    for (const struct jinja_scope *s = j->scope; s && !found; s = s->parent)
        found = jinja_dict_find(j, &s->variables, jinja_text(name));
    if (!found) found = jinja_dict_find(j, j->context, jinja_text(name));
    if (found) return found->value;
    const struct jinja_builtin *global = jinja_builtin_find(jinja_globals, name);
    if (global) return (struct jinja_value){.type = JINJA_FUNCTION, .function = {global, NULL}};
    return jinja_undefined(j, NULL, name);
}

static struct jinja_value evaluate_items(struct jinja *j, const struct jinja_node *n, enum jinja_type type) {
    struct jinja_list *list = jinja_list(j, n->items.count);
    for (size_t i = 0; i < n->items.count; i++) jinja_push(j, list, jinja_evaluate(j, n->items.at[i]));
    return jinja_sequence(type, list);
}

static struct jinja_value evaluate_dict(struct jinja *j, const struct jinja_node *n) {
    struct jinja_dict *dict = jinja_dict(j, n->items.count / 2);
    for (size_t i = 0; i + 1 < n->items.count; i += 2) {
        struct jinja_value key = jinja_evaluate(j, n->items.at[i]);
        jinja_dict_set(j, dict, key, jinja_evaluate(j, n->items.at[i + 1]));
    }
    return jinja_mapping(dict);
}

static struct jinja_value evaluate_optional(struct jinja *j, const struct jinja_node *n) {
    return n ? jinja_evaluate(j, n) : jinja_none();
}

static struct jinja_value evaluate_index(struct jinja *j, const struct jinja_node *n) {
    struct jinja_value v = jinja_evaluate(j, n->a);
    if (n->b->kind != JINJA_NODE_SLICE) return jinja_item(j, v, jinja_evaluate(j, n->b));
    struct jinja_value start = evaluate_optional(j, n->b->a), stop = evaluate_optional(j, n->b->b);
    return jinja_slice(j, v, start, stop, evaluate_optional(j, n->b->c));
}

// ---- calls ----

static void add_named(struct jinja *j, struct jinja_arguments *a, struct jinja_value name, struct jinja_value v) {
    if (!a->named) a->named = jinja_dict(j, 4);
    if (jinja_dict_find(j, a->named, name)) jinja_fail(j, STATUS_FORMAT, "duplicate argument");
    jinja_as_string(j, name, "argument name");
    jinja_dict_set(j, a->named, name, v);
}

static void add_all_named(struct jinja *j, struct jinja_arguments *a, struct jinja_value v) {
    if (v.type != JINJA_DICT)
        jinja_fail(j, STATUS_FORMAT, "argument after ** must be a mapping, not %s", jinja_type_name(v));
    for (size_t i = 0; i < v.dict->count; i++) add_named(j, a, v.dict->entries[i].key, v.dict->entries[i].value);
}

static struct jinja_arguments evaluate_arguments(struct jinja *j, const struct jinja_nodes *nodes) {
    struct jinja_arguments a = {0};
    struct jinja_list *list = jinja_list(j, nodes->count);
    for (size_t i = 0; i < nodes->count; i++) {
        const struct jinja_node *n = nodes->at[i];
        struct jinja_value v = jinja_evaluate(j, n->a);
        if (n->kind == JINJA_NODE_ARGUMENT_DICT) {
            add_all_named(j, &a, v);
        } else if (n->kind == JINJA_NODE_ARGUMENT_LIST) {
            const struct jinja_list *more = jinja_iterate(j, v);
            for (size_t at = 0; at < more->count; at++) jinja_push(j, list, more->items[at]);
        } else if (n->name.data) {
            add_named(j, &a, jinja_text(n->name), v);
        } else {
            jinja_push(j, list, v);
        }
    }
    a.values = list->items;
    a.count = list->count;
    return a;
}

// Strings returned by methods of a safe string are safe; lists are not shared.
static struct jinja_value made_safe(struct jinja_value v) {
    if (v.type == JINJA_STRING) return jinja_safe(v.string);
    bool list = v.type == JINJA_LIST || v.type == JINJA_TUPLE;
    for (size_t i = 0; list && i < v.list->count; i++) v.list->items[i] = made_safe(v.list->items[i]);
    return v;
}

static struct jinja_value call_builtin(struct jinja *j, const struct jinja_value *callee,
                                       const struct jinja_arguments *a) {
    const struct jinja_value self = callee->function.self ? *callee->function.self : jinja_none();
    struct jinja_value v = jinja_run(j, callee->function.builtin, self, a);
    return self.safe ? made_safe(v) : v;
}

static struct jinja_value evaluate_call(struct jinja *j, const struct jinja_node *n) {
    struct jinja_value callee = jinja_evaluate(j, n->a);
    struct jinja_arguments a = evaluate_arguments(j, &n->items);
    switch (callee.type) {
    case JINJA_UNDEFINED: jinja_fail_undefined(j, callee);
    case JINJA_MACRO: return jinja_call_macro(j, callee.macro, &a);
    case JINJA_FUNCTION: return call_builtin(j, &callee, &a);
    default: jinja_fail(j, STATUS_FORMAT, "'%s' object is not callable", jinja_type_name(callee));
    }
}

static struct jinja_value evaluate_piped(struct jinja *j, const struct jinja_node *n, const char *what) {
    if (!n->builtin)
        jinja_fail(j, STATUS_FORMAT, "No %s named '%.*s'.", what, n->name.size < 60 ? (int)n->name.size : 60,
                   n->name.data);
    struct jinja_value self = jinja_evaluate(j, n->a);
    struct jinja_arguments a = evaluate_arguments(j, &n->items);
    return jinja_run(j, n->builtin, self, &a);
}

// ---- operators ----

static struct jinja_value evaluate_sign(struct jinja *j, const struct jinja_node *n) {
    struct jinja_value v = jinja_evaluate(j, n->a);
    if (v.type == JINJA_UNDEFINED) jinja_fail_undefined(j, v);
    if (!jinja_is_number(v)) jinja_fail(j, STATUS_FORMAT, "bad operand type for unary sign: '%s'", jinja_type_name(v));
    if (n->kind == JINJA_NODE_POSITIVE) return v.type == JINJA_BOOLEAN ? jinja_integer(v.boolean) : v;
    if (v.type == JINJA_FLOAT) return jinja_number(-v.number);
    return jinja_operate(j, JINJA_SUBTRACT, jinja_integer(0), v);
}

static struct jinja_value evaluate_compare(struct jinja *j, const struct jinja_node *n) {
    struct jinja_value left = jinja_evaluate(j, n->a);
    for (size_t i = 0; i < n->items.count; i++) {
        struct jinja_value right = jinja_evaluate(j, n->items.at[i]->a);
        if (!jinja_relate(j, n->items.at[i]->operation, left, right)) return jinja_boolean(false);
        left = right;
    }
    return jinja_boolean(true);
}

static struct jinja_value evaluate_concat(struct jinja *j, const struct jinja_node *n) {
    struct jinja_builder b = {0};
    jinja_append(j, &b, jinja_to_string(j, jinja_evaluate(j, n->a)));
    jinja_append(j, &b, jinja_to_string(j, jinja_evaluate(j, n->b)));
    return jinja_text(jinja_built(&b));
}

static struct jinja_value evaluate_choice(struct jinja *j, const struct jinja_node *n) {
    if (jinja_truth(jinja_evaluate(j, n->a))) return jinja_evaluate(j, n->b);
    return n->c ? jinja_evaluate(j, n->c) : jinja_nothing();
}

static struct jinja_value make_macro(struct jinja *j, const struct jinja_node *n) {
    struct jinja_macro *macro = jinja_alloc(j, 1, sizeof *macro);
    *macro = (struct jinja_macro){n, j->scope};
    return (struct jinja_value){.type = JINJA_MACRO, .macro = macro};
}

static struct jinja_value evaluate(struct jinja *j, const struct jinja_node *n) {
    struct jinja_value v;
    switch (n->kind) {
    case JINJA_NODE_CONSTANT: return n->constant;
    case JINJA_NODE_NAME: return lookup(j, n->name);
    case JINJA_NODE_LIST: return evaluate_items(j, n, JINJA_LIST);
    case JINJA_NODE_TUPLE: return evaluate_items(j, n, JINJA_TUPLE);
    case JINJA_NODE_DICT: return evaluate_dict(j, n);
    case JINJA_NODE_ATTRIBUTE: return jinja_attribute(j, jinja_evaluate(j, n->a), n->name);
    case JINJA_NODE_INDEX: return evaluate_index(j, n);
    case JINJA_NODE_CALL: return evaluate_call(j, n);
    case JINJA_NODE_FILTER: return evaluate_piped(j, n, "filter");
    case JINJA_NODE_TEST: return evaluate_piped(j, n, "test");
    case JINJA_NODE_NOT: return jinja_boolean(!jinja_truth(jinja_evaluate(j, n->a)));
    case JINJA_NODE_NEGATIVE:
    case JINJA_NODE_POSITIVE: return evaluate_sign(j, n);
    case JINJA_NODE_BINARY:
        v = jinja_evaluate(j, n->a);
        return jinja_operate(j, n->operation, v, jinja_evaluate(j, n->b));
    case JINJA_NODE_CONCAT: return evaluate_concat(j, n);
    case JINJA_NODE_AND: v = jinja_evaluate(j, n->a); return jinja_truth(v) ? jinja_evaluate(j, n->b) : v;
    case JINJA_NODE_OR: v = jinja_evaluate(j, n->a); return jinja_truth(v) ? v : jinja_evaluate(j, n->b);
    case JINJA_NODE_COMPARE: return evaluate_compare(j, n);
    case JINJA_NODE_CHOICE: return evaluate_choice(j, n);
    case JINJA_NODE_CAPTURE: return jinja_text(jinja_capture(j, &n->items));
    case JINJA_NODE_MACRO: return make_macro(j, n);
    default: jinja_fail(j, STATUS_FORMAT, "unexpected slice");
    }
}

struct jinja_value jinja_evaluate(struct jinja *j, const struct jinja_node *n) {
    int line = j->line;
    j->line = n->line;
    jinja_spend(j, 1);
    jinja_enter(j);
    struct jinja_value v = evaluate(j, n);
    jinja_leave(j);
    j->line = line;
    return v;
}
