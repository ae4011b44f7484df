// What the encoders share: how well codes under a scale meet the weights, and the search for the best scale.
//
// A part is a run of n weights x under one scale and one minimum; weight i is stored as scale × code[i] − minimum. For
// given scales the best codes are the nearest ones, so that a search runs over scales alone. Each trial yields the sums
// from which follows, in closed form, which scales would serve its codes best (least squares); the next trial starts
// there.
#ifndef CONFAB_FORMAT_BLOCK_ENCODE_SEARCH_H
#define CONFAB_FORMAT_BLOCK_ENCODE_SEARCH_H

#include "engine/format/block.h"

#define HALF_LEAST 0x1p-24f // of the halves above zero
#define HALF_MOST  65504.0f

// Sums over a part: of residuals r = x − (scale × code − minimum) and codes q.
struct fit { float rr, rq, r, qq, q; };

// The codes that a format has, and where to look for their scale.
struct code_set {
    int n;           // weights in a part, a multiple of 4, at most 32
    float low, high; // the least and the greatest code; the whole numbers between them unless…
    bool iq4;        // …they are iq4_values
    // Trials of a scale alone: the weight farthest from zero meets code low × (first + i × step).
    float first, step;
    int n_trials;
};

struct scales { float scale, minimum; };

struct fit fit_part(const struct code_set *set, const float *x, struct scales s);
// The codes that fit_part has judged; of iq4 the indices into iq4_values.
void nearest_codes(const struct code_set *set, const float *x, struct scales s, int8_t *code);

// The scale, of either sign, that serves best with a minimum of 0; 0 when the part is as good as zero.
float search_scale(const struct code_set *set, const float *x);
// Scale and minimum for codes from 0 on, the scale ≥ 0. `signless`: the minimum is ≥ 0 too.
struct scales search_range(const struct code_set *set, const float *x, bool signless);

// Of the halves about `scale` the one that serves best.
uint16_t nearest_half(const struct code_set *set, const float *x, float scale, float minimum);
uint16_t half_within(float value); // the nearest half that is finite

void clamp_weights(const float *x, int n, float *out); // to ±HALF_MOST

#endif
