#include "engine/format/block_encode_search.h"

#include <math.h>
#include <string.h>

enum { LANES = 4, REFINEMENTS = 3 };
typedef float lanes __attribute__((vector_size(4 * LANES)));
typedef int32_t lane_mask __attribute__((vector_size(4 * LANES)));

// All sums below are LANES partial sums, so the order is the same on every machine.
static inline lanes load(const float *x) {
    lanes v;
    memcpy(&v, x, sizeof v);
    return v;
}

static inline lanes all(float value) { return (lanes){value, value, value, value}; }

static inline lanes choose(lane_mask mask, lanes a, lanes b) {
    return (lanes)((mask & (lane_mask)a) | (~mask & (lane_mask)b));
}

static inline float total(lanes v) { return (v[0] + v[1]) + (v[2] + v[3]); }

// Rounds values below 2²² to the nearest integers, ties to even.
static inline lanes round_lanes(lanes v) {
    const lanes magic = all(0x1.8p23f);
    return (v + magic) - magic;
}

static inline lanes linear_codes(lanes v, lanes low, lanes high) {
    v = choose(v < low, low, v);
    return round_lanes(choose(v > high, high, v));
}

// The nearest of iq4_values: starts at the smallest and steps up at each midpoint below v.
static inline lanes iq4_codes(lanes v) {
    lanes code = all((float)iq4_values[0]);
    for (int i = 0; i < 15; i++) {
        float middle = 0.5f * (float)(iq4_values[i] + iq4_values[i + 1]);
        lanes step = all((float)(iq4_values[i + 1] - iq4_values[i]));
        code += (lanes)((v > all(middle)) & (lane_mask)step);
    }
    return code;
}

static inline float inverse_of(float scale) { return scale != 0 ? 1 / scale : 0; }

struct fit fit_part(const struct code_set *set, const float *x, struct scales s) {
    const lanes low = all(set->low), high = all(set->high), scale = all(s.scale), minimum = all(s.minimum);
    const lanes inverse = all(inverse_of(s.scale));
    lanes rr = {0}, rq = {0}, sum_r = {0}, qq = {0}, sum_q = {0};
    for (int i = 0; i < set->n; i += LANES) {
        lanes v = load(x + i) + minimum, scaled = v * inverse;
        lanes q = set->iq4 ? iq4_codes(scaled) : linear_codes(scaled, low, high), r = v - scale * q;
        rr += r * r, rq += r * q, sum_r += r, qq += q * q, sum_q += q;
    }
    return (struct fit){total(rr), total(rq), total(sum_r), total(qq), total(sum_q)};
}

void nearest_codes(const struct code_set *set, const float *x, struct scales s, int8_t *code) {
    float inverse = inverse_of(s.scale);
    for (int i = 0; i < set->n; i += LANES) {
        lanes scaled = (load(x + i) + all(s.minimum)) * all(inverse);
        lanes q = set->iq4 ? iq4_codes(scaled) : linear_codes(scaled, all(set->low), all(set->high));
        for (int l = 0; l < LANES; l++) {
            code[i + l] = (int8_t)q[l];
            if (!set->iq4) continue;
            for (int8_t index = 0; index < 16; index++)
                if (iq4_values[index] == (int)q[l]) code[i + l] = index;
        }
    }
}

// ---- a scale without a minimum ----

static float farthest_from_zero(const float *x, int n) {
    float farthest = 0;
    for (int i = 0; i < n; i++)
        if (fabsf(x[i]) > fabsf(farthest)) farthest = x[i];
    return farthest;
}

// Takes the codes of `trial` with their best scale. Replaces *scale and *error and returns true if that is better.
static bool try_scale(const struct code_set *set, const float *x, float trial, float *scale, float *error) {
    struct fit f = fit_part(set, x, (struct scales){trial, 0});
    if (f.qq == 0) return false;
    float e = f.rr - f.rq * f.rq / f.qq;
    if (!(e < *error)) return false;
    *error = e;
    *scale = trial + f.rq / f.qq;
    return true;
}

float search_scale(const struct code_set *set, const float *x) {
    float extreme = farthest_from_zero(x, set->n), scale = 0, error = INFINITY;
    if (fabsf(extreme) < HALF_MIN / 4) return 0;
    for (int i = 0; i < set->n_trials; i++) {
        float trial = extreme / (set->low * (set->first + (float)i * set->step));
        try_scale(set, x, trial, &scale, &error);
        if (set->iq4)
            try_scale(set, x, -trial, &scale, &error); // the other end of the codes is nearly as far from zero
    }
    for (int i = 0; i < REFINEMENTS; i++)
        if (!try_scale(set, x, scale, &scale, &error)) break;
    return scale;
}

// ---- a scale and a minimum ----

// How far the range of the codes lies inside the range of the weights at either end, in steps between codes.
static const float insets[] = {-0.4f, 0, 0.4f, 0.8f};
enum { N_INSETS = sizeof insets / sizeof *insets };

// The sum of squared residuals when the same codes are used with other scales.
static float error_with(const struct fit *f, float n, float scale_change, float minimum_change) {
    float a = scale_change, b = minimum_change;
    return f->rr + a * (a * f->qq - 2 * f->rq) + b * (n * b + 2 * f->r) - 2 * a * b * f->q;
}

static bool try_range(const struct code_set *set, const float *x, bool unsigned_minimum, struct scales trial,
                      struct scales *s, float *error) {
    struct fit f = fit_part(set, x, trial);
    float n = (float)set->n, determinant = n * f.qq - f.q * f.q;
    if (!(determinant > 0)) return false;
    float a = (n * f.rq - f.q * f.r) / determinant, b = (f.q * f.rq - f.qq * f.r) / determinant;
    if (unsigned_minimum && trial.minimum + b < 0) {
        b = -trial.minimum;
        a = (f.rq + b * f.q) / f.qq;
    }
    float e = error_with(&f, n, a, b);
    if (!(e < *error) || trial.scale + a < 0) return false;
    *error = e;
    *s = (struct scales){trial.scale + a, trial.minimum + b};
    return true;
}

struct scales search_range(const struct code_set *set, const float *x, bool unsigned_minimum) {
    float low = x[0], high = x[0], error = INFINITY;
    for (int i = 1; i < set->n; i++) low = fminf(low, x[i]), high = fmaxf(high, x[i]);
    if (unsigned_minimum && low > 0) low = 0;
    struct scales s = {0, -low};
    if (unsigned_minimum && high < 0) high = 0;
    float range = high - low;
    if (range < HALF_MIN / 4) return s;
    float step = range / set->high;
    for (int i = 0; i < N_INSETS; i++)
        for (int j = 0; j < N_INSETS; j++) {
            struct scales trial = {step * (1 - (insets[i] + insets[j]) / set->high), -low - insets[i] * step};
            if (unsigned_minimum && trial.minimum < 0) trial.minimum = 0;
            try_range(set, x, unsigned_minimum, trial, &s, &error);
        }
    for (int i = 0; i < REFINEMENTS; i++)
        if (!try_range(set, x, unsigned_minimum, s, &s, &error)) break;
    return s;
}

// ---- halves ----

uint16_t half_within(float value) {
    return f16_from_f32(value > HALF_MAX ? HALF_MAX : value < -HALF_MAX ? -HALF_MAX : value);
}

uint16_t nearest_half(const struct code_set *set, const float *x, float scale, float minimum) {
    uint16_t middle = half_within(scale), best = middle;
    float error = INFINITY;
    for (int step = -1; step <= 1; step++) {
        if ((step < 0 && (middle & 0x7fff) == 0) || (step > 0 && (middle & 0x7fff) == 0x7bff)) continue;
        uint16_t half = (uint16_t)(middle + step);
        float e = fit_part(set, x, (struct scales){f16_to_f32(half), minimum}).rr;
        if (e < error) error = e, best = half;
    }
    return best;
}

void clamp_weights(const float *x, int n, float *out) {
    for (int i = 0; i < n; i++) out[i] = x[i] > HALF_MAX ? HALF_MAX : x[i] < -HALF_MAX ? -HALF_MAX : x[i];
}
