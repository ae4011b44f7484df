#version 450
// Which experts a row goes to, and what each counts for: a work group a row. See enum expert_gating; of equal scores
// the first expert is chosen. Where a score is NaN, the weights are.
#include "common.glsl"

const uint THREADS = 64;
layout(local_size_x = 64) in;
#include "reduce.glsl"

const uint SOFTMAX = 1, SIGMOID = 2, SOFTMAX_CHOSEN = 3; // enum expert_gating
layout(constant_id = 0) const uint COUNT = 8;
layout(constant_id = 1) const uint USED = 2;
layout(constant_id = 2) const uint GATING = SOFTMAX;
layout(constant_id = 3) const bool NORMALISES = false;
layout(constant_id = 4) const bool BIASED = false; // only to choose

layout(push_constant, scalar) uniform Push {
    Floats logits; // [rows, stride]
    Floats bias;
    Ints choices; // [rows, USED] pairs of an expert and the bits of its weight
    uint stride;
    float scale;
};

shared float scores[COUNT], ranks[COUNT], chosen[USED];
shared uint best;

void main() {
    const uint t = gl_LocalInvocationIndex, row = gl_WorkGroupID.x;
    const float lowest = uintBitsToFloat(0xff800000);
    float most = lowest, sum = 0, unsound = 0;
    for (uint i = t; i < COUNT; i += THREADS) most = max(most, scores[i] = logits.v[row * stride + i]);
    most = group_max(most);
    for (uint i = t; i < COUNT; i += THREADS) {
        if (GATING == SOFTMAX) sum += scores[i] = exp(scores[i] - most);
        if (GATING == SIGMOID) scores[i] = 1 / (1 + exp(-scores[i]));
    }
    sum = group_sum(sum);
    for (uint i = t; i < COUNT; i += THREADS) {
        if (GATING == SOFTMAX) scores[i] /= sum;
        ranks[i] = BIASED ? scores[i] + bias.v[i] : scores[i];
        if (isnan(ranks[i])) unsound = 1;
    }
    unsound = group_max(unsound);
    for (uint k = 0; k < USED; k++) {
        float own = lowest;
        for (uint i = t; i < COUNT; i += THREADS) own = max(own, ranks[i]);
        const float top = group_max(own);
        if (t == 0) best = COUNT - 1;
        barrier();
        for (uint i = t; i < COUNT; i += THREADS)
            if (ranks[i] == top) atomicMin(best, i);
        barrier();
        if (t == 0) {
            chosen[k] = unsound > 0 ? uintBitsToFloat(0x7fc00000) : scores[best];
            ranks[best] = lowest;
            choices.v[2 * (row * USED + k)] = int(best);
        }
        barrier();
    }
    if (t > 0) return;
    if (GATING == SOFTMAX_CHOSEN) {
        float highest = chosen[0], all = 0;
        for (uint k = 1; k < USED; k++) highest = max(highest, chosen[k]);
        for (uint k = 0; k < USED; k++) all += chosen[k] = exp(chosen[k] - highest);
        for (uint k = 0; k < USED; k++) chosen[k] /= all;
    }
    float all = 0;
    for (uint k = 0; k < USED; k++) all += chosen[k];
    if (!NORMALISES) all = 1;
    else if (!(all >= 6.103515625e-5)) all = 6.103515625e-5;
    for (uint k = 0; k < USED; k++) choices.v[2 * (row * USED + k) + 1] = floatBitsToInt(chosen[k] / all * scale);
}
