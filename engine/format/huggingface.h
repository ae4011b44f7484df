// Opens Hugging Face folders: config.json, *.safetensors and a tokenizer, as the GGUF file they would be exported to,
// with the same keys, names and row order, so that no other code depends on where a model came from.
//
// Tensors that need no change are borrowed from the mapped files. These are converted to buffers: vectors (to F32),
// rows in another order (queries and keys of families whose export permutes them, interleaved gate and up), FP8 and NF4
// weights (see huggingface_source.c), MXFP4 blocks (GGUF orders the nibbles differently), and RoPE factors.
#ifndef CONFAB_FORMAT_HUGGINGFACE_H
#define CONFAB_FORMAT_HUGGINGFACE_H

#include "engine/format/gguf.h"

// Guarantees the same as gguf_open. On failure nothing is held and st names the file, the field and the value. Without
// `convert`, matrices that need conversion read as zeros, which takes neither time nor memory.
bool huggingface_open(struct gguf *g, const char *folder, bool convert, struct status *st);

#endif
