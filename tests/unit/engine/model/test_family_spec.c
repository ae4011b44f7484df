// Families: specs from keys, binding of fused and separate tensors, and RoPE angles with every scaling.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/model/rope.h"
#include "tests/unit/tiny_families.h"

struct opened {
    void *data;
    struct gguf gguf;
    struct model model;
};

static struct opened open_shape(struct tiny_shape shape) {
    struct opened o;
    struct status st = {0};
    size_t size;
    o.data = tiny_shape_bytes(&shape, &size);
    if (!gguf_open_memory(&o.gguf, "tiny", o.data, size, &st) || !model_open(&o.model, &o.gguf, 0, &st))
        fail_msg("%s", st.text);
    return o;
}

static void close_shape(struct opened *o) {
    model_close(&o->model);
    gguf_close(&o->gguf);
    free(o->data);
}

static void check_shape_rejected(const char *why, struct tiny_shape shape) {
    struct gguf g;
    struct model m;
    struct status st = {0};
    size_t size;
    void *data = tiny_shape_bytes(&shape, &size);
    if (!gguf_open_memory(&g, "tiny", data, size, &st)) fail_msg("%s", st.text);
    assert_false(model_open(&m, &g, 0, &st));
    if (!strstr(st.text, why)) fail_msg("\"%s\" is not \"%s\"", st.text, why);
    gguf_close(&g);
    free(data);
}

static struct tiny_shape family_named(const char *name) {
    for (int i = 0; i < tiny_family_count; i++)
        if (!strcmp(tiny_families[i].name, name)) return tiny_families[i];
    fail_msg("no tiny model is called %s", name);
    return tiny_families[0];
}

static void keys_of_families_are_checked(void **state) {
    (void)state;
    struct tiny_shape s = family_named("mixtral");
    s.used = s.experts + 1;
    check_shape_rejected("llama.expert_used_count: 9 is out of range (1 to 8)", s);
    s = family_named("mixtral-singly");
    s.n_ff_expert = 96;
    s.parts |= PART_SHARED_EXPERT, s.n_ff_shared = 16;
    check_shape_rejected("unexpected tensor blk.0.ffn_down_shexp.weight in a llama model", s);
    s = family_named("gemma3");
    s.keys[1] = (struct tiny_key)TINY_BOOLS("attention.sliding_window_pattern", "101");
    check_shape_rejected("gemma3.attention.sliding_window_pattern has 3 values for 7 layers", s);
    s = family_named("gpt-oss");
    s.parts &= ~(unsigned)PART_SINKS;
    check_shape_rejected("missing tensor blk.0.attn_sinks.weight", s);
    s = family_named("deepseek");
    s.keys[1] = (struct tiny_key)TINY_INT("expert_shared_count", 3);
    check_shape_rejected("blk.1.ffn_gate_shexp.weight is [80, 80, 1, 1], expected [80, 120]", s);
    s = family_named("stablelm");
    s.n_rot = 26;
    check_shape_rejected("stablelm.rope.dimension_count: 26 is not an even number up to 24", s);
}

static void windows_follow_pattern_and_family(void **state) {
    (void)state;
    static const struct {
        const char *name, *slides; // a character per layer
        struct tiny_key key;
    } cases[] = {
        {"gpt-oss", "1010", {.name = NULL}},
        {"gpt-oss", "1101", TINY_INT("attention.sliding_window_pattern", 3)},
        {"gemma3", "1111101", {.name = NULL}},
        {"gemma3", "0010001", TINY_BOOLS("attention.sliding_window_pattern", "0010001")},
        {"olmo3", "11101", {.name = NULL}},
        {"olmo2", "000", {.name = NULL}},
        {"qwen3", "000", TINY_INT("attention.sliding_window", 8)}, // a family without windows
        {"phi3-short", "11", TINY_INT("attention.sliding_window", 8)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tiny_shape s = family_named(cases[i].name);
        int n_keys = 0;
        while (s.keys[n_keys].name) n_keys++;
        s.keys[n_keys] = cases[i].key;
        struct opened o = open_shape(s);
        assert_int_equal(o.model.spec.n_layer, strlen(cases[i].slides));
        for (int k = 0; k < o.model.spec.n_layer; k++) {
            const struct layer_spec *l = &o.model.spec.layers[k];
            assert_int_equal(l->window > 0, cases[i].slides[k] == '1');
            assert_int_equal(l->rope, cases[i].slides[k] == '1' ? ROPE_TABLE_SLIDING : ROPE_TABLE_FULL);
        }
        close_shape(&o);
    }
}

static void scales_follow_the_family(void **state) {
    (void)state;
    struct opened o = open_shape(family_named("granite"));
    assert_true(o.model.spec.logit_scale == 0.2f && o.model.spec.attention_scale == 0.1f);
    close_shape(&o);
    o = open_shape(family_named("command-r"));
    assert_true(o.model.spec.logit_scale == 0.25f && o.model.spec.parallel);
    close_shape(&o);
    o = open_shape(family_named("gemma2-wide"));
    assert_true(fabsf(o.model.spec.attention_scale - 1 / sqrtf(8)) < 1e-7f); // 32 wide, 4 heads, not of 16
    assert_true(o.model.spec.attention_softcap == 50 && o.model.spec.logit_softcap == 30);
    assert_true(o.model.spec.embedding_scale == sqrtf(32));
    close_shape(&o);
    o = open_shape(family_named("mistral3"));
    assert_true(o.model.spec.position_scale == 0.3f && o.model.spec.position_scale_length == 16);
    close_shape(&o);
}

// ---- binding ----

static void fused_tensors_are_bound_in_pieces(void **state) {
    (void)state;
    struct opened o = open_shape(family_named("phi3"));
    const struct model_layer *l = &o.model.layers[1];
    const uint8_t *qkv = gguf_tensor_find(&o.gguf, "blk.1.attn_qkv.weight")->data;
    const uint8_t *up = gguf_tensor_find(&o.gguf, "blk.1.ffn_up.weight")->data;
    const size_t row = 96 * sizeof(float); // 4 heads and 2 of keys and values, of 24
    assert_ptr_equal(l->attn_q.data, qkv);
    assert_ptr_equal(l->attn_k.data, qkv + 96 * row);
    assert_ptr_equal(l->attn_v.data, qkv + 144 * row);
    assert_int_equal(l->attn_q.rows, 96);
    assert_int_equal(l->attn_v.rows, 48);
    assert_ptr_equal(l->ffn_gate.data, up);
    assert_ptr_equal(l->ffn_up.data, up + 116 * row);
    assert_int_equal(l->ffn_up.rows, 116);
    close_shape(&o);
}

static void experts_are_bound_one_by_one(void **state) {
    (void)state;
    struct opened o = open_shape(family_named("qwen3moe-fused"));
    const struct expert_weights *e = &o.model.layers[1].experts;
    const uint8_t *fused = gguf_tensor_find(&o.gguf, "blk.1.ffn_gate_up_exps.weight")->data;
    const size_t row = 64 * sizeof(float); // 6 experts of 40
    assert_ptr_equal(e->gate[5].data, fused + 5 * 80 * row);
    assert_ptr_equal(e->up[5].data, fused + (5 * 80 + 40) * row);
    assert_int_equal(e->up[5].rows, 40);
    assert_int_equal(e->down[5].rows, 64);
    assert_int_equal(e->down[5].columns, 40);
    close_shape(&o);
    o = open_shape(family_named("mixtral-singly"));
    e = &o.model.layers[1].experts;
    assert_ptr_equal(e->gate[4].data, gguf_tensor_find(&o.gguf, "blk.1.ffn_gate.4.weight")->data);
    assert_ptr_equal(e->down[0].data, gguf_tensor_find(&o.gguf, "blk.1.ffn_down.0.weight")->data);
    close_shape(&o);
}

// ---- RoPE ----

// A model with only RoPE.
static struct model rope_model(struct rope_spec rope) {
    struct model m = {.spec.rope = rope};
    m.spec.rope.magnitude = 1.25f;
    return m;
}

static double plain(double base, int n_rot, double pair) { return pow(base, -2 * pair / n_rot); }

static void check_near(double a, double b) {
    if (!(fabs(a - b) <= 1e-9 * fabs(b))) fail_msg("%.12g is not %.12g", a, b);
}

static void linear_scaling_divides_angles(void **state) {
    (void)state;
    struct model m =
        rope_model((struct rope_spec){.n_rot = 6, .base = {10000, 500}, .scaling = ROPE_SCALING_LINEAR, .factor = 4});
    double frequency[3];
    assert_true(rope_frequencies(&m, ROPE_TABLE_FULL, 0, frequency) == 1.25f);
    check_near(frequency[0], 0.25);
    check_near(frequency[1], 0.25 / cbrt(10000));
    check_near(frequency[2], 0.25 / cbrt(10000.0 * 10000));
    assert_true(rope_frequencies(&m, ROPE_TABLE_SLIDING, 0, frequency) == 1);
    check_near(frequency[0], 1);
    check_near(frequency[2], 1 / cbrt(500.0 * 500));
    m.spec.rope.scales_sliding = true;
    assert_true(rope_frequencies(&m, ROPE_TABLE_SLIDING, 0, frequency) == 1.25f);
    check_near(frequency[2], 0.25 / cbrt(500.0 * 500));
}

static void divisors_of_the_file_are_used(void **state) {
    (void)state;
    static const float divisors[] = {1, 2, 8}, longer[] = {3, 5, 7}, shorter[] = {1, 1.5f, 2};
    const struct block_format *f = &block_formats[BLOCK_F32];
    struct model m = rope_model((struct rope_spec){.n_rot = 6, .base = {10000, 10000}, .factor = 1});
    double frequency[3];
    m.rope_freqs = (struct weight){.format = f, .data = divisors, .rows = 1, .columns = 3};
    rope_frequencies(&m, ROPE_TABLE_FULL, 0, frequency);
    for (int i = 0; i < 3; i++) check_near(frequency[i], plain(10000, 6, i) / divisors[i]);
    m.rope_freqs = (struct weight){0};
    m.rope_factors_long = (struct weight){.format = f, .data = longer, .rows = 1, .columns = 3};
    m.rope_factors_short = (struct weight){.format = f, .data = shorter, .rows = 1, .columns = 3};
    m.spec.rope.scaling = ROPE_SCALING_LONG, m.spec.rope.original_context = 4096;
    rope_frequencies(&m, ROPE_TABLE_FULL, 4096, frequency);
    for (int i = 0; i < 3; i++) check_near(frequency[i], plain(10000, 6, i) / (double)shorter[i]);
    rope_frequencies(&m, ROPE_TABLE_FULL, 4097, frequency);
    for (int i = 0; i < 3; i++) check_near(frequency[i], plain(10000, 6, i) / longer[i]);
}

// The last pair, from 0, that makes at least `turns` turns within the original context.
static int last_pair_turning(const struct rope_spec *r, double turns) {
    int pair = 0;
    while (r->original_context * plain(r->base[0], r->n_rot, pair + 1) / (2 * acos(-1.0)) >= turns) pair++;
    return pair;
}

static void yarn_divides_what_hardly_turns(void **state) {
    (void)state;
    static const struct rope_spec specs[] = {
        {.n_rot = 64,
         .base = {150000, 150000},
         .factor = 32,
         .original_context = 4096,
         .beta_fast = 32,
         .beta_slow = 1},
        {.n_rot = 128, .base = {1e6, 1e6}, .factor = 4, .original_context = 32768, .beta_fast = 32, .beta_slow = 1},
        {.n_rot = 128, .base = {10000, 10000}, .factor = 16, .original_context = 4096, .beta_fast = 8, .beta_slow = 2},
    };
    for (size_t k = 0; k < sizeof specs / sizeof *specs; k++) {
        struct model m = rope_model(specs[k]);
        const struct rope_spec *r = &m.spec.rope;
        double frequency[64];
        m.spec.rope.scaling = ROPE_SCALING_YARN;
        assert_true(rope_frequencies(&m, ROPE_TABLE_FULL, 0, frequency) == 1.25f);
        int low = last_pair_turning(r, r->beta_fast), high = last_pair_turning(r, r->beta_slow) + 1;
        if (k == 0) assert_true(low == 8 && high == 18); // of gpt-oss
        for (int i = 0; i < r->n_rot / 2; i++) {
            double kept = i <= low ? 1 : i >= high ? 0 : (double)(high - i) / (high - low);
            double whole = plain(r->base[0], r->n_rot, i);
            check_near(frequency[i], kept * whole + (1 - kept) * whole / r->factor);
        }
    }
}

static void magnitudes_follow_the_factor(void **state) {
    (void)state;
    struct opened o = open_shape(family_named("gpt-oss"));
    assert_true(fabsf(o.model.spec.rope.magnitude - 1.3465736f) < 1e-6f);
    assert_true(o.model.spec.rope.scales_sliding);
    close_shape(&o);
    o = open_shape(family_named("mistral3")); // a log multiplier of 1 cancels it
    assert_true(o.model.spec.rope.magnitude == 1);
    close_shape(&o);
    o = open_shape(family_named("olmo3"));
    assert_true(fabsf(o.model.spec.rope.magnitude - 1.2079442f * 1.2079442f) < 1e-6f);
    assert_false(o.model.spec.rope.scales_sliding);
    close_shape(&o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_of_families_are_checked),  cmocka_unit_test(windows_follow_pattern_and_family),
        cmocka_unit_test(scales_follow_the_family),      cmocka_unit_test(fused_tensors_are_bound_in_pieces),
        cmocka_unit_test(experts_are_bound_one_by_one),  cmocka_unit_test(linear_scaling_divides_angles),
        cmocka_unit_test(divisors_of_the_file_are_used), cmocka_unit_test(yarn_divides_what_hardly_turns),
        cmocka_unit_test(magnitudes_follow_the_factor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
