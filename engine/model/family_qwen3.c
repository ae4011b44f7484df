// Qwen 3: every query and key head is normalised before RoPE; its heads are often wider than n_embd / n_head.
#include "engine/model/model.h"

const struct model_family family_qwen3 = {
    .architecture = "qwen3",
    .rope = ROPE_NEOX,
    .qk_norm = true,
};
