// Fuzzes tokenizer.model: it must be rejected with a message, or give a working tokenizer.
#include "tests/fuzz/fuzz.h"
#include "tests/unit/huggingface_seeds.h"

uint8_t *fuzz_seed(size_t k, size_t *size) { return k < SENTENCEPIECE_SEEDS ? sentencepiece_seed(k, size) : NULL; }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    huggingface_try(HUGGINGFACE_SENTENCEPIECE, data, size);
    return 0;
}
