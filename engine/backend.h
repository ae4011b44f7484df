// Backend: runs layers of a model over a batch, by a struct backend_ops: the CPU's, or a test's own.
//
// The backend that has layer 0 reads tokens and embeddings, the one that has the last layer gives logits; between them
// hidden states are handed on. Each keeps the keys and values of its own layers. serve/placement.h runs a batch through
// all of them.
//
// A batch is rows; rows of one sequence with consecutive positions form a segment. Every row attends to all earlier
// positions of its own sequence, which lie in KV pages named by the segment's page table. The result of a row depends
// on its own sequence only: where rows are equal, bit for bit the same alone, in any batch, in a prefill chunk of any
// size or as a decode row. What KV slots past a row's own position hold, NaN even, makes no difference to it: stale
// pages cannot leak into results.
#ifndef CONFAB_ENGINE_BACKEND_H
#define CONFAB_ENGINE_BACKEND_H

#include "engine/backend_options.h"
#include "engine/base/status.h"
#include "engine/device.h"
#include "engine/model/model.h"
#include "engine/stages.h"

#define KV_PAGE_TOKENS 32 // tokens a page, in every layer

// What is wanted of a row, besides its keys and values.
enum row_output {
    ROW_LOGITS = 1, // a score for every token of the vocabulary
    ROW_HIDDEN = 2, // the hidden state: what the output matrix reads, normed
};

struct batch_row {
    int32_t token;          // < n_vocab; not looked at where there is an embedding
    unsigned output;        // of enum row_output, or 0
    const float *embedding; // [n_embd] what the first layer reads in the place of a token's, as it is; or NULL
};

struct batch_segment {
    int first_row, n_rows;
    int position;         // of the first row; the others follow
    const int32_t *pages; // page ids of the sequence: position p lies in pages[p / KV_PAGE_TOKENS]; borrowed
};

struct page_copy {
    int32_t to, from; // whole pages
};

// A page outside the KV arena: page_bytes, in the page_layout of struct backend_info.
struct page_transfer {
    int32_t page;
    void *data;
};

struct batch {
    // What becomes of pages before the rows run: first these are read out, then those written in, then copies made,
    // each list in its order. All of it is done also in a batch that is given up, or has no rows.
    int n_reads, n_writes, n_copies;
    const struct page_transfer *reads, *writes;
    const struct page_copy *copies;

    int n_rows, n_segments;
    const struct batch_row *rows;
    const struct batch_segment *segments; // in row order, covering every row once
    // Without layer 0: [n_rows, n_embd] what the layers before have left of every row, hidden_stride floats apart.
    const float *hidden;
    int hidden_stride;
    // Asked between layers, on any thread of the backend's: whether to give the batch up. NULL: never.
    bool (*stop)(void *context);
    void *stop_context;
};

struct backend_work {                      // of one run
    struct stage_work stages[STAGE_COUNT]; // STAGE_SAMPLE stays 0: the caller's
};

// Of one run, in the order of the rows; the backend's until its next run.
struct backend_result {
    float *logits;       // [rows that want them, n_vocab]
    const float *hidden; // [rows that want it, n_embd]; without the last layer of every row, for the next layers
    int hidden_stride;   // floats from one row to the next
    struct backend_work work;
};

struct backend_params {
    const struct model *model;  // outlives the backend
    int device;                 // which of the backend's
    int first_layer, end_layer; // of the model, [first, end); 0, 0: all
    int n_threads;              // that compute; 0: as many as suit the model and the machine
    int n_pages;                // KV arena
    int max_rows;               // of a batch
    int max_logits, max_hidden; // rows of a batch that want these
    int context;                // tokens a sequence may have; 0: the model's own
    // The same as it was asked for, which memory does not shorten; 0: the model's own. LongRoPE's factors follow from
    // it alone: all keys in the KV cache are rotated by the same ones, on every machine.
    int asked_context;
    struct backend_options options;
};

struct backend_memory { // bytes
    uint64_t weights;   // copies; what stays in the mapped file is not counted
    uint64_t in_place;  // weights that runs read where the model has them
    uint64_t buffers;   // activations and scratch
    uint64_t kv;        // of n_pages
};

struct backend_info {     // of an open one
    char description[64]; // e.g. "AVX-512 VNNI, 2 threads"
    char page_layout[256]; // pages can be read out of one backend and written into another that names the same
    uint64_t page_bytes;  // of a page, of its layers
    int n_threads;        // of the processor that it computes with
    int n_workers;        // of for_each
    bool rows_equal;      // a row's result is the same, bit for bit, in any batch and any chunk
};

struct backend;
struct backend_ops {
    const char *name;
    // The devices there are, without their memory, at most `most`; returns how many.
    int (*devices)(struct device *out, int most);
    void (*heaps)(int device, struct device *out); // fills in the memory of one device, as it is now
    // As device_limits. NULL: not measured.
    bool (*limits)(int device, struct device_limits *out, struct status *st);
    // What open would take with these. Nothing is read of the weights.
    bool (*measure)(const struct backend_params *params, struct backend_memory *out, struct status *st);
    struct backend *(*open)(const struct backend_params *params, struct status *st);
    void (*close)(struct backend *b);
    // Repacks a few of the weights that a quick start put off, for some milliseconds; false when none are left.
    bool (*repack)(struct backend *b);
    // Stores K and V of every row and computes what is wanted. False on failure of a device, or with STATUS_CANCELLED
    // where the batch was given up; the rows' slots hold anything then.
    bool (*run)(struct backend *b, const struct batch *batch, struct backend_result *out, struct status *st);
    // Calls item for 0 ≤ i < n on the threads that work for the backend on the processor, 0 ≤ worker < n_workers.
    void (*for_each)(struct backend *b, int n, void (*item)(void *context, int i, int worker), void *context);
    const struct backend_info *(*info)(const struct backend *b);
};

extern const struct backend_ops cpu_backend, vulkan_backend;

#endif
