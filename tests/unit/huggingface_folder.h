// A Hugging Face folder in the making, for tests of single parts of it: a small llama's config.json, changed at will, a
// tokenizer, and whatever tensors are put in.
#ifndef CONFAB_TESTS_HUGGINGFACE_FOLDER_H
#define CONFAB_TESTS_HUGGINGFACE_FOLDER_H

#include "engine/format/gguf.h"
#include "tests/unit/safetensors_writer.h"

enum { HUGGINGFACE_FOLDER_TOKENS = 260 };

struct huggingface_folder {
    char path[40];
    struct safetensors_writer weights; // what the next opening writes
};

// `changes`: a JSON object whose members replace those of config.json; "" for none.
struct huggingface_folder huggingface_folder_new(const char *changes);
// Writes a file of the folder.
void huggingface_folder_file(const struct huggingface_folder *f, const char *name, const char *text);
// Writes model.safetensors, emptying f->weights, and opens the folder.
bool huggingface_folder_open(struct huggingface_folder *f, struct gguf *g, struct status *st);
void huggingface_folder_remove(struct huggingface_folder *f);

#endif
