// Hugging Face folders: config.json, *.safetensors and a tokenizer, presented as the GGUF file that they would be
// exported to: the same keys, names and orders of rows, so that nothing else needs to know where a model came from.
//
// Tensors that need no change are borrowed from the mapped files. Made into buffers of their own are: vectors (F32),
// rows in another order (queries and keys of families whose export permutes them, interleaved gate and up), FP8 and NF4
// weights (see huggingface_source.c), MXFP4 blocks (GGUF has another order of nibbles), factors of RoPE.
#ifndef CONFAB_FORMAT_HUGGINGFACE_H
#define CONFAB_FORMAT_HUGGINGFACE_H

#include "engine/format/gguf.h"

// Afterwards the same holds as after gguf_open. On failure nothing is held and st names the file, the field and the
// value. Without `convert` matrices that would have to be made read as zeros, which costs no time and no memory.
bool huggingface_open(struct gguf *g, const char *folder, bool convert, struct status *st);

#endif
