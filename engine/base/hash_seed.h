// Hash seed: random seed of hash tables with names from files, so that files cannot provoke collisions.
#ifndef CONFAB_BASE_HASH_SEED_H
#define CONFAB_BASE_HASH_SEED_H

#include <stdint.h>

uint64_t hash_seed(void); // different in every process

#endif
