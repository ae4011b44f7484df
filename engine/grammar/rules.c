#include "engine/grammar/rules.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"

void rules_free(struct rules *r) {
    free(r->rules);
    arena_free(&r->arena);
}

int rules_add(struct rules *r, struct span name, struct status *st) {
    if (r->n == RULES_MOST) return status_fail(st, STATUS_LIMIT, "too many rules (maximum %d)", RULES_MOST), -1;
    if (r->n == r->capacity) {
        r->capacity = r->capacity ? 2 * r->capacity : 64;
        r->rules = xrealloc(r->rules, (size_t)r->capacity * sizeof *r->rules);
    }
    r->rules[r->n] = (struct rule){.name = arena_copy(&r->arena, name.data, name.size)};
    return r->n++;
}

static struct expression *expression_new(struct rules *r, enum expression_kind kind) {
    struct expression *e = arena_alloc(&r->arena, sizeof *e);
    r->work++;
    e->kind = kind;
    return e;
}

const struct expression *expression_nothing(struct rules *r) { return expression_new(r, EXPRESSION_NOTHING); }

const struct expression *expression_text(struct rules *r, struct span text) {
    struct expression *e = expression_new(r, text.size ? EXPRESSION_TEXT : EXPRESSION_SEQUENCE);
    r->work += text.size / RULES_PIECE;
    e->text = (struct span){arena_copy(&r->arena, text.data, text.size), text.size};
    return e;
}

const struct expression *expression_literal(struct rules *r, const char *text) {
    return expression_text(r, span_of(text));
}

const struct expression *expression_set(struct rules *r, const struct code_set *set) {
    if (!set->count) return expression_nothing(r);
    struct expression *e = expression_new(r, EXPRESSION_SET);
    struct code_set *own = arena_alloc(&r->arena, sizeof *own);
    code_set_add_all(&r->arena, own, set);
    r->work += set->count;
    e->set = own;
    return e;
}

const struct expression *expression_rule(struct rules *r, int rule) {
    struct expression *e = expression_new(r, EXPRESSION_RULE);
    e->rule = rule;
    return e;
}

const struct expression *expression_repeat(struct rules *r, const struct expression *item, int least, int most) {
    if (expression_is_empty(item) || (least == 1 && most == 1)) return item;
    if (most == 0 || (expression_is_nothing(item) && !least)) return expression_new(r, EXPRESSION_SEQUENCE);
    if (expression_is_nothing(item)) return item;
    struct expression *e = expression_new(r, EXPRESSION_REPEAT);
    e->least = least, e->most = most;
    e->items = arena_alloc(&r->arena, sizeof *e->items);
    e->items[0] = item;
    e->n = 1;
    return e;
}

void expression_list_add(struct rules *r, struct expression_list *list, const struct expression *item) {
    if (list->n == list->capacity) {
        const struct expression **old = list->items;
        list->capacity = list->capacity ? 2 * list->capacity : 8;
        list->items = arena_alloc(&r->arena, (size_t)list->capacity * sizeof *list->items);
        if (old) memcpy(list->items, old, (size_t)list->n * sizeof *old);
    }
    list->items[list->n++] = item;
}

static const struct expression *expression_of(struct rules *r, enum expression_kind kind,
                                              const struct expression_list *list) {
    struct expression *e = expression_new(r, kind);
    e->items = arena_alloc(&r->arena, (size_t)(list->n + 1) * sizeof *e->items);
    if (list->n) memcpy(e->items, list->items, (size_t)list->n * sizeof *e->items);
    e->n = list->n;
    return e;
}

const struct expression *expression_sequence(struct rules *r, const struct expression_list *list) {
    struct expression_list parts = {0};
    for (int i = 0; i < list->n; i++) {
        if (expression_is_nothing(list->items[i])) return list->items[i];
        if (!expression_is_empty(list->items[i])) expression_list_add(r, &parts, list->items[i]);
    }
    return parts.n == 1 ? parts.items[0] : expression_of(r, EXPRESSION_SEQUENCE, &parts);
}

const struct expression *expression_choice(struct rules *r, const struct expression_list *list) {
    struct expression_list parts = {0};
    bool texts = true;
    for (int i = 0; i < list->n; i++) {
        if (expression_is_nothing(list->items[i])) continue;
        expression_list_add(r, &parts, list->items[i]);
        texts &= list->items[i]->kind == EXPRESSION_TEXT;
    }
    if (!parts.n) return expression_nothing(r);
    if (parts.n == 1) return parts.items[0];
    return expression_of(r, texts ? EXPRESSION_TEXTS : EXPRESSION_CHOICE, &parts);
}
