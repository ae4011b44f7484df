#include "engine/model/model.h"

const struct model_family *const model_families[] = {&family_llama, &family_qwen2, &family_qwen3, NULL};
