// Opening and closing the local engine: its parts, and the device that it computes on.
#include <assert.h>
#include <stdlib.h>

#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "engine/base/machine_memory.h"
#include "engine/base/panic.h"
#include "engine/base/paths.h"
#include "engine/base/system.h"
#include "engine/model/opened_model.h"
#include "engine/serve/drafter_file.h"
#include "engine/serve/hibernate_key.h"
#include "engine/serve/local_engine_state.h"
#include "engine/serve/memory_size.h"
#include "engine/serve/placement_choose.h"
#include "engine/serve/registry.h"

static struct scheduler *open_placed(struct local_engine *e, const struct engine_params *p,
                                     const struct placement_plan *plan, const struct memory_size *size,
                                     struct status *st) {
    e->kv_bytes = (uint64_t)size->n_pages * size->page_bytes;
    struct scheduler_params params = {
        .placement = *plan,
        .model = &e->file->model,
        .n_threads = p->n_threads,
        .n_pages = size->n_pages,
        .context = size->context,
        .asked_context = size->asked_context,
        .prefill_chunk = p->prefill_chunk,
        .drafts = p->draft != DRAFT_OFF,
        .options = p->options,
        .hibernation = {.store = e->store,
                        .model_key = e->store ? hibernate_model_key(e->file, size->asked_context) : 0,
                        .delay = p->hibernation.delay,
                        .worth_seconds = p->hibernation.worth_seconds},
        .metrics = &e->metrics,
        .events = local_engine_events(e)};
    if (plan->parts[plan->n - 1].ops != &cpu_backend) params.fallback = placement_on(&cpu_backend, 0);
    return scheduler_open(&params, st);
}

static void log_placement(const struct placement_plan *plan) {
    char name[16];
    for (int i = 0; i < plan->n && plan->n > 1; i++) {
        placement_part_name(&plan->parts[i], name);
        log_info("engine", "%s computes layers %d to %d", name, plan->parts[i].first_layer,
                 plan->parts[i].end_layer - 1);
    }
}

// On the CPU where the devices that nobody asked for fail. What does not fit is no such failure.
static struct scheduler *open_scheduler(struct local_engine *e, const struct engine_params *p,
                                        const struct backend_ops *ops, struct status *st) {
    const uint64_t available = machine_memory_free();
    struct placement_plan plan = placement_on(ops, 0);
    struct memory_size size;
    struct status why = {0};
    struct scheduler *s = NULL;
    const bool chosen = ops || placement_choose(&plan, e->file, p, available, &why);
    if (chosen && !memory_size_choose(&size, e->file, p, &plan, available, st)) return NULL;
    if (chosen && (s = open_placed(e, p, &plan, &size, &why))) {
        log_placement(&plan);
        return s;
    }
    const bool on_cpu = chosen && plan.parts[plan.n - 1].ops == &cpu_backend;
    if (ops || on_cpu || !registry_automatic(p->options.device) || why.code == STATUS_CANCELLED) {
        if (st) *st = why;
        return NULL;
    }
    log_warning("engine", "computing on the CPU: %s", why.text);
    struct engine_params cpu = *p;
    cpu.options.device = "cpu";
    return open_scheduler(e, &cpu, NULL, st);
}

static bool open_drafter(struct local_engine *e, const struct engine_params *p, struct drafter **out,
                         struct status *st) {
    struct status *why = p->draft_refused ? p->draft_refused : st;
    if (p->draft_refused) *why = (struct status){0};
    *out = p->draft == DRAFT_MODEL ? drafter_file_open(p, e->file, &e->draft_file, why) : NULL;
    if (*out || p->draft != DRAFT_MODEL) return true;
    if (p->draft_refused) log_warning("engine", "drafting by lookup alone: %s", why->text);
    return p->draft_refused;
}

static bool open_drafting_scheduler(struct local_engine *e, const struct engine_params *p,
                                    const struct backend_ops *ops, struct status *st) {
    struct drafter *drafter;
    if (!open_drafter(e, p, &drafter, st)) return false;
    e->scheduler = open_scheduler(e, p, ops, st);
    if (e->scheduler) scheduler_set_drafter(e->scheduler, drafter);
    else drafter_close(drafter);
    return e->scheduler;
}

static bool is_last(const void *encoder) { return encoder_is_last(encoder); }

// While the prompt is read masks of its grammar are made, until another prompt waits to be encoded.
static void on_encoded(void *context, struct encoding *done) {
    struct local_engine *e = context;
    struct grammar *g = grammar_share(((const struct local_request *)done)->grammar);
    if (g && !e->vocabulary) e->vocabulary = constraint_vocabulary_open(e->file->tokenizer, &e->file->channels);
    queue_push(&e->commands, &(struct command){.kind = COMMAND_ENCODED, .request = (struct local_request *)done});
    if (g && encoder_is_last(&e->encoder)) constraint_prepare(e->vocabulary, g, is_last, &e->encoder);
    grammar_drop(g);
}

static void on_hibernated(void *context, struct hibernate_job *job) {
    struct local_engine *e = context;
    queue_push(&e->commands, &(struct command){.kind = COMMAND_HIBERNATED, .job = job});
}

static bool open_store(struct local_engine *e, const struct engine_hibernation *p, struct status *st) {
    if (!p->budget) return true;
    char *folder = p->folder ? xstrdup(p->folder) : local_engine_saved_folder();
    const struct hibernate_params params = {.folder = folder, .budget = p->budget, .done = on_hibernated, .context = e};
    if (folder) e->store = hibernate_open(&params, st);
    free(folder);
    return e->store || !folder;
}

// Everything but the thread.
static bool open_parts(struct local_engine *e, const struct engine_params *p, const struct backend_ops *ops,
                       struct status *st) {
    e->encoder = (struct encoder){.file = e->file, .done = on_encoded, .context = e};
    return queue_open(&e->commands, sizeof(struct command), st) && encoder_open(&e->encoder, st) &&
           open_store(e, &p->hibernation, st) && open_drafting_scheduler(e, p, ops, st);
}

static void close_parts(struct local_engine *e) {
    if (e->scheduler) scheduler_close(e->scheduler);
    if (e->draft_file) model_file_close(e->draft_file);
    encoder_close(&e->encoder);
    constraint_vocabulary_close(e->vocabulary);
    hibernate_close(e->store);
    for (struct command c; queue_pop(&e->commands, &c);) hibernate_job_free(c.job); // of an engine that failed to open
    queue_close(&e->commands);
    metrics_close(&e->metrics);
    free(e);
}

struct engine *local_engine_open_on(struct model_file *m, const struct engine_params *p, const struct backend_ops *ops,
                                    struct status *st) {
    assert(!m->described);
    const double begun = clock_seconds();
    if (!m->info.has_weights) {
        if (st) *st = m->weight_status;
        return NULL;
    }
    struct local_engine *e = xcalloc(1, sizeof *e);
    e->engine.ops = &local_engine_ops;
    e->page = -1;
    e->file = m;
    metrics_open(&e->metrics);
    if (open_parts(e, p, ops, st)) {
        e->preparing = p->options.quick_start;
        local_engine_note_backend(e);
        local_engine_publish(e);
        if (system_start_thread(&e->thread, local_engine_run, e, st)) {
            log_info("engine", "opened %s in %.2f s on %s, KV cache of %.1f MiB", m->info.name, clock_seconds() - begun,
                     e->backend, (double)e->kv_bytes / (1 << 20));
            return &e->engine;
        }
    }
    close_parts(e);
    return NULL;
}

struct engine *local_engine_open(struct model_file *m, const struct engine_params *p, struct status *st) {
    return local_engine_open_on(m, p, NULL, st);
}

void local_engine_close(struct engine *engine) {
    struct local_engine *e = (struct local_engine *)engine;
    log_info("engine", "closing %s", e->file->info.name);
    queue_push(&e->commands, &(struct command){.kind = COMMAND_CLOSE});
    pthread_join(e->thread, NULL);
    encoder_close(&e->encoder);
    hibernate_close(e->store);
    e->store = NULL;
    local_engine_discard(e);
    close_parts(e);
}

char *local_engine_saved_folder(void) { return path_cache("kv"); }

void local_engine_remove_saved(const char *folder, uint64_t disk_owner) { hibernate_remove(folder, disk_owner); }
