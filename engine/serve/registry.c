#include "engine/serve/registry.h"

#include <stdio.h>
#include <string.h>

static const struct backend_ops *const backends[] = {
    &cpu_backend,
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
    char names[256] = "";
    const int n = device_list(all);
    for (int i = 0; i < n; i++) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%.15s", !i ? "" : i < n - 1 ? ", " : " or ", all[i].name);
    }
    return status_fail(st, STATUS_USAGE, "unknown device '%s' (expected %s)", device, names);
}

bool registry_place(const char *device, struct placement_plan *out, struct status *st) {
    for (int i = 0; i < BACKENDS; i++) {
        struct device own[DEVICE_MOST];
        const int n = backends[i]->devices(own, DEVICE_MOST);
        for (int k = 0; k < n; k++) {
            if (device && strcmp(device, own[k].name)) continue;
            *out = placement_on(backends[i], k);
            return true;
        }
    }
    return refuse(device ? device : "", st);
}

bool device_limits(const char *name, struct device_limits *out, struct status *st) {
    struct placement_plan plan;
    if (!registry_place(name, &plan, st)) return false;
    const struct placement_part *part = &plan.parts[0];
    if (!part->ops->limits) return status_fail(st, STATUS_UNSUPPORTED, "%s is not measured as a device", name);
    return part->ops->limits(part->device, out, st);
}
