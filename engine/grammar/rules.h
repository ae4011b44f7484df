// Rules: a grammar as its source says it, on the way to an automaton (automaton.h).
//
// A rule is a name and an expression; the parsers of sources (gbnf.h, regex.h, schema.h) make them. Expressions are
// immutable once made, live in the arena of their rules and may be parts of several others.
#ifndef CONFAB_GRAMMAR_RULES_H
#define CONFAB_GRAMMAR_RULES_H

#include "engine/base/reader.h"
#include "engine/grammar/code_set.h"

enum {
    RULES_MOST = 20000,
    RULES_NESTING = 200,  // of brackets of a source
    RULES_REPEATS = 8192, // times that a source may ask for
    RULES_WORK = 1 << 18, // expressions, ranges of characters and pieces of text
    RULES_PIECE = 16      // bytes of text that are made in the time of an expression
};
#define RULES_UNLIMITED (-1)       // times
#define RULES_TEXT      (1u << 20) // bytes of a source

enum expression_kind {
    EXPRESSION_NOTHING,  // matches no text, not even an empty one
    EXPRESSION_TEXT,     // bytes
    EXPRESSION_SET,      // a character
    EXPRESSION_SEQUENCE, // items one after the other
    EXPRESSION_CHOICE,   // one of items
    EXPRESSION_TEXTS,    // the text of one of items, which are all texts
    EXPRESSION_REPEAT,   // items[0], `least` to `most` times
    EXPRESSION_RULE      // what that rule matches
};

struct expression {
    enum expression_kind kind;
    int least, most; // RULES_UNLIMITED
    int rule;
    struct span text;
    const struct code_set *set;
    const struct expression **items;
    int n;
};

struct expression_list {
    const struct expression **items;
    int n, capacity;
};

struct rule {
    const char *name;
    const struct expression *body; // NULL: not defined yet
};

struct rules {
    struct arena arena;
    struct rule *rules;
    int n, capacity;
    int root;
    int spaced;  // the root behind white space
    int unusual; // + 1: json_text_character's rule for all characters but those of ASCII that need no escape; 0: none
                 // yet
    size_t work; // done so far
};

void rules_free(struct rules *r);
// Whether less than RULES_WORK was done. Whoever parses asks now and then, so that no source takes long.
static inline bool rules_have_room(const struct rules *r, struct status *st) {
    return r->work <= RULES_WORK || status_fail(st, STATUS_LIMIT, "the grammar is too large");
}
// Adds a rule without a body, its name copied; −1 with a message where there are too many.
int rules_add(struct rules *r, struct span name, struct status *st);

const struct expression *expression_nothing(struct rules *r);
const struct expression *expression_text(struct rules *r, struct span text); // copied
const struct expression *expression_literal(struct rules *r, const char *text);
const struct expression *expression_set(struct rules *r, const struct code_set *set); // settled; copied
const struct expression *expression_rule(struct rules *r, int rule);
const struct expression *expression_repeat(struct rules *r, const struct expression *item, int least, int most);
static inline const struct expression *expression_optional(struct rules *r, const struct expression *item) {
    return expression_repeat(r, item, 0, 1);
}

void expression_list_add(struct rules *r, struct expression_list *list, const struct expression *item);
const struct expression *expression_sequence(struct rules *r, const struct expression_list *list);
const struct expression *expression_choice(struct rules *r, const struct expression_list *list);
#define EXPRESSION_SEQUENCE_OF(r, ...)                                                                                 \
    expression_sequence(r, &(struct expression_list){(const struct expression *[]){__VA_ARGS__},                       \
                                                     sizeof((const struct expression *[]){__VA_ARGS__}) /              \
                                                         sizeof(const struct expression *),                            \
                                                     0})
#define EXPRESSION_CHOICE_OF(r, ...)                                                                                   \
    expression_choice(r, &(struct expression_list){(const struct expression *[]){__VA_ARGS__},                         \
                                                   sizeof((const struct expression *[]){__VA_ARGS__}) /                \
                                                       sizeof(const struct expression *),                              \
                                                   0})

static inline bool expression_is_empty(const struct expression *e) { return e->kind == EXPRESSION_SEQUENCE && !e->n; }
static inline bool expression_is_nothing(const struct expression *e) { return e->kind == EXPRESSION_NOTHING; }

#endif
