// Opens a model by path, in any supported format, as a struct gguf.
#ifndef CONFAB_FORMAT_MODEL_FILES_H
#define CONFAB_FORMAT_MODEL_FILES_H

#include "engine/format/gguf.h"

enum model_files_use {
    MODEL_FILES_RUN,      // everything
    MODEL_FILES_DESCRIBE, // keys, names, shapes and formats; tensors that need conversion may read as zeros
};

// `path`: a GGUF file, any part of a split one, a Hugging Face folder, or config.json or a *.safetensors file in one.
// Otherwise like gguf_open.
bool model_files_open(struct gguf *g, const char *path, enum model_files_use use, struct status *st);

#endif
