// Ollama's descriptions of models: those of the list as it has them, the whole of one from its file, on the worker.
#include <stdio.h>

#include "app/base/units.h"
#include "app/server/server_state.h"
#include "engine/base/clock.h"

// An id of 64 digits, as clients expect one: not of the file's bytes, which nobody has read for it.
static void digest(const char *name, uint64_t bytes, char out[65]) {
    uint64_t hash = 14695981039346656037u ^ bytes;
    for (const char *c = name; *c; c++) hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    for (int i = 0; i < 4; i++, hash = hash * 6364136223846793005u + 1)
        snprintf(out + (ptrdiff_t)16 * i, 17, "%016llx", (unsigned long long)hash);
}

static const char *or_empty(const char *text) { return text ? text : ""; }

// "1.1B", as Ollama writes it.
static void parameter_size(uint64_t n, char out[24]) {
    char text[24];
    units_count((double)n, text);
    char *end = out;
    for (const char *c = text; *c; c++)
        if (*c != ' ') *end++ = *c;
    *end = 0;
}

static json_t *details_json(const char *family, const char *format, uint64_t n_parameters) {
    char parameters[24];
    parameter_size(n_parameters, parameters);
    return json_pack("{s:s, s:s, s:s, s:[s], s:s, s:s}", "parent_model", "", "format", "gguf", "family",
                     or_empty(family), "families", or_empty(family), "parameter_size", parameters, "quantization_level",
                     or_empty(format));
}

static const char *format_of(const struct model_info *info) { return info->n_formats ? info->formats[0].name : ""; }

// ---- lists ----

static json_t *tag_json(const char *name, uint64_t bytes, json_t *details) {
    char id[65];
    digest(name, bytes, id);
    return json_pack("{s:s, s:s, s:I, s:s, s:o}", "name", name, "model", name, "size", (json_int_t)bytes, "digest", id,
                     "details", details);
}

json_t *ollama_tag(const struct model_entry *e) {
    char when[40];
    ollama_time(e->last_used * (int64_t)NANOSECONDS, when);
    json_t *tag = tag_json(e->name, e->bytes, details_json(e->family, e->format, e->n_parameters));
    json_object_set_new(tag, "modified_at", json_string(when));
    return tag;
}

json_t *ollama_running(const struct server_model *m) {
    const uint64_t measured = m->memory.total + m->memory.in_place + m->memory.on_devices, now = clock_ns();
    const uint64_t idle = m->n_uses ? 0 : now - m->used;
    char expires[40] = "9999-12-31T23:59:59Z";
    if (m->keep != KEEP_FOREVER)
        ollama_time((int64_t)(clock_wall_ns() + (m->keep > idle ? m->keep - idle : 0)), expires);
    json_t *tag = tag_json(m->name, measured ? measured : m->info->file_bytes,
                           details_json(m->info->family, format_of(m->info), m->info->n_parameters));
    json_object_set_new(tag, "expires_at", json_string(expires));
    json_object_set_new(tag, "size_vram", json_integer((json_int_t)m->memory.on_devices));
    json_object_set_new(tag, "context_length", json_integer(server_model_context(m)));
    return tag;
}

// ---- one ----

static void set_number(json_t *info, const char *family, const char *name, json_int_t value) {
    char key[128];
    snprintf(key, sizeof key, "%.60s.%s", family, name);
    json_object_set_new(info, key, json_integer(value));
}

static json_t *info_json(const struct model_info *m) {
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

static json_t *description_json(const struct model_info *m) {
    char when[40];
    ollama_time((int64_t)clock_wall_ns(), when);
    json_t *capabilities = json_pack("[s]", "completion");
    if (*m->thinking) json_array_append_new(capabilities, json_string("thinking"));
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "modelfile", "", "parameters", "", "template", "",
                     "license", "", "modified_at", when, "details",
                     details_json(m->family, format_of(m), m->n_parameters), "model_info", info_json(m), "capabilities",
                     capabilities);
}

struct job {
    struct exchange *exchange; // NULL: the client is gone
    const struct model_opener *opener;
    char *path; // NULL: the built-in one
    json_t *description;
    struct status status;
};

static void describe(void *context) {
    struct job *j = context;
    struct model_file *m =
        j->path ? j->opener->open_header(j->path, true, &j->status) : j->opener->open(NULL, &j->status);
    if (!m) return;
    j->description = description_json(model_file_info(m));
    model_file_close(m);
}

// The message may begin with the path, which is no client's concern.
static void done(void *context) {
    struct job *j = context;
    struct refusal r;
    if (j->exchange && j->description) {
        reply_json(j->exchange, 200, json_incref(j->description));
    } else if (j->exchange) {
        refuse(&r, 400, "model", "%s", model_problem(j->path, j->status.text));
        reply_refusal(j->exchange, &ollama_chat, &r);
    }
    json_decref(j->description);
    free(j->path), free(j);
}

static void abandon(void *job) { ((struct job *)job)->exchange = NULL; }

static void begin(struct server *s, struct exchange *x, const char *path) {
    struct job *j = xcalloc(1, sizeof *j);
    *j = (struct job){.exchange = x, .opener = s->params.opener, .path = path ? xstrdup(path) : NULL};
    x->owner = j, x->gone = abandon;
    worker_do(s->worker, describe, done, j);
}

const struct field ollama_name_fields[] = {
    {"model", FIELD_TEXT, .place = offsetof(struct ask, model)},
    {"name", FIELD_TEXT, .place = offsetof(struct ask, model)},
    {0},
};

void ollama_show(struct server *s, struct exchange *x) {
    struct refusal r = {0};
    struct ask a = {0};
    json_t *object = route_parse(x, &r);
    const bool read = object && fields_read(object, ollama_name_fields, false, &a, &r);
    const bool named = read && (a.model || refuse(&r, 400, "model", "is missing"));
    const struct server_model *m = named ? server_model_known(s, a.model) : NULL;
    const bool here = m && server_model_is_here(s, m);
    const bool listed = named && !here && server_model_listed(s);
    const struct model_entry *e = listed ? server_model_entry(s, a.model) : NULL;
    if (here) begin(s, x, m->path);
    else if (e) begin(s, x, e->path);
    else if (named && !listed) server_model_wait(s, x, ollama_show);
    else {
        if (named) server_model_refuse(a.model, &r);
        reply_refusal(x, &ollama_chat, &r);
    }
    json_decref(object);
}
