// Registry: the backends there are, and which of their devices a name stands for.
#ifndef CONFAB_SERVE_REGISTRY_H
#define CONFAB_SERVE_REGISTRY_H

#include "engine/serve/placement.h"

// A model's placement on the device of this name, NULL for the default. False where there is no such device.
bool registry_place(const char *device, struct placement_plan *out, struct status *st);

#endif
