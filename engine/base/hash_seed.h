// Hash seed: what hash tables over names from files mix in, so that no file can be built to make them slow.
#ifndef CONFAB_BASE_HASH_SEED_H
#define CONFAB_BASE_HASH_SEED_H

#include <stdint.h>

uint64_t hash_seed(void); // another one in every process

#endif
