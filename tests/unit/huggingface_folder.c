#include "tests/unit/huggingface_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/format/huggingface.h"
#include "tests/unit/tiny_huggingface.h"

static const char small_llama[] =
    "{\"model_type\": \"llama\", \"hidden_size\": 8, \"num_hidden_layers\": 1, \"num_attention_heads\": 2, "
    "\"intermediate_size\": 16, \"rms_norm_eps\": 1e-5, \"max_position_embeddings\": 64, \"vocab_size\": 260}";

void huggingface_folder_file(const struct huggingface_folder *f, const char *name, const char *text) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    write_whole_file(path, text, strlen(text));
}

struct huggingface_folder huggingface_folder_new(const char *changes) {
    struct huggingface_folder f = {.path = "/tmp/confab-huggingface-XXXXXX"};
    if (!mkdtemp(f.path)) panic("no temporary folder");
    json_t *config = json_loads(small_llama, 0, NULL);
    json_t *other = *changes ? json_loads(changes, 0, NULL) : json_object();
    if (!other || json_object_update(config, other)) panic("no JSON object: %s", changes);
    char *text = json_dumps(config, 0);
    huggingface_folder_file(&f, "config.json", text);
    tiny_huggingface_tokenizer(f.path, HUGGINGFACE_FOLDER_TOKENS);
    free(text);
    json_decref(config);
    json_decref(other);
    return f;
}

bool huggingface_folder_open(struct huggingface_folder *f, struct gguf *g, struct status *st) {
    char path[128];
    snprintf(path, sizeof path, "%s/model.safetensors", f->path);
    safetensors_writer_save(&f->weights, path);
    return huggingface_open(g, f->path, true, st);
}

void huggingface_folder_remove(struct huggingface_folder *f) { tiny_huggingface_remove(f->path); }
