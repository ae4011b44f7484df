#include "engine/cpu/matrix.h"

#include <string.h>

#include "engine/base/reader.h"
#include "engine/cpu/tiles.h"

// --- preparation -----------------------------------------------------------------------------------------------------

// Columns 4g..4g+3 of row r go to line [g][r / 16] at 4 (r mod 16).
static void put_lines(uint8_t lines[][2][64], int r, const uint8_t *bytes, int n_groups) {
    for (int g = 0; g < n_groups; g++) memcpy(&lines[g][r / 16][r % 16 * 4], bytes + 4 * g, 4);
}

// 32 values below 16 as nibble lines.
static void put_nibbles(uint8_t lines[4][2][64], int r, const uint8_t q[32]) {
    uint8_t packed[16];
    for (int i = 0; i < 16; i++) packed[i] = (uint8_t)(q[i] | q[i + 16] << 4);
    put_lines(lines, r, packed, 4);
}

static void prepare_q4_0(void *tile, int r, const void *block) {
    struct tile_q4_0 *t = tile;
    struct block_q4_0 b;
    memcpy(&b, block, sizeof b); // the file may not align it
    memcpy(&t->d[r], &b.d, sizeof b.d);
    put_lines(t->q, r, b.q, 4);
}

static void prepare_q8_0(void *tile, int r, const void *block) {
    struct tile_q8_0 *t = tile;
    struct block_q8_0 b;
    memcpy(&b, block, sizeof b);
    uint8_t shifted[32];
    for (int i = 0; i < 32; i++) shifted[i] = (uint8_t)b.q[i] ^ 0x80;
    memcpy(&t->d[r], &b.d, sizeof b.d);
    put_lines(t->q, r, shifted, 8);
}

static void prepare_q4_k(void *tile, int r, const void *block) {
    struct tile_q4_k *t = tile;
    struct block_q4_k b;
    memcpy(&b, block, sizeof b);
    memcpy(&t->d[r], &b.d, sizeof b.d);
    memcpy(&t->dmin[r], &b.dmin, sizeof b.dmin);
    for (int p = 0; p < 8; p++) {
        uint8_t q[32];
        for (int i = 0; i < 32; i++) q[i] = b.q[p / 2 * 32 + i] >> (p % 2 * 4) & 15;
        put_nibbles(t->part[p].q, r, q);
        q4_k_scale_min(b.scales, p, &t->part[p].scale[r], &t->part[p].min[r]);
    }
}

static void prepare_q6_k(void *tile, int r, const void *block) {
    struct tile_q6_k *t = tile;
    struct block_q6_k b;
    memcpy(&b, block, sizeof b);
    memcpy(&t->d[r], &b.d, sizeof b.d);
    for (int p = 0; p < 8; p++) { // of each 128 columns, part p is quarter p mod 4
        const uint8_t *low = b.ql + p / 4 * 64 + p % 2 * 32, *high = b.qh + p / 4 * 32;
        uint8_t nibbles[32], packed[8] = {0};
        for (int i = 0; i < 32; i++) {
            nibbles[i] = low[i] >> (p % 4 / 2 * 4) & 15;
            int bits = high[i] >> (p % 4 * 2) & 3, g = i / 4;
            packed[g % 2 * 4 + i % 4] |= (uint8_t)(bits << (g / 2 * 2));
        }
        put_nibbles(t->part[p].low, r, nibbles);
        put_lines(t->part[p].high, r, packed, 2);
        t->part[p].scale[0][r] = b.scales[2 * p];
        t->part[p].scale[1][r] = b.scales[2 * p + 1];
    }
}

static const struct {
    void (*prepare)(void *tile, int r, const void *block); // puts one block of a row into row r of its tile
    size_t bytes;                                          // of a tile
} tile_formats[BLOCK_FORMAT_COUNT] = {
    [BLOCK_Q4_0] = {prepare_q4_0, sizeof(struct tile_q4_0)},
    [BLOCK_Q8_0] = {prepare_q8_0, sizeof(struct tile_q8_0)},
    [BLOCK_Q4_K] = {prepare_q4_k, sizeof(struct tile_q4_k)},
    [BLOCK_Q6_K] = {prepare_q6_k, sizeof(struct tile_q6_k)},
    [BLOCK_Q3_K] = {tile_prepare_BLOCK_Q3_K, sizeof(struct tile_q6_k)},
    [BLOCK_IQ3_S] = {tile_prepare_BLOCK_IQ3_S, sizeof(struct tile_q6_k)},
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
    return (struct matrix){.format = w->format, .data = w->data, .rows = (int)w->rows, .columns = (int)w->columns,
                           .row_bytes = w->row_bytes, .strip_bytes = w->row_bytes * STRIP_ROWS};
}

struct matrix matrix_in_tiles(const struct weight *w, void *tiles) {
    return (struct matrix){.format = w->format, .data = tiles, .rows = (int)w->rows, .columns = (int)w->columns,
                           .strip_bytes = tiles_in_strip(w) * tile_formats[w->format->id].bytes, .prepared = true};
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
