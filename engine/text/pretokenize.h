// Pre-tokenizers: split a text into pieces before BPE merges.
//
// A pre-tokenizer is data: stages, each a list of rules. A stage scans a text from the left; the first rule that
// matches gives a piece, and so does the text between matches. The next stage splits each piece further. The rules are
// the alternatives of the regular expressions published with tokenizers, matched by scanners that look at each
// character a bounded number of times. Invalid UTF-8 counts as symbols and passes unchanged.
#ifndef CONFAB_TEXT_PRETOKENIZE_H
#define CONFAB_TEXT_PRETOKENIZE_H

#include <stdbool.h>

#include "engine/base/reader.h"
#include "engine/text/character.h"

// Characters in these classes or ranges; `negated`: all others.
struct character_set {
    uint32_t classes;
    const struct character_ranges *ranges; // may be NULL
    bool negated;
};

enum rule_kind {
    RULE_END,            // of a list
    RULE_RUN,            // lead, then a run of body, then a run of tail
    RULE_CONTRACTION,    // 's 't 're 've 'm 'll 'd; case-insensitive with any_case
    RULE_CASED,          // lead?, then upper* lower+ or upper+ lower*, then a contraction with any_case
    RULE_SPACED,         // lead?, then letters with marks after them and single spaces between them
    RULE_LINE_END,       // white space up to and including its last line end
    RULE_SPACE_IN_FRONT, // white space not followed by another character: before a word, all but the last
    RULE_THREES,         // a run of body in groups of three, counted from its end
    RULE_SPACE_AT_END,   // white space at the end of the text
};

struct rule {
    enum rule_kind kind;
    struct character_set lead, body, tail; // RULE_CASED: body is upper, tail is lower
    bool needs_lead, any_case;
    int most, tail_most;          // maximum length of body and tail; 0: unlimited
    int least;                    // minimum length of body; 0: one
    struct character_set forbids; // RULE_THREES: no match before one of these
};

enum { PRETOKENIZE_STAGES = 6 };
struct pretokenizer {
    const char *names[12];                             // values of `tokenizer.ggml.pre`; the first is ours
    const struct rule *stages[PRETOKENIZE_STAGES + 1]; // NULL-terminated
    bool whole_pieces;                                 // a piece that is a token is not merged
    bool adds_bos;                                     // default
    bool needs_bos;                                    // overrides the file
    bool without_bos;                                  // overrides the file
    bool raw;         // tokens are text with U+2581 for spaces, not the byte-level alphabet
    bool whole_lines; // raw: runs of line ends that are a token are not merged
};

// NULL if unknown; then use pretokenizer_default.
const struct pretokenizer *pretokenizer_find(struct span name);
extern const struct pretokenizer *const pretokenizer_default;
// All pre-tokenizers, NULL-terminated.
const struct pretokenizer *pretokenizer_at(size_t i);

// An iterator over the pieces of a text.
struct pretokenize_stage {
    size_t at, end;           // the rest of the piece this stage is splitting
    size_t match;             // length of a known match at `at`; 0: unknown
    size_t run_end, line_end; // of the last white space: its end, and the end of its last line
    size_t threes_end;        // of the last digits
    bool threes_match;        // whether they are split in threes
};
struct pretokenize_walk {
    const struct pretokenizer *pretokenizer;
    const char *text; // borrowed
    struct pretokenize_stage stages[PRETOKENIZE_STAGES];
    int depth;
};
struct pretokenize_walk pretokenize_begin(const struct pretokenizer *p, const char *text, size_t size);
// The next piece, never empty; false at the end. Pieces are contiguous.
bool pretokenize_next(struct pretokenize_walk *w, struct span *piece);

#endif
