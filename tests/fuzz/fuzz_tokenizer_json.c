// Fuzzes tokenizer.json: it must be rejected with a message, or give a working tokenizer.
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/unit/huggingface_seeds.h"

uint8_t *fuzz_seed(size_t k, size_t *size) {
    if (k >= HUGGINGFACE_SEEDS) return NULL;
    char *text = huggingface_quoted(huggingface_seed(k));
    *size = strlen(text);
    return (uint8_t *)text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    huggingface_try(HUGGINGFACE_TOKENIZER, data, size);
    return 0;
}
