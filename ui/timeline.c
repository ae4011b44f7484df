#include "ui/timeline.h"

#include <math.h>

const double timeline_seconds[TIMELINE_LEVELS] = {0.5, 2, 10, 60, 300, 1800};

static const enum {
    TIMELINE_MEAN,
    TIMELINE_PEAK
} kept_of[SERIES_COUNT] = {
#define X(id, kept) [id] = kept,
    TIMELINE_SERIES(X)
#undef X
};

int64_t timeline_number(int level, double seconds) { return (int64_t)floor(seconds / timeline_seconds[level]); }

static int place(int64_t number) { return (int)(number % TIMELINE_SPANS); }

static void span_add(struct timeline_span *span, const float values[SERIES_COUNT]) {
    for (int s = 0; s < SERIES_COUNT; s++) {
        float *kept = &span->values[s];
        if (!(values[s] >= 0) || span->counts[s] == UINT16_MAX) continue;
        const float n = ++span->counts[s];
        if (kept_of[s] == TIMELINE_MEAN) *kept += (values[s] - *kept) / n;
        else if (values[s] > *kept) *kept = values[s];
    }
}

void timeline_add(struct timeline *t, double seconds, const float values[SERIES_COUNT]) {
    for (int level = 0; level < TIMELINE_LEVELS; level++) {
        const int64_t number = timeline_number(level, seconds);
        struct timeline_span *span = &t->spans[level][place(number)];
        if (span->number != number) *span = (struct timeline_span){.number = number};
        span_add(span, values);
    }
}

float timeline_value(const struct timeline *t, int level, int64_t number, enum timeline_series series) {
    if (number < 0) return NAN;
    const struct timeline_span *span = &t->spans[level][place(number)];
    return span->number == number && span->counts[series] ? span->values[series] : NAN;
}
