// Ollama's descriptions of models.
#include <ctype.h>
#include <stdio.h>

#include "app/base/units.h"
#include "app/server/server_state.h"
#include "engine/base/clock.h"
#include "engine/metrics.h"

// An id of 64 digits, as clients expect one: not of the file's bytes, which nobody has read for it.
static void digest(const struct server_model *m, char out[65]) {
    uint64_t hash = 14695981039346656037u ^ m->info->file_bytes;
    for (const char *c = m->name; *c; c++) hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    for (int i = 0; i < 4; i++, hash = hash * 6364136223846793005u + 1)
        snprintf(out + (ptrdiff_t)16 * i, 17, "%016llx", (unsigned long long)hash);
}

// "1.1B", as Ollama writes it.
static void parameter_size(const struct model_info *info, char out[24]) {
    char text[24];
    units_count((double)info->n_parameters, text);
    char *end = out;
    for (const char *c = text; *c; c++)
        if (*c != ' ') *end++ = *c;
    *end = 0;
}

static json_t *details_json(const struct model_info *info) {
    char parameters[24];
    parameter_size(info, parameters);
    return json_pack("{s:s, s:s, s:s, s:[s], s:s, s:s}", "parent_model", "", "format", "gguf", "family", info->family,
                     "families", info->family, "parameter_size", parameters, "quantization_level",
                     info->n_formats ? info->formats[0].name : "");
}

json_t *ollama_tag(const struct server_model *m, bool running) {
    char id[65], when[40];
    digest(m, id);
    ollama_time(m->loaded * (int64_t)NANOSECONDS, when);
    json_t *tag = json_pack("{s:s, s:s, s:I, s:s, s:o}", "name", m->name, "model", m->name, "size",
                            (json_int_t)m->info->file_bytes, "digest", id, "details", details_json(m->info));
    if (!running) {
        json_object_set_new(tag, "modified_at", json_string(when));
        return tag;
    }
    const struct engine_metrics *metrics = engine_metrics(m->client);
    json_object_set_new(tag, "expires_at", json_string("0001-01-01T00:00:00Z")); // never
    json_object_set_new(tag, "size_vram", json_integer(0));
    json_object_set_new(tag, "context_length", json_integer(metrics->context > 0 ? metrics->context : 0));
    return tag;
}

static void set_number(json_t *info, const char *family, const char *name, json_int_t value) {
    char key[128];
    snprintf(key, sizeof key, "%.60s.%s", family, name);
    json_object_set_new(info, key, json_integer(value));
}

static json_t *model_info_json(const struct model_info *m) {
    json_t *info = json_pack("{s:s, s:s, s:I}", "general.architecture", m->family, "general.basename", m->name,
                             "general.parameter_count", (json_int_t)m->n_parameters);
    set_number(info, m->family, "context_length", m->n_context);
    set_number(info, m->family, "embedding_length", m->n_embd);
    set_number(info, m->family, "block_count", m->n_layer);
    set_number(info, m->family, "feed_forward_length", m->n_ff);
    set_number(info, m->family, "attention.head_count", m->n_head);
    set_number(info, m->family, "attention.head_count_kv", m->n_head_kv);
    set_number(info, m->family, "vocab_size", m->n_vocab);
    return info;
}

json_t *ollama_description(const struct server_model *m) {
    char when[40];
    ollama_time(m->loaded * (int64_t)NANOSECONDS, when);
    json_t *capabilities = json_pack("[s]", "completion");
    if (*m->info->thinking) json_array_append_new(capabilities, json_string("thinking"));
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "modelfile", "", "parameters", "", "template", "",
                     "license", "", "modified_at", when, "details", details_json(m->info), "model_info",
                     model_info_json(m->info), "capabilities", capabilities);
}
