#include "engine/serve/speed.h"

#include <math.h>

#define MOST_JUMP 1.5 // times as long as usual: a step that takes longer was disturbed, or comes again

enum {
    FEWEST_ROWS = 16, // of prompts alone; fewer say nothing about many
    FIRST_STEPS = 3,  // whose least counts: the first of its kind may prepare what later ones find
    LATELY = 256      // steps after which what was measured is measured again
};

static void learn(double *value, double sample, double share) {
    *value = *value > 0 ? (1 - share) * *value + share * sample : sample;
}

static int at_most(int n_rows) { return n_rows < SPEED_ROWS ? n_rows : SPEED_ROWS; }

static bool lately(const struct speed *s, const struct speed_step *step) {
    return step->seconds > 0 && s->step - step->learned < LATELY;
}

static void learn_step(const struct speed *s, struct speed_step *step, double seconds) {
    if (!lately(s, step)) *step = (struct speed_step){0};
    if (step->n >= FIRST_STEPS) learn(&step->seconds, fmin(seconds, MOST_JUMP * step->seconds), 0.1);
    else if (step->seconds <= 0 || seconds < step->seconds) step->seconds = seconds;
    if (step->n < FIRST_STEPS) step->n++;
    step->learned = s->step;
}

void speed_learn(struct speed *s, int n_rows, int prompt_rows, double seconds) {
    const double row = seconds / n_rows;
    s->step++;
    if (prompt_rows) {
        if (prompt_rows < n_rows) learn(&s->shared_row, row, 0.3);
        else if (prompt_rows >= FEWEST_ROWS) learn(&s->prompt_row, row, 0.3);
        return;
    }
    learn_step(s, &s->decode[at_most(n_rows)], seconds);
}

double speed_decode(const struct speed *s, int n_rows) {
    n_rows = at_most(n_rows);
    for (int i = n_rows; i > 0; i--)
        if (s->decode[i].seconds > 0) return s->decode[i].seconds;
    for (int i = n_rows; i <= SPEED_ROWS; i++)
        if (s->decode[i].seconds > 0) return s->decode[i].seconds;
    return 0;
}

// far: up to twice the most rows that were tried are taken for no longer; otherwise one more.
static double step_lately(const struct speed *s, const struct speed_step *steps, int n_rows, bool far) {
    if (n_rows > SPEED_ROWS) return 0;
    int below = n_rows, above = n_rows;
    while (below > 0 && !lately(s, &steps[below])) below--;
    while (above <= SPEED_ROWS && !lately(s, &steps[above])) above++;
    if (!below) return 0;
    const double low = steps[below].seconds;
    if (above > SPEED_ROWS) return n_rows <= (far ? 2 * below : below + 1) ? low : 0;
    const double high = steps[above].seconds;
    return above > below ? low + (high - low) * (n_rows - below) / (above - below) : low;
}

double speed_decode_lately(const struct speed *s, int n_rows) { return step_lately(s, s->decode, n_rows, true); }

void speed_learn_beside(struct speed *s, int n_rows, double seconds) {
    if (n_rows > 0 && n_rows <= SPEED_ROWS) learn_step(s, &s->beside[n_rows], seconds);
}

double speed_beside(const struct speed *s, int n_rows) { return step_lately(s, s->beside, n_rows, false); }
