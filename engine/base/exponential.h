// The exponential of all kernels: e^x = 2^n × p(r) with n = round(x / ln 2) and r = x − n · ln 2, |r| ≤ ln 2 / 2.
//
// It has two roundings, each the same in every instruction set. Kernels of engine/cpu use a fused multiply-add for each
// step. The sampler (engine/serve/row_lanes.h) rounds every product and sum, because its scalar form must be fast on
// processors without FMA; sampled tokens depend on its bits.
#ifndef CONFAB_BASE_EXPONENTIAL_H
#define CONFAB_BASE_EXPONENTIAL_H

#define EXP_LOW      -87.0f
#define EXP_HIGH     88.0f
#define EXP_LOG2E    1.44269504f
#define EXP_LN2_HIGH 0.693359375f
#define EXP_LN2_LOW  -2.12194440e-4f
// p(r) = Σ r^k / k!, k = 0 … 6: relative error about 1e-7.
#define EXP_C2 (1.0f / 2)
#define EXP_C3 (1.0f / 6)
#define EXP_C4 (1.0f / 24)
#define EXP_C5 (1.0f / 120)
#define EXP_C6 (1.0f / 720)

#endif
