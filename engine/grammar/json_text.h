// JSON text: how JSON spells values, as expressions.
#ifndef CONFAB_GRAMMAR_JSON_TEXT_H
#define CONFAB_GRAMMAR_JSON_TEXT_H

#include <jansson.h>

#include "engine/grammar/rules.h"

// A character of a set inside a string, spelled in one way: with an escape where it needs one. NUL never is.
const struct expression *json_text_character(struct rules *r, const struct code_set *set);
// Any character, also with an escape where it needs none.
const struct expression *json_text_any_character(struct rules *r);
// Nothing, a space, or a line end with blanks behind it.
const struct expression *json_text_space(struct rules *r);
// This very value, with space where it may be; NULL with a message: it nests too deeply.
const struct expression *json_text_value(struct rules *r, const json_t *value, const struct expression *space,
                                         struct status *st);
const struct expression *json_text_quoted(struct rules *r, const char *text, size_t size); // a string
const struct expression *json_text_number(struct rules *r);
const struct expression *json_text_integer(struct rules *r);

#endif
