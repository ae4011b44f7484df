// Code colours: keywords, names, strings, numbers and comments of a block of code in the theme's styles.
//
// One small lexer for all languages, driven by a table: it knows words and delimiters, no grammar. What it does not
// know stays plain, and nothing it takes for a string goes beyond its line unless the language's strings do.
#ifndef CONFAB_UI_CODE_COLOURS_H
#define CONFAB_UI_CODE_COLOURS_H

#include "ui/flow.h"

struct code_language;

// What is open between two calls: a comment, a string or a tag. All zero: nothing.
struct code_state {
    uint8_t open;
};

// The language that `info`, what stands behind a fence, begins with ("c++", "Python title=x", "{.rs}"); NULL: unknown.
const struct code_language *code_language(const char *info, size_t size);
// Gives f->text[from..to) its styles, those before it have theirs already. It begins at the beginning of a line.
void code_colour(const struct code_language *l, struct code_state *state, struct flow *f, size_t from, size_t to);

#endif
