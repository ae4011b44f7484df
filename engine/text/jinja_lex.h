// Jinja tokens: a template cut into texts, marks, names, literals and operators, white space control applied.
#ifndef CONFAB_TEXT_JINJA_LEX_H
#define CONFAB_TEXT_JINJA_LEX_H

#include "engine/text/jinja_value.h"

enum jinja_token_kind {
    JINJA_TOKEN_DATA, // text between the marks
    JINJA_TOKEN_VARIABLE_BEGIN, JINJA_TOKEN_VARIABLE_END, JINJA_TOKEN_BLOCK_BEGIN, JINJA_TOKEN_BLOCK_END,
    JINJA_TOKEN_NAME, JINJA_TOKEN_LITERAL, JINJA_TOKEN_OPERATOR, JINJA_TOKEN_END
};

struct jinja_token {
    enum jinja_token_kind kind;
    int line;
    struct jinja_string text;   // as it stands in the template; of DATA: what is printed
    struct jinja_value literal; // of LITERAL
};

// All tokens, in the arena; the last is JINJA_TOKEN_END.
const struct jinja_token *jinja_lex(struct jinja *j, struct span source);

#endif
