// GBNF: grammars as llama.cpp writes them.
//
//   root  ::= "yes" | "no" (", because " [^\n]+)?   # a comment
//
// A rule ends where the next one begins. Literals, character classes, groups, alternatives, `.`, *, +, ? and {n,m},
// with the escapes \n \r \t \\ \" \[ \] \- \^ \xHH \uHHHH \UHHHHHHHH.
#ifndef CONFAB_GRAMMAR_GBNF_H
#define CONFAB_GRAMMAR_GBNF_H

#include "engine/grammar/rules.h"

bool gbnf_parse(struct rules *r, struct span text, struct status *st);

#endif
