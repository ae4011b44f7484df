// Fuzzes model files: container, tokenizer, model. The seeds are the tiny models of the tests.
#include <stdlib.h>
#include <string.h>

#include "engine/model/model.h"
#include "engine/text/tokenizer.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/exact_copy.h"
#include "tests/unit/gguf_writer.h"
#include "tests/unit/tiny_families.h"
#include "tests/unit/tiny_model.h"
#include "tests/unit/tiny_vocab.h"

// Small files first, where mutations hit more: a vocabulary of each kind, then models of each family.
uint8_t *fuzz_seed(size_t k, size_t *size) {
    static int (*const vocabularies[])(struct gguf_writer *) = {tiny_vocab_sentencepiece, tiny_vocab_gemma,
                                                                tiny_vocab_unigram, tiny_vocab_wordpiece};
    static const char *const pres[] = {NULL, "gpt-2"};
    enum { VOCABULARIES = sizeof vocabularies / sizeof *vocabularies };
    if (k < VOCABULARIES) {
        struct gguf_writer w = {0};
        vocabularies[k](&w);
        return gguf_writer_finish(&w, size);
    }
    if ((k -= VOCABULARIES) < (size_t)tiny_family_count) return tiny_shape_bytes(&tiny_families[k], size);
    if ((k -= (size_t)tiny_family_count) >= 2 * TINY_FAMILY_COUNT) return NULL;
    return tiny_model_bytes((struct tiny_model_options){.family = (enum tiny_family)(k / 2),
                                                        .pre = pres[k % 2],
                                                        .n_layer = 1,
                                                        .n_embd = 32,
                                                        .n_head = 2,
                                                        .n_head_kv = 1,
                                                        .n_ff = 32,
                                                        .chat_template = TINY_CHATML},
                            size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct gguf g;
    struct model m;
    struct status st = {0};
    uint8_t *copy = exact_copy(data, size);
    if (gguf_open_memory(&g, "fuzz", copy, size, &st)) {
        struct tokenizer *t = tokenizer_open(&g, &st);
        if (t) tokenizer_close(t);
        if (model_open(&m, &g, 0, &st)) model_close(&m);
        gguf_close(&g);
    }
    if (st.code != STATUS_OK && !st.text[0]) abort();
    free(copy);
    return 0;
}
