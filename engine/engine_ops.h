// What an engine is made of, for those who implement a kind of it; whoever uses one needs engine.h alone.
//
// A kind's own structs begin with these two. Its events go into the queue of the client that they concern, from any
// thread; everything else of the client belongs to the kind.
#ifndef CONFAB_ENGINE_OPS_H
#define CONFAB_ENGINE_OPS_H

#include "engine/base/queue.h"
#include "engine/distribution.h"
#include "engine/engine.h"
#include "engine/metrics.h"

struct engine {
    const struct engine_ops *ops;
};

#define EVERY_ANSWER (-1)

struct engine_client {
    struct engine *engine;
    struct queue events; // of struct engine_event; unbounded, so that whoever pushes never waits
};

// As the functions of engine.h, metrics.h and distribution.h that are called so.
struct engine_ops {
    const char *name; // "local"
    void (*close)(struct engine *e);
    bool (*logits)(struct engine *e, const int32_t *ids, int n, float *out, struct status *st); // NULL: it has none
    // Opened with its engine and queue in place; *client is from malloc and the kind's to free. NULL on failure.
    struct engine_client *(*client_open)(struct engine *e, struct status *st);
    void (*client_close)(struct engine_client *c);
    uint64_t (*submit)(struct engine_client *c, const struct request_params *p);
    void (*cancel)(struct engine_client *c, uint64_t request, int answer); // of answers, EVERY_ANSWER
    void (*set_sampling)(struct engine_client *c, uint64_t request, int answer, const struct sampling *s); // likewise
    void (*focus)(struct engine_client *c, uint64_t conversation);
    void (*forget)(struct engine_client *c, uint64_t conversation, uint64_t disk_owner);
    const struct engine_metrics *(*metrics)(struct engine_client *c);
    // NULL where a kind has none of it.
    void (*look_at_page)(struct engine_client *c, int page);
    void (*watch)(struct engine_client *c, uint64_t request, int answer);
    bool (*prompt)(struct engine_client *c, const struct request_params *p, struct prompt_tokens *out); // *out is zeroed
    bool (*distribution)(struct engine_client *c, const struct sampling *s, struct distribution *out);
};

// The beginning and the end of a client's life: a zeroed struct of `size` bytes that begins with a client, its queue
// open.
void *engine_client_new(size_t size, struct engine *e, struct status *st);
void engine_client_free(struct engine_client *c);

#endif
