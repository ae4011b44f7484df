#include "app/models/models_lookup.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/base/panic.h"
#include "engine/base/system.h"

#define HEADER_SECONDS 5

struct models_lookup { // freed by the last of its two users, the caller and the thread
    pthread_mutex_t lock;
    const struct model_opener *opener;
    int notify_fd;
    struct model_list list; // the latest; valid when `fresh`
    bool fresh, done, abandoned;
};

static void lookup_free(struct models_lookup *l) {
    if (l->fresh) models_free(&l->list);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

// False: the lookup was closed.
static bool post(struct models_lookup *l, struct model_list *list, bool last) {
    pthread_mutex_lock(&l->lock);
    bool wanted = !l->abandoned;
    if (l->fresh) models_free(&l->list);
    l->list = *list;
    l->fresh = true;
    l->done = last || !wanted;
    uint64_t one = 1;
    ssize_t ignored = wanted ? write(l->notify_fd, &one, sizeof one) : 0;
    (void)ignored;
    pthread_mutex_unlock(&l->lock);
    return wanted;
}

static void *lookup_main(void *argument) {
    struct models_lookup *l = argument;
    struct model_list list;
    models_scan(&list, l->opener);
    bool wanted = post(l, &list, false);
    if (wanted) { // the first list belongs to the caller now; scanning again is fast
        models_scan(&list, l->opener);
        models_describe(&list, l->opener, HEADER_SECONDS);
        wanted = post(l, &list, true);
    }
    if (!wanted) lookup_free(l);
    return NULL;
}

struct models_lookup *models_lookup_start(const struct model_opener *opener, int notify_fd) {
    struct models_lookup *l = xcalloc(1, sizeof *l);
    pthread_t thread;
    l->opener = opener;
    l->notify_fd = notify_fd;
    pthread_mutex_init(&l->lock, NULL);
    if (system_start_thread(&thread, lookup_main, l, NULL)) {
        pthread_detach(thread);
    } else { // without a thread, only names and sizes
        struct model_list list;
        models_scan(&list, l->opener);
        post(l, &list, true);
    }
    return l;
}

bool models_lookup_take(struct models_lookup *l, struct model_list *out) {
    pthread_mutex_lock(&l->lock);
    bool fresh = l->fresh;
    if (fresh) *out = l->list;
    l->fresh = false;
    pthread_mutex_unlock(&l->lock);
    return fresh;
}

bool models_lookup_done(struct models_lookup *l) {
    pthread_mutex_lock(&l->lock);
    bool done = l->done && !l->fresh;
    pthread_mutex_unlock(&l->lock);
    return done;
}

void models_lookup_close(struct models_lookup *l) {
    if (!l) return;
    pthread_mutex_lock(&l->lock);
    bool done = l->done;
    l->abandoned = true;
    pthread_mutex_unlock(&l->lock);
    if (done) lookup_free(l);
}
