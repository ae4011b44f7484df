// `confab show`: prints what a model file contains and how much memory the model needs.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/base/clean.h"
#include "app/base/table.h"
#include "app/base/units.h"
#include "app/commands/command.h"
#include "app/commands/show.h"
#include "app/models/model.h"
#include "engine/base/machine_memory.h"
#include "engine/base/panic.h"

#define WIDE 60 // columns

// ---- memory ----

static struct engine_params one_conversation(int tokens, enum kv_type kv_type) {
    return (struct engine_params){
        .context = tokens, .kv_tokens = tokens, .options = {.device = "cpu", .kv_type = kv_type, .quick_start = true}};
}

struct show_memory show_memory_of(const struct model_file *m, enum kv_type kv_type) {
    const struct model_info *info = model_file_info(m);
    struct show_memory out = {
        .kv_type = kv_type, .token_bytes = local_engine_token_bytes(m, kv_type), .available = machine_memory_free()};
    int contexts[SHOW_CONTEXTS] = {4096, 16384, 65536, info->n_context};
    for (int i = 0; info->has_weights && i < SHOW_CONTEXTS; i++) {
        if (i + 1 < SHOW_CONTEXTS && contexts[i] >= info->n_context) continue;
        struct engine_params p = one_conversation(contexts[i], kv_type);
        out.n_contexts += local_engine_memory(m, &p, out.available, &out.at[out.n_contexts], NULL);
    }
    int fits = local_engine_tokens_that_fit(m, kv_type, out.available);
    int chat = info->n_context < SHOW_CONVERSATION ? info->n_context : SHOW_CONVERSATION;
    out.largest_context = fits < info->n_context ? fits : info->n_context;
    out.conversations = chat > 0 ? fits / chat : 0;
    return out;
}

// ---- as text ----

static const char *whole(int n, char out[32]) { return units_whole(n > 0 ? (uint64_t)n : 0, out); }

static void show_file(const struct model_info *info) {
    char *path = clean_copy(info->path), bytes[24], count[24], weights[24];
    heading_print(stdout, info->name);
    fact_printf(stdout, "file", "%s, %s", path, units_bytes((double)info->file_bytes, bytes));
    if (info->n_formats)
        fact_printf(stdout, "family", "%s, %s parameters, %s of weights", info->family,
                    units_count((double)info->n_parameters, count), units_bytes((double)info->weight_bytes, weights));
    else fact_printf(stdout, "family", "%s", info->family);
    if (!info->has_weights) fact_printf(stdout, "cannot run", "%s", info->weight_problem);
    free(path);
}

static void show_formats(const struct model_info *info) {
    uint64_t all = 0;
    int width = output_width(stdout);
    for (int i = 0; i < info->n_formats; i++) all += info->formats[i].bytes;
    for (int i = 0; i < info->n_formats; i++) {
        const struct format_share *f = &info->formats[i];
        char bytes[24], tensors[40] = "";
        if (!width || width >= WIDE)
            snprintf(tensors, sizeof tensors, "  %llu tensors", (unsigned long long)f->tensors);
        fact_printf(stdout, i ? "" : "formats", "%-7s %5.1f %%  %9s%s", f->name,
                    all ? 100.0 * (double)f->bytes / (double)all : 0, units_bytes((double)f->bytes, bytes), tensors);
    }
}

// "8", "2 to 8"
static const char *range(struct range_info r, int shown, char out[40]) {
    if (r.least < r.most) snprintf(out, 40, "%d to %d", r.least, r.most);
    else snprintf(out, 40, "%d", shown);
    return out;
}

static void show_layers(const struct model_info *info) {
    char width[32], ff[32], heads[40], kv_heads[40], window[32];
    if (info->n_ff)
        fact_printf(stdout, "layers", "%d, %s wide, feed-forward %s", info->n_layer, whole(info->n_embd, width),
                    whole(info->n_ff, ff));
    else fact_printf(stdout, "layers", "%d, %s wide", info->n_layer, whole(info->n_embd, width));
    fact_printf(stdout, "attention", "%s heads of %d, %s KV heads", range(info->heads, info->n_head, heads),
                info->head_size, range(info->kv_heads, info->n_head_kv, kv_heads));
    if (info->n_windowed)
        fact_printf(stdout, "windows", "%s tokens, in %d of %d layers", whole(info->window, window), info->n_windowed,
                    info->n_layer);
}

static void show_experts(const struct model_info *info) {
    const struct expert_info *e = &info->experts;
    char ff[32], shared[32], *more = NULL;
    if (!e->count) return;
    if (e->n_ff_shared) more = xasprintf(", plus a shared one, %s wide", whole(e->n_ff_shared, shared));
    fact_printf(stdout, "experts", "%d in %d of %d layers, %d active per token, %s wide%s", e->count, e->n_layer,
                info->n_layer, e->used, whole(e->n_ff, ff), more ? more : "");
    free(more);
}

static void show_rope(const struct model_info *info) {
    const struct rope_info *r = &info->rope;
    char original[32], *sliding = NULL, *layers = NULL;
    if (r->base_sliding != r->base && info->n_windowed)
        sliding = xasprintf(" (%.10g in windows)", (double)r->base_sliding);
    if (r->n_layer < info->n_layer) layers = xasprintf(", in %d of %d layers", r->n_layer, info->n_layer);
    fact_printf(stdout, "positions", "rotary, base %.10g%s, %d of %d elements%s", (double)r->base,
                sliding ? sliding : "", r->n_rot, info->head_size, layers ? layers : "");
    bool scaled = strcmp(r->scaling, "none");
    if (scaled && r->original_context)
        fact_printf(stdout, "", "%s scaling by %.6g from %s tokens", r->scaling, (double)r->factor,
                    whole(r->original_context, original));
    else if (scaled && r->factor != 1) fact_printf(stdout, "", "%s scaling by %.6g", r->scaling, (double)r->factor);
    else if (scaled) fact_printf(stdout, "", "%s scaling", r->scaling);
    free(sliding), free(layers);
}

static void show_special(const struct model_info *info) {
    char *all = xstrdup("");
    for (int i = 0; i < info->n_special; i++) {
        const struct special_token *t = &info->special[i];
        char *longer = xasprintf("%s%s%s %d %s", all, i ? ", " : "", t->role, t->id, t->text);
        free(all);
        all = longer;
    }
    if (*all) fact_printf(stdout, "special", "%s%s", all, info->adds_bos ? "; prompts begin with bos" : "");
    free(all);
}

static void show_text(const struct model_info *info) {
    char vocabulary[32];
    fact_printf(stdout, "vocabulary", "%s tokens, %s%s%s", whole(info->n_vocab, vocabulary), info->tokenizer,
                *info->pre_tokenizer ? ", pre-tokenizer " : "", info->pre_tokenizer);
    show_special(info);
    if (info->template_own)
        fact_printf(stdout, "template", "from the file%s%s", strcmp(info->template_kind, "none") ? ", kind " : "",
                    strcmp(info->template_kind, "none") ? info->template_kind : "");
    else fact_printf(stdout, "template", "%s", info->template_kind);
    if (*info->template_problem) fact_printf(stdout, "", "the file's is not usable: %s", info->template_problem);
}

// How the model marks its thinking, and the sampling that the file recommends.
static void show_answers(const struct model_info *info) {
    char *all = xstrdup("");
    if (*info->thinking || info->chooses_thinking || info->chooses_effort)
        fact_printf(stdout, "thinking", "%s%s%s%s", *info->thinking ? "marked with " : "not marked", info->thinking,
                    info->chooses_thinking ? ", on or off" : "",
                    info->chooses_effort ? ", effort low, medium or high" : "");
    for (int k = 0; k < KNOB_COUNT; k++) {
        char value[16];
        if (!(info->sampling_given >> k & 1)) continue;
        char *longer = xasprintf("%s%s%s %s", all, *all ? ", " : "", sampling_knobs[k].key,
                                 sampling_format(&info->sampling, (enum sampling_knob_id)k, value));
        free(all);
        all = longer;
    }
    if (*all) fact_printf(stdout, "sampling", "%s", all);
    free(all);
}

static void show_needs(const struct show_memory *memory) {
    static const struct table_column columns[] = {
        {"CONTEXT", true, 0}, {"WEIGHTS", true, 3}, {"KV CACHE", true, 4}, {"BUFFERS", true, 2}, {"TOTAL", true, 1}};
    struct table t;
    table_open(&t, columns, sizeof columns / sizeof *columns);
    t.indent = TABLE_INDENT;
    for (int i = 0; i < memory->n_contexts; i++) {
        const struct model_memory *m = &memory->at[i];
        char context[32], weights[24], kv[24], buffers[24], all[24];
        bool fits = !memory->available || m->total <= memory->available;
        table_add(&t, fits ? TABLE_PLAIN : TABLE_DIM, 5,
                  (const char *[]){whole(m->context, context), units_bytes((double)m->weights, weights),
                                   units_bytes((double)m->kv, kv), units_bytes((double)m->buffers, buffers),
                                   units_bytes((double)m->total, all)});
    }
    table_print(&t, stdout);
    table_close(&t);
}

static void show_fit(const struct model_info *info, const struct show_memory *memory) {
    char available[24], context[32], chat[32];
    bool all = memory->largest_context >= info->n_context;
    if (!memory->available) return;
    fact_printf(stdout, "free", "%s%s", units_bytes((double)memory->available, available),
                memory->largest_context ? "" : ": not enough for the weights");
    if (!memory->largest_context) return;
    fact_printf(stdout, "fits", "one conversation of up to %s tokens%s", whole(memory->largest_context, context),
                all ? ", the model's maximum" : "");
    fact_printf(stdout, "", "or %d conversation%s of %s tokens", memory->conversations,
                memory->conversations == 1 ? "" : "s",
                whole(info->n_context < SHOW_CONVERSATION ? info->n_context : SHOW_CONVERSATION, chat));
}

static void show(const struct model_file *m, const struct show_memory *memory) {
    const struct model_info *info = model_file_info(m);
    char context[32], bytes[24];
    show_file(info);
    show_formats(info);
    if (info->n_layer) show_layers(info);
    show_experts(info);
    if (info->n_context) fact_printf(stdout, "context", "%s tokens", whole(info->n_context, context));
    if (info->has_weights) show_rope(info);
    show_text(info);
    show_answers(info);
    if (!memory->n_contexts) return;
    fact_printf(stdout, "memory",
                "for one conversation on the CPU, %s per token:", units_bytes((double)memory->token_bytes, bytes));
    show_needs(memory);
    show_fit(info, memory);
}

int command_show(const struct settings *s, int n_arguments, char **arguments) {
    struct status st = {0};
    struct model_file *m = model_open_text(n_arguments ? arguments[0] : s->model, &st);
    if (!m) return command_fail(&st);
    struct show_memory memory = show_memory_of(m, (enum kv_type)s->kv_type);
    if (s->json) show_json(m, &memory);
    else show(m, &memory);
    model_file_close(m);
    return EXIT_DONE;
}
