// The passes over a row and what is drawn from it: every instruction set against the scalar one to the last bit, and
// against a definition that sorts, over vocabularies up to 200,000, with ties and filters at their ends.
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/panic.h"
#include "engine/serve/front.h"
#include "engine/serve/sampler.h"

static uint32_t roll_state = 7;
static float roll(void) { // in [0, 1)
    roll_state = roll_state * 1664525u + 1013904223u;
    return (float)(roll_state >> 8) * 0x1p-24f;
}
static int roll_below(int n) { return (int)(roll() * (float)n); }

enum shape { SHAPE_SPREAD, SHAPE_PEAKED, SHAPE_TIES, SHAPE_EQUAL, SHAPE_MASKED, SHAPE_EXTREME, SHAPE_COUNT };

static float *row_of(enum shape shape, int n) {
    float *logits = xmalloc((size_t)n * sizeof *logits);
    for (int i = 0; i < n; i++) {
        float v = (roll() + roll() + roll() - 1.5f) * 5;
        if (shape == SHAPE_TIES) v = floorf(v);
        if (shape == SHAPE_EQUAL) v = -3;
        if (shape == SHAPE_EXTREME) v = roll() < 0.5f ? -FLT_MAX : roll() < 0.1f ? FLT_MAX : v * 1e30f;
        logits[i] = v;
    }
    for (int i = 0; shape == SHAPE_PEAKED && i < 12; i++) logits[roll_below(n)] = 12 + 8 * roll();
    const int kept = roll_below(n); // in a masked row, whose first third is masked as a whole
    for (int i = 0; shape == SHAPE_MASKED && i < n; i++)
        if (i != kept && (i < n / 3 || roll() < 0.7f)) logits[i] = -INFINITY;
    return logits;
}

static struct row summary(const struct row_kernels *kernels, const float *logits, int n) {
    struct row r = {.logits = logits, .n = n, .block_max = xmalloc((size_t)row_blocks(n) * sizeof(float))};
    assert_true(kernels->maxima(logits, n, r.block_max));
    r.max = r.block_max[0];
    for (int b = 1; b < row_blocks(n); b++) r.max = fmaxf(r.max, r.block_max[b]);
    return r;
}

static const int sizes[] = {1, 2, 15, 16, 17, 63, 64, 65, 127, 1000, 1025, 5000};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

// ---- kernels ----

static void compare_kernels(const struct row_kernels *a, const struct row_kernels *b, const float *logits, int n) {
    struct row r = summary(a, logits, n), q = summary(b, logits, n);
    size_t blocks = (size_t)row_blocks(n);
    float *wr = xmalloc(blocks * sizeof *wr), *wq = xmalloc(blocks * sizeof *wq);
    struct candidate *cr = xcalloc((size_t)n, sizeof *cr), *cq = xcalloc((size_t)n, sizeof *cq);
    assert_memory_equal(r.block_max, q.block_max, blocks * sizeof(float));
    struct row_sums sr = a->sums(&r), sq = b->sums(&q);
    assert_memory_equal(&sr, &sq, sizeof sr);
    for (int i = 0; i < 4; i++) {
        float sharpness = i == 3 ? FLT_MAX : 0.3f + 2 * roll(), least = i ? logits[roll_below(n)] : -INFINITY;
        double tr = a->weigh(&r, sharpness, least, wr), tq = b->weigh(&q, sharpness, least, wq);
        assert_true(tr == tq);
        assert_memory_equal(wr, wq, blocks * sizeof *wr);
        int n_r = a->collect(&r, least, r.max, cr);
        assert_int_equal(b->collect(&q, least, q.max, cq), n_r);
        assert_memory_equal(cr, cq, (size_t)n_r * sizeof *cr);
    }
    free(r.block_max), free(q.block_max), free(wr), free(wq), free(cr), free(cq);
}

static void test_kernels_agree_to_the_last_bit(void **state) {
    (void)state;
    int compared = 0;
    for (int set = 0; set < INSTRUCTION_SET_COUNT; set++) {
        if (!instruction_set_runs((enum instruction_set)set)) continue;
        for (int shape = 0; shape < SHAPE_COUNT; shape++)
            for (int i = 0; i < N_SIZES; i++) {
                float *logits = row_of((enum shape)shape, sizes[i]);
                compare_kernels(&row_kernels_scalar, row_kernels_for((enum instruction_set)set), logits, sizes[i]);
                free(logits);
                compared++;
            }
    }
    assert_true(compared >= SHAPE_COUNT * N_SIZES);
}

static void test_kernels_keep_to_their_definition(void **state) {
    (void)state;
    for (int i = 0; i < N_SIZES; i++) {
        int n = sizes[i];
        float *logits = row_of(SHAPE_SPREAD, n), least = logits[roll_below(n)], sharpness = 1.7f;
        const struct row_kernels *kernels = row_kernels_for(instruction_set_choose());
        struct row r = summary(kernels, logits, n);
        float *weights = xmalloc((size_t)row_blocks(n) * sizeof *weights);
        double weight = 0, weighted = 0, above = 0, max = (double)r.max;
        for (int k = 0; k < n; k++) {
            double d = (double)logits[k] - max;
            weight += exp(d), weighted += d * exp(d);
            if (logits[k] > least) above += exp(d * (double)sharpness);
            assert_true(logits[k] <= r.block_max[k / ROW_BLOCK]);
        }
        struct row_sums sums = kernels->sums(&r);
        assert_true(fabs(sums.weight - weight) < 1e-5 * weight);
        assert_true(fabs(sums.weighted - weighted) <= 1e-5 * fabs(weighted));
        assert_true(fabs(kernels->weigh(&r, sharpness, least, weights) - above) <= 1e-5 * above);
        free(logits), free(r.block_max), free(weights);
    }
}

static void test_logarithm(void **state) {
    (void)state;
    for (double x = 1e-45; x < 1e40; x *= 1.37)
        assert_true(fabs(front_log(x) - log(x)) <= 1e-13 * fabs(log(x)) + 1e-14);
    assert_true(front_log(1) == 0);
}

// ---- the definition ----

struct ranked {
    float logit;
    int id;
};

static int by_rank(const void *a, const void *b) {
    const struct ranked *x = a, *y = b;
    return x->logit != y->logit ? (x->logit < y->logit) - (x->logit > y->logit) : (x->id > y->id) - (x->id < y->id);
}

static struct ranked *ranking(const float *logits, int n) {
    struct ranked *order = xmalloc((size_t)n * sizeof *order);
    for (int i = 0; i < n; i++) order[i] = (struct ranked){logits[i], i};
    qsort(order, (size_t)n, sizeof *order, by_rank);
    return order;
}

// How many of the ranking the filters keep; where the sum comes so close to the share p that rounding decides, the two
// ends of what is right.
struct kept {
    int least, most;
};

static double share(const struct ranked *order, int i) { return exp((double)order[i].logit - (double)order[0].logit); }

static struct kept kept_of(const struct sampling *s, const struct ranked *order, int n) {
    int k = s->top_k > 0 && s->top_k < n ? s->top_k : n;
    struct kept kept = {k, k};
    double total = 0, mass = 0, slack;
    for (int i = 0; i < k; i++) total += share(order, i);
    slack = 1e-5 * total;
    if (s->top_p < 1) kept.least = 0;
    for (int i = 0; i < k && s->top_p < 1; i++) {
        mass += share(order, i);
        if (!kept.least && mass >= (double)s->top_p * total - slack) kept.least = i + 1;
        if (mass >= (double)s->top_p * total + slack || i + 1 == k) {
            kept.most = i + 1;
            break;
        }
    }
    while (s->min_p > 0 && kept.least > 1 && share(order, kept.least - 1) < (double)s->min_p * (1 - 1e-5)) kept.least--;
    while (s->min_p > 0 && kept.most > 1 && share(order, kept.most - 1) < (double)s->min_p * (1 - 1e-5)) kept.most--;
    return kept;
}

static double unit_after(uint64_t state) { // splitmix64
    uint64_t z = state + 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static double heat(const struct sampling *s, const struct ranked *order, int i) {
    return exp(((double)order[i].logit - (double)order[0].logit) / (double)s->temperature);
}

// Whether a token is what a target of u draws from the first n of the ranking, by id; those equal to the last one come
// behind all others where a cut may have gone through them.
static bool is_drawn_from(const struct sampling *s, const float *logits, const struct ranked *order, int n, double u,
                          int token, bool ties_last) {
    float least = ties_last ? order[n - 1].logit : -INFINITY;
    double total = 0, before = 0, own = 0;
    bool there = false;
    for (int i = 0; i < n; i++) {
        bool is_tie = order[i].logit == least, token_is_tie = logits[token] == least;
        double weight = heat(s, order, i);
        total += weight;
        if (order[i].id == token) own = weight, there = true;
        else if (is_tie == token_is_tie ? order[i].id < token : token_is_tie) before += weight;
    }
    double slack = 2e-5 * total;
    return there && u * total >= before - slack && u * total <= before + own + slack;
}

static bool is_drawn(const struct sampling *s, const float *logits, const struct ranked *order, int n, double u,
                     int token) {
    return is_drawn_from(s, logits, order, n, u, token, true) || is_drawn_from(s, logits, order, n, u, token, false);
}

static void check_draws(const struct sampling *filters, float *logits, int n, int draws) {
    struct ranked *order = ranking(logits, n);
    struct kept kept = kept_of(filters, order, n);
    struct sampler_scratch *x = sampler_scratch_open(n);
    struct sampling s = *filters;
    s.repeat_penalty = 1, s.seed = 1 + (uint32_t)roll_below(1000);
    struct sampler m = sampler_start(&s);
    for (int i = 0; i < draws; i++) {
        double u = unit_after(m.random);
        struct sample out = sampler_next(&m, x, &(struct sampler_input){logits, n, NULL, 0});
        assert_true(out.ok && out.token >= 0 && out.token < n && isfinite(logits[out.token]));
        bool right = false;
        for (int k = kept.least; k <= kept.most && !right; k++) right = is_drawn(&s, logits, order, k, u, out.token);
        if (!right)
            fail_msg("%d tokens, k %d, p %g, m %g: token %d", n, s.top_k, (double)s.top_p, (double)s.min_p, out.token);
        int finite = 0;
        for (int k = 0; k < n && k < SAMPLING_TOP; k++) finite += isfinite(order[k].logit) != 0;
        assert_int_equal(out.n_alternatives, finite);
        for (int a = 0; a < finite; a++) assert_int_equal(out.alternatives[a].id, order[a].id);
    }
    sampler_scratch_close(x);
    free(order);
}

static const struct sampling filters[] = {
    {.top_p = 1},
    {.top_k = 1, .top_p = 1},
    {.top_k = 8, .top_p = 1},
    {.top_k = 40, .top_p = 0.95f, .min_p = 0.05f},
    {.top_k = 40, .top_p = 0.5f},
    {.top_k = 1000, .top_p = 1},
    {.top_k = 1000, .top_p = 0.9f},
    {.top_p = 0},
    {.top_p = 0.3f},
    {.top_p = 0.95f},
    {.top_p = 0.999f, .min_p = 0.01f},
    {.top_p = 1 - FLT_EPSILON / 2}, // less is missing than rounding may take away
    {.top_p = 1, .min_p = 0.1f},
    {.top_p = 1, .min_p = 1},
};
enum { N_FILTERS = sizeof filters / sizeof *filters };

static void test_draws_are_those_of_the_definition(void **state) {
    (void)state;
    const float temperatures[] = {0.1f, 0.7f, 1, 5};
    for (int shape = 0; shape < SHAPE_EXTREME; shape++)
        for (int i = 0; i < N_SIZES; i++)
            for (int f = 0; f < N_FILTERS; f++) {
                float *logits = row_of((enum shape)shape, sizes[i]);
                struct sampling s = filters[f];
                s.temperature = temperatures[roll_below(4)];
                check_draws(&s, logits, sizes[i], 6);
                free(logits);
            }
}

static void test_draws_of_a_large_vocabulary(void **state) {
    (void)state;
    enum { N = 200064 };
    for (int shape = 0; shape < SHAPE_EXTREME; shape++)
        for (int f = 0; f < N_FILTERS; f++) {
            float *logits = row_of((enum shape)shape, N);
            struct sampling s = filters[f];
            s.temperature = 0.8f;
            check_draws(&s, logits, N, 1);
            free(logits);
        }
}

static void test_extremes_draw_something_that_is_there(void **state) {
    (void)state;
    for (int i = 0; i < N_SIZES; i++)
        for (int f = 0; f < N_FILTERS; f++) {
            float *logits = row_of(SHAPE_EXTREME, sizes[i]), max = logits[0];
            struct sampler_scratch *x = sampler_scratch_open(sizes[i]);
            struct sampling s = filters[f];
            s.temperature = 1e-40f, s.repeat_penalty = 1, s.seed = 3;
            struct sampler m = sampler_start(&s);
            for (int k = 1; k < sizes[i]; k++) max = fmaxf(max, logits[k]);
            struct sample out = sampler_next(&m, x, &(struct sampler_input){logits, sizes[i], NULL, 0});
            assert_true(out.ok && logits[out.token] == max);
            sampler_scratch_close(x);
            free(logits);
        }
}

// ---- every processor ----

static void draws_the_same(enum shape shape) {
    static const char *const names[] = {"scalar", "avx2", "avxvnni", "avx512"};
    enum { N = 32003, DRAWS = 8 };
    const char *before = getenv("CONFAB_CPU");
    char *kept = before ? xstrdup(before) : NULL;
    float *logits = row_of(shape, N);
    int32_t history[200];
    for (int i = 0; i < 200; i++) history[i] = roll_below(N);
    for (int f = 0; f < N_FILTERS; f++) {
        struct sample first[DRAWS];
        for (int set = 0; set < 4; set++) {
            if (!instruction_set_runs(instruction_set_named(names[set]))) continue;
            setenv("CONFAB_CPU", names[set], 1);
            struct sampling s = filters[f];
            s.temperature = 1.3f, s.seed = 11, s.repeat_penalty = 1.2f, s.presence_penalty = 0.3f,
            s.penalty_window = 150;
            struct sampler_scratch *x = sampler_scratch_open(N);
            struct sampler m = sampler_start(&s);
            for (int i = 0; i < DRAWS; i++) {
                struct sample out = sampler_next(&m, x, &(struct sampler_input){logits, N, history, 200});
                if (set == 0) first[i] = out;
                assert_true(out.ok);
                assert_int_equal(out.token, first[i].token);
                assert_true(out.probability == first[i].probability && out.entropy == first[i].entropy);
            }
            sampler_scratch_close(x);
        }
    }
    if (kept) setenv("CONFAB_CPU", kept, 1);
    else unsetenv("CONFAB_CPU");
    free(kept);
    free(logits);
}

static void test_every_instruction_set_draws_the_same(void **state) {
    (void)state;
    draws_the_same(SHAPE_PEAKED);
    draws_the_same(SHAPE_MASKED);
}

// ---- rows that hold infinities or NaN ----

static void test_kernels_find_what_breaks_a_row(void **state) {
    (void)state;
    for (int set = 0; set < INSTRUCTION_SET_COUNT; set++) {
        if (!instruction_set_runs((enum instruction_set)set)) continue;
        const struct row_kernels *kernels = row_kernels_for((enum instruction_set)set);
        for (int i = 0; i < N_SIZES; i++)
            for (int k = 0; k < 20; k++) {
                float *logits = row_of(k % 2 ? SHAPE_MASKED : SHAPE_EXTREME, sizes[i]), max[5000 / ROW_BLOCK + 1];
                assert_true(kernels->maxima(logits, sizes[i], max));
                logits[roll_below(sizes[i])] = k % 4 < 2 ? NAN : INFINITY;
                assert_false(kernels->maxima(logits, sizes[i], max));
                logits[roll_below(sizes[i])] = -INFINITY;
                logits[roll_below(sizes[i])] = -NAN;
                assert_false(kernels->maxima(logits, sizes[i], max));
                free(logits);
            }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_agree_to_the_last_bit),
        cmocka_unit_test(test_kernels_keep_to_their_definition),
        cmocka_unit_test(test_logarithm),
        cmocka_unit_test(test_draws_are_those_of_the_definition),
        cmocka_unit_test(test_draws_of_a_large_vocabulary),
        cmocka_unit_test(test_extremes_draw_something_that_is_there),
        cmocka_unit_test(test_every_instruction_set_draws_the_same),
        cmocka_unit_test(test_kernels_find_what_breaks_a_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
