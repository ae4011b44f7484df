// Rope: the angles of rotary position embedding, with every scaling that files ask for. Backends share it.
#ifndef CONFAB_MODEL_ROPE_H
#define CONFAB_MODEL_ROPE_H

#include "engine/model/model.h"

// Fills frequency [n_rot/2] with radians a position for this table, for sequences that may have `context` tokens (which
// of two sets of divisors a model of ROPE_SCALING_LONG takes), and returns what cosines and sines are multiplied by.
float rope_frequencies(const struct model *m, enum rope_table table, int context, double *frequency);

#endif
