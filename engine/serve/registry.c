#include "engine/serve/registry.h"

#include <stdio.h>
#include <string.h>

static const struct backend_ops *const backends[] = {
    &cpu_backend, // the first, so that whoever asks for it does not wait for drivers
#ifdef CONFAB_VULKAN
    &vulkan_backend,
#endif
};
enum { BACKENDS = sizeof backends / sizeof *backends };

int device_list(struct device *out) {
    int n = 0;
    for (int i = 0; i < BACKENDS; i++) {
        const int own = backends[i]->devices(out + n, DEVICE_MOST - n);
        for (int k = 0; k < own; k++) backends[i]->heaps(k, &out[n + k]);
        n += own;
    }
    return n;
}

static bool refuse(const char *device, struct status *st) {
    struct device all[DEVICE_MOST];
    char names[256] = "auto";
    const int n = device_list(all);
    for (int i = 0; i < n; i++) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%.15s", i < n - 1 ? ", " : " or ", all[i].name);
    }
    return status_fail(st, STATUS_USAGE, "unknown device '%s' (expected %s)", device, names);
}

// Drivers hold some memory for themselves, and other programs may come to want some: a 16th is left to them.
static struct placement_part part_on(const struct backend_ops *ops, int index, struct device *device) {
    ops->heaps(index, device);
    return (struct placement_part){.ops = ops, .device = index, .own_room = device->own_free - device->own_free / 16};
}

static int find_gpus(struct placement_part *out, bool own_memory) {
    int n = 0;
    for (int i = 1; i < BACKENDS; i++) {
        struct device all[DEVICE_MOST];
        const int count = backends[i]->devices(all, DEVICE_MOST);
        for (int k = 0; k < count && n < REGISTRY_MOST; k++) {
            const struct placement_part part = part_on(backends[i], k, &all[k]);
            if (!all[k].emulated && (part.own_room > 0) == own_memory) out[n++] = part;
        }
    }
    return n;
}

bool registry_automatic(const char *device) { return !device || !strcmp(device, "auto"); }

bool registry_find(const char *device, struct placement_part *out, int *n, struct status *st) {
    if (registry_automatic(device)) {
        if (!(*n = find_gpus(out, true))) *n = find_gpus(out, false);
        return true;
    }
    for (int i = 0; i < BACKENDS; i++) {
        struct device own[DEVICE_MOST];
        const int count = backends[i]->devices(own, DEVICE_MOST);
        for (int k = 0; k < count; k++) {
            if (strcmp(device, own[k].name)) continue;
            *n = backends[i] != &cpu_backend;
            if (*n) *out = part_on(backends[i], k, &own[k]);
            return true;
        }
    }
    return refuse(device, st);
}

bool device_limits(const char *name, struct device_limits *out, struct status *st) {
    struct placement_part part[REGISTRY_MOST];
    int n;
    if (!registry_find(name, part, &n, st)) return false;
    if (!n || !part->ops->limits) return status_fail(st, STATUS_UNSUPPORTED, "%s is not measured as a device", name);
    return part->ops->limits(part->device, out, st);
}
