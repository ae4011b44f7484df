// Fuzzes tokenizer.model: refused with a message, or a tokenizer that works.
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/format/huggingface_tokenizer.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/huggingface_seeds.h"

uint8_t *fuzz_seed(size_t k, size_t *size) { return k < SENTENCEPIECE_SEEDS ? sentencepiece_seed(k, size) : NULL; }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *bytes = xmalloc(size ? size : 1); // exactly as long, so that a byte read behind it is seen
    if (size) memcpy(bytes, data, size);
    struct huggingface_texts texts = {.folder = "fuzz", .files[HUGGINGFACE_SENTENCEPIECE] = {bytes, size}};
    huggingface_try(&texts);
    free(bytes);
    return 0;
}
