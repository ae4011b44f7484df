// Llama and Mistral. Mixtral files bear the same name but hold experts, which are not supported.
#include "engine/model/model.h"

static bool llama_fill(struct model_spec *spec, const struct gguf *g, struct status *st) {
    (void)spec;
    int64_t n_experts = 0;
    if (!gguf_get_int(g, "llama.expert_count", GGUF_OPTIONAL, 0, UINT32_MAX, &n_experts, st)) return false;
    if (n_experts == 0) return true;
    return status_fail(st, STATUS_UNSUPPORTED, "%s: llama.expert_count is %lld; mixtures of experts are not supported",
                       g->path, (long long)n_experts);
}

const struct model_family family_llama = {
    .architecture = "llama",
    .rope = ROPE_NORM, // the export has permuted Q and K for it
    .fill = llama_fill,
};
