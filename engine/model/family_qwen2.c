// Qwen 2 and 2.5: a llama with biases on queries, keys and values.
#include "engine/model/model.h"

const struct model_family family_qwen2 = {
    .architecture = "qwen2",
    .rope = ROPE_NEOX,
    .qkv_bias = true,
};
