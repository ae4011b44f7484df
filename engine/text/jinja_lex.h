// Jinja lexer: splits a template into text, tags, names, literals and operators; applies white space control.
#ifndef CONFAB_TEXT_JINJA_LEX_H
#define CONFAB_TEXT_JINJA_LEX_H

#include "engine/text/jinja_value.h"

enum jinja_token_kind {
    JINJA_TOKEN_DATA, // text between tags
    JINJA_TOKEN_VARIABLE_BEGIN,
    JINJA_TOKEN_VARIABLE_END,
    JINJA_TOKEN_BLOCK_BEGIN,
    JINJA_TOKEN_BLOCK_END,
    JINJA_TOKEN_NAME,
    JINJA_TOKEN_LITERAL,
    JINJA_TOKEN_OPERATOR,
    JINJA_TOKEN_END
};

struct jinja_token {
    enum jinja_token_kind kind;
    int line;
    struct jinja_string text;   // source text; for DATA: the output
    struct jinja_value literal; // of a LITERAL
};

// All tokens, in the arena, ending with JINJA_TOKEN_END.
const struct jinja_token *jinja_lex(struct jinja *j, struct span source);

#endif
