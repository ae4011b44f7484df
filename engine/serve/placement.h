// Placement: which backend runs which layers of a model, and the way of a batch through all of them.
//
// With one part it is that backend and costs nothing. With several each has the keys and values of its own layers;
// hidden states go from one to the next, and what a batch does to pages every part does for its layers, also where one
// before it gave the batch up. Outside the arena a page's bytes are those of the parts, one behind the other. Used by
// the scheduler on the engine thread.
#ifndef CONFAB_SERVE_PLACEMENT_H
#define CONFAB_SERVE_PLACEMENT_H

#include "engine/backend.h"
#include "engine/metrics.h"

struct placement_part {
    const struct backend_ops *ops;
    int device;                 // of the backend's
    int first_layer, end_layer; // as of struct backend_params
    uint64_t own_room;          // bytes that it may take of the device's own memory; 0: it takes the machine's
};

enum { PLACEMENT_MOST_PARTS = 8 };
struct placement_plan {
    struct placement_part parts[PLACEMENT_MOST_PARTS]; // in the order of their layers, which are all of the model's
    int n;
};

// All layers on one device of a backend.
struct placement_plan placement_on(const struct backend_ops *ops, int device);
void placement_part_name(const struct placement_part *part, char out[16]); // of its device

// Device and layers in params are not looked at. What all parts take together; see struct backend_ops.
bool placement_measure(const struct placement_plan *plan, const struct backend_params *params,
                       struct backend_memory *out, struct status *st);

struct placement;
struct placement *placement_open(const struct placement_plan *plan, const struct backend_params *params,
                                 struct status *st);
void placement_close(struct placement *p);
bool placement_run(struct placement *p, const struct batch *batch, struct backend_result *out, struct status *st);
bool placement_repack(struct placement *p);
// On the threads of the part that gives the logits.
void placement_for_each(struct placement *p, int n, void (*item)(void *context, int i, int worker), void *context);
const struct backend_info *placement_info(const struct placement *p);
int placement_parts(const struct placement *p, struct part_metrics *out); // [METRICS_MAX_PARTS]; returns how many

#endif
