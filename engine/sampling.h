// Sampling: the table of knobs that control how the next token is drawn, and the result of a draw.
#ifndef CONFAB_ENGINE_SAMPLING_H
#define CONFAB_ENGINE_SAMPLING_H

#include <stdbool.h>
#include <stdint.h>

#define SAMPLING_TOP 8 // alternatives reported with each token

enum sampling_kind { SAMPLING_FLOAT, SAMPLING_INT, SAMPLING_SEED };

// X(field, option and configuration key, label on screen, kind, low, high, step, default, help)
#define SAMPLING_KNOBS(X)                                                                                              \
    X(temperature, "temp", "temp", SAMPLING_FLOAT, 0, 5, 0.05, 0.7, "randomness; 0: always the most likely token")     \
    X(top_p, "top-p", "top-p", SAMPLING_FLOAT, 0, 1, 0.01, 0.95,                                                       \
      "keep the most likely tokens up to a total probability of N; 1: all")                                            \
    X(top_k, "top-k", "top-k", SAMPLING_INT, 0, 1000, 5, 40, "keep the N most likely tokens; 0: all")                  \
    X(min_p, "min-p", "min-p", SAMPLING_FLOAT, 0, 1, 0.01, 0.05,                                                       \
      "drop tokens below N times the highest probability; 0: none")                                                    \
    X(repeat_penalty, "repeat", "repeat", SAMPLING_FLOAT, 0.1, 3, 0.01, 1,                                             \
      "divide the scores of recent tokens by N; 1: off")                                                               \
    X(seed, "seed", "seed", SAMPLING_SEED, 0, 4294967295.0, 1, 0,                                                      \
      "seed of the random numbers; 0: a new one for each answer")                                                      \
    X(presence_penalty, "presence", "pres", SAMPLING_FLOAT, -2, 2, 0.05, 0,                                            \
      "subtract N from the score of every recent token; 0: off")                                                       \
    X(frequency_penalty, "frequency", "freq", SAMPLING_FLOAT, -2, 2, 0.05, 0,                                          \
      "subtract N from a token's score per recent occurrence; 0: off")                                                 \
    X(penalty_window, "window", "window", SAMPLING_INT, 0, 4096, 16, 64,                                               \
      "number of recent tokens that the penalties apply to")

struct sampling {
    float temperature, top_p, min_p, repeat_penalty, presence_penalty, frequency_penalty;
    int32_t top_k, penalty_window;
    uint32_t seed;
};

enum sampling_knob_id {
#define X(field, ...) KNOB_##field,
    SAMPLING_KNOBS(X)
#undef X
        KNOB_COUNT
};

struct sampling_knob {
    const char *key, *label, *help;
    enum sampling_kind kind;
    double low, high, step, initial;
};
extern const struct sampling_knob sampling_knobs[KNOB_COUNT];

struct sampling sampling_default(void);
double sampling_get(const struct sampling *s, enum sampling_knob_id knob);
void sampling_set(struct sampling *s, enum sampling_knob_id knob, double value); // clamped to [low, high]
// "0.70", "40"; "random" for a seed of 0.
const char *sampling_format(const struct sampling *s, enum sampling_knob_id knob, char out[16]);

// ---- the result ----

struct sample {
    bool ok;       // false: the logits contain NaN or +∞, or all are −∞; the rest is invalid
    bool accepted; // a draft had guessed the token
    int32_t token;
    float probability, entropy; // entropy in bits
    int n_alternatives;         // not counting masked tokens
    struct {
        int32_t id;
        float probability;
    } alternatives[SAMPLING_TOP]; // most likely first
};

#endif
