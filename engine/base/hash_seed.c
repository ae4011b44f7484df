#include "engine/base/hash_seed.h"

#include <string.h>
#include <sys/auxv.h>

// From the 16 random bytes that the kernel gives every process.
uint64_t hash_seed(void) {
    uint64_t seed = 0;
    const void *random = (const void *)getauxval(AT_RANDOM);
    if (random) memcpy(&seed, random, sizeof seed);
    return seed;
}
