// Harness for tests of shaders that read matrices: random weights in any format, experts for the rows of a batch, and
// what a matmul is to give.
#ifndef CONFAB_TESTS_SHADER_MATRICES_H
#define CONFAB_TESTS_SHADER_MATRICES_H

#include "engine/format/block.h"
#include "tests/kernels/shader_harness.h"

#ifdef CONFAB_VULKAN

// The name of a format's shader; until the next call.
const char *shader_of(const char *name, int format);

struct weights {
    const struct block_format *format;
    int rows, columns;
    struct array blocks, grids;
    float *values; // [rows, columns]
};

struct weights weights_random(int format, int rows, int columns); // the caller frees the values

// [n] pairs of an expert and the bits of a weight.
struct array choices_random(int n, int count);
// On the device: their numbers in the order of the experts, and tiles of them.
void choices_group(const struct array *choices, const struct array *order, const struct array *tiles, int n, int count,
                   int tile);

enum { N_EXPERTS = 5, USED = 2, TILE_ROWS = 64, MOST_TILES = 64 };
struct matmul {
    int format, rows, columns, n; // rows of the result
    int at_once;                  // rows of the batch in a work group
    bool tiled;                   // matmul, not matvec
    bool experts;                 // USED rows of the result for each of the input
    bool biased, adds;
    float scale, softcap;
};

// What a matmul reads and writes: N_EXPERTS matrices if experts are chosen, of the inputs one for USED results.
struct matmul_arrays {
    struct weights weights;
    struct array from, to, bias, choices, order, tiles;
    int share, experts, inputs; // rows of the result for one of the input, matrices, rows of the input
    int stride, to_stride;
};

struct matmul_arrays matmul_open(const struct matmul *m); // begins anew
void matmul_close(struct matmul_arrays *a);
// The result in double, and how far from it floats may be. The caller frees.
void matmul_expect(const struct matmul *m, const struct matmul_arrays *a, double **want, double **allowed);
// Against OpenBLAS: each result is off by `allowed` times the sum of its absolute products at most.
void matmul_check_floats(const struct matmul_arrays *a, double allowed, const char *who);

#endif
#endif
