// Texts that a grammar allows, read byte by byte through masks; and lexicons to do so with.
#ifndef CONFAB_TESTS_GRAMMAR_TEXT_H
#define CONFAB_TESTS_GRAMMAR_TEXT_H

#include "engine/grammar/grammar.h"

struct lexicon *lexicon_of_bytes(void); // a token for each byte
// Of bytes, and pieces of texts, random and JSON-like ones: n tokens in all.
struct lexicon *lexicon_of_pieces(int n, uint64_t seed);

// Whether the grammar matches the text as a whole. Every byte's bit in the mask has to say what advancing by it does.
bool grammar_matches(struct grammar *g, const char *text);
// Fails the test with the message where it does not compile.
struct grammar *grammar_open(enum grammar_kind kind, const char *source);

// Cases: a source, then texts that it matches, NULL, and texts that it does not, NULL.
struct grammar_case {
    const char *source;
    const char *matches[12], *others[16];
};
void check_grammar_cases(enum grammar_kind kind, const struct grammar_case *cases, size_t n);
// Sources that do not compile, and the message.
struct grammar_error {
    const char *source, *message;
};
void check_grammar_errors(enum grammar_kind kind, const struct grammar_error *errors, size_t n);

#endif
