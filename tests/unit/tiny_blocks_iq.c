// Test quantisers of the formats with codebooks. The entry is the best of a few about where the rounded values would
// stand: the books ascend, their last value counting most.
#include <math.h>
#include <string.h>

#include "tests/unit/tiny_blocks_parts.h"

struct book {
    const int8_t *entries;
    int count, width, n_levels;
    int8_t levels[8];
};

enum { TRIED = 16 };

static float entry_error(const int8_t *entry, const float *x, int width) {
    float error = 0;
    for (int i = 0; i < width; i++) error += (x[i] - entry[i]) * (x[i] - entry[i]);
    return error;
}

static int8_t nearest_level(const struct book *book, float x) {
    int best = 0;
    for (int i = 1; i < book->n_levels; i++)
        if (fabsf(x - book->levels[i]) < fabsf(x - book->levels[best])) best = i;
    return book->levels[best];
}

static bool comes_before(const int8_t *entry, const int8_t *wanted, int width) {
    int i = width - 1;
    while (i > 0 && entry[i] == wanted[i]) i--;
    return entry[i] < wanted[i];
}

static int best_entry(const struct book *book, const float *x) {
    int8_t wanted[8];
    int low = 0, high = book->count;
    for (int i = 0; i < book->width; i++) wanted[i] = nearest_level(book, x[i]);
    while (low < high) {
        int middle = (low + high) / 2;
        if (comes_before(book->entries + middle * book->width, wanted, book->width))
            low = middle + 1;
        else
            high = middle;
    }
    int first = low < TRIED / 2 ? 0 : low - TRIED / 2, best = first;
    float least = INFINITY;
    for (int i = first; i < first + TRIED && i < book->count; i++) {
        float error = entry_error(book->entries + i * book->width, x, book->width);
        if (error < least) least = error, best = i;
    }
    return best;
}

// d, and odd scales 2s + 1 of sub-blocks of n values, such that d / divisor × scale × most reaches their largest.
static uint16_t odd_scales(const float *x, int n, float most, float divisor, int most_scale, int scales[16],
                           float step[16]) {
    float unit[16] = {0};
    for (int j = 0; j < 256 / n; j++) unit[j] = tiny_largest(x + n * j, n) / most;
    uint16_t d = f16_from_f32(tiny_largest(unit, 256 / n) * divisor / (float)(2 * most_scale + 1));
    for (int j = 0; j < 256 / n; j++) {
        scales[j] = d ? tiny_step(unit[j] * divisor / f16_to_f32(d) - 1, 2, 0, most_scale) : 0;
        step[j] = f16_to_f32(d) / divisor * (float)(2 * scales[j] + 1);
    }
    return d;
}

// The magnitudes of n values in steps, and their signs as bits.
static int magnitudes(const float *x, int n, float step, float *out) {
    int signs = 0;
    for (int i = 0; i < n; i++) {
        out[i] = step > 0 ? fabsf(x[i]) / step : 0;
        signs |= (x[i] < 0) << i;
    }
    return signs;
}

// Makes the number of negative values even, at the cost of the smallest; seven bits tell them all.
static uint32_t seven_signs(const float magnitude[8], int signs) {
    int smallest = 0, negative = 0;
    for (int i = 0; i < 8; i++) {
        if (magnitude[i] < magnitude[smallest]) smallest = i;
        negative += signs >> i & 1;
    }
    return (uint32_t)(negative % 2 ? signs ^ 1 << smallest : signs) & 127;
}

static void put_word(uint8_t out[4], uint32_t word) {
    for (int i = 0; i < 4; i++) out[i] = (uint8_t)(word >> 8 * i);
}

void tiny_BLOCK_IQ2_XXS(const float *x, void *block) {
    const struct book book = {block_grids()->iq2_xxs[0], 256, 8, 3, {8, 25, 43}};
    struct block_iq2_xxs *b = block;
    int scales[16];
    float step[16], magnitude[8];
    b->d = odd_scales(x, 32, 43, 8, 15, scales, step);
    for (int j = 0; j < 8; j++) {
        uint32_t word = (uint32_t)scales[j] << 28;
        for (int g = 0; g < 4; g++) {
            int signs = magnitudes(x + 32 * j + 8 * g, 8, step[j], magnitude);
            word |= seven_signs(magnitude, signs) << 7 * g;
            b->part[j].q[g] = (uint8_t)best_entry(&book, magnitude);
        }
        put_word(b->part[j].signs, word);
    }
}

void tiny_BLOCK_IQ2_XS(const float *x, void *block) {
    const struct book book = {block_grids()->iq2_xs[0], 512, 8, 3, {8, 25, 43}};
    struct block_iq2_xs *b = block;
    int scales[16];
    float step[16], magnitude[8];
    b->d = odd_scales(x, 16, 43, 8, 15, scales, step);
    for (int j = 0; j < 8; j++) b->scales[j] = (uint8_t)(scales[2 * j] | scales[2 * j + 1] << 4);
    for (int g = 0; g < 32; g++) {
        int signs = magnitudes(x + 8 * g, 8, step[g / 2], magnitude);
        b->q[g] = (uint16_t)(best_entry(&book, magnitude) | (int)seven_signs(magnitude, signs) << 9);
    }
}

void tiny_BLOCK_IQ2_S(const float *x, void *block) {
    const struct book book = {block_grids()->iq2_s[0], 1024, 8, 3, {8, 25, 43}};
    struct block_iq2_s *b = block;
    int scales[16];
    float step[16], magnitude[8];
    memset(b->qh, 0, sizeof b->qh);
    b->d = odd_scales(x, 16, 43, 8, 15, scales, step);
    for (int j = 0; j < 8; j++) b->scales[j] = (uint8_t)(scales[2 * j] | scales[2 * j + 1] << 4);
    for (int g = 0; g < 32; g++) {
        b->signs[g] = (uint8_t)magnitudes(x + 8 * g, 8, step[g / 2], magnitude);
        int index = best_entry(&book, magnitude);
        b->q[g] = (uint8_t)index;
        b->qh[g / 4] |= (uint8_t)(index >> 8 << g % 4 * 2);
    }
}

void tiny_BLOCK_IQ3_XXS(const float *x, void *block) {
    const struct book book = {block_grids()->iq3_xxs[0], 256, 4, 8, {4, 12, 20, 28, 36, 44, 52, 62}};
    struct block_iq3_xxs *b = block;
    int scales[16];
    float step[16], magnitude[8];
    b->d = odd_scales(x, 32, 62, 4, 15, scales, step);
    for (int j = 0; j < 8; j++) {
        uint32_t word = (uint32_t)scales[j] << 28;
        for (int g = 0; g < 4; g++) {
            int signs = magnitudes(x + 32 * j + 8 * g, 8, step[j], magnitude);
            word |= seven_signs(magnitude, signs) << 7 * g;
            for (int k = 0; k < 2; k++) b->q[8 * j + 2 * g + k] = (uint8_t)best_entry(&book, magnitude + 4 * k);
        }
        put_word(b->signs[j], word);
    }
}

void tiny_BLOCK_IQ3_S(const float *x, void *block) {
    const struct book book = {block_grids()->iq3_s[0], 512, 4, 8, {1, 3, 5, 7, 9, 11, 13, 15}};
    struct block_iq3_s *b = block;
    int scales[16];
    float step[16], magnitude[8];
    memset(b->qh, 0, sizeof b->qh);
    b->d = odd_scales(x, 32, 15, 1, 15, scales, step);
    for (int j = 0; j < 4; j++) b->scales[j] = (uint8_t)(scales[2 * j] | scales[2 * j + 1] << 4);
    for (int g = 0; g < 32; g++) {
        b->signs[g] = (uint8_t)magnitudes(x + 8 * g, 8, step[g / 4], magnitude);
        for (int k = 2 * g; k < 2 * g + 2; k++) {
            int index = best_entry(&book, magnitude + k % 2 * 4);
            b->q[k] = (uint8_t)index;
            b->qh[k / 8] |= (uint8_t)(index >> 8 << k % 8);
        }
    }
}

// The entry for 8 values under a shift of +1/8 or −1/8.
static int shifted_entry(const float *x, float step, bool negative) {
    const struct book book = {block_grids()->iq1[0], 2048, 8, 3, {-1, 0, 1}};
    float target[8];
    for (int i = 0; i < 8; i++) target[i] = ((step > 0 ? x[i] / step : 0) - (negative ? -1 : 1)) / 8;
    return best_entry(&book, target);
}

static bool is_negative(const float *x, int n) {
    float sum = 0;
    for (int i = 0; i < n; i++) sum += x[i];
    return sum < 0;
}

void tiny_BLOCK_IQ1_S(const float *x, void *block) {
    struct block_iq1_s *b = block;
    int scales[16];
    float step[16];
    b->d = odd_scales(x, 32, 9, 8, 7, scales, step);
    for (int j = 0; j < 8; j++) {
        bool negative = is_negative(x + 32 * j, 32);
        b->qh[j] = (uint16_t)(scales[j] << 12 | negative << 15);
        for (int g = 0; g < 4; g++) {
            int index = shifted_entry(x + 32 * j + 8 * g, step[j], negative);
            b->q[4 * j + g] = (uint8_t)index;
            b->qh[j] |= (uint16_t)(index >> 8 << 3 * g);
        }
    }
}

void tiny_BLOCK_IQ1_M(const float *x, void *block) {
    struct block_iq1_m *b = block;
    int scales[16];
    float step[16];
    uint16_t d = odd_scales(x, 16, 9, 8, 7, scales, step);
    for (int k = 0; k < 4; k++) {
        int word = (d >> 4 * k & 15) << 12;
        for (int j = 0; j < 4; j++) word |= scales[4 * k + j] << 3 * j;
        b->scales[k][0] = (uint8_t)word, b->scales[k][1] = (uint8_t)(word >> 8);
    }
    memset(b->qh, 0, sizeof b->qh);
    for (int g = 0; g < 32; g++) {
        bool negative = is_negative(x + 8 * g, 8);
        int index = shifted_entry(x + 8 * g, step[g / 2], negative);
        b->q[g] = (uint8_t)index;
        b->qh[g / 2] |= (uint8_t)((index >> 8 | negative << 3) << g % 2 * 4);
    }
}
