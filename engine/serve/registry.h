// Registry: the backends there are, and which of their devices a name stands for.
#ifndef CONFAB_SERVE_REGISTRY_H
#define CONFAB_SERVE_REGISTRY_H

#include "engine/serve/placement.h"

enum { REGISTRY_MOST = PLACEMENT_MOST_PARTS - 1 }; // devices of a model, so that the processor has a part too

// Whether a device's name leaves the choice to confab.
bool registry_automatic(const char *device);

// The devices besides the processor that a name stands for, into out [REGISTRY_MOST], without layers: none for the
// processor's. "auto" or NULL: every GPU, those that share the machine's memory only where none has its own, and none
// that the processor emulates. False where there is no such device.
bool registry_find(const char *device, struct placement_part *out, int *n, struct status *st);

#endif
