// Fuzzing of model files: container, tokenizer, model. Start it from good files, e.g. those of the tests' tiny models.
//   clang -g -O1 -fsanitize=fuzzer,address,undefined … tests/fuzz/fuzz_gguf.c && ./fuzz_gguf -max_len=200000 CORPUS
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/model/model.h"
#include "engine/text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct gguf g;
    struct model m;
    struct status st = {0};
    uint8_t *copy = xmalloc(size ? size : 1); // aligned, as a mapping is
    if (size) memcpy(copy, data, size);
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
