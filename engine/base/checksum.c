#include "engine/base/checksum.h"

#include <endian.h>
#include <string.h>

enum { LANES = 4 }; // that depend on each other only at the end, so that a processor computes them side by side

static const uint64_t odd_a = 0x9e3779b97f4a7c15u, odd_b = 0xd6e8feb86659fd93u;

static uint64_t rotate(uint64_t x, int n) { return x << n | x >> (64 - n); }

static uint64_t step(uint64_t lane, uint64_t word) { return rotate((lane ^ word) * odd_a, 29) * odd_b; }

static uint64_t word_at(const uint8_t *at, size_t size) {
    uint64_t word = 0;
    memcpy(&word, at, size < sizeof word ? size : sizeof word);
    return le64toh(word);
}

static uint64_t finish(uint64_t z) { // as splitmix64 does
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t checksum(const void *data, size_t size, uint64_t seed) {
    const uint8_t *at = data;
    size_t left = size;
    uint64_t lanes[LANES];
    for (int i = 0; i < LANES; i++) lanes[i] = finish(seed + odd_a * (uint64_t)(i + 1));
    for (; left >= LANES * 8; left -= LANES * 8, at += LANES * 8)
        for (int i = 0; i < LANES; i++) lanes[i] = step(lanes[i], word_at(at + 8 * i, 8));
    for (int i = 0; left; i++) {
        const size_t part = left < 8 ? left : 8;
        lanes[i] = step(lanes[i], word_at(at, part));
        at += part, left -= part;
    }
    uint64_t sum = finish(seed ^ size);
    for (int i = 0; i < LANES; i++) sum = finish(step(sum, lanes[i]));
    return sum;
}
