// Stages: the parts of a step, in the order in which they run, and what is counted of each.
#ifndef CONFAB_ENGINE_STAGES_H
#define CONFAB_ENGINE_STAGES_H

// X(enumerator, name)
//   embed    looks up the rows of the tokens
//   project  attention's matrices: queries, keys and values before it, the output after it
//   attend   attention itself, over the KV cache
//   feed     the feed-forward network, or the experts that were chosen
//   logits   the output matrix: a score for every token of the vocabulary
//   sample   draws the next tokens
#define BACKEND_STAGES(X)                                                                                              \
    X(STAGE_EMBED, "embed")                                                                                            \
    X(STAGE_PROJECT, "project")                                                                                        \
    X(STAGE_ATTEND, "attend")                                                                                          \
    X(STAGE_FEED, "feed")                                                                                              \
    X(STAGE_LOGITS, "logits")                                                                                          \
    X(STAGE_SAMPLE, "sample")

enum backend_stage {
#define X(id, name) id,
    BACKEND_STAGES(X)
#undef X
        STAGE_COUNT
};

struct stage_work {
    double seconds;
    double bytes;      // of weights and KV that were read
    double operations; // multiplies and adds
};

// Adds a share of w to sum.
static inline void stage_work_add(struct stage_work *sum, const struct stage_work *w, double share) {
    sum->seconds += w->seconds * share;
    sum->bytes += w->bytes * share;
    sum->operations += w->operations * share;
}

#endif
