// Fuzzes tokenizer.json: refused with a message, or a tokenizer that works.
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/format/huggingface_tokenizer.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/huggingface_seeds.h"

uint8_t *fuzz_seed(size_t k, size_t *size) {
    if (k >= HUGGINGFACE_SEEDS) return NULL;
    char *text = huggingface_quoted(huggingface_seed(k));
    *size = strlen(text);
    return (uint8_t *)text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = xmalloc(size ? size : 1); // exactly as long, so that a byte read behind it is seen
    if (size) memcpy(text, data, size);
    struct huggingface_texts texts = {.folder = "fuzz", .files[HUGGINGFACE_TOKENIZER] = {text, size}};
    huggingface_try(&texts);
    free(text);
    return 0;
}
