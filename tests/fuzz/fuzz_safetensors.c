// Fuzzes safetensors files: they must fail with a message, or all tensors are inside the file.
#include <stdlib.h>
#include <string.h>

#include "engine/format/safetensors.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/exact_copy.h"
#include "tests/unit/safetensors_writer.h"

uint8_t *fuzz_seed(size_t k, size_t *size) {
    static const char *const dtypes[] = {"F32", "F16", "BF16", "F8_E4M3", "U8", "I64"};
    static const size_t widths[] = {4, 2, 2, 1, 1, 8};
    struct safetensors_writer w = {0};
    uint8_t data[512] = {0};
    if (k >= sizeof dtypes / sizeof *dtypes) return NULL;
    safetensors_writer_tensor(&w, "model.embed_tokens.weight", dtypes[k], 2, (const uint64_t[]){8, 4}, data,
                              32 * widths[k]);
    safetensors_writer_tensor(&w, "model.norm.weight", dtypes[k], 1, (const uint64_t[]){4}, data, 4 * widths[k]);
    safetensors_writer_tensor(&w, "model.layers.0.mlp.down_proj.weight", "F32", 3, (const uint64_t[]){2, 3, 4}, data,
                              96);
    return safetensors_writer_finish(&w, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct safetensors s;
    struct status st = {0};
    uint8_t *copy = exact_copy(data, size);
    // The length field is rarely right by chance, so every input is also tried with the right one.
    for (int own = 0; own < 2; own++) {
        uint64_t length = size - 8 < 4096 ? size - 8 : 4096;
        if (own && size < 8) break;
        if (own) memcpy(copy, &length, sizeof length);
        if (!safetensors_open_memory(&s, "fuzz", copy, size, &st)) continue;
        volatile uint8_t sum = 0;
        for (uint64_t i = 0; i < s.n_tensors; i++)
            for (uint64_t k = 0; k < s.tensors[i].size; k++) sum += ((const uint8_t *)s.tensors[i].data)[k];
        (void)sum;
        safetensors_close(&s);
    }
    free(copy);
    return 0;
}
