// `confab show`: what a model file contains and what memory it needs.
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/clean.h"
#include "app/command.h"
#include "app/model.h"
#include "app/units.h"
#include "engine/base/machine_memory.h"

#define SHOW_FIRST_CONTEXT 2048

static uint64_t memory_at(const struct model_info *info, uint64_t context) {
    return info->weight_bytes + info->kv_bytes_per_token * context;
}

// The tokens of KV that fit beside the weights into the memory that is free; 0 when the weights alone do not.
static uint64_t tokens_that_fit(const struct model_info *info, uint64_t memory) {
    if (!info->kv_bytes_per_token || memory < info->weight_bytes) return 0;
    return (memory - info->weight_bytes) / info->kv_bytes_per_token;
}

// ---- as text ----

static void show_formats(const struct model_info *info) {
    char bytes[24];
    uint64_t all = 0;
    for (int i = 0; i < info->n_formats; i++) all += info->formats[i].bytes;
    for (int i = 0; i < info->n_formats; i++) {
        const struct format_share *f = &info->formats[i];
        printf("  %-10s %s%-6s %5.1f %%  %s in %llu tensors\n", i ? "" : "formats", "", f->name,
               all ? 100.0 * (double)f->bytes / (double)all : 0, units_bytes((double)f->bytes, bytes),
               (unsigned long long)f->tensors);
    }
}

// What the file says of its answers: how thinking is marked and chosen, which knobs it sets.
static void show_answers(const struct model_info *info) {
    if (*info->thinking || info->chooses_thinking || info->chooses_effort)
        printf("  %-10s %s%s%s%s\n", "thinking", *info->thinking ? "marked with " : "not marked", info->thinking,
               info->chooses_thinking ? ", can be turned off and on" : "",
               info->chooses_effort ? ", effort low, medium, high" : "");
    for (int k = 0, n = 0; k < KNOB_COUNT; k++) {
        char value[16];
        if (!(info->sampling_given >> k & 1)) continue;
        if (!n) printf("  %-10s", "sampling");
        printf("%s %s %s", n++ ? "," : "", sampling_knobs[k].key,
               sampling_format(&info->sampling, (enum sampling_knob_id)k, value));
        if (!(info->sampling_given >> k >> 1)) putchar('\n');
    }
}

static void show_shape(const struct model_info *info) {
    char context[32], vocabulary[32];
    printf("  %-10s %d layers, width %d, feed-forward %d%s\n", "shape", info->n_layer, info->n_embd, info->n_ff,
           info->tied ? ", output tied to the embedding" : "");
    printf("  %-10s %d heads of %d, %d of keys and values\n", "attention", info->n_head, info->head_size,
           info->n_head_kv);
    printf("  %-10s %s tokens, rotary base %.10g\n", "context", units_whole((uint64_t)info->n_context, context),
           (double)info->rope_base);
    printf("  %-10s %s tokens, %s%s%s\n", "vocabulary", units_whole((uint64_t)info->n_vocab, vocabulary),
           info->tokenizer, *info->pre_tokenizer ? ", pre-tokenizer " : "", info->pre_tokenizer);
    printf("  %-10s %s\n", "template", info->chat_template);
    show_answers(info);
}

static void show_memory(const struct model_info *info) {
    char bytes[24], tokens[32];
    uint64_t memory = machine_memory_free(), fits = tokens_that_fit(info, memory);
    printf("  %-10s %s a token of conversation\n", "memory", units_bytes((double)info->kv_bytes_per_token, bytes));
    uint64_t last = (uint64_t)info->n_context, context = last < SHOW_FIRST_CONTEXT ? last : SHOW_FIRST_CONTEXT;
    for (;;) {
        printf("  %-10s %12s tokens: %s\n", "", units_whole(context, tokens),
               units_bytes((double)memory_at(info, context), bytes));
        if (context >= last) break;
        context = context * 4 < last ? context * 4 : last;
    }
    if (!memory) return;
    printf("  %-10s %s are free: ", "here", units_bytes((double)memory, bytes));
    if (fits) printf("room for %s tokens in all conversations\n", units_whole(fits, tokens));
    else printf("the weights alone do not fit\n");
}

static void show_text(const struct model_info *info) {
    char bytes[24], count[24], weights[24], *path = clean_copy(info->path);
    printf("%s\n", info->name);
    printf("  %-10s %s, %s\n", "file", path, units_bytes((double)info->file_bytes, bytes));
    free(path);
    if (info->has_weights) {
        printf("  %-10s %s, %s parameters, weights of %s\n", "family", info->family,
               units_count((double)info->n_parameters, count), units_bytes((double)info->weight_bytes, weights));
        show_formats(info);
        show_shape(info);
        show_memory(info);
    } else {
        printf("  %-10s %s, cannot run: %s\n", "family", info->family, info->weight_problem);
        printf("  %-10s %d tokens, %s%s%s\n", "vocabulary", info->n_vocab, info->tokenizer,
               *info->pre_tokenizer ? ", pre-tokenizer " : "", info->pre_tokenizer);
        printf("  %-10s %s\n", "template", info->chat_template);
        show_answers(info);
    }
}

// ---- as JSON ----

static json_t *show_formats_json(const struct model_info *info) {
    json_t *list = json_array();
    for (int i = 0; i < info->n_formats; i++) {
        const struct format_share *f = &info->formats[i];
        json_array_append_new(list, json_pack("{s:s, s:I, s:I}", "name", f->name, "tensors", (json_int_t)f->tensors,
                                              "bytes", (json_int_t)f->bytes));
    }
    return list;
}

static json_t *show_file_json(const struct model_info *info) {
    char *path = clean_copy(info->path);
    json_t *object =
        json_pack("{s:s, s:s, s:s, s:b, s:s, s:I, s:I, s:I, s:o}", "path", path, "name", info->name, "family",
                  info->family, "has_weights", info->has_weights, "weight_problem", info->weight_problem, "file_bytes",
                  (json_int_t)info->file_bytes, "parameters", (json_int_t)info->n_parameters, "weight_bytes",
                  (json_int_t)info->weight_bytes, "formats", show_formats_json(info));
    free(path);
    return object;
}

static json_t *show_shape_json(const struct model_info *info) {
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:b}", "layers", info->n_layer, "width", info->n_embd,
                     "heads", info->n_head, "kv_heads", info->n_head_kv, "head_size", info->head_size, "feed_forward",
                     info->n_ff, "context", info->n_context, "rope_base", (double)info->rope_base, "tied", info->tied);
}

static json_t *show_sampling_json(const struct model_info *info) {
    json_t *object = json_object();
    for (int k = 0; k < KNOB_COUNT; k++)
        if (info->sampling_given >> k & 1)
            json_object_set_new(object, sampling_knobs[k].key,
                                json_real(sampling_get(&info->sampling, (enum sampling_knob_id)k)));
    return object;
}

static json_t *show_text_json(const struct model_info *info) {
    return json_pack("{s:i, s:s, s:s, s:s, s:s, s:b, s:b, s:o}", "vocabulary", info->n_vocab, "tokenizer",
                     info->tokenizer, "pre_tokenizer", info->pre_tokenizer, "chat_template", info->chat_template,
                     "thinking", info->thinking, "chooses_thinking", info->chooses_thinking, "chooses_effort",
                     info->chooses_effort, "sampling", show_sampling_json(info));
}

static json_t *show_memory_json(const struct model_info *info) {
    uint64_t memory = machine_memory_free();
    return json_pack("{s:I, s:I, s:I}", "kv_bytes_per_token", (json_int_t)info->kv_bytes_per_token, "free_memory_bytes",
                     (json_int_t)memory, "tokens_that_fit", (json_int_t)tokens_that_fit(info, memory));
}

static void show_json(const struct model_info *info) {
    json_t *object = show_file_json(info);
    json_object_update_new(object, show_shape_json(info));
    json_object_update_new(object, show_text_json(info));
    json_object_update_new(object, show_memory_json(info));
    json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(object);
}

int command_show(const struct settings *s, int n_arguments, char **arguments) {
    struct status st = {0};
    struct model_file *m = model_open_file(n_arguments ? arguments[0] : s->model, &st);
    if (!m) return command_fail(&st);
    if (s->json) show_json(model_file_info(m));
    else show_text(model_file_info(m));
    model_file_close(m);
    return EXIT_DONE;
}
