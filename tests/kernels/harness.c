#include "tests/kernels/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/cpu/packed.h"

#if defined(__x86_64__)
#define X(id, name) void strip_##name##_evex(const struct strip *s); // packed_evex.c
PACKED_FORMATS(X)
#undef X

// The rest is AVX2's.
static const struct cpu_kernels *kernels_evex(void) {
    static struct cpu_kernels kernels;
    kernels = kernels_avx2;
    kernels.name = "AVX-VNNI in EVEX";
#define X(id, name) kernels.strip[id] = strip_##name##_evex;
    PACKED_FORMATS(X)
#undef X
    return &kernels;
}
#else
static const struct cpu_kernels *kernels_evex(void) { return NULL; }
#endif

const struct cpu_kernels *kernels_to_try(const char *name) {
    const struct cpu_kernels *found = kernels_find(name);
    return !found && !strcmp(name, "avxvnni") && kernels_find("avx512") ? kernels_evex() : found;
}

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

// The offsets of a block's f16 scales.
static const struct {
    int n, at[2];
} scale_places[BLOCK_FORMAT_COUNT] = {
    [BLOCK_Q8_0] = {1, {0}},      [BLOCK_Q4_0] = {1, {0}},    [BLOCK_Q4_1] = {2, {0, 2}},  [BLOCK_Q5_0] = {1, {0}},
    [BLOCK_Q5_1] = {2, {0, 2}},   [BLOCK_Q2_K] = {2, {80, 82}}, [BLOCK_Q3_K] = {1, {108}}, [BLOCK_Q4_K] = {2, {0, 2}},
    [BLOCK_Q5_K] = {2, {0, 2}},   [BLOCK_Q6_K] = {1, {208}},  [BLOCK_IQ4_NL] = {1, {0}},   [BLOCK_IQ4_XS] = {1, {0}},
    [BLOCK_IQ3_S] = {1, {0}},     [BLOCK_IQ3_XXS] = {1, {0}}, [BLOCK_IQ2_S] = {1, {0}},    [BLOCK_IQ2_XS] = {1, {0}},
    [BLOCK_IQ2_XXS] = {1, {0}},   [BLOCK_IQ1_S] = {1, {0}},   [BLOCK_TQ1_0] = {1, {52}},   [BLOCK_TQ2_0] = {1, {64}},
};

void block_set_scale(uint8_t *block, enum block_id format, float scale) {
    const uint16_t half = f16_from_f32(scale);
    for (int i = 0; i < scale_places[format].n; i++) memcpy(block + scale_places[format].at[i], &half, sizeof half);
    if (format == BLOCK_MXFP4) block[0] = (uint8_t)(127 + ilogbf(scale));
    if (format == BLOCK_NVFP4) memset(block, (7 + ilogbf(scale)) << 3, 4);
    if (format == BLOCK_IQ1_M) // the top nibble of each 16-bit word of scales
        for (int k = 0; k < 4; k++) block[49 + 2 * k] = (uint8_t)((block[49 + 2 * k] & 15) | (half >> 4 * k & 15) << 4);
}

static void random_row(uint8_t *row, const struct block_format *f, int columns, uint64_t *state) {
    if (f->elements == 1) {
        random_floats(row, f->id, columns, state);
        return;
    }
    for (size_t b = 0; b < (size_t)columns / f->elements; b++, row += f->bytes) {
        for (size_t i = 0; i < f->bytes; i++) row[i] = (uint8_t)(random_bits(state) >> 56);
        if (f->id == BLOCK_NVFP4) continue; // any byte is a scale
        if (f->id == BLOCK_MXFP4)
            row[0] = b % 2 ? row[0] % 4 : 120 + row[0] % 8; // including subnormals
        else
            block_set_scale(row, f->id, random_value(state) * 0.01f);
    }
}

struct trial trial_open(enum block_id format, int rows, int columns, int most_inputs, uint64_t seed) {
    struct trial t = {.format = &block_formats[format], .rows = rows, .columns = columns};
    const size_t n_values = (size_t)most_inputs * (size_t)columns;
    const size_t row_bytes = (size_t)columns / t.format->elements * t.format->bytes;
    uint64_t state = seed * 2 + 1, bytes = 0;
    uint8_t *data = xmalloc((size_t)rows * row_bytes);
    for (int r = 0; r < rows; r++) random_row(data + (size_t)r * row_bytes, t.format, columns, &state);
    t.weight = (struct weight){t.format, data, rows, columns, row_bytes};
    t.matrix = matrix_in_place(&t.weight);
    if (matrix_can_be_packed(t.format)) {
        if (!matrix_packed_bytes(&t.weight, &bytes)) panic("a trial of %d × %d overflows", rows, columns);
        t.packed = region_alloc(t.packed_bytes = bytes);
        if (!t.packed) panic("out of memory");
        t.matrix = matrix_packed(&t.weight, t.packed);
        for (int i = 0; i < matrix_strips(&t.matrix); i++) matrix_repack_strip(&t.matrix, &t.weight, i);
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
    region_free(t->packed, t->packed_bytes);
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
    float packed[GROUP_INPUTS * STRIP_ROWS];
    const int inputs = input_rows_at_once(&t->input, t->n_inputs);
    for (int strip = 0; strip < matrix_strips(&t->matrix); strip++)
        for (int first = 0; first < t->n_inputs; first += inputs) {
            const int left = t->n_inputs - first, width = left < inputs ? left : inputs;
            matrix_strip(&t->matrix, k, strip, &t->input, first, width, packed);
            for (int c = 0; c < width; c++)
                for (int r = 0; r < STRIP_ROWS && strip * STRIP_ROWS + r < t->rows; r++)
                    out[(size_t)(strip * STRIP_ROWS + r) * (size_t)t->n_inputs + first + c] =
                        packed[c * STRIP_ROWS + r];
        }
}
