// What a fuzz target consists of. With clang's libFuzzer (make fuzz) the first two functions are enough; mutate.c runs
// a target without it, a given number of inputs, always the same ones, each a changed copy of one of the target's
// seeds.
#ifndef CONFAB_TESTS_FUZZ_H
#define CONFAB_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerInitialize(int *argc, char ***argv); // a target may lack it
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Good input k, from which to start; NULL: there are no more. The caller frees.
uint8_t *fuzz_seed(size_t k, size_t *size);

#endif
