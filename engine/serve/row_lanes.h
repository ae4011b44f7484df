// The kernels of row.h for every vector width, in terms of engine/base/lanes_baseline.h, lanes_avx2.h or
// lanes_avx512.h, one of which is included before this.
#include <math.h>

#include "engine/base/exponential.h"

enum { SPAN = 16 * ROW_BLOCK }; // summed in floats; the sums of spans are added in doubles

// n is rounded by adding 1.5·2^23.
INLINE vector exponential(vector x) {
    const vector round = vector_of(12582912.0f);
    vector bounded = vector_max(x, vector_of(-88.0f));
    vector shifted = bounded * vector_of(EXP_LOG2E) + round;
    vector n = shifted - round;
    vector r = bounded - n * vector_of(EXP_LN2_HIGH) + n * vector_of(-EXP_LN2_LOW);
    vector p = r * vector_of(EXP_C6) + vector_of(EXP_C5);
    p = p * r + vector_of(EXP_C4);
    p = p * r + vector_of(EXP_C3);
    p = p * r + vector_of(EXP_C2);
    p = p * r + vector_of(1);
    p = p * r + vector_of(1);
    return vector_above(vector_raised(p, shifted), x, vector_of(EXP_LOW));
}

// Block b; where the row ends inside it, a copy filled up.
INLINE const float *whole_block(const float *logits, int n, int b, float filler, float *copy) {
    const float *block = logits + b * ROW_BLOCK;
    int size = n - b * ROW_BLOCK;
    if (size >= ROW_BLOCK) return block;
    for (int i = 0; i < ROW_BLOCK; i++) copy[i] = i < size ? block[i] : filler;
    return copy;
}

// x − ∞ is −∞, and NaN of what breaks a row only.
static bool maxima(const float *logits, int n, float *block_max) {
    const vector infinity = vector_of(INFINITY);
    vector broken[VECTORS] = {0};
    for (int b = 0; b < row_blocks(n); b++) {
        float copy[ROW_BLOCK];
        const float *p = whole_block(logits, n, b, logits[b * ROW_BLOCK], copy);
        vector top = vector_load(p), odd = top - infinity;
        UNROLL for (int i = VECTOR_FLOATS; i < ROW_BLOCK; i += VECTOR_FLOATS) {
            vector v = vector_load(p + i);
            top = vector_max(top, v);
            odd += v - infinity;
        }
        block_max[b] = vector_largest(top);
        broken[0] += odd;
    }
    return !isnan(lanes_sum(broken));
}

static struct row_sums sums(const struct row *r) {
    struct row_sums total = {0};
    for (int at = 0; at < r->n; at += SPAN) {
        vector weight[VECTORS] = {0}, weighted[VECTORS] = {0};
        int end = row_blocks(r->n - at < SPAN ? r->n : at + SPAN);
        for (int b = at / ROW_BLOCK; b < end; b++) {
            float copy[ROW_BLOCK];
            const float *p = whole_block(r->logits, r->n, b, -INFINITY, copy);
            UNROLL for (int i = 0; i < ROW_BLOCK / VECTOR_FLOATS; i++) {
                vector d = vector_max(vector_load(p + i * VECTOR_FLOATS) - vector_of(r->max), vector_of(-1000.0f));
                vector e = exponential(d);
                weight[i % VECTORS] += e;
                weighted[i % VECTORS] += d * e;
            }
        }
        total.weight += (double)lanes_sum(weight);
        total.weighted += (double)lanes_sum(weighted);
    }
    return total;
}

static double weigh(const struct row *r, float sharpness, float least, float *block_weight) {
    double total = 0;
    for (int b = 0; b < row_blocks(r->n); b++) {
        float copy[ROW_BLOCK];
        vector weight[VECTORS] = {0};
        block_weight[b] = 0;
        if (r->block_max[b] <= least) continue;
        const float *p = whole_block(r->logits, r->n, b, -INFINITY, copy);
        UNROLL for (int i = 0; i < ROW_BLOCK / VECTOR_FLOATS; i++) {
            vector v = vector_load(p + i * VECTOR_FLOATS);
            vector e = exponential((v - vector_of(r->max)) * vector_of(sharpness));
            weight[i % VECTORS] += vector_above(e, v, vector_of(least));
        }
        block_weight[b] = lanes_sum(weight);
        total += (double)block_weight[b];
    }
    return total;
}

static int collect(const struct row *r, float least, float most, struct candidate *out) {
    int n = 0;
    for (int b = 0; b < row_blocks(r->n); b++) {
        float copy[ROW_BLOCK];
        if (r->block_max[b] < least) continue;
        const float *p = whole_block(r->logits, r->n, b, NAN, copy);
        for (int i = 0; i < ROW_BLOCK; i += LANES)
            for (unsigned found = lanes_between(p + i, least, most); found; found &= found - 1) {
                int at = i + __builtin_ctz(found);
                out[n++] = (struct candidate){.logit = p[at], .weight = 1, .id = b * ROW_BLOCK + at};
            }
    }
    return n;
}
