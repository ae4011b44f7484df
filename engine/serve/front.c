#include "engine/serve/front.h"

#include <math.h>

enum {
    GROUPS = 8,   // of blocks, for every token that is looked for: a bound from their maxima is tight enough
    HALVINGS = 6, // of the range in which a share is reached, before the logits in it are looked at one by one
};

struct front front_all(void) {
    return (struct front){.least = -INFINITY};
}

struct front front_shorter(struct front a, struct front b) {
    bool a_shorter = a.least != b.least ? a.least > b.least : a.ties < b.ties;
    return a_shorter ? a : b;
}

// ---- candidates ----

static bool better(const struct candidate *a, const struct candidate *b) { // without branches, nobody can foretell them
    return (a->logit > b->logit) | ((a->logit == b->logit) & (a->id < b->id));
}

static void swap(struct candidate *a, struct candidate *b) {
    struct candidate t = *a;
    *a = *b;
    *b = t;
}

// Moves those better than the median of three in [low, high) to its front, then the median; returns its place.
static int partition(struct candidate *c, int low, int high) {
    int middle = low + (high - low) / 2, last = high - 1;
    if (better(&c[middle], &c[low])) swap(&c[middle], &c[low]);
    if (better(&c[last], &c[low])) swap(&c[last], &c[low]);
    if (better(&c[last], &c[middle])) swap(&c[last], &c[middle]);
    swap(&c[middle], &c[last]);
    const struct candidate pivot = c[last];
    int at = low;
    for (int i = low; i < last; i++) {
        const struct candidate moving = c[i];
        c[i] = c[at];
        c[at] = moving;
        at += better(&moving, &pivot);
    }
    swap(&c[at], &c[last]);
    return at;
}

// Moves the fewest of the best candidates whose weights together reach `mass` to the front; returns how many, at least
// one. Linear on average.
static int reach(struct candidate *c, int n, double mass) {
    int low = 0, high = n;
    while (low < high) {
        int pivot = partition(c, low, high);
        double left = 0;
        for (int i = low; i < pivot; i++) left += (double)c[i].weight;
        if (left >= mass) high = pivot;
        else if (left + (double)c[pivot].weight >= mass) return pivot + 1;
        else mass -= left + (double)c[pivot].weight, low = pivot + 1;
    }
    return low < 1 ? 1 : low;
}

// The front of which the n candidates are the end.
static struct front front_of(const struct candidate *c, int n) {
    struct front f = {.least = c[0].logit};
    for (int i = 0; i < n; i++) {
        if (c[i].logit < f.least) f = (struct front){.least = c[i].logit};
        f.ties += c[i].logit == f.least;
    }
    return f;
}

static void weigh_candidates(struct candidate *c, int n, float max) {
    for (int i = 0; i < n; i++) c[i].weight = row_exp(c[i].logit - max);
}

// ---- by number ----

// What at least k logits reach: the k-th of the maxima of groups of blocks.
static float bound(const struct row *r, int k, struct candidate *c) {
    int n_blocks = row_blocks(r->n), size = n_blocks / k / GROUPS, n = 0;
    if (size < 1) size = 1;
    for (int at = 0; at < n_blocks; at += size) {
        int end = at + size < n_blocks ? at + size : n_blocks;
        float top = r->block_max[at];
        for (int b = at + 1; b < end; b++) top = r->block_max[b] > top ? r->block_max[b] : top;
        c[n++] = (struct candidate){.logit = top, .weight = 1, .id = at};
    }
    return n < k ? -INFINITY : front_of(c, reach(c, n, k)).least;
}

static void take_top(const struct row *r, struct front_scratch *x, int k) {
    float least = bound(r, k, x->candidates);
    reach(x->candidates, x->kernels->collect(r, least, r->max, x->candidates), k);
}

struct front front_top(const struct row *r, struct front_scratch *x, int k) {
    take_top(r, x, k);
    return front_of(x->candidates, k);
}

void front_list(const struct row *r, struct front_scratch *x, int k) {
    struct candidate *c = x->candidates;
    take_top(r, x, k);
    for (int i = 1; i < k; i++) {
        struct candidate moving = c[i];
        int at = i;
        for (; at > 0 && better(&moving, &c[at - 1]); at--) c[at] = c[at - 1];
        c[at] = moving;
    }
}

// ---- by probability ----

struct front front_share_of(const struct row *r, struct front_scratch *x, int k, float p) {
    double total = 0;
    weigh_candidates(x->candidates, k, r->max);
    for (int i = 0; i < k; i++) total += (double)x->candidates[i].weight;
    return front_of(x->candidates, reach(x->candidates, k, (double)p * total));
}

// The probability of logits above a bound grows as the bound sinks: a range of bounds is narrowed down around where it
// reaches the share. The mass is summed as what is to reach it: where p is nearly 1, rounding would keep it out of
// reach.
struct front front_share(const struct row *r, struct front_scratch *x, float p) {
    double mass = (double)p * x->kernels->weigh(r, 1, -INFINITY, x->block_weight), above = 0, reached = 0;
    float most = r->max, least = most;
    for (float depth = 2; depth < 100 && reached < mass; depth *= 2) {
        most = least, above = reached;
        least = r->max - depth;
        reached = x->kernels->weigh(r, 1, least, x->block_weight);
    }
    for (int i = 0; i < HALVINGS; i++) {
        float middle = least + (most - least) / 2;
        double weight = x->kernels->weigh(r, 1, middle, x->block_weight);
        if (weight < mass) most = middle, above = weight;
        else least = middle;
    }
    int n = x->kernels->collect(r, least, most, x->candidates);
    weigh_candidates(x->candidates, n, r->max);
    return front_of(x->candidates, reach(x->candidates, n, mass - above));
}

struct front front_near(const struct row *r, float p) {
    float least = r->max + (float)front_log((double)p);
    return (struct front){.least = nextafterf(least, -INFINITY)};
}

// ln(m·2^e) = e·ln2 + 2·artanh((m − 1) / (m + 1)), m from √½ to √2.
double front_log(double x) {
    int exponent;
    double m = frexp(x, &exponent), sum = 0;
    if (m < M_SQRT1_2) m *= 2, exponent--;
    double s = (m - 1) / (m + 1);
    for (int k = 19; k > 0; k -= 2) sum = sum * s * s + 1.0 / k;
    return 2 * s * sum + exponent * M_LN2;
}
