// The knobs of sampling, as data.
#include "engine/sampling.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const struct sampling_knob sampling_knobs[KNOB_COUNT] = {
#define X(field, key_, label_, kind_, low_, high_, step_, initial_, help_)                                             \
    [KNOB_##field] = {.key = key_,                                                                                     \
                      .label = label_,                                                                                 \
                      .help = help_,                                                                                   \
                      .kind = kind_,                                                                                   \
                      .low = low_,                                                                                     \
                      .high = high_,                                                                                   \
                      .step = step_,                                                                                   \
                      .initial = initial_},
    SAMPLING_KNOBS(X)
#undef X
};

double sampling_get(const struct sampling *s, enum sampling_knob_id knob) {
    switch (knob) {
#define X(field, ...)                                                                                                  \
    case KNOB_##field: return (double)s->field;
        SAMPLING_KNOBS(X)
#undef X
    case KNOB_COUNT: break;
    }
    return 0;
}

void sampling_set(struct sampling *s, enum sampling_knob_id knob, double value) {
    if (knob >= KNOB_COUNT) return;
    const struct sampling_knob *k = &sampling_knobs[knob];
    if (isnan(value)) value = k->initial;
    value = value < k->low ? k->low : value > k->high ? k->high : value;
    if (k->kind != SAMPLING_FLOAT) value = round(value);
    switch (knob) {
#define X(field, ...)                                                                                                  \
    case KNOB_##field: s->field = (__typeof__(s->field))value; break;
        SAMPLING_KNOBS(X)
#undef X
    case KNOB_COUNT: break;
    }
}

struct sampling sampling_default(void) {
    struct sampling s = {0};
    for (enum sampling_knob_id k = 0; k < KNOB_COUNT; k++) sampling_set(&s, k, sampling_knobs[k].initial);
    return s;
}

const char *sampling_format(const struct sampling *s, enum sampling_knob_id knob, char out[16]) {
    assert(knob < KNOB_COUNT);
    const struct sampling_knob *k = &sampling_knobs[knob];
    double value = sampling_get(s, knob);
    if (k->kind == SAMPLING_FLOAT) snprintf(out, 16, "%.2f", value);
    else if (k->kind == SAMPLING_SEED && value == 0) memcpy(out, "random", sizeof "random");
    else snprintf(out, 16, "%.0f", value);
    return out;
}
