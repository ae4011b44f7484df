// Quantises matrices the ways that Hugging Face folders have them: codes, scales and how they belong together.
#ifndef CONFAB_TESTS_TINY_QUANTISED_H
#define CONFAB_TESTS_TINY_QUANTISED_H

#include <stddef.h>
#include <stdint.h>

#include "tests/unit/tiny_huggingface.h"

struct tiny_matrix {
    const char *name; // of the tensor of codes
    uint64_t rows, columns;
    const float *values; // [rows, columns]
};

// One tensor of the file; dims outermost first.
typedef void tiny_put(void *context, const char *name, const char *dtype, int n_dims, const uint64_t *dims,
                      const void *data, size_t size);
void tiny_quantised(const struct tiny_matrix *m, enum tiny_quantisation how, tiny_put *put, void *context);

// What the codes of FP8 stand for, from the formats' definition: sign, exponent, mantissa.
double tiny_e4m3(uint8_t code);
double tiny_e5m2(uint8_t code);
extern const float tiny_nf4_codes[16];

#endif
