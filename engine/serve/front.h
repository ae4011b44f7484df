// Fronts: the likeliest tokens of a row, as the filters of the sampler cut them off.
//
// Tokens are ordered by their logits, the greatest first, ties by id. Whatever a filter keeps is a front of that order,
// and so is what several keep; a bound and a number of ties say which. Linear in the vocabulary, nothing is sorted.
#ifndef CONFAB_SERVE_FRONT_H
#define CONFAB_SERVE_FRONT_H

#include <stdint.h>

#include "engine/serve/row.h"

struct front { // all logits above `least`, and the first `ties` of those equal to it
    float least;
    int ties;
};

struct front_scratch {
    const struct row_kernels *kernels;
    float *block_weight;          // [row_blocks(n)]
    struct candidate *candidates; // [n]
};

struct front front_all(void);
struct front front_shorter(struct front a, struct front b);

// The first k, 1 ≤ k ≤ n; they are the candidates then, in no order.
struct front front_top(const struct row *r, struct front_scratch *x, int k);
// The same with the candidates in order.
void front_list(const struct row *r, struct front_scratch *x, int k);
// The fewest of the first k, which front_top has made candidates, that have at least the share p of the probability of
// these k; at least one.
struct front front_share_of(const struct row *r, struct front_scratch *x, int k, float p);
// The fewest of all that have at least the share p of all probability; at least one.
struct front front_share(const struct row *r, struct front_scratch *x, float p);
// Those whose probability is at least the share p of the likeliest one's, 0 < p ≤ 1.
struct front front_near(const struct row *r, float p);

// ln x for x > 0, the same on every machine.
double front_log(double x);

#endif
