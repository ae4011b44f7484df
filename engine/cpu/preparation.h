// Preparation: the tiles of all weights are filled from the file, step by step, by the whole pool. The file's pages are
// given back as they are done with, so that memory stays at about the file's size.
//
// Fresh memory for the tiles costs more than a pass. So a pass may come before the preparation, and between its steps:
// a matrix whose tiles are not filled is read through a cache of the strips that are just needed (struct strip_cache).
#ifndef CONFAB_CPU_PREPARATION_H
#define CONFAB_CPU_PREPARATION_H

#include "engine/base/arena.h"
#include "engine/base/thread_pool.h"
#include "engine/cpu/matrix.h"

struct binding {
    const struct weight *weight;
    struct matrix *matrix;
    uint64_t place; // of its tiles among all; where there are none, of the next ones
    bool paired;    // with the next one: strips of both are read in turn, and lie so
};

struct bindings {
    struct binding *list; // in the order of their tiles
    int n;
    uint64_t tile_bytes;
};

struct preparation {
    struct bindings all;
    uint64_t piece;       // bytes of tiles that a worker fills at once
    uint64_t done, asked; // bytes of tiles that are filled, and for which the file has been asked
    int first;            // binding that still has tiles to be filled
    struct mappings *mappings;
};

// In the arena. None of the matrices is ready from now on.
struct preparation *preparation_new(struct arena *arena, const struct bindings *all);
// Fills some tiles, for a few milliseconds; false when all are filled.
bool preparation_step(struct preparation *p, struct thread_pool *pool);
// Whether the file is in memory: what must come from a disk is best read ahead and prepared once.
bool preparation_is_resident(const struct preparation *p);

#endif
