// Sampler: every filter against a plain definition of it, the reported metrics against exact arithmetic.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/panic.h"
#include "engine/serve/row.h"
#include "engine/serve/sampler.h"

static uint32_t roll_state = 1;
static float roll(void) { // in [0, 1)
    roll_state = roll_state * 1664525u + 1013904223u;
    return (float)(roll_state >> 8) * 0x1p-24f;
}

static float *random_logits(int n, float spread) {
    float *logits = xmalloc((size_t)n * sizeof *logits);
    for (int i = 0; i < n; i++) logits[i] = (roll() + roll() + roll() - 1.5f) * spread;
    return logits;
}

static struct sampling plain(float temperature) { // nothing but the temperature
    return (struct sampling){.temperature = temperature, .top_p = 1, .repeat_penalty = 1, .seed = 9};
}

static struct sample one(struct sampling s, float *logits, int n, const int32_t *tokens, int n_tokens) {
    struct sampler_scratch *x = sampler_scratch_open(n);
    struct sampler m = sampler_start(&s);
    struct sample out = sampler_next(&m, x, &(struct sampler_input){logits, n, tokens, n_tokens});
    sampler_scratch_close(x);
    return out;
}

// How often each token is drawn.
static void draw_many(struct sampling s, float *logits, int n, int *counts, int draws) {
    struct sampler_scratch *x = sampler_scratch_open(n);
    struct sampler m = sampler_start(&s);
    memset(counts, 0, (size_t)n * sizeof *counts);
    for (int i = 0; i < draws; i++) counts[sampler_next(&m, x, &(struct sampler_input){logits, n, NULL, 0}).token]++;
    sampler_scratch_close(x);
}

static void test_exponential_is_accurate(void **state) {
    (void)state;
    double worst = 0;
    for (float x = 0; x > -87; x -= 0.00123f) worst = fmax(worst, fabs(row_exp(x) / exp((double)x) - 1));
    assert_true(worst < 3e-7);
    assert_true(row_exp(0) == 1);
    assert_true(row_exp(-88) == 0 && row_exp(-INFINITY) == 0 && row_exp(-3e38f) == 0);
}

static void test_greedy_takes_the_first_of_the_largest(void **state) {
    (void)state;
    for (int n = 1; n < 300; n += 7) {
        float *logits = random_logits(n, 4);
        int best = 0;
        for (int i = 0; i < n; i++) best = logits[i] > logits[best] ? i : best;
        assert_int_equal(one(plain(0), logits, n, NULL, 0).token, best);
        for (int i = 0; i < n; i++) logits[i] = i >= n / 2 ? 1 : 0; // ties
        assert_int_equal(one(plain(0), logits, n, NULL, 0).token, n / 2);
        free(logits);
    }
}

static void test_reports_the_distribution(void **state) {
    (void)state;
    const int sizes[] = {1, 5, 63, 64, 65, 1000, 50257};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        int n = sizes[k];
        float *logits = random_logits(n, 6);
        struct sampling s = plain(0.8f);
        s.repeat_penalty = 1.5f, s.presence_penalty = 1, s.penalty_window = 8,
        s.top_k = 3; // must not show in the report
        int32_t recent[] = {0, n / 2, n - 1};
        struct sample out = one(s, logits, n, recent, 3);
        double max = -1e30, sum = 0, entropy = 0;
        for (int i = 0; i < n; i++) max = fmax(max, logits[i]);
        for (int i = 0; i < n; i++) sum += exp(logits[i] - max);
        for (int i = 0; i < n; i++) entropy -= exp(logits[i] - max) / sum * log2(exp(logits[i] - max) / sum);
        assert_true(out.ok);
        assert_true(fabs(out.entropy - entropy) < 1e-4 * (1 + entropy));
        assert_true(fabs(out.probability - exp(logits[out.token] - max) / sum) < 1e-6);
        assert_int_equal(out.n_alternatives, n < SAMPLING_TOP ? n : SAMPLING_TOP);
        for (int a = 0; a < out.n_alternatives; a++) { // rank a: exactly a tokens are better
            int32_t id = out.alternatives[a].id;
            int better = 0;
            for (int i = 0; i < n; i++) better += logits[i] > logits[id] || (logits[i] == logits[id] && i < id);
            assert_int_equal(better, a);
            assert_true(fabs(out.alternatives[a].probability - exp(logits[id] - max) / sum) < 1e-6);
        }
        free(logits);
    }
}

static void test_draws_follow_the_probabilities(void **state) {
    (void)state;
    float logits[] = {0, 1, 2, -1, 0.5f};
    int counts[5];
    const float temperatures[] = {0.5f, 1, 2};
    for (int t = 0; t < 3; t++) {
        draw_many(plain(temperatures[t]), logits, 5, counts, 40000);
        double sum = 0;
        for (int i = 0; i < 5; i++) sum += exp(logits[i] / temperatures[t]);
        for (int i = 0; i < 5; i++)
            assert_true(fabs(counts[i] / 40000.0 - exp(logits[i] / temperatures[t]) / sum) < 0.015);
    }
}

// Which tokens may be drawn, by definition: sorted, cut at k, at the mass p of what is left, at the share m of the
// first.
static void allowed_by_definition(const struct sampling *s, const float *logits, int n, bool *allowed) {
    int *order = xmalloc((size_t)n * sizeof *order);
    for (int i = 0; i < n; i++) { // insertion sort: descending, stable
        int at = i;
        for (; at > 0 && logits[order[at - 1]] < logits[i]; at--) order[at] = order[at - 1];
        order[at] = i;
        allowed[i] = false;
    }
    int k = s->top_k > 0 && s->top_k < n ? s->top_k : n;
    double sum = 0, mass = 0;
    for (int i = 0; i < k; i++) sum += exp(logits[order[i]] - logits[order[0]]);
    for (int i = 0; i < k && (i == 0 || s->top_p >= 1 || mass < s->top_p * sum); i++) {
        double share = exp(logits[order[i]] - logits[order[0]]);
        mass += share;
        if (share >= s->min_p) allowed[order[i]] = true;
    }
    free(order);
}

static void test_filters_allow_what_they_say(void **state) {
    (void)state;
    enum { N = 200 };
    const struct sampling filters[] = {{.top_k = 1, .top_p = 1},
                                       {.top_k = 7, .top_p = 1},
                                       {.top_k = 500, .top_p = 1},
                                       {.top_p = 0.5f},
                                       {.top_p = 0.93f},
                                       {.top_p = 0},
                                       {.top_p = 1, .min_p = 0.2f},
                                       {.top_p = 1, .min_p = 1},
                                       {.top_k = 30, .top_p = 0.8f, .min_p = 0.05f},
                                       {.top_k = 20, .top_p = 0.6f},
                                       {.top_p = 0.9f, .min_p = 0.02f},
                                       {.top_k = 1000, .top_p = 0.7f, .min_p = 0.3f}};
    for (size_t f = 0; f < sizeof filters / sizeof *filters; f++) {
        struct sampling s = filters[f];
        s.temperature = 5, s.repeat_penalty = 1, s.seed = 5; // hot: everything allowed turns up
        float *logits = random_logits(N, 3);
        bool allowed[N];
        int counts[N], n_allowed = 0, seen = 0;
        allowed_by_definition(&s, logits, N, allowed);
        draw_many(s, logits, N, counts, 20000);
        for (int i = 0; i < N; i++) {
            if (counts[i]) assert_true(allowed[i]);
            n_allowed += allowed[i], seen += counts[i] > 0;
        }
        assert_int_equal(seen, n_allowed);
        free(logits);
    }
}

static const struct sampling explained[] = {
    {.temperature = 0, .top_p = 1, .repeat_penalty = 1},
    {.temperature = 1, .top_p = 1, .repeat_penalty = 1},
    {.temperature = 1.7f, .top_k = 9, .top_p = 1, .repeat_penalty = 1},
    {.temperature = 0.6f, .top_p = 0.8f, .repeat_penalty = 1},
    {.temperature = 2, .top_k = 30, .top_p = 0.9f, .min_p = 0.1f, .repeat_penalty = 1},
    {.temperature = 1, .top_k = 12, .top_p = 1, .repeat_penalty = 2, .penalty_window = 64},
    {.temperature = 1, .top_k = 12, .top_p = 1, .repeat_penalty = 1, .presence_penalty = -2, .penalty_window = 64}};

// What is explained is what is drawn: as many tokens, each as often.
static void test_explains_the_draws(void **state) {
    (void)state;
    enum { N = 60, DRAWS = 40000 };
    const int32_t tokens[] = {3, 3, 17, 59, 20, 3};
    for (size_t k = 0; k < sizeof explained / sizeof *explained; k++) {
        struct sampling s = explained[k];
        s.seed = 7;
        float *logits = random_logits(N, 3), before[N];
        memcpy(before, logits, sizeof before);
        struct sampler_scratch *x = sampler_scratch_open(N);
        const struct sampler_input in = {logits, N, tokens, 6};
        struct sampler m = sampler_start(&s);
        int counts[N] = {0}, seen = 0;
        for (int i = 0; i < DRAWS; i++) counts[sampler_next(&m, x, &in).token]++;
        struct distribution d;
        const struct sample drawn = sampler_next(&m, x, &in);
        sampler_explain(&s, x, &in, drawn.token, &d);
        assert_memory_equal(logits, before, sizeof before);
        assert_int_equal(d.n_tokens, N);
        assert_int_equal(d.n, N);
        const int left = d.left[FILTER_COUNT - 1];
        double sum_before = 0, sum_after = 0;
        for (int i = 0; i < d.n; i++) {
            const struct distribution_candidate *c = &d.candidates[i];
            sum_before += c->before, sum_after += c->after;
            assert_int_equal(c->after > 0, i < left);
            assert_true(fabs((double)counts[c->id] / DRAWS - c->after) < 0.012);
            assert_int_equal(c->penalised,
                             s.penalty_window && (c->id == 3 || c->id == 17 || c->id == 20 || c->id == 59));
            if (c->id == drawn.token) assert_true(c->after == d.drawn.after && c->before == d.drawn.before);
            seen += counts[c->id] > 0;
        }
        assert_true(fabs(sum_before - 1) < 1e-5 && fabs(sum_after - 1) < 1e-5);
        assert_true(d.drawn.before == drawn.probability && seen <= left);
        sampler_scratch_close(x);
        free(logits);
    }
}

// Of a vocabulary larger than what is listed.
static void test_explains_how_many_each_filter_leaves(void **state) {
    (void)state;
    enum { N = 3000 };
    const struct sampling filters[] = {{.top_p = 1},
                                       {.top_k = 500, .top_p = 1},
                                       {.top_p = 0.93f},
                                       {.top_k = 1000, .top_p = 0.7f, .min_p = 0.3f},
                                       {.top_p = 1, .min_p = 0.01f}};
    for (size_t f = 0; f < sizeof filters / sizeof *filters; f++) {
        struct sampling s = filters[f];
        s.temperature = 1, s.repeat_penalty = 1;
        float *logits = random_logits(N, 3);
        bool *allowed = xcalloc(N, sizeof *allowed);
        struct sampler_scratch *x = sampler_scratch_open(N);
        struct distribution d;
        int n_allowed = 0;
        sampler_explain(&s, x, &(struct sampler_input){logits, N, NULL, 0}, 0, &d);
        allowed_by_definition(&s, logits, N, allowed);
        for (int i = 0; i < N; i++) n_allowed += allowed[i];
        assert_int_equal(d.left[FILTER_TEMPERATURE], n_allowed);
        assert_int_equal(d.left[FILTER_TOP_K], s.top_k ? s.top_k : N);
        assert_int_equal(d.n, DISTRIBUTION_TOP);
        sampler_scratch_close(x);
        free(allowed);
        free(logits);
    }
}

static void test_penalties(void **state) {
    (void)state;
    float logits[] = {2.0f, 1.9f, 1.0f, -1.0f, -1.05f}, before[5];
    memcpy(before, logits, sizeof logits);
    const int32_t tokens[] = {3, 3, 3, 0, 0};
    struct sampling s = plain(0);
    s.penalty_window = 2, s.repeat_penalty = 1.2f;
    assert_int_equal(one(s, logits, 5, tokens, 5).token, 1); // 2 / 1.2 < 1.9
    assert_memory_equal(logits, before, sizeof logits);      // put back
    s.repeat_penalty = 1, s.presence_penalty = 0.05f;
    assert_int_equal(one(s, logits, 5, tokens, 5).token, 0); // once, however often it came
    s.presence_penalty = 0, s.frequency_penalty = 0.06f;
    assert_int_equal(one(s, logits, 5, tokens, 5).token, 1); // twice 0.06
    s.penalty_window = 0;
    assert_int_equal(one(s, logits, 5, tokens, 5).token, 0);
    float negative[] = {-1.0f, -1.1f};
    s = plain(0), s.penalty_window = 64, s.repeat_penalty = 1.2f; // negative scores are multiplied
    assert_int_equal(one(s, negative, 2, (const int32_t[]){0}, 1).token, 1);
}

static void test_seeds(void **state) {
    (void)state;
    enum { N = 1000 };
    float *logits = random_logits(N, 1);
    struct sampler_scratch *x = sampler_scratch_open(N);
    struct sampler_input in = {logits, N, NULL, 0};
    struct sampling s = plain(1), other = plain(1);
    other.seed = 10;
    struct sampler a = sampler_start(&s), b = sampler_start(&s), c = sampler_start(&other);
    int same = 0;
    for (int i = 0; i < 50; i++) {
        int32_t token = sampler_next(&a, x, &in).token;
        assert_int_equal(sampler_next(&b, x, &in).token, token);
        same += sampler_next(&c, x, &in).token == token;
    }
    assert_true(same < 10);
    // A change that leaves the seed goes on in the series; a new seed starts its own.
    s.min_p = 0.0001f;
    sampler_change(&a, &s);
    assert_true(a.random == b.random);
    sampler_change(&a, &other);
    assert_true(a.random == sampler_start(&other).random);
    // Seed 0 is another one each time.
    s.seed = 0;
    assert_true(sampler_start(&s).random != sampler_start(&s).random);
    sampler_scratch_close(x);
    free(logits);
}

static void test_broken_logits_are_noticed(void **state) {
    (void)state;
    const float broken[] = {NAN, -NAN, INFINITY};
    for (int n = 1; n < 200; n += 13)
        for (int k = 0; k < 3; k++)
            for (int at = 0; at < n; at += 5) {
                float *logits = random_logits(n, 3);
                logits[at] = broken[k];
                assert_false(one(plain(1), logits, n, NULL, 0).ok);
                free(logits);
            }
    float extreme[] = {3.4e38f, -3.4e38f, 0, 3.4e38f};
    struct sampling s = plain(0.01f);
    s.repeat_penalty = 0.1f, s.penalty_window = 4;
    for (int i = 0; i < 20; i++) {
        s.seed++;
        struct sample out = one(s, extreme, 4, (const int32_t[]){0, 1}, 2);
        assert_true(out.ok && (out.token == 0 || out.token == 3));
        assert_true(fabsf(out.probability - 0.5f) < 1e-6f && fabsf(out.entropy - 1) < 1e-6f);
    }
}

// A logit of minus infinity takes its token out, and does nothing else to the row.
static void test_masked_logits_are_never_drawn(void **state) {
    (void)state;
    const struct sampling settings[] = {
        plain(0),
        plain(1),
        {.temperature = 1, .top_k = 4, .top_p = 1, .repeat_penalty = 1},
        {.temperature = 1, .top_k = 4, .top_p = 0.999f, .repeat_penalty = 1},
        {.temperature = 5, .top_p = 0.99f, .repeat_penalty = 1},
        {.temperature = 5, .top_p = 1, .min_p = 0.001f, .repeat_penalty = 1},
        {.temperature = 5, .top_p = 1, .repeat_penalty = 10, .presence_penalty = -2, .penalty_window = 9},
        {.temperature = 0, .top_p = 1, .repeat_penalty = 0.1f, .frequency_penalty = -2, .penalty_window = 9}};
    const int32_t tokens[] = {0, 0, 0, 2, 2, 5, 5};
    for (size_t k = 0; k < sizeof settings / sizeof *settings; k++)
        for (uint32_t seed = 1; seed < 200; seed++) {
            float logits[] = {-INFINITY, 1, -INFINITY, 1, -INFINITY, -INFINITY}, before[6];
            memcpy(before, logits, sizeof logits);
            struct sampling s = settings[k];
            s.seed = seed;
            struct sample out = one(s, logits, 6, tokens, 7);
            assert_true(out.ok && (out.token == 1 || out.token == 3));
            assert_memory_equal(logits, before, sizeof logits);
            assert_true(out.probability == 0.5f && out.entropy == 1);
            assert_int_equal(out.n_alternatives, 2);
            assert_int_equal(out.alternatives[0].id, 1);
            assert_int_equal(out.alternatives[1].id, 3);
            assert_true(out.alternatives[1].probability == 0.5f);
        }
}

// Even where penalties take all that is left to its bound.
static void test_penalties_lift_no_masked_logit(void **state) {
    (void)state;
    float logits[] = {-INFINITY, -3e38f};
    struct sampling s = plain(0);
    s.repeat_penalty = 10, s.penalty_window = 2;
    struct sample out = one(s, logits, 2, (const int32_t[]){0, 1}, 2);
    assert_true(out.ok && out.token == 1 && out.probability == 1 && out.entropy == 0);
    assert_true(logits[0] == -INFINITY);
}

static void test_a_row_without_a_finite_logit_is_broken(void **state) {
    (void)state;
    for (int n = 1; n < 200; n += 13) {
        float *logits = random_logits(n, 3);
        for (int i = 0; i < n; i++) logits[i] = -INFINITY;
        assert_false(one(plain(1), logits, n, NULL, 0).ok);
        logits[n / 2] = -1;
        assert_int_equal(one(plain(1), logits, n, NULL, 0).token, n / 2);
        logits[n - 1] = NAN;
        assert_false(one(plain(0), logits, n, NULL, 0).ok);
        free(logits);
    }
}

static void test_knobs_are_kept_in_range(void **state) {
    (void)state;
    struct sampling s = sampling_default();
    char text[16];
    assert_string_equal(sampling_format(&s, KNOB_temperature, text), "0.70");
    assert_string_equal(sampling_format(&s, KNOB_top_k, text), "40");
    assert_string_equal(sampling_format(&s, KNOB_seed, text), "random");
    for (enum sampling_knob_id k = 0; k < KNOB_COUNT; k++) {
        const struct sampling_knob *knob = &sampling_knobs[k];
        sampling_set(&s, k, knob->high + 1e12);
        assert_true(sampling_get(&s, k) == (knob->kind == SAMPLING_FLOAT ? (float)knob->high : knob->high));
        sampling_set(&s, k, knob->low - 1e12);
        assert_true(sampling_get(&s, k) == (knob->kind == SAMPLING_FLOAT ? (float)knob->low : knob->low));
        sampling_set(&s, k, NAN);
        assert_true(fabs(sampling_get(&s, k) - knob->initial) < 1e-6);
        assert_true(knob->initial >= knob->low && knob->initial <= knob->high && knob->step > 0);
    }
    sampling_set(&s, KNOB_seed, 4294967295.0);
    assert_string_equal(sampling_format(&s, KNOB_seed, text), "4294967295");
    s = (struct sampling){
        .temperature = NAN, .top_k = 1 << 30, .repeat_penalty = 0}; // as a careless caller may send it
    struct sampler m = sampler_start(&s);
    assert_true(m.sampling.temperature == 0.7f && m.sampling.top_k == 1000 && m.sampling.repeat_penalty == 0.1f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exponential_is_accurate),
        cmocka_unit_test(test_greedy_takes_the_first_of_the_largest),
        cmocka_unit_test(test_reports_the_distribution),
        cmocka_unit_test(test_draws_follow_the_probabilities),
        cmocka_unit_test(test_filters_allow_what_they_say),
        cmocka_unit_test(test_explains_the_draws),
        cmocka_unit_test(test_explains_how_many_each_filter_leaves),
        cmocka_unit_test(test_penalties),
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_broken_logits_are_noticed),
        cmocka_unit_test(test_masked_logits_are_never_drawn),
        cmocka_unit_test(test_penalties_lift_no_masked_logit),
        cmocka_unit_test(test_a_row_without_a_finite_logit_is_broken),
        cmocka_unit_test(test_knobs_are_kept_in_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
