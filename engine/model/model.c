#include "engine/model/model.h"

#include <math.h>
#include <string.h>

#include "engine/model/model_spec.h"
#include "engine/model/model_weights.h"

enum { VOCAB_LIMIT = 1 << 21 };

static bool check_whole(const struct gguf *g, struct status *st) {
    int64_t n_parts = 1;
    if (g->n_tensors == 0) return status_fail(st, STATUS_UNSUPPORTED, "%s: holds a vocabulary but no weights", g->path);
    if (!gguf_get_int(g, "split.count", GGUF_OPTIONAL, 0, UINT16_MAX, &n_parts, st)) return false;
    return n_parts <= 1 ||
           status_fail(st, STATUS_UNSUPPORTED, "%s: is one of %lld parts; split models are not supported", g->path,
                       (long long)n_parts);
}

static bool settle_vocab(struct model_spec *spec, const struct gguf *g, int32_t n_vocab, struct status *st) {
    const struct gguf_tensor *t = gguf_tensor_find(g, "token_embd.weight");
    if (!t) return status_fail(st, STATUS_FORMAT, "%s: the tensor token_embd.weight is missing", g->path);
    if (t->dims[1] > VOCAB_LIMIT)
        return status_fail(st, STATUS_LIMIT, "%s: a vocabulary of %llu tokens; at most %d are supported", g->path,
                           (unsigned long long)t->dims[1], VOCAB_LIMIT);
    if (n_vocab && t->dims[1] != (uint64_t)n_vocab)
        return status_fail(st, STATUS_FORMAT, "%s: token_embd.weight has %llu rows for %d tokens", g->path,
                           (unsigned long long)t->dims[1], n_vocab);
    spec->n_vocab = (int)t->dims[1];
    return true;
}

// ---- what the tensors tell ----

static bool check_divisors(const struct weight *w, const char *name, const struct gguf *g, struct status *st) {
    for (int64_t i = 0; w->format && i < w->columns; i++) {
        float divisor;
        memcpy(&divisor, (const uint8_t *)w->data + (size_t)i * sizeof divisor, sizeof divisor);
        if (!isfinite(divisor) || divisor <= 0)
            return status_fail(st, STATUS_FORMAT, "%s: %s has %g at %lld; divisors must be positive", g->path, name,
                               (double)divisor, (long long)i);
    }
    return true;
}

// Long context is told by its divisors: many files do not name the scaling.
static bool settle_rope(struct model *m, const struct gguf *g, struct status *st) {
    struct rope_spec *rope = &m->spec.rope;
    const bool has_long = m->rope_factors_long.format, has_short = m->rope_factors_short.format;
    if (!check_divisors(&m->rope_freqs, "rope_freqs.weight", g, st) ||
        !check_divisors(&m->rope_factors_long, "rope_factors_long.weight", g, st) ||
        !check_divisors(&m->rope_factors_short, "rope_factors_short.weight", g, st))
        return false;
    if (!has_long && !has_short && rope->scaling != ROPE_SCALING_LONG) return true;
    if (rope->scaling == ROPE_SCALING_YARN)
        return status_fail(st, STATUS_UNSUPPORTED, "%s: holds rope_factors though %s.rope.scaling.type is \"yarn\"",
                           g->path, m->spec.family);
    rope->scaling = ROPE_SCALING_LONG;
    return (has_long && has_short) || status_fail(st, STATUS_FORMAT, "%s: the tensor rope_factors_%s.weight is missing",
                                                  g->path, has_long ? "short" : "long");
}

static bool settle_parallel(struct model *m, const struct model_family *family, const struct gguf *g,
                            struct status *st) {
    m->spec.parallel = family->parallel == PARALLEL_ALWAYS;
    if (family->parallel != PARALLEL_WITHOUT_FFN_NORM) return true;
    m->spec.parallel = !m->layers[0].ffn_norm.format;
    for (int i = 1; i < m->spec.n_layer; i++)
        if (!m->layers[i].ffn_norm.format != m->spec.parallel)
            return status_fail(st, STATUS_UNSUPPORTED, "%s: layer 0 and layer %d differ in having an ffn_norm", g->path,
                               i);
    return true;
}

static bool settle(struct model *m, const struct model_family *family, const struct gguf *g, struct status *st) {
    m->tied = !m->output.format;
    if (m->tied) m->output = m->token_embd;
    return settle_rope(m, g, st) && settle_parallel(m, family, g, st);
}

bool model_open(struct model *m, const struct gguf *g, int32_t n_vocab, struct status *st) {
    *m = (struct model){0};
    const struct model_family *family = model_family_find(g, st);
    if (family && check_whole(g, st) && model_spec_read(&m->spec, family, g, &m->arena, st) &&
        settle_vocab(&m->spec, g, n_vocab, st) && model_weights_bind(m, family, g, st) && settle(m, family, g, st))
        return true;
    model_close(m);
    return false;
}

void model_close(struct model *m) {
    arena_free(&m->arena);
    *m = (struct model){0};
}
