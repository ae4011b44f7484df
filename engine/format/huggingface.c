#include "engine/format/huggingface.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/panic.h"
#include "engine/format/huggingface_parts.h"
#include "engine/format/huggingface_tokenizer.h"

static bool has_file(const struct huggingface_import *f, const char *name) {
    char *path = xasprintf("%s/%s", f->path, name);
    bool exists = access(path, F_OK) == 0;
    free(path);
    return exists;
}

static bool check_folder(const struct huggingface_import *f, struct status *st) {
    const char *path = f->g->path;
    if (!has_file(f, "config.json"))
        return status_fail(st, STATUS_FORMAT,
                           "%s: folder has no config.json, not a Hugging Face model (name a file for a GGUF model)",
                           path);
    if (has_file(f, "model.safetensors.index.json") || has_file(f, "model.safetensors")) return true;
    if (has_file(f, "pytorch_model.bin") || has_file(f, "pytorch_model.bin.index.json"))
        return status_fail(st, STATUS_UNSUPPORTED, "%s: pytorch_model.bin is not supported (needs model.safetensors)",
                           path);
    return status_fail(st, STATUS_FORMAT, "%s: has neither model.safetensors nor model.safetensors.index.json", path);
}

static bool check_quantisation(const struct huggingface_import *f, struct status *st) {
    static const char *const known[] = {"fp8", "fbgemm_fp8", "compressed-tensors", "modelopt", "bitsandbytes", "mxfp4"};
    const char *method = huggingface_string(f, "quantization_config.quant_method");
    if (!method) return true;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i], method)) return true;
    return status_fail(st, STATUS_UNSUPPORTED, "%s: unsupported quantisation method '%.32s'", f->g->path, method);
}

static bool find_family(struct huggingface_import *f, struct status *st) {
    char supported[320];
    const json_t *text = json_object_get(f->config, "text_config");
    f->text = json_is_object(text) ? text : f->config;
    const char *type = json_string_value(json_object_get(f->text, "model_type"));
    if (!type) type = json_string_value(json_object_get(f->config, "model_type"));
    if (!type) return huggingface_fail_config(f, st, "missing model_type");
    if ((f->family = huggingface_family_find(type))) return true;
    huggingface_family_list(supported, sizeof supported);
    return status_fail(st, STATUS_UNSUPPORTED, "%s: unsupported model type '%.32s' (supported: %s)", f->g->path, type,
                       supported);
}

static bool open_folder(struct huggingface_import *f, struct status *st) {
    return check_folder(f, st) && huggingface_read_json(f, "config.json", &f->config, st) && find_family(f, st) &&
           check_quantisation(f, st) && safetensors_open(&f->files, f->path, st) && huggingface_add_config(f, st) &&
           huggingface_add_rope(f, st) && huggingface_tokenizer_add(f->g, f->path, st) &&
           huggingface_add_tensors(f, st);
}

bool huggingface_open(struct gguf *g, const char *folder, bool convert, struct status *st) {
    struct huggingface_import f = {.path = folder, .g = g, .convert = convert};
    gguf_begin(g, folder);
    bool done = open_folder(&f, st);
    if (done) {
        for (int i = 0; i < f.files.n_mappings; i++) gguf_own_mapping(g, f.files.mappings[i]);
        f.files.n_mappings = 0;
    }
    if (f.pool) thread_pool_close(f.pool);
    json_decref(f.config);
    safetensors_close(&f.files);
    if (done) return gguf_finish(g, st);
    gguf_close(g);
    return false;
}
