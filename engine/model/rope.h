// RoPE: the angles of rotary position embeddings, with all kinds of scaling. Shared by backends.
#ifndef CONFAB_MODEL_ROPE_H
#define CONFAB_MODEL_ROPE_H

#include "engine/model/model.h"

// Fills frequency [n_rot/2] with radians per position, and returns the factor of cosines and sines. `context`, the
// maximum sequence length, selects one of the two sets of divisors of ROPE_SCALING_LONG.
float rope_frequencies(const struct model *m, enum rope_table table, int context, double *frequency);

#endif
