// The functions of a fuzz target. With clang's libFuzzer (make fuzz) the first two are enough; mutate.c runs a target
// without it, on a given number of reproducible inputs, each a mutated copy of one of the target's seeds.
#ifndef CONFAB_TESTS_FUZZ_H
#define CONFAB_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerInitialize(int *argc, char ***argv); // optional
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Optional: changes data in its own format, by a random number, and returns its new size, at most `room`.
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned int seed);

// Seed k, a valid input; NULL if there are no more. The caller frees.
uint8_t *fuzz_seed(size_t k, size_t *size);

#endif
