// A compiled grammar for the engine: its automaton, and a machine for each vocabulary that it is used with.
#ifndef CONFAB_GRAMMAR_GRAMMAR_H
#define CONFAB_GRAMMAR_GRAMMAR_H

#include "engine/grammar.h"
#include "engine/grammar/machine.h"

const struct automaton *grammar_automaton(const struct grammar *g);
// The one that all who use this grammar with this lexicon share; the caller drops it, before the grammar.
struct machine *grammar_machine(struct grammar *g, struct lexicon *l);
// Drops the machines of lexicons that nobody else has any more, of grammars that are kept to be found again.
void grammar_drop_unused(void);

#endif
