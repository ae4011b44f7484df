// RoPE keys and factors from config.json: the "rope_scaling" of Hugging Face configurations (linear, yarn, longrope,
// llama3), converted to the conventions of GGUF.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/format/huggingface_parts.h"

enum { FACTORS_LIMIT = 4096 };

// A member of the RoPE scaling, under each of the names it has had in configurations.
struct rope_member {
    char text[256];
};

static struct rope_member scaling_member(const char *name) {
    struct rope_member m;
    snprintf(m.text, sizeof m.text, "rope_scaling.%s|rope_parameters.full_attention.%s|rope_parameters.%s", name, name,
             name);
    return m;
}

static bool scaling_number(const struct huggingface_import *f, const char *name, double otherwise, double *out,
                           struct status *st) {
    return huggingface_number(f, scaling_member(name).text, otherwise, out, st);
}

static bool check_positive(const struct huggingface_import *f, const char *name, double value, struct status *st) {
    if (isfinite(value) && value > 0) return true;
    return huggingface_fail_config(f, st, "RoPE scaling: %s: %g is not positive", name, value);
}

// The context size of training, before scaling.
static bool original_context(const struct huggingface_import *f, double *out, struct status *st) {
    char members[512];
    snprintf(members, sizeof members, "%s|original_max_position_embeddings|max_position_embeddings",
             scaling_member("original_max_position_embeddings").text);
    if (!huggingface_number(f, members, 0, out, st)) return false;
    return (*out >= 1 && *out <= UINT32_MAX) ||
           huggingface_fail_config(f, st, "original_max_position_embeddings: %g is out of range (1 to %u)", *out,
                                   UINT32_MAX);
}

static void add_type(const struct huggingface_import *f, const char *type) {
    gguf_add_string(f->g, huggingface_key_name(f, "rope.scaling.type"), span_of(type));
}

static void add_float(const struct huggingface_import *f, const char *name, double value) {
    gguf_add_float(f->g, huggingface_key_name(f, name), (float)value);
}

static bool add_factors(struct huggingface_import *f, const char *name, const float *values, uint64_t n,
                        struct status *st) {
    float *copy = gguf_own_buffer(f->g, n * sizeof *copy, st);
    if (!copy) return false;
    memcpy(copy, values, n * sizeof *copy);
    gguf_add_tensor(f->g, name, &block_formats[BLOCK_F32], 1, &n, copy);
    return true;
}

// ---- kinds ----

static bool add_linear(struct huggingface_import *f, struct status *st) {
    double factor;
    if (!scaling_number(f, "factor", 1, &factor, st) || !check_positive(f, "factor", factor, st)) return false;
    add_type(f, "linear");
    add_float(f, "rope.scaling.factor", factor);
    return true;
}

// Long wavelengths are scaled by the factor, short ones not at all, those in between by a blend.
static bool add_llama3(struct huggingface_import *f, struct status *st) {
    double factor, low, high, original, base;
    float divisors[FACTORS_LIMIT];
    uint32_t n = huggingface_head_size(f) / 2;
    if (!scaling_number(f, "factor", 8, &factor, st) || !scaling_number(f, "low_freq_factor", 1, &low, st) ||
        !scaling_number(f, "high_freq_factor", 4, &high, st) || !original_context(f, &original, st) ||
        !huggingface_number(f, "rope_theta|rope_parameters.rope_theta", 10000, &base, st) ||
        !check_positive(f, "factor", factor, st) || !check_positive(f, "low_freq_factor", low, st) ||
        !check_positive(f, "high_freq_factor", high, st) || !check_positive(f, "rope_theta", base, st))
        return false;
    if (n < 1 || n > FACTORS_LIMIT)
        return huggingface_fail_config(f, st, "RoPE scaling: %u pairs per head is out of range (1 to %d)", n,
                                       FACTORS_LIMIT);
    for (uint32_t i = 0; i < n; i++) {
        double wavelength = 2 * M_PI * pow(base, (double)i / n), share = (original / wavelength - low) / (high - low);
        if (wavelength < original / high) divisors[i] = 1;
        else if (wavelength > original / low) divisors[i] = (float)factor;
        else divisors[i] = (float)(1 / ((1 - share) / factor + share));
    }
    return add_factors(f, "rope_freqs.weight", divisors, n, st);
}

static double magnitude(double factor, double weight) { return factor > 1 ? 0.1 * weight * log(factor) + 1 : 1; }

// The factor of cosines and sines. Readers of GGUF files multiply by magnitude(factor, 1) on their own and divide by
// magnitude(factor, yarn_log_multiplier).
static bool add_yarn_magnitude(const struct huggingface_import *f, double factor, struct status *st) {
    double given, some, all;
    if (!scaling_number(f, "attention_factor", 0, &given, st) || !scaling_number(f, "mscale", 0, &some, st) ||
        !scaling_number(f, "mscale_all_dim", 0, &all, st))
        return false;
    if (given == 0 && some != 0 && all != 0) {
        if (some != all && some != 1) given = magnitude(factor, some) / magnitude(factor, all);
        else add_float(f, "rope.scaling.yarn_log_multiplier", some == all ? 1 : all);
    }
    if (given == 0) return true;
    if (!check_positive(f, "attention_factor", given, st)) return false;
    add_float(f, "rope.scaling.attn_factor", given / magnitude(factor, 1));
    return true;
}

static bool add_yarn(struct huggingface_import *f, struct status *st) {
    double factor, original, fast, slow;
    if (!scaling_number(f, "factor", 1, &factor, st) || !check_positive(f, "factor", factor, st) ||
        !original_context(f, &original, st) || !scaling_number(f, "beta_fast", 32, &fast, st) ||
        !scaling_number(f, "beta_slow", 1, &slow, st))
        return false;
    add_type(f, "yarn");
    add_float(f, "rope.scaling.factor", factor);
    if (!huggingface_has_key(f, "rope.scaling.original_context_length")) // phi3 always has it
        gguf_add_int(f->g, huggingface_key_name(f, "rope.scaling.original_context_length"), (uint32_t)original);
    add_float(f, "rope.scaling.yarn_beta_fast", fast);
    add_float(f, "rope.scaling.yarn_beta_slow", slow);
    return add_yarn_magnitude(f, factor, st);
}

static bool add_long_factors(struct huggingface_import *f, const char *member, const char *name, struct status *st) {
    float factors[FACTORS_LIMIT];
    const json_t *list = huggingface_member(f, scaling_member(member).text);
    size_t n = json_array_size(list);
    if (n < 1 || n > FACTORS_LIMIT)
        return huggingface_fail_config(f, st, "RoPE scaling: %s: expected a list of 1 to %d numbers", member,
                                       FACTORS_LIMIT);
    for (size_t i = 0; i < n; i++) {
        factors[i] = (float)json_number_value(json_array_get(list, i));
        if (!check_positive(f, member, (double)factors[i], st)) return false;
    }
    return add_factors(f, name, factors, n, st);
}

static bool add_long(struct huggingface_import *f, struct status *st) {
    double original, extended, given, scale;
    if (!original_context(f, &original, st) ||
        !huggingface_number(f, "max_position_embeddings", original, &extended, st) ||
        !scaling_number(f, "attention_factor", 0, &given, st))
        return false;
    scale = extended / original;
    if (given == 0) given = scale > 1 ? sqrt(1 + log(scale) / log(original)) : 1;
    if (!check_positive(f, "attention_factor", given, st)) return false;
    add_type(f, "longrope");
    add_float(f, "rope.scaling.attn_factor", given);
    return add_long_factors(f, "long_factor", "rope_factors_long.weight", st) &&
           add_long_factors(f, "short_factor", "rope_factors_short.weight", st);
}

// Takes effect only beyond the model's context size.
static bool add_nothing(struct huggingface_import *f, struct status *st) {
    (void)f, (void)st;
    return true;
}

static const struct {
    const char *type;
    bool (*add)(struct huggingface_import *f, struct status *st);
} kinds[] = {
    {"default", add_nothing}, {"dynamic", add_nothing}, {"linear", add_linear}, {"llama3", add_llama3},
    {"yarn", add_yarn},       {"longrope", add_long},   {"su", add_long},
};

static bool add_scaling(struct huggingface_import *f, struct status *st) {
    char members[512];
    snprintf(members, sizeof members, "%s|%s", scaling_member("rope_type").text, scaling_member("type").text);
    const char *type = huggingface_string(f, members);
    if (!type) return true;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].type, type)) return kinds[i].add(f, st);
    return huggingface_fail_config(f, st, "unknown RoPE scaling '%.32s'", type);
}

// Some families rotate only a part of each head.
static bool add_partial(struct huggingface_import *f, struct status *st) {
    double share;
    if (!huggingface_number(f, "partial_rotary_factor|rope_pct|rotary_pct|rope_parameters.partial_rotary_factor", 1,
                            &share, st))
        return false;
    if (!(share > 0 && share <= 1))
        return huggingface_fail_config(f, st, "partial_rotary_factor: %g is out of range (0 to 1)", share);
    if (share < 1)
        gguf_add_int(f->g, huggingface_key_name(f, "rope.dimension_count"),
                     (uint32_t)(share * huggingface_head_size(f)));
    return true;
}

bool huggingface_add_rope(struct huggingface_import *f, struct status *st) {
    double base;
    if (!huggingface_number(
            f, "rope_theta|rope_parameters.full_attention.rope_theta|rope_parameters.rope_theta|rotary_emb_base", 0,
            &base, st))
        return false;
    if (base > 0 && !huggingface_has_key(f, "rope.freq_base")) add_float(f, "rope.freq_base", base);
    return add_partial(f, st) && add_scaling(f, st);
}
