// Pre-tokenizers: where byte-level BPE cuts a text before it merges. Scanners by hand, linear on any input; letters,
// numbers and white space as Unicode has them. Bytes that are no UTF-8 count as symbols and pass unchanged.
#ifndef CONFAB_TEXT_PRETOKENIZE_H
#define CONFAB_TEXT_PRETOKENIZE_H

#include "engine/base/reader.h"

struct pretokenizer {
    const char *names[8]; // as `tokenizer.ggml.pre` says them
    bool any_lead;        // any character but a line end, letter or digit may lead letters; otherwise only a space may
    bool any_case;        // 'S, 'Re … as well as 's, 're …
    int digits;           // the most in one piece; 0: any number, and a space may lead them
    bool line_ends;       // a line end closes the white space or the symbols before it
    bool whole_pieces;    // a piece that is itself a token is taken without merging
    bool adds_bos;        // where the file does not say
};

// NULL when we have none of this name.
const struct pretokenizer *pretokenizer_find(struct span name);
// Bytes of the first piece of text[0..size), size ≥ 1.
size_t pretokenize_next(const struct pretokenizer *p, const char *text, size_t size);

#endif
