// Runs a fuzz target on mutated copies of its seeds: mutate_TARGET [INPUTS [FIRST]]. Input n is the same in every run,
// so "mutate_TARGET 1 N" repeats the input that crashed a run; its number is in the last line of output.
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/panic.h"
#include "tests/fuzz/fuzz.h"

#pragma weak LLVMFuzzerInitialize
#pragma weak LLVMFuzzerCustomMutator

enum { INPUTS = 2000, MOST_SEEDS = 128, MOST_CHANGES = 8, GROWTH = 256 };

struct input {
    uint8_t *data;
    size_t size;
};

static struct input seeds[MOST_SEEDS];
static size_t n_seeds;
static volatile uint64_t current; // the current input

static uint64_t next(uint64_t *state) { // splitmix64
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static size_t below(uint64_t *state, size_t n) { return n ? (size_t)(next(state) % n) : 0; }

// Half of the positions are at the start of the file, where lengths and counts are.
static size_t place(uint64_t *state, size_t size) {
    if (next(state) & 1) return below(state, size);
    size_t reach = 16;
    while (reach < size && next(state) & 1) reach *= 4;
    return below(state, reach < size ? reach : size);
}

static void put_number(uint64_t *state, uint8_t *at, size_t room) {
    static const uint64_t numbers[] = {
        0,          1,          2,          0x7f,        0x80,       0xff,           0x7fff,    0xffff,
        0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, UINT64_MAX, UINT64_MAX - 7, INT64_MAX, (uint64_t)1 << 61};
    uint64_t number = numbers[below(state, sizeof numbers / sizeof *numbers)];
    size_t n = (size_t)1 << below(state, 4);
    memcpy(at, &number, n < room ? n : room);
}

// Replaces a byte by a digit, a bracket or a quotation mark, for text formats.
static void put_sign(uint64_t *state, uint8_t *at) {
    static const char signs[] = "0123456789-.eE\"\"{}[],:\\<>%|()'\n\0\xff\xe2";
    *at = (uint8_t)signs[below(state, sizeof signs - 1)];
}

static void copy_over(uint64_t *state, struct input *in, const struct input *from, size_t room) {
    size_t at = place(state, in->size + 1), start = place(state, from->size), n = 1 + below(state, 64);
    if (n > from->size - start) n = from->size - start;
    if (next(state) & 1) { // in between
        if (in->size + n > room) return;
        memmove(in->data + at + n, in->data + at, in->size - at);
        in->size += n;
    } else if (n > in->size - at) n = in->size - at;
    memmove(in->data + at, from->data + start, n);
}

static void remove_some(uint64_t *state, struct input *in) {
    size_t at = place(state, in->size), n = 1 + below(state, 32);
    if (n > in->size - at) n = in->size - at;
    memmove(in->data + at, in->data + at + n, in->size - at - n);
    in->size -= n;
}

// A target that changes its format itself does most of it.
static void change(uint64_t *state, struct input *in, size_t room) {
    if (in->size == 0) return;
    if (LLVMFuzzerCustomMutator && below(state, 8)) {
        in->size = LLVMFuzzerCustomMutator(in->data, in->size, room, (unsigned)next(state));
        return;
    }
    size_t at = place(state, in->size);
    switch (below(state, 16)) {
    case 0:
    case 1:
    case 2:
    case 3: in->data[at] ^= (uint8_t)(1 << below(state, 8)); break;
    case 4:
    case 5:
    case 6: put_number(state, in->data + at, in->size - at); break;
    case 7:
    case 8:
    case 9: put_sign(state, in->data + at); break;
    case 10: in->data[at] = (uint8_t)next(state); break;
    case 11: copy_over(state, in, &seeds[below(state, n_seeds)], room); break;
    case 12: copy_over(state, in, in, room); break;
    case 13:
    case 14: remove_some(state, in); break;
    default: in->size = below(state, 4) ? in->size : at; break;
    }
}

static void run(uint64_t n) {
    uint64_t state = n * 0x2545f4914f6cdd1du + 1;
    const struct input *seed = &seeds[below(&state, n_seeds)];
    size_t room = seed->size + MOST_CHANGES * GROWTH;
    struct input in = {xmalloc(room), seed->size};
    memcpy(in.data, seed->data, seed->size);
    for (size_t i = 1 + below(&state, MOST_CHANGES); i > 0; i--) change(&state, &in, room);
    LLVMFuzzerTestOneInput(in.data, in.size);
    free(in.data);
}

static void say_where(int signal_number) {
    char text[64];
    int n = snprintf(text, sizeof text, "input %" PRIu64 "\n", current);
    if (write(STDERR_FILENO, text, (size_t)n) < 0) _exit(2);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

int main(int argc, char **argv) {
    uint64_t inputs = argc > 1 ? strtoull(argv[1], NULL, 10) : INPUTS,
             first = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    if (LLVMFuzzerInitialize) LLVMFuzzerInitialize(&argc, &argv);
    while (n_seeds < MOST_SEEDS && (seeds[n_seeds].data = fuzz_seed(n_seeds, &seeds[n_seeds].size))) n_seeds++;
    signal(SIGABRT, say_where);
    for (size_t k = 0; k < n_seeds; k++) LLVMFuzzerTestOneInput(seeds[k].data, seeds[k].size);
    for (current = first; current < first + inputs; current++) {
        if (current % 10000 == 0 && inputs > 10000) fprintf(stderr, "input %" PRIu64 "\n", current);
        run(current);
    }
    printf("%s: %" PRIu64 " inputs from %zu seeds\n", argv[0], inputs, n_seeds);
    for (size_t k = 0; k < n_seeds; k++) free(seeds[k].data);
    return 0;
}
