// Repacking: the packed blocks of all weights are filled from the file, step by step, by the whole pool. The file's
// pages are given back as they are done with, so that memory stays at about the file's size.
//
// Fresh memory for the packed blocks costs more than a pass. So a pass may come before it, and between its
// steps: a matrix whose packed blocks are not filled is read through a cache of the strips that are just needed (struct
// strip_cache).
#ifndef CONFAB_CPU_REPACK_H
#define CONFAB_CPU_REPACK_H

#include "engine/base/arena.h"
#include "engine/base/thread_pool.h"
#include "engine/cpu/matrix.h"

struct binding {
    const struct weight *weight;
    struct matrix *matrix;
    uint64_t place; // of its packed blocks among all; where there are none, of the next ones
    bool paired;    // with the next one: strips of both are read in turn, and lie so
};

struct bindings {
    struct binding *list; // in the order of their packed blocks
    int n;
    uint64_t packed_bytes;
};

struct repack {
    struct bindings all;
    uint64_t piece;       // bytes of packed blocks that a worker fills at once
    uint64_t done, asked; // bytes of packed blocks that are filled, and for which the file has been asked
    int first;            // binding that still has packed blocks to be filled
    struct mappings *mappings;
};

// In the arena. None of the matrices is ready from now on.
struct repack *repack_new(struct arena *arena, const struct bindings *all);
// Fills some packed blocks, for a few milliseconds; false when all are filled.
bool repack_step(struct repack *p, struct thread_pool *pool);
// Whether the file is in memory: what must come from a disk is best read ahead and repacked once.
bool repack_is_resident(const struct repack *p);

#endif
