// Jinja evaluation: runs a syntax tree.
#ifndef CONFAB_TEXT_JINJA_EVALUATE_H
#define CONFAB_TEXT_JINJA_EVALUATE_H

#include "engine/text/jinja_ast.h"
#include "engine/text/jinja_builtin.h"

// The variables of a template, loop iteration, macro call or block. Names are looked up in the scope and its parents,
// then in the context, then among the global functions.
struct jinja_scope {
    struct jinja_scope *parent;
    struct jinja_dict variables;
};

struct jinja_macro {
    const struct jinja_node *node;
    struct jinja_scope *scope; // of its definition
};

struct jinja_value jinja_evaluate(struct jinja *j, const struct jinja_node *n);
struct jinja_value jinja_operate(struct jinja *j, enum jinja_operation operation, struct jinja_value a,
                                 struct jinja_value b);
bool jinja_relate(struct jinja *j, enum jinja_operation operation, struct jinja_value a, struct jinja_value b);

void jinja_execute(struct jinja *j, const struct jinja_nodes *body);
struct jinja_scope *jinja_scope_open(struct jinja *j, struct jinja_scope *parent); // becomes the current one
void jinja_set(struct jinja *j, struct jinja_string name, struct jinja_value v);   // in the current scope
// Runs statements in their own scope and returns their output.
struct jinja_string jinja_capture(struct jinja *j, const struct jinja_nodes *body);
struct jinja_value jinja_call_macro(struct jinja *j, const struct jinja_macro *macro, const struct jinja_arguments *a);

#endif
