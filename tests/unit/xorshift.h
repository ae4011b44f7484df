// Random numbers for tests: the same ones every time. The state is chosen by the caller, not 0.
#ifndef CONFAB_TESTS_XORSHIFT_H
#define CONFAB_TESTS_XORSHIFT_H

#include <stdint.h>

static inline uint64_t xorshift(uint64_t *state) { // of 64 bits
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static inline uint32_t xorshift_below(uint64_t *state, uint32_t n) { return (uint32_t)((xorshift(state) >> 16) % n); }

#endif
