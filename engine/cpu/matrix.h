// Matrix: a weight as the kernels read it.
//
// Quantised weights are repacked (packed.h), by strips of 32 rows; rows past the last repeat it. Float weights,
// and every weight in exact mode and for OpenBLAS, stay where they are in the mapped file.
#ifndef CONFAB_CPU_MATRIX_H
#define CONFAB_CPU_MATRIX_H

#include "engine/cpu/kernels.h"
#include "engine/model/model.h"

struct matrix {
    const struct block_format *format; // NULL: absent
    const void *data;
    int rows, columns;
    size_t row_bytes;   // of weights in the file's layout
    size_t strip_bytes; // of a strip
    size_t stride;      // from one strip to the next
    bool packed;
    const struct weight *source; // not all strips are repacked: the others are made from this as they are needed
    int n_filled;                // strips that are, where there is a source
};

// Strips that one worker repacked last: a matrix that is not repacked yet is read through it. Two, because a
// gated matmul goes to and fro between two matrices.
struct strip_cache {
    struct cached_strip {
        const struct matrix *matrix;
        int strip;
        uint8_t *packed; // room for the largest strip
    } strips[2];
    int oldest;
};

// A matrix that reads the weight in place. The caller has checked that rows and columns fit int.
struct matrix matrix_in_place(const struct weight *w);
// Whether the format has packed blocks.
bool matrix_can_be_packed(const struct block_format *format);
// Bytes that the packed blocks of a weight take; false on overflow.
bool matrix_packed_bytes(const struct weight *w, uint64_t *bytes);
// A matrix whose packed blocks are at `packed`; they are filled by matrix_repack_strip.
struct matrix matrix_packed(const struct weight *w, void *packed);
void matrix_repack_strip(const struct matrix *m, const struct weight *w, int strip);
// From now on the calling thread reads matrices with a source through this cache, which is its own.
void matrix_use_cache(struct strip_cache *cache);

static inline int matrix_strips(const struct matrix *m) { return (m->rows + STRIP_ROWS - 1) / STRIP_ROWS; }

// Bytes of weights that one matmul reads.
static inline double matrix_bytes(const struct matrix *m) { return (double)m->strip_bytes / STRIP_ROWS * m->rows; }

// How many inputs a panel takes when there are n: as even as possible.
static inline int panel_width(int n) {
    int panels = (n + PANEL_INPUTS - 1) / PANEL_INPUTS;
    return panels ? (n + panels - 1) / panels : 1;
}

enum {
    GROUP_PANELS = 86, // that share the unpacked weights, at most
    GROUP_INPUTS = GROUP_PANELS * PANEL_INPUTS,
};

// The inputs of a matmul, in the forms that its matrices want.
struct input {
    int columns, rows, width;        // width = panel_width(rows)
    float *values;                   // [rows][columns], or NULL when only packed weights read it
    struct activation_block *blocks; // panels of [columns / 32][width of the panel], or NULL when none read it
    bool wants_values, wants_blocks;
};

// How many of so many rows are best multiplied at once: whole panels, at most GROUP_INPUTS, about as many each time.
static inline int input_rows_at_once(const struct input *in, int rows) {
    const int panels = (rows + in->width - 1) / in->width, groups = (panels + GROUP_PANELS - 1) / GROUP_PANELS;
    return groups ? (panels + groups - 1) / groups * in->width : in->width;
}
// The input with so many rows. Its buffers hold as many.
struct input input_sized(const struct input *in, int rows);
// Puts n values at `column` of a row. With blocks, column and n are multiples of 32.
void input_store(const struct input *in, const struct cpu_kernels *k, int row, int column, int n, const float *x);
// Puts n ≤ 32 values at `column` of `rows` rows from a panel's first on: results [rows][32].
void input_store_strip(const struct input *in, const struct cpu_kernels *k, int first, int rows, int column, int n,
                       const float *results);
// Copies a row of an input of the same columns and forms; what only `from` has is left out.
void input_copy(const struct input *to, int row, const struct input *from, int from_row);

// Strip i times `width` inputs, beginning with a panel's first: out [width][32].
void matrix_strip(const struct matrix *m, const struct cpu_kernels *k, int i, const struct input *in, int first,
                  int width, float *out);

#endif
