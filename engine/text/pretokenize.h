// Pre-tokenizers: where BPE cuts a text before it merges.
//
// A pre-tokenizer is data: stages, each a list of rules. A stage goes through a text from the left; where one of its
// rules matches, the first such rule gives a piece, and what lies between matches is a piece too. The next stage does
// the same within each piece. The rules are the alternatives of the regular expressions that tokenizers are published
// with, matched by scanners that look at each character a bounded number of times.
// Bytes that are no UTF-8 count as symbols and pass unchanged.
#ifndef CONFAB_TEXT_PRETOKENIZE_H
#define CONFAB_TEXT_PRETOKENIZE_H

#include <stdbool.h>

#include "engine/base/reader.h"
#include "engine/text/character.h"

// Characters of these classes or ranges; `negated`: all others.
struct character_set {
    uint32_t classes;
    const struct character_ranges *ranges; // NULL: none
    bool negated;
};

enum rule_kind {
    RULE_END,            // of a list
    RULE_RUN,            // lead, then a run of body, then a run of tail
    RULE_CONTRACTION,    // 's 't 're 've 'm 'll 'd; in any case with any_case
    RULE_CASED,          // lead?, then upper* lower+ or else upper+ lower*, then with any_case a contraction
    RULE_SPACED,         // lead?, then letters with marks after them and single spaces between them
    RULE_LINE_END,       // white space up to its last line end
    RULE_SPACE_IN_FRONT, // white space that no other character follows: all but the last before a word
    RULE_THREES,         // a run of body, in threes counted from its right end
    RULE_SPACE_AT_END,   // white space up to the end of the text
};

struct rule {
    enum rule_kind kind;
    struct character_set lead, body, tail; // RULE_CASED: body is upper, tail is lower
    bool needs_lead, any_case;
    int most, tail_most;          // characters of body and tail; 0: any number
    int least;                    // 0: one
    struct character_set forbids; // RULE_THREES: no match before one of these
};

enum { PRETOKENIZE_STAGES = 6 };
struct pretokenizer {
    const char *names[12];                             // as `tokenizer.ggml.pre` says them; the first is ours
    const struct rule *stages[PRETOKENIZE_STAGES + 1]; // up to NULL
    bool whole_pieces;                                 // a piece that is itself a token is taken without merging
    bool adds_bos;                                     // where the file does not say
    bool needs_bos;                                    // whatever the file says
    bool without_bos;                                  // there is none, whatever the file says
    bool raw;         // tokens are spelt in characters, with U+2581 for spaces, not in an alphabet of bytes
    bool whole_lines; // raw: line ends that are a token are taken without merging
};

// NULL when we have none of this name; pretokenizer_default is what to use then.
const struct pretokenizer *pretokenizer_find(struct span name);
extern const struct pretokenizer *const pretokenizer_default;
// All of them, up to NULL.
const struct pretokenizer *pretokenizer_at(size_t i);

// A walk over the pieces of a text.
struct pretokenize_stage {
    size_t at, end;           // what is left of the piece that this stage cuts
    size_t match;             // bytes of a match known to begin at `at`; 0: not known
    size_t run_end, line_end; // of the white space that was looked at last: its end, and that of its last line
    size_t threes_end;        // of the digits that were looked at last
    bool threes_match;        // whether they are cut in threes
};
struct pretokenize_walk {
    const struct pretokenizer *pretokenizer;
    const char *text; // borrowed
    struct pretokenize_stage stages[PRETOKENIZE_STAGES];
    int depth;
};
struct pretokenize_walk pretokenize_begin(const struct pretokenizer *p, const char *text, size_t size);
// The next piece, never empty; false at the end. Pieces follow each other without a gap.
bool pretokenize_next(struct pretokenize_walk *w, struct span *piece);

#endif
