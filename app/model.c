#include "app/model.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "app/file_fault.h"
#include "app/guide.h"
#include "app/models.h"
#include "app/models_used.h"
#include "engine/base/panic.h"

struct model_file *model_open_path(const char *path, struct status *st) {
    if (path) {
        file_fault_watch(path);
        return model_file_open(path, st);
    }
    size_t size;
    const void *data = guide_data(&size);
    if (size) return model_file_open_memory("Guide", data, size, st);
    status_fail(st, STATUS_USAGE,
                "no model: name a GGUF file with -m FILE (this program was built without the built-in one)");
    return NULL;
}

struct model_file *model_open_file(const char *word, struct status *st) {
    char *path = NULL;
    if (word && !models_resolve(word, &path, st)) return NULL;
    struct model_file *m = model_open_path(path, st);
    free(path);
    return m;
}

static struct engine_params engine_params(const struct settings *s) {
    return (struct engine_params){.n_threads = s->threads, .context = s->context, .kv_tokens = s->kv_tokens};
}

bool model_load(struct loaded_model *m, const struct settings *s, struct status *st) {
    *m = (struct loaded_model){.file = model_open_file(s->model, st)};
    if (!m->file) return false;
    m->info = model_file_info(m->file);
    struct engine_params params = engine_params(s);
    m->engine = engine_open(m->file, &params, st);
    if (!m->engine) model_unload(m);
    else if (s->model) models_used_add(m->info->path);
    return m->engine;
}

void model_unload(struct loaded_model *m) {
    if (m->engine) engine_close(m->engine);
    if (m->file) model_file_close(m->file);
    *m = (struct loaded_model){0};
}

struct model_loader {
    struct model_file *file;
    struct engine_params params;
    int fd; // eventfd
    pthread_t thread;
    struct engine *engine; // these two when it is done
    struct status status;
};

static void *loader_main(void *argument) {
    struct model_loader *l = argument;
    uint64_t one = 1;
    l->engine = engine_open(l->file, &l->params, &l->status);
    if (write(l->fd, &one, sizeof one) != sizeof one) panic("eventfd: %s", strerror(errno));
    return NULL;
}

struct model_loader *model_loader_start(struct model_file *file, const struct settings *s) {
    struct model_loader *l = xcalloc(1, sizeof *l);
    *l = (struct model_loader){.file = file, .params = engine_params(s), .fd = eventfd(0, EFD_CLOEXEC)};
    if (l->fd < 0) panic("eventfd: %s", strerror(errno));
    if (pthread_create(&l->thread, NULL, loader_main, l)) panic("cannot start a thread");
    return l;
}

int model_loader_fd(const struct model_loader *l) { return l->fd; }

bool model_loader_done(const struct model_loader *l, int timeout_ms) {
    struct pollfd fd = {.fd = l->fd, .events = POLLIN};
    return poll(&fd, 1, timeout_ms) > 0;
}

struct engine *model_loader_take(struct model_loader *l, struct status *st) {
    pthread_join(l->thread, NULL);
    struct engine *engine = l->engine;
    if (!engine && st) *st = l->status;
    close(l->fd);
    free(l);
    return engine;
}
