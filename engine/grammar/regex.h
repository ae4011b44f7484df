// Regex: regular expressions, in the common part of the syntaxes of JavaScript, Python and PCRE.
//
// Literals, ., classes with ranges and \d \w \s \D \W \S, groups, |, * + ? {n,m} also lazy, ^ and $ at the ends of the
// whole, and escapes. What looks ahead or back, or refers to groups, is refused.
#ifndef CONFAB_GRAMMAR_REGEX_H
#define CONFAB_GRAMMAR_REGEX_H

#include "engine/grammar/rules.h"

struct regex_options {
    bool json;     // what it matches stands inside a JSON string
    bool searches; // somewhere in the text, unless ^ and $ say otherwise; else the whole
};

// NULL: a message says what is wrong.
const struct expression *regex_parse(struct rules *r, struct span text, struct regex_options o, struct status *st);

#endif
