// Grammar: what the text of an answer may be, as a JSON schema, a regular expression, a GBNF grammar or a list of
// texts.
//
// Compiled once, from any thread, and immutable from then on: requests share it (struct request_params), also those of
// several engines. A compiled grammar is found again by its text for a while, so that whoever serves the same schema
// again and again compiles it once. What a source asks for and confab cannot enforce is an error that names it; so are
// sources that are too large, nest too deeply or call themselves first.
//
// Of JSON schemas: objects have the members of `properties` in the order in which the schema names them, then any
// others; white space between tokens is a space or a line end with its indentation; strings and names are spelled with
// the escapes that they need. Some valid texts are not written: multiples of more than 15 digits between bounds,
// other members of an object with one of patternProperties, unusual spellings of a format. Beside a pattern a format is
// a note.
#ifndef CONFAB_ENGINE_GRAMMAR_H
#define CONFAB_ENGINE_GRAMMAR_H

#include <stddef.h>

#include "engine/base/status.h"

// X(enumerator, name)
#define GRAMMAR_KINDS(X)                                                                                               \
    X(GRAMMAR_JSON, "json object")   /* any JSON object; there is no text */                                           \
    X(GRAMMAR_SCHEMA, "JSON schema") /* the text is a schema */                                                        \
    X(GRAMMAR_REGEX, "regex")        /* matches the whole answer */                                                    \
    X(GRAMMAR_GBNF, "grammar")       /* GBNF, from the rule `root` */                                                  \
    X(GRAMMAR_CHOICE, "choices")     /* the text is a JSON array of strings, of which the answer is one */

enum grammar_kind {
#define X(id, name) id,
    GRAMMAR_KINDS(X)
#undef X
        GRAMMAR_KIND_COUNT
};

struct grammar;

// NULL with a message that says where, by line and column or by a schema's JSON pointer. The caller drops the grammar.
struct grammar *grammar_compile(enum grammar_kind kind, const char *text, size_t size, struct status *st);
struct grammar *grammar_share(struct grammar *g); // another reference; NULL: NULL
void grammar_drop(struct grammar *g);             // a reference; NULL: does nothing

#endif
