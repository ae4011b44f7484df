// RoPE: the angles of rotary position embeddings, with all kinds of scaling, and what else of queries depends on their
// position. Shared by backends.
#ifndef CONFAB_MODEL_ROPE_H
#define CONFAB_MODEL_ROPE_H

#include "engine/model/model.h"

// Fills frequency [n_rot/2] with radians per position, and returns the factor of cosines and sines. `context`, the
// maximum sequence length, selects one of the two sets of divisors of ROPE_SCALING_LONG.
float rope_frequencies(const struct model *m, enum rope_table table, int context, double *frequency);

// What some layers of a model rotate by.
struct rope_tables {
    double *frequency[ROPE_TABLES]; // [n_rot / 2] radians a position; NULL when none of the layers uses the table
    float magnitude[ROPE_TABLES];
};

// Those of the layers [first, end); allocated in the arena.
void rope_tables_open(struct rope_tables *t, const struct model *m, int first_layer, int end_layer, int context,
                      struct arena *arena);
// Cosine and sine of each pair at a position: out [n_rot / 2, 2].
void rope_rotation(const struct rope_tables *t, enum rope_table table, int n_rot, int position, float *out);

// What queries at a position are multiplied by.
float rope_query_scale(const struct model_spec *s, int position);

#endif
