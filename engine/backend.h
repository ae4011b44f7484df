// Backend: runs a model over a batch, by a struct backend_ops: the CPU's, or a test's own.
//
// A batch is rows; rows of one sequence with consecutive positions form a segment. Every row attends to all earlier
// positions of its own sequence, which lie in KV pages named by the segment's page table. The result of a row depends
// on its own sequence only: bit for bit the same alone, in any batch, in a prefill chunk of any size or as a decode
// row. What KV slots past a row's own position hold, NaN even, makes no difference to it: stale pages cannot leak into
// results.
#ifndef CONFAB_ENGINE_BACKEND_H
#define CONFAB_ENGINE_BACKEND_H

#include "engine/backend_options.h"
#include "engine/base/status.h"
#include "engine/base/thread_pool.h"
#include "engine/model/model.h"
#include "engine/stages.h"

#define KV_PAGE_TOKENS 32 // tokens a page, in every layer

struct batch_segment {
    int first_row, n_rows;
    int position;         // of the first row; the others follow
    const int32_t *pages; // page ids of the sequence: position p lies in pages[p / KV_PAGE_TOKENS]; borrowed
};

struct batch {
    int n_rows, n_segments, n_outputs;
    const int32_t *tokens;                // [n_rows], each < n_vocab
    const struct batch_segment *segments; // in row order, covering every row once
    const int32_t *output_rows;           // [n_outputs], ascending: rows whose logits are wanted
    // Asked between layers, on any thread of the pool: whether to give the batch up. NULL: never.
    bool (*stop)(void *context);
    void *stop_context;
};

struct backend_work {                      // of one run
    struct stage_work stages[STAGE_COUNT]; // STAGE_SAMPLE stays 0: the caller's
};

struct backend_params {
    const struct model *model; // outlives the backend
    struct thread_pool *pool;  // borrowed
    int n_workers;             // where the pool is NULL: as many as it would have
    int n_pages;               // KV arena
    int max_rows, max_outputs; // of a batch
    int context;               // tokens a sequence may have; 0: the model's own
    // The same as it was asked for, which memory does not shorten; 0: the model's own. LongRoPE's factors follow from it
    // alone: all keys in the KV cache are rotated by the same ones, on every machine.
    int asked_context;
    struct backend_options options;
};

struct backend_memory { // bytes
    uint64_t weights;   // copies; what stays in the mapped file is not counted
    uint64_t in_place;  // weights that runs read where the model has them
    uint64_t buffers;   // activations and scratch
    uint64_t kv;        // of n_pages
};

struct backend;
struct backend_ops {
    const char *name;
    // What open would take with these, of which the pool is NULL. Nothing is read of the weights.
    bool (*measure)(const struct backend_params *params, struct backend_memory *out, struct status *st);
    struct backend *(*open)(const struct backend_params *params, struct status *st);
    void (*close)(struct backend *b);
    // Prepares a few of the weights that a quick start put off, for some milliseconds; false when none are left.
    bool (*prepare)(struct backend *b);
    // Stores K and V of every row and returns logits [n_outputs, n_vocab] f32, owned by the backend until the next run.
    // NULL on failure of a device, or with STATUS_CANCELLED where the batch was given up; the rows' slots hold anything
    // then.
    float *(*run)(struct backend *b, const struct batch *batch, struct backend_work *work, struct status *st);
    // Copies the first n_tokens slots of a page in every layer (copy on write).
    void (*copy_page)(struct backend *b, int32_t to, int32_t from, int n_tokens);
    const char *(*describe)(const struct backend *b); // e.g. "AVX-512 VNNI, 2 threads"
};

extern const struct backend_ops cpu_backend;

#endif
