// Model name: titles and short names of models for display. The caller frees both.
#ifndef CONFAB_APP_MODEL_NAME_H
#define CONFAB_APP_MODEL_NAME_H

#include "engine/model_file.h"

char *model_title(const struct model_info *info);      // "TinyLlama 1.1B Q4_0": with the format of most of its bytes
char *model_short_name(const struct model_info *info); // "TinyLlama", "Llama 3.2", "guide"

#endif
