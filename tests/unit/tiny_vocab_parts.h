// What the files of tiny_vocab.h share.
#ifndef CONFAB_TESTS_TINY_VOCAB_PARTS_H
#define CONFAB_TESTS_TINY_VOCAB_PARTS_H

#include "engine/text/tokenizer.h"
#include "tests/unit/gguf_writer.h"

// A vocabulary as it grows; zero-initialise.
struct tiny_vocab {
    struct bytes tokens, scores, types;
    int count;
};
void tiny_vocab_add(struct tiny_vocab *v, const char *text, float score, int32_t type);
// Adds the keys of the tokens, with their scores if wanted; empties v. Returns the number of tokens.
int tiny_vocab_write(struct tiny_vocab *v, struct gguf_writer *w, bool scores);

#endif
