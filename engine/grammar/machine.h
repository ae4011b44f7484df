// Machine: an automaton over the tokens of a vocabulary: which may come next, and where they lead.
//
// A place is a set of states that the text so far may have led to, each with the states to go on at when its rule is
// over: a stack, of which nothing is known below the bottom that all have in common. A frame is such a stack; where an
// answer is, is a position: a place and the frame below it. So what comes next inside a string, say, is found out once,
// wherever the string stands: most tokens stay inside, and only for those that lead out of it the frame is looked at.
//
// Places, where bytes lead from them, and their masks are found out when they are needed, and kept. So a token costs
// little more than copying a mask. A machine belongs to its grammar, is shared by all answers of an engine, counted,
// and locks itself. Every call is bounded in time, and the machine in memory; from half of that on the grammar gives a
// new one to whoever comes next.
#ifndef CONFAB_GRAMMAR_MACHINE_H
#define CONFAB_GRAMMAR_MACHINE_H

#include "engine/grammar/automaton.h"
#include "engine/grammar/lexicon.h"

struct machine;

struct position {
    uint32_t place, frame;
};

struct machine *machine_open(const struct automaton *a, struct lexicon *l); // borrows a, shares l
struct machine *machine_share(struct machine *m);
void machine_drop(struct machine *m);          // NULL: does nothing
bool machine_is_last(const struct machine *m); // nobody else has a reference
bool machine_is_full(const struct machine *m); // by half
const struct lexicon *machine_lexicon(const struct machine *m);

// `spaced`: up to two spaces or line ends may come first.
bool machine_start(struct machine *m, bool spaced, struct position *out, struct status *st);
// Sets the bits of the tokens that may come next, of mask [lexicon's n_words], and clears the others.
bool machine_mask(struct machine *m, struct position at, uint32_t *mask, struct status *st);
// Where a text leads; *fits is false, and *at as it was, where the grammar does not allow it.
bool machine_advance(struct machine *m, struct position *at, struct span text, bool *fits, struct status *st);
// The bytes that have to come next, whatever else does; up to `size` of them, into out.
bool machine_forced(struct machine *m, struct position at, char *out, size_t size, size_t *n, struct status *st);
// Whether the text may be over here, and whether it can go on.
bool machine_look(struct machine *m, struct position at, bool *may_end, bool *goes_on, struct status *st);

// Makes the masks of positions that short texts lead to, unless it was done before, so that the first answer finds
// them. Takes some milliseconds, unless `go_on` (NULL: always) says before that it is enough; others who use the
// machine meanwhile wait for one mask at most.
void machine_prepare(struct machine *m, bool (*go_on)(const void *context), const void *context);

#endif
