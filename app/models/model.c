#include "app/models/model.h"

#include <stdlib.h>
#include <string.h>

#include "app/base/file_fault.h"
#include "app/guide/guide.h"
#include "app/models/models.h"
#include "app/models/models_used.h"
#include "engine/base/panic.h"
#include "engine/base/paths.h"

static struct model_file *open_built_in(struct status *st) {
    size_t size;
    const void *data = guide_data(&size);
    if (size) return model_file_open_memory("Guide", data, size, guide_template(), st);
    status_fail(st, STATUS_USAGE, "no model (use -m MODEL; this program was built without a built-in one)");
    return NULL;
}

// The guide may also lie in a file of its own, as when it has just been trained.
static struct model_file *fill_guide(struct model_file *m) {
    if (m && !strcmp(model_file_info(m)->name, GUIDE_NAME)) model_file_fill_slots(m, guide_slot, NULL);
    return m;
}

struct model_file *model_open_path(const char *path, struct status *st) {
    if (path) file_fault_watch(path);
    return fill_guide(path ? model_file_open(path, st) : open_built_in(st));
}

struct model_file *model_open_file(const char *word, struct status *st) {
    char *path = NULL;
    if (word && !models_resolve(word, &path, st)) return NULL;
    struct model_file *m = model_open_path(path, st);
    free(path);
    return m;
}

struct model_file *model_open_text(const char *word, struct status *st) {
    char *path = NULL;
    if (word && !models_resolve(word, &path, st)) return NULL;
    if (path) file_fault_watch(path);
    struct model_file *m = fill_guide(path ? model_file_open_header(path, true, st) : open_built_in(st));
    free(path);
    return m;
}

struct backend_options model_backend_options(const struct settings *s) {
    return (struct backend_options){.device = s->gpu_layers ? s->device : "cpu",
                                    .gpu_layers = s->gpu_layers > 0 ? s->gpu_layers : 0,
                                    .kv_type = (enum kv_type)s->kv_type,
                                    .exact = s->exact,
                                    .lock_weights = s->mlock,
                                    .small_pages = s->small_pages};
}

static enum draft_kind draft_kind(const struct settings *s) {
    if (!s->draft || !strcmp(s->draft, "lookup")) return DRAFT_LOOKUP;
    return strcmp(s->draft, "off") ? DRAFT_MODEL : DRAFT_OFF;
}

bool model_resolve_draft(struct settings *s, struct status *st) {
    char *path = NULL;
    if (draft_kind(s) != DRAFT_MODEL) return true;
    const bool found = models_resolve(s->draft, &path, st) && setting_parse(s, SETTING_draft, path ? path : "", st);
    free(path);
    return found;
}

struct engine_params model_engine_params(const struct settings *s) {
    struct engine_params params = {
        .n_threads = s->threads,
        .context = s->context,
        .kv_tokens = s->kv_tokens,
        .draft = draft_kind(s),
        .draft_model = s->draft,
        .hibernation = {.budget = s->kv_disk, .delay = HIBERNATION_DELAY, .worth_seconds = HIBERNATION_WORTH_SECONDS},
        .options = model_backend_options(s)};
    params.options.quick_start = true;
    return params;
}

static bool load(struct loaded_model *m, const struct settings *s, bool quick_start, struct status *st) {
    *m = (struct loaded_model){.file = model_open_file(s->model, st)};
    if (!m->file) return false;
    m->info = model_file_info(m->file);
    struct engine_params params = model_engine_params(s);
    params.options.quick_start = quick_start;
    params.hibernation = (struct engine_hibernation){0}; // no chats
    m->engine = local_engine_open(m->file, &params, st);
    m->client = m->engine ? engine_client_open(m->engine, st) : NULL;
    if (!m->client) model_unload(m);
    else if (s->model) models_used_add(m->info->path);
    return m->client;
}

bool model_load(struct loaded_model *m, const struct settings *s, struct status *st) { return load(m, s, false, st); }

bool model_start(struct loaded_model *m, const struct settings *s, struct status *st) { return load(m, s, true, st); }

char *model_give_up_saved(struct settings *s, struct status *st) {
    size_t size;
    guide_data(&size);
    if (!s->model_saved || !size) return NULL;
    char *path = path_config("config");
    char *text = xasprintf("using the built-in model (use -m or /model to choose another): %s (set in %s)", st->text,
                           path ? path : "the configuration");
    free(path);
    setting_parse(s, SETTING_model, "", NULL);
    s->model_saved = false;
    *st = (struct status){0};
    return text;
}

bool model_start_or_built_in(struct loaded_model *m, struct settings *s, char **lost, struct status *st) {
    const bool started = model_start(m, s, st);
    *lost = started ? NULL : model_give_up_saved(s, st);
    return *lost ? model_start(m, s, st) : started;
}

void model_close_engine(struct loaded_model *m) {
    engine_client_close(m->client);
    engine_close(m->engine);
    m->client = NULL, m->engine = NULL;
}

void model_unload(struct loaded_model *m) {
    model_close_engine(m);
    if (m->file) model_file_close(m->file);
    *m = (struct loaded_model){0};
}

const struct model_opener local_models = {.open = model_open_path,
                                          .open_header = model_file_open_header,
                                          .memory = local_engine_memory,
                                          .open_engine = local_engine_open};
