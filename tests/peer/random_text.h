// Random texts that are hard on tokenizers: scripts, white space, digits, long runs, broken UTF-8, special tokens.
#ifndef CONFAB_TESTS_RANDOM_TEXT_H
#define CONFAB_TESTS_RANDOM_TEXT_H

#include "engine/base/reader.h"
#include "engine/text/tokenizer.h"

enum { RANDOM_TEXT_MOST = 4096 }; // bytes

struct random_text {
    uint64_t state; // the seed; not 0
    char text[RANDOM_TEXT_MOST];
    size_t size;
};
uint32_t random_below(struct random_text *r, uint32_t end);
// The next text. Texts of the tokenizer's tokens, whole and cut short, are among what it is made of.
void random_text_next(struct random_text *r, const struct tokenizer *t);

#endif
