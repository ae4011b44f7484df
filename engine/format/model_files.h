// Model files: whatever a path names that holds a model, as a struct gguf.
#ifndef CONFAB_FORMAT_MODEL_FILES_H
#define CONFAB_FORMAT_MODEL_FILES_H

#include "engine/format/gguf.h"

enum model_files_use {
    MODEL_FILES_RUN,      // all of it
    MODEL_FILES_DESCRIBE, // keys, names, shapes and formats; what would have to be converted may read as zeros
};

// A GGUF file, any part of a split one, a Hugging Face folder, or in such a folder config.json or a *.safetensors file.
// As gguf_open.
bool model_files_open(struct gguf *g, const char *path, enum model_files_use use, struct status *st);

#endif
