// Timeline: figures over time, from half a minute to days, in a fixed size. Each level is a ring of spans of one
// length; a sample counts in every level, so that zooming out costs nothing and forgets nothing early.
//
// The controller adds samples while something moves; a span without any is a gap. Panes read.
#ifndef CONFAB_UI_TIMELINE_H
#define CONFAB_UI_TIMELINE_H

#include <stdint.h>

// X(enumerator, what a span keeps of its samples)
#define TIMELINE_SERIES(X)                                                                                             \
    X(SERIES_DECODE, TIMELINE_MEAN) /* tokens a second */                                                              \
    X(SERIES_PREFILL, TIMELINE_MEAN) /* likewise */                                                                    \
    X(SERIES_LATENCY, TIMELINE_PEAK) /* seconds of the slowest token */                                                \
    X(SERIES_KV, TIMELINE_PEAK) /* share of the pages in use, or cached */                                             \
    X(SERIES_RUNNING, TIMELINE_PEAK) /* answers */                                                                     \
    X(SERIES_OWN, TIMELINE_MEAN) /* share of all processors that confab takes */                                       \
    X(SERIES_MACHINE, TIMELINE_MEAN) /* and all programs */                                                            \
    X(SERIES_POWER, TIMELINE_MEAN) /* watts of the processors */

enum timeline_series {
#define X(id, ...) id,
    TIMELINE_SERIES(X)
#undef X
        SERIES_COUNT
};

enum { TIMELINE_LEVELS = 6, TIMELINE_SPANS = 512 };
extern const double timeline_seconds[TIMELINE_LEVELS]; // of a span, ascending

struct timeline_span {
    int64_t number; // its begin ÷ its length
    float values[SERIES_COUNT];
    uint16_t counts[SERIES_COUNT]; // of samples in it
};

struct timeline {
    struct timeline_span spans[TIMELINE_LEVELS][TIMELINE_SPANS]; // by number
};

int64_t timeline_number(int level, double seconds); // of the span that has this clock_seconds()
// The latest one so far; values that are NaN or negative are not known.
void timeline_add(struct timeline *t, double seconds, const float values[SERIES_COUNT]);
// NaN: there is none, or no longer.
float timeline_value(const struct timeline *t, int level, int64_t number, enum timeline_series series);

#endif
