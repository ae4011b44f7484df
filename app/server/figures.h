// Figures: what of requests is counted, and all of it with the engine's metrics as Prometheus reads it. Names are those
// of vLLM where the meaning is the same.
#ifndef CONFAB_SERVER_FIGURES_H
#define CONFAB_SERVER_FIGURES_H

#include "engine/metrics.h"

enum { FIGURES_BUCKETS = 21 };

struct histogram {                        // of seconds
    uint64_t counts[FIGURES_BUCKETS + 1]; // the last: beyond all bounds
    double sum;
};

struct figures {
    struct histogram first_token, next_token, whole;
    uint64_t ended[FINISH_ERROR + 1]; // answers, by their reasons
};

// Times by clock_ns. last: of the token before; 0: it is the first.
void figures_token(struct figures *f, uint64_t submitted, uint64_t last, uint64_t at);
void figures_end(struct figures *f, uint64_t submitted, const struct engine_event *end);

struct figures_of {
    const char *model;
    const struct figures *counted;
    const struct engine_metrics *metrics; // NULL: it is not loaded
};
// In Prometheus's text format, each with its model's name; what is unknown is left out. The caller frees.
char *figures_write(const struct figures_of *of, int n, size_t *size);

// All of them, for the manual.
struct figure_info {
    const char *name, *type, *help;
};
extern const struct figure_info figure_table[];
extern const int n_figures;

#endif
