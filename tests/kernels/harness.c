#include "tests/kernels/harness.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"

uint64_t random_bits(uint64_t *state) { // xorshift64*
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545F4914F6CDD1Du;
}

float random_value(uint64_t *state) { return (float)(random_bits(state) >> 40) / (1 << 23) - 1; }

static void random_floats(uint8_t *row, enum block_id format, int n, uint64_t *state) {
    for (int i = 0; i < n; i++) {
        const float value = random_value(state);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        const uint16_t half = format == BLOCK_F16 ? f16_from_f32(value) : (uint16_t)(bits >> 16);
        if (format == BLOCK_F32)
            memcpy(row + i * 4, &value, 4);
        else
            memcpy(row + i * 2, &half, 2);
    }
}

// Where a block keeps its f16 scales.
static const struct {
    int n, at[2];
} scale_places[BLOCK_FORMAT_COUNT] = {
    [BLOCK_Q8_0] = {1, {0}}, [BLOCK_Q4_0] = {1, {0}}, [BLOCK_Q4_K] = {2, {0, 2}}, [BLOCK_Q6_K] = {1, {208}},
};

static void random_row(uint8_t *row, const struct block_format *f, int columns, uint64_t *state) {
    if (f->elements == 1) {
        random_floats(row, f->id, columns, state);
        return;
    }
    for (size_t b = 0; b < (size_t)columns / f->elements; b++, row += f->bytes) {
        for (size_t i = 0; i < f->bytes; i++) row[i] = (uint8_t)(random_bits(state) >> 56);
        for (int i = 0; i < scale_places[f->id].n; i++) {
            const uint16_t scale = f16_from_f32(random_value(state) * 0.01f);
            memcpy(row + scale_places[f->id].at[i], &scale, sizeof scale);
        }
    }
}

struct trial trial_open(enum block_id format, int rows, int columns, int most_inputs, uint64_t seed) {
    struct trial t = {.format = &block_formats[format], .rows = rows, .columns = columns};
    const size_t n_values = (size_t)most_inputs * (size_t)columns, row_bytes = (size_t)columns / t.format->elements * t.format->bytes;
    uint64_t state = seed * 2 + 1, bytes = 0;
    uint8_t *data = xmalloc((size_t)rows * row_bytes);
    for (int r = 0; r < rows; r++) random_row(data + (size_t)r * row_bytes, t.format, columns, &state);
    t.weight = (struct weight){t.format, data, rows, columns, row_bytes};
    t.matrix = matrix_in_place(&t.weight);
    if (matrix_has_tiles(t.format)) {
        if (!matrix_tile_bytes(&t.weight, &bytes)) panic("a trial of %d × %d overflows", rows, columns);
        t.tiles = region_alloc(t.tile_bytes = bytes);
        if (!t.tiles) panic("no memory for a trial");
        t.matrix = matrix_in_tiles(&t.weight, t.tiles);
        for (int i = 0; i < matrix_strips(&t.matrix); i++) matrix_prepare_strip(&t.matrix, &t.weight, i);
    }
    t.values = xmalloc(n_values * sizeof(float));
    for (size_t i = 0; i < n_values; i++) t.values[i] = random_value(&state);
    t.input = (struct input){.columns = columns, .values = xmalloc(n_values * sizeof(float))};
    if (columns % BLOCK_COLUMNS == 0)
        t.input.blocks = xmalloc(n_values / BLOCK_COLUMNS * sizeof(struct activation_block));
    return t;
}

void trial_close(struct trial *t) {
    free((void *)t->weight.data);
    region_free(t->tiles, t->tile_bytes);
    free(t->values);
    free(t->input.values);
    free(t->input.blocks);
}

void trial_inputs(struct trial *t, const struct cpu_kernels *k, int n) {
    t->n_inputs = t->input.rows = n;
    t->input.width = panel_width(n);
    for (int i = 0; i < n; i++) input_store(&t->input, k, i, 0, t->columns, t->values + (size_t)i * (size_t)t->columns);
}

void trial_run(const struct trial *t, const struct cpu_kernels *k, float *out) {
    float tile[PANEL_COLUMNS * STRIP_ROWS];
    for (int strip = 0; strip < matrix_strips(&t->matrix); strip++)
        for (int first = 0; first < t->n_inputs; first += t->input.width) {
            const int left = t->n_inputs - first, width = left < t->input.width ? left : t->input.width;
            matrix_strip(&t->matrix, k, strip, &t->input, first, width, tile);
            for (int c = 0; c < width; c++)
                for (int r = 0; r < STRIP_ROWS && strip * STRIP_ROWS + r < t->rows; r++)
                    out[(size_t)(strip * STRIP_ROWS + r) * (size_t)t->n_inputs + first + c] = tile[c * STRIP_ROWS + r];
        }
}
