// Distribution: what the last token of an answer was drawn from, and what it would be with other knobs.
//
// Who looks at an answer watches it; the engine then keeps the logits of its last token for them. What comes of these
// is computed by the sampler's own filters, when it is asked for.
#ifndef CONFAB_ENGINE_DISTRIBUTION_H
#define CONFAB_ENGINE_DISTRIBUTION_H

#include "engine/engine.h"

#define DISTRIBUTION_TOP 64 // candidates that are listed

// The filters in the order in which they apply. X(enumerator, knob)
#define DISTRIBUTION_FILTERS(X)                                                                                        \
    X(FILTER_TOP_K, top_k)                                                                                             \
    X(FILTER_TOP_P, top_p)                                                                                             \
    X(FILTER_MIN_P, min_p)                                                                                             \
    X(FILTER_TEMPERATURE, temperature) /* 0 leaves the likeliest */

enum distribution_filter {
#define X(id, ...) id,
    DISTRIBUTION_FILTERS(X)
#undef X
        FILTER_COUNT
};

struct distribution_candidate {
    int32_t id;
    float before, after; // probabilities: the model's own, and those of the draw; after: 0 where it is cut off
    bool penalised;
    char text[20]; // valid UTF-8, cut at a character
};

struct distribution {
    uint64_t conversation;  // of the client
    int n_tokens;           // that the model gives any probability
    int left[FILTER_COUNT]; // of them, after each filter; the last are those that may be drawn
    int n_penalised;
    struct distribution_candidate drawn;                        // the last token itself
    int n;                                                      // that are listed
    struct distribution_candidate candidates[DISTRIBUTION_TOP]; // after penalties, the likeliest first
};

// From its next token on this answer of the client's request is watched, and no other; request 0: none.
void engine_watch(struct engine_client *c, uint64_t request, int answer);
// Of the last token of an answer that was watched, with these knobs. False: there was none yet. May be called at any
// time by whoever reads the client's metrics; never waits for the engine.
bool engine_distribution(struct engine_client *c, const struct sampling *s, struct distribution *out);

#endif
