// Shared by the encoders: the error of a scale, and the search for the best scale.
//
// A part is a run of n weights x with one scale and one minimum; weight i is stored as scale × code[i] − minimum. For
// given scales the best codes are the nearest ones, so only scales are searched. Each trial yields the sums that give
// the best scales for its codes in closed form (least squares); the next trial starts from those.
#ifndef CONFAB_FORMAT_BLOCK_ENCODE_SEARCH_H
#define CONFAB_FORMAT_BLOCK_ENCODE_SEARCH_H

#include "engine/format/block.h"

#define HALF_MIN 0x1p-24f // the smallest positive half
#define HALF_MAX 65504.0f

// Sums over a part, of residuals r = x − (scale × code − minimum) and codes q.
struct fit { float rr, rq, r, qq, q; };

// The codes of a format, and where to search for their scale.
struct code_set {
    int n;           // weights per part, a multiple of 4, at most 32
    float low, high; // the smallest and the largest code
    bool iq4;        // codes are iq4_values, not all integers from low to high
    // Trials for a scale without minimum: the weight farthest from zero maps to low × (first + i × step).
    float first, step;
    int n_trials;
};

struct scales { float scale, minimum; };

struct fit fit_part(const struct code_set *set, const float *x, struct scales s);
// The codes that fit_part measures; for iq4, indices into iq4_values.
void nearest_codes(const struct code_set *set, const float *x, struct scales s, int8_t *code);

// The best scale, of either sign, without a minimum; 0 if the part is practically zero.
float search_scale(const struct code_set *set, const float *x);
// The best scale, at least 0, and minimum (with `unsigned_minimum`, at least 0 too) for codes from 0 up.
struct scales search_range(const struct code_set *set, const float *x, bool unsigned_minimum);

// The best of the halves next to `scale`.
uint16_t nearest_half(const struct code_set *set, const float *x, float scale, float minimum);
uint16_t half_within(float value); // the nearest finite half

void clamp_weights(const float *x, int n, float *out); // to ±HALF_MAX

#endif
