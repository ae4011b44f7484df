// Maths: formulas as TeX writes them, made readable on one line of Unicode.
//
// Symbols, Greek, scripts, fractions, roots, accents and matrices become characters ("\frac{a}{b^2} \le \alpha" is
// "a/b² ≤ α"); a command that is not known stays as it was written.
#ifndef CONFAB_UI_MATHS_H
#define CONFAB_UI_MATHS_H

#include "ui/flow.h"

// Appends what the TeX says. Rows ("\\" outside of a matrix) are lines where `rows`, else blanks.
void maths_add(struct flow *out, const char *tex, size_t size, bool rows);

// A formula in a text: the bytes of all of it, and where in it its TeX is.
struct maths_span {
    size_t size, tex, tex_size;
    bool display; // on lines of its own
};

// The formula that begins at text[at] with "\(", "\[", "$$" or "$"; size 0: there is none. A "$" is taken for one only
// where it can hardly be money or a shell's variable.
struct maths_span maths_find(const char *text, size_t size, size_t at);

#endif
