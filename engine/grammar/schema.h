// Schema: JSON schemas (2020-12, and what earlier drafts have in common with it).
//
// What is compiled is always a conjunction: schemas that a value has to match all together, as they come from allOf,
// $ref and its neighbours, and from members that several of them name. Each becomes a rule, once; so references to
// themselves are rules that contain themselves. anyOf and oneOf multiply: one rule for each of their schemas together
// with the rest. Keywords that say nothing about a value are skipped, as are unknown ones; those that confab cannot
// enforce are errors.
#ifndef CONFAB_GRAMMAR_SCHEMA_H
#define CONFAB_GRAMMAR_SCHEMA_H

#include "engine/grammar/rules.h"

// The text is a schema as JSON. Messages say where in it, by a JSON pointer.
bool schema_parse(struct rules *r, struct span text, struct status *st);

#endif
