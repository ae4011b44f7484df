#include "engine/serve/placement_choose.h"

#include <stdlib.h>

#include "engine/base/panic.h"
#include "engine/serve/memory_size.h"
#include "engine/serve/registry.h"

// Tokens of a conversation that find room beside the layers on devices. Fewer, and answers would be cut off to speed
// them up; many more, as some models allow, and layers would leave the device for a cache that few ever fill.
enum { CONVERSATION = 4096 };

struct choice {
    const struct model_file *file;
    struct engine_params params; // with a KV cache of a conversation
    uint64_t available;
    struct placement_part devices[REGISTRY_MOST];
    int n_devices;
    int n_layer;
    double *bytes; // [n_layer] that each takes on a device
};

static double room_of(const struct placement_part *device) {
    return device->own_room ? (double)device->own_room : 1; // those of the machine's memory: the same to each
}

static bool measure_layers(struct choice *c, struct status *st) {
    c->bytes = xcalloc((size_t)c->n_layer, sizeof *c->bytes);
    for (int i = 0; i < c->n_layer && c->n_devices > 1; i++) {
        struct placement_plan one = {.parts = {c->devices[0]}, .n = 1};
        struct memory_size size;
        one.parts[0].first_layer = i, one.parts[0].end_layer = i + 1;
        if (!memory_size_plan(&size, c->file, &c->params, &one, c->available, st)) return false;
        c->bytes[i] = (double)size.parts[0].weights + (double)size.parts[0].kv * size.n_pages;
    }
    return true;
}

// The last n layers on devices, the bytes of each in proportion to its memory.
static struct placement_plan share(const struct choice *c, int n) {
    struct placement_plan plan = {0};
    int layer = c->n_layer - n;
    double bytes = 0, room = 0, done = 0, room_done = 0;
    for (int i = layer; i < c->n_layer; i++) bytes += c->bytes[i];
    for (int i = 0; i < c->n_devices; i++) room += room_of(&c->devices[i]);
    if (layer) plan.parts[plan.n++] = (struct placement_part){.ops = &cpu_backend, .end_layer = layer};
    for (int i = 0; i < c->n_devices && layer < c->n_layer; i++) {
        struct placement_part part = c->devices[i];
        const bool last = i == c->n_devices - 1;
        part.first_layer = layer;
        room_done += room_of(&part);
        while (layer < c->n_layer && (last || done + c->bytes[layer] / 2 <= bytes * room_done / room))
            done += c->bytes[layer++];
        part.end_layer = layer;
        if (part.end_layer > part.first_layer) plan.parts[plan.n++] = part;
    }
    return plan;
}

// As many layers as fit. What fails but for want of memory fails this.
static bool fit(const struct choice *c, struct placement_plan *out, struct status *st) {
    for (int n = c->n_layer; n > 0; n--) {
        struct memory_size size;
        *out = share(c, n);
        if (memory_size_choose(&size, c->file, &c->params, out, c->available, st)) return true;
        if (st->code != STATUS_MEMORY) return false;
    }
    *out = placement_on(&cpu_backend, 0);
    return registry_automatic(c->params.options.device);
}

static bool choose(struct choice *c, int n_layers, struct placement_plan *out, struct status *st) {
    if (!measure_layers(c, st)) return false;
    if (!n_layers) return fit(c, out, st);
    *out = share(c, n_layers < c->n_layer ? n_layers : c->n_layer);
    return true;
}

// Unasked, what one thread of the CPU answers faster than anybody reads does not wait for a driver to be loaded.
static bool stays_on_cpu(const struct model_file *m, const struct backend_options *o) {
    return registry_automatic(o->device) &&
           (o->exact || (!o->gpu_layers && m->model.weight_bytes <= MODEL_SMALL_BYTES));
}

bool placement_choose(struct placement_plan *out, const struct model_file *m, const struct engine_params *p,
                      uint64_t available, struct status *st) {
    struct choice c = {.file = m, .params = *p, .available = available, .n_layer = m->model.spec.n_layer};
    struct status why = {0};
    *out = placement_on(&cpu_backend, 0);
    if (stays_on_cpu(m, &p->options)) return true;
    if (!registry_find(p->options.device, c.devices, &c.n_devices, st)) return false;
    if (!c.n_devices) return true;
    if (!c.params.kv_tokens) {
        const int context = p->context > 0 && p->context < m->info.n_context ? p->context : m->info.n_context;
        c.params.kv_tokens = context < CONVERSATION ? context : CONVERSATION;
    }
    const bool chosen = choose(&c, p->options.gpu_layers, out, &why);
    free(c.bytes);
    if (!chosen && st) *st = why;
    return chosen;
}
