// Safetensors files of any content: a clear refusal, or tensors that all lie inside the file.
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/format/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct safetensors s;
    struct status st = {0};
    uint8_t *copy = xmalloc(size ? size : 1); // of the exact size
    if (size) memcpy(copy, data, size);
    // The length in front is seldom right by chance: every input is also tried with its own.
    for (int own = 0; own < 2; own++) {
        uint64_t length = size - 8 < 4096 ? size - 8 : 4096;
        if (own && size < 8) break;
        if (own) memcpy(copy, &length, sizeof length);
        if (!safetensors_open_memory(&s, "fuzz", copy, size, &st)) continue;
        volatile uint8_t sum = 0;
        for (uint64_t i = 0; i < s.n_tensors; i++)
            for (uint64_t k = 0; k < s.tensors[i].size; k++) sum += ((const uint8_t *)s.tensors[i].data)[k];
        safetensors_close(&s);
    }
    free(copy);
    return 0;
}
