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

void rope_tables_open(struct rope_tables *t, const struct model *m, int first_layer, int end_layer, int context,
                      struct arena *arena) {
    for (int i = first_layer; i < end_layer; i++) {
        const enum rope_table table = m->spec.layers[i].rope;
        if (table == ROPE_TABLE_NONE || t->frequency[table]) continue;
        t->frequency[table] = arena_alloc(arena, (size_t)m->spec.rope.n_rot / 2 * sizeof **t->frequency + 1);
        t->magnitude[table] = rope_frequencies(m, table, context, t->frequency[table]);
    }
}

void rope_rotation(const struct rope_tables *t, enum rope_table table, int n_rot, int position, float *out) {
    for (int k = 0; k < n_rot / 2; k++) {
        const double angle = position * t->frequency[table][k];
        out[2 * k] = (float)(cos(angle) * t->magnitude[table]);
        out[2 * k + 1] = (float)(sin(angle) * t->magnitude[table]);
    }
}

float rope_query_scale(const struct model_spec *s, int position) {
    if (s->position_scale == 0) return s->attention_scale;
    const int lengths = position / s->position_scale_length;
    return (float)((double)s->attention_scale * (1 + (double)s->position_scale * log(1.0 + lengths)));
}
