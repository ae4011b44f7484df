#include "engine/cpu/matrix.h"

#include <string.h>

#include "engine/base/reader.h"
#include "engine/cpu/tiles.h"

// --- preparation -----------------------------------------------------------------------------------------------------

static const struct {
    void (*prepare)(void *tile, int r, const void *block); // puts one block of a row into row r of its tile
    size_t bytes;                                          // of a tile
} tile_formats[BLOCK_FORMAT_COUNT] = {
#define X(id, tile) [id] = {tile_prepare_##id, sizeof(struct tile_##tile)},
    TILE_FORMATS(X)
#undef X
};

bool matrix_has_tiles(const struct block_format *format) { return tile_formats[format->id].prepare != NULL; }

static size_t tiles_in_strip(const struct weight *w) { return (size_t)w->columns / w->format->elements; }

bool matrix_tile_bytes(const struct weight *w, uint64_t *bytes) {
    uint64_t rows;
    return checked_align((uint64_t)w->rows, STRIP_ROWS, &rows) &&
           checked_mul(rows / STRIP_ROWS, tiles_in_strip(w), bytes) &&
           checked_mul(*bytes, tile_formats[w->format->id].bytes, bytes);
}

struct matrix matrix_in_place(const struct weight *w) {
    return (struct matrix){.format = w->format,
                           .data = w->data,
                           .rows = (int)w->rows,
                           .columns = (int)w->columns,
                           .row_bytes = w->row_bytes,
                           .strip_bytes = w->row_bytes * STRIP_ROWS};
}

struct matrix matrix_in_tiles(const struct weight *w, void *tiles) {
    return (struct matrix){.format = w->format,
                           .data = tiles,
                           .rows = (int)w->rows,
                           .columns = (int)w->columns,
                           .strip_bytes = tiles_in_strip(w) * tile_formats[w->format->id].bytes,
                           .prepared = true};
}

void matrix_prepare_strip(const struct matrix *m, const struct weight *w, int strip) {
    const size_t tile_bytes = tile_formats[w->format->id].bytes;
    uint8_t *tiles = (uint8_t *)m->data + (size_t)strip * m->strip_bytes;
    const int first = strip * STRIP_ROWS, rows = m->rows - first < STRIP_ROWS ? m->rows - first : STRIP_ROWS;
    for (size_t b = 0; b < tiles_in_strip(w); b++)
        for (int r = 0; r < rows; r++) {
            const uint8_t *row = (const uint8_t *)w->data + (size_t)(first + r) * w->row_bytes;
            tile_formats[w->format->id].prepare(tiles + b * tile_bytes, r, row + b * w->format->bytes);
        }
}

// --- products --------------------------------------------------------------------------------------------------------

static struct activation_block *panel(const struct input *in, int first) {
    return in->blocks + (size_t)first * (size_t)(in->columns / BLOCK_COLUMNS);
}

void input_store(const struct input *in, const struct cpu_kernels *k, int row, int column, int n, const float *x) {
    if (in->values) memcpy(in->values + (size_t)row * in->columns + column, x, (size_t)n * sizeof *x);
    if (in->blocks) {
        int lane = row % in->width, first = row - lane;
        int width = in->rows - first < in->width ? in->rows - first : in->width;
        k->quantize(x, n / BLOCK_COLUMNS, panel(in, first) + (size_t)(column / BLOCK_COLUMNS) * width + lane, width);
    }
}

void matrix_strip(const struct matrix *m, const struct cpu_kernels *k, int i, const struct input *in, int first,
                  int width, float *out) {
    const int left = m->rows - i * STRIP_ROWS;
    const struct strip s = {
        .format = m->format,
        .weights = (const uint8_t *)m->data + (size_t)i * m->strip_bytes,
        .row_bytes = m->row_bytes,
        .rows = left < STRIP_ROWS ? left : STRIP_ROWS,
        .columns = m->columns,
        .width = width,
        .blocks = m->prepared ? panel(in, first) : NULL,
        .values = m->prepared ? NULL : in->values + (size_t)first * in->columns,
        .out = out,
    };
    k->strip[m->format->id](&s);
}
