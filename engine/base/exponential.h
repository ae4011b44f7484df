// e^x as every kernel computes it: 2^n × p(r) with n = x / ln 2, rounded, and r = x − n · ln 2, |r| ≤ ln 2 / 2.
//
// There are two roundings of it, each the same in every instruction set. The kernels of engine/cpu contract each step
// into one fused multiply and add. The sampler's rows (engine/serve/row_lanes.h) round every product and sum, because
// their scalar form runs at full speed on processors without FMA; what is drawn depends on its bits.
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
