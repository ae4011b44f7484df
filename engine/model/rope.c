#include "engine/model/rope.h"

#include <math.h>
#include <string.h>

static const double TAU = 6.283185307179586;

// The pair that makes `turns` turns within the original context.
static double pair_of_turns(const struct rope_spec *r, double base, double turns) {
    return r->n_rot * log(r->original_context / (turns * TAU)) / (2 * log(base));
}

// YaRN: fast pairs keep their angles, slow ones are divided by the factor, with a linear ramp in between.
static void scale_yarn(const struct rope_spec *r, double base, double *frequency) {
    double low = fmax(0, floor(pair_of_turns(r, base, r->beta_fast)));
    double high = fmin(r->n_rot - 1, ceil(pair_of_turns(r, base, r->beta_slow)));
    for (int i = 0; i < r->n_rot / 2; i++) {
        double divided = fmin(1, fmax(0, (i - low) / fmax(0.001, high - low)));
        frequency[i] *= divided / r->factor + (1 - divided);
    }
}

static void divide(const struct weight *divisors, double *frequency) {
    for (int64_t i = 0; divisors->format && i < divisors->columns; i++) {
        float divisor; // may be unaligned
        memcpy(&divisor, (const uint8_t *)divisors->data + (size_t)i * sizeof divisor, sizeof divisor);
        frequency[i] /= (double)divisor;
    }
}

float rope_frequencies(const struct model *m, enum rope_table table, int context, double *frequency) {
    const struct rope_spec *r = &m->spec.rope;
    const double base = r->base[table];
    for (int i = 0; i < r->n_rot / 2; i++) frequency[i] = pow(base, -2.0 * i / r->n_rot);
    if (table == ROPE_TABLE_SLIDING && !r->scales_sliding) return 1;
    divide(&m->rope_freqs, frequency);
    if (r->scaling == ROPE_SCALING_LONG)
        divide(context > r->original_context ? &m->rope_factors_long : &m->rope_factors_short, frequency);
    if (r->scaling == ROPE_SCALING_YARN) scale_yarn(r, base, frequency);
    else
        for (int i = 0; i < r->n_rot / 2; i++) frequency[i] /= r->factor;
    return r->magnitude;
}
