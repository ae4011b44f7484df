// Lexicon: the tokens of a vocabulary by their bytes, for masks.
//
// Sorted, tokens that begin alike are neighbours: as a tree, what they have in common is looked at once. The nodes of a
// tree lie in the order in which they are walked, so that a branch is left out, or taken as a whole, by a jump.
//
// Most tokens are plain: they could stand in any JSON string as they are. Where a grammar takes all plain texts of so
// many characters, its mask has these tokens from a table, and only the others are walked. Immutable once open, shared
// and counted.
#ifndef CONFAB_GRAMMAR_LEXICON_H
#define CONFAB_GRAMMAR_LEXICON_H

#include "engine/base/reader.h"

enum { LEXICON_PLAIN = 32 }; // characters of a plain token, at most

struct lexicon_node {
    uint32_t end;         // the node behind this one's branch
    uint32_t first_token; // of those that end here; those of the next node follow
    uint16_t depth;       // bytes, 1 at the top
    uint16_t below;       // kinds of the bytes further down, as bits
    uint8_t byte;
};

struct lexicon_tree {
    struct lexicon_node *nodes; // [n_nodes + 1], the last one only for its first_token
    uint32_t n_nodes;
    int32_t *tokens; // sorted
};

struct lexicon {
    int n_tokens, n_words;              // of the vocabulary; 32-bit words of a mask
    struct span *texts;                 // [n_tokens], empty: the token has no text and is never allowed
    struct lexicon_tree all, rest;      // `rest`: all but plain ones
    uint32_t *plain[LEXICON_PLAIN + 1]; // masks: plain tokens of up to so many characters
    size_t longest;                     // bytes of a token
};

// Copies the texts. The caller drops it.
struct lexicon *lexicon_open(const struct span *texts, int n);
struct lexicon *lexicon_share(struct lexicon *l);
void lexicon_drop(struct lexicon *l); // NULL: does nothing
// The token of the longest beginning of a text that is one, and its length; −1: none is.
int32_t lexicon_longest(const struct lexicon *l, struct span text, size_t *length);
// Nobody else has a reference.
bool lexicon_is_last(const struct lexicon *l);

// The kind of a byte, below 16: bytes that grammars mostly treat alike.
int lexicon_kind(uint8_t byte);

// Whether a byte below 0x80 stands for itself in a JSON string.
static inline bool lexicon_is_plain(uint8_t byte) { return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\'; }

#endif
