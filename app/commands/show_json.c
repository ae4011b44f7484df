// `confab show --json`: members are added, never renamed.
#include <jansson.h>
#include <stdlib.h>

#include "app/base/clean.h"
#include "app/commands/show.h"

static json_t *formats_json(const struct model_info *info) {
    json_t *list = json_array();
    for (int i = 0; i < info->n_formats; i++) {
        const struct format_share *f = &info->formats[i];
        json_array_append_new(list, json_pack("{s:s, s:I, s:I}", "name", f->name, "tensors", (json_int_t)f->tensors,
                                              "bytes", (json_int_t)f->bytes));
    }
    return list;
}

static json_t *file_json(const struct model_info *info) {
    char *path = clean_copy(info->path);
    json_t *object =
        json_pack("{s:s, s:s, s:s, s:b, s:s, s:I, s:I, s:I, s:o}", "path", path, "name", info->name, "family",
                  info->family, "has_weights", info->has_weights, "weight_problem", info->weight_problem, "file_bytes",
                  (json_int_t)info->file_bytes, "parameters", (json_int_t)info->n_parameters, "weight_bytes",
                  (json_int_t)info->weight_bytes, "formats", formats_json(info));
    free(path);
    return object;
}

static json_t *range_json(struct range_info r) { return json_pack("{s:i, s:i}", "least", r.least, "most", r.most); }

static json_t *shape_json(const struct model_info *info) {
    const struct expert_info *e = &info->experts;
    json_t *experts = json_pack("{s:i, s:i, s:i, s:i, s:i}", "count", e->count, "used", e->used, "feed_forward",
                                e->n_ff, "shared_feed_forward", e->n_ff_shared, "layers", e->n_layer);
    json_t *windows = json_pack("{s:i, s:i}", "tokens", info->window, "layers", info->n_windowed);
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:b, s:o, s:o, s:o, s:o}", "layers", info->n_layer, "width",
                     info->n_embd, "heads", info->n_head, "kv_heads", info->n_head_kv, "head_size", info->head_size,
                     "feed_forward", info->n_ff, "context", info->n_context, "tied", info->tied, "heads_by_layer",
                     range_json(info->heads), "kv_heads_by_layer", range_json(info->kv_heads), "experts", experts,
                     "windows", windows);
}

static json_t *rope_json(const struct model_info *info) {
    const struct rope_info *r = &info->rope;
    json_t *rope =
        json_pack("{s:s, s:i, s:i, s:f, s:f, s:s, s:f, s:i}", "pairs", r->pairs ? r->pairs : "", "elements", r->n_rot,
                  "layers", r->n_layer, "base", (double)r->base, "base_in_windows", (double)r->base_sliding, "scaling",
                  r->scaling ? r->scaling : "", "factor", (double)r->factor, "original_context", r->original_context);
    return json_pack("{s:f, s:o}", "rope_base", (double)info->rope_base, "rope", rope);
}

static json_t *special_json(const struct model_info *info) {
    json_t *list = json_array();
    for (int i = 0; i < info->n_special; i++) {
        const struct special_token *t = &info->special[i];
        json_array_append_new(list, json_pack("{s:s, s:i, s:s}", "role", t->role, "id", t->id, "text", t->text));
    }
    return list;
}

static json_t *answers_json(const struct model_info *info) {
    json_t *sampling = json_object();
    for (int k = 0; k < KNOB_COUNT; k++) {
        double value = sampling_get(&info->sampling, (enum sampling_knob_id)k);
        if (info->sampling_given >> k & 1) json_object_set_new(sampling, sampling_knobs[k].key, json_real(value));
    }
    return json_pack("{s:s, s:b, s:b, s:o}", "thinking", info->thinking, "chooses_thinking", info->chooses_thinking,
                     "chooses_effort", info->chooses_effort, "sampling", sampling);
}

static json_t *text_json(const struct model_info *info) {
    json_t *template = json_pack("{s:s, s:b, s:s}", "kind", info->template_kind, "own", info->template_own, "problem",
                                 info->template_problem);
    return json_pack("{s:i, s:s, s:s, s:b, s:o, s:s, s:o}", "vocabulary", info->n_vocab, "tokenizer", info->tokenizer,
                     "pre_tokenizer", info->pre_tokenizer, "adds_bos", info->adds_bos, "special_tokens",
                     special_json(info), "chat_template", info->chat_template, "template", template);
}

static json_t *memory_json(const struct show_memory *memory) {
    json_t *list = json_array();
    for (int i = 0; i < memory->n_contexts; i++) {
        const struct model_memory *m = &memory->at[i];
        json_array_append_new(list, json_pack("{s:i, s:I, s:I, s:I, s:I}", "context", m->context, "weights_bytes",
                                              (json_int_t)m->weights, "kv_bytes", (json_int_t)m->kv, "buffer_bytes",
                                              (json_int_t)m->buffers, "bytes", (json_int_t)m->total));
    }
    return json_pack("{s:I, s:o, s:I, s:i, s:i, s:i}", "kv_bytes_per_token", (json_int_t)memory->token_bytes,
                     "memory", list, "free_memory_bytes", (json_int_t)memory->available, "largest_context",
                     memory->largest_context, "conversation_tokens", SHOW_CONVERSATION, "conversations",
                     memory->conversations);
}

void show_json(const struct model_file *m, const struct show_memory *memory) {
    const struct model_info *info = model_file_info(m);
    json_t *object = file_json(info);
    json_object_update_new(object, shape_json(info));
    json_object_update_new(object, rope_json(info));
    json_object_update_new(object, text_json(info));
    json_object_update_new(object, answers_json(info));
    json_object_update_new(object, memory_json(memory));
    json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(object);
}
