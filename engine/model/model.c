#include "engine/model/model.h"

#include <math.h>
#include <string.h>

#include "engine/model/model_spec.h"
#include "engine/model/model_weights.h"

enum { VOCAB_LIMIT = 1 << 21 };

static bool set_vocabulary(struct model_spec *spec, const struct gguf *g, int32_t n_vocab, struct status *st) {
    const struct gguf_tensor *t = gguf_tensor_find(g, "token_embd.weight");
    if (!t) return status_fail(st, STATUS_FORMAT, "%s: missing tensor token_embd.weight", g->path);
    if (t->dims[1] > VOCAB_LIMIT)
        return status_fail(st, STATUS_LIMIT, "%s: vocabulary of %llu tokens is too large (maximum %d)", g->path,
                           (unsigned long long)t->dims[1], VOCAB_LIMIT);
    if (n_vocab && t->dims[1] != (uint64_t)n_vocab)
        return status_fail(st, STATUS_FORMAT, "%s: token_embd.weight has %llu rows for %d tokens", g->path,
                           (unsigned long long)t->dims[1], n_vocab);
    spec->n_vocab = (int)t->dims[1];
    return true;
}

// ---- hyperparameters that follow from tensors ----

static bool check_divisors(const struct weight *w, const char *name, const struct gguf *g, struct status *st) {
    for (int64_t i = 0; w->format && i < w->columns; i++) {
        float divisor;
        memcpy(&divisor, (const uint8_t *)w->data + (size_t)i * sizeof divisor, sizeof divisor);
        if (!isfinite(divisor) || divisor <= 0)
            return status_fail(st, STATUS_FORMAT, "%s: %s: element %lld is not positive: %g", g->path, name,
                               (long long)i, (double)divisor);
    }
    return true;
}

// Long-context scaling is recognised by its divisors: many files do not name it.
static bool set_rope(struct model *m, const struct gguf *g, struct status *st) {
    struct rope_spec *rope = &m->spec.rope;
    const bool has_long = m->rope_factors_long.format, has_short = m->rope_factors_short.format;
    if (!check_divisors(&m->rope_freqs, "rope_freqs.weight", g, st) ||
        !check_divisors(&m->rope_factors_long, "rope_factors_long.weight", g, st) ||
        !check_divisors(&m->rope_factors_short, "rope_factors_short.weight", g, st))
        return false;
    if (!has_long && !has_short && rope->scaling != ROPE_SCALING_LONG) return true;
    if (rope->scaling == ROPE_SCALING_YARN)
        return status_fail(st, STATUS_UNSUPPORTED, "%s: has rope_factors but %s.rope.scaling.type is 'yarn'", g->path,
                           m->spec.family);
    rope->scaling = ROPE_SCALING_LONG;
    return (has_long && has_short) || status_fail(st, STATUS_FORMAT, "%s: missing tensor rope_factors_%s.weight",
                                                  g->path, has_long ? "short" : "long");
}

static bool set_parallel(struct model *m, const struct model_family *family, const struct gguf *g, struct status *st) {
    m->spec.parallel = family->parallel == PARALLEL_ALWAYS;
    if (family->parallel != PARALLEL_WITHOUT_FFN_NORM) return true;
    m->spec.parallel = !m->layers[0].ffn_norm.format;
    for (int i = 1; i < m->spec.n_layer; i++)
        if (!m->layers[i].ffn_norm.format != m->spec.parallel)
            return status_fail(st, STATUS_UNSUPPORTED, "%s: only one of layers 0 and %d has an ffn_norm", g->path, i);
    return true;
}

bool model_open(struct model *m, const struct gguf *g, int32_t n_vocab, struct status *st) {
    *m = (struct model){0};
    if (g->n_tensors == 0) return status_fail(st, STATUS_UNSUPPORTED, "%s: has a vocabulary but no weights", g->path);
    const struct model_family *family = model_family_find(g, st);
    if (!family || !model_spec_read(&m->spec, family, g, &m->arena, st) || !set_vocabulary(&m->spec, g, n_vocab, st) ||
        !model_weights_bind(m, family, g, st) || !set_rope(m, g, st) || !set_parallel(m, family, g, st)) {
        model_close(m);
        return false;
    }
    m->tied = !m->output.format;
    if (m->tied) m->output = m->token_embd;
    return true;
}

void model_close(struct model *m) {
    arena_free(&m->arena);
    *m = (struct model){0};
}
