// What the files of the CPU backend share: the opened model, its buffers, and one pass over a batch.
//
// A pass is SPMD: every worker runs forward() and they meet at barriers between steps. Within a step each item of work
// writes its own part of a buffer, so nothing is locked. Steps that go row by row give a worker the same rows each
// time (row_share), or all rows, if they are few, to one worker, so that between two of them no barrier is needed.
#ifndef CONFAB_CPU_CPU_H
#define CONFAB_CPU_CPU_H

#include <stdatomic.h>

#include "engine/backend.h"
#include "engine/base/thread_pool.h"
#include "engine/cpu/kv_page.h"
#include "engine/cpu/matmul.h"
#include "engine/cpu/repack.h"
#include "engine/model/rope.h"

// What matrices read. Each has one buffer, which every layer uses in its own shape.
enum input_role {
    INPUT_ATTENTION,      // [rows, n_embd] normed
    INPUT_ATTENDED,       // [rows, query size] what attention found
    INPUT_FFN,            // [rows, n_embd] normed
    INPUT_FFN_MIDDLE,     // [rows, n_ff] of a dense feed-forward or the shared expert
    INPUT_EXPERTS,        // [slots, n_embd] rows of INPUT_FFN, gathered by expert
    INPUT_EXPERTS_MIDDLE, // [slots, n_ff of an expert]
    INPUT_LOGITS,         // [rows that want logits, n_embd] normed
    INPUT_ROLES
};

struct norm {
    const float *weight, *bias; // weight NULL: no norm at all
};

struct cpu_experts {
    struct matrix router, shared_router; // F32, whatever the file has
    const float *router_bias, *choice_bias;
    struct matrix *gate, *up, *down;              // [count] each
    const float *gate_bias, *up_bias, *down_bias; // [count, n_ff], [count, n_ff], [count, n_embd], or NULL
    struct matrix shared_gate, shared_up, shared_down;
};

struct cpu_layer {
    const struct layer_spec *spec;
    struct norm attention_norm, attention_post_norm, ffn_norm, ffn_post_norm, query_norm, key_norm;
    const float *bias; // [q + k + v], or NULL
    const float *output_bias, *gate_bias, *up_bias, *down_bias;
    const float *sinks; // [n_head]
    struct matrix query, key, value, output, gate, up, down;
    struct cpu_experts experts;
};

// An expert that a row goes to: what its result counts for, and where in the order of experts the row lies.
struct choice {
    int expert, slot;
    float weight;
};

struct slot {
    int row;         // of the batch
    int part, index; // of ffn, and which of its rows
};

// What one layer's feed-forward computes: a dense one is one part, experts are several.
struct ffn {
    struct gated *gated;
    struct matmul *down;
    int n;
};

// What a stage does with its weights in a pass, less experts, which choose.
struct stage_cost {
    double bytes, operations;               // of those that all rows go through; operations of one row
    double output_bytes, output_operations; // of those only for rows of which something is wanted
};

struct region {
    void *data;
    size_t size;
};
enum { MAX_REGIONS = 48 };

// Rows of one segment that lie in one page.
struct row_range {
    const struct batch_segment *segment;
    int row, n_rows; // rows of the batch
    int position;    // of the first
    int result;      // where the results of the first row go; the others follow
    int n_items;     // of each part; where it is one, nothing more is said
    int partials;    // where those of the first split begin
    int counters;    // of items done, one for each part
};

// A row of which something is wanted: which one of the batch, and where its results go, or −1.
struct kept_row {
    int row, logits, hidden;
};

// A piece of attention: a range's rows and some splits of what they see.
struct attention_item {
    const struct row_range *range;
    int first_split, end_split;
};

enum {
    SPLIT_TOKENS = 512, // keys that are gone through alone; part of what the results are
    RANGE_QUERIES = 32, // that go through a page together, if the heads of one row are not more
};

// Where buffers come from: an arena for the small ones, regions for the large; all are freed at close.
struct cpu_memory {
    struct arena arena;
    struct region regions[MAX_REGIONS];
    int n_regions;
    uint64_t taken; // bytes of all buffers
    bool small_pages;
};

struct cpu_weights {
    struct cpu_layer *layers; // [n_layer], those of other backends zero
    struct norm output_norm;
    const float *output_bias;
    struct matrix output;
    struct rope_tables rope;
    struct stage_cost costs[STAGE_COUNT];
    uint64_t taken;             // bytes of copies
    uint64_t in_place;          // bytes of matrices that are read where the model has them
    struct repack *repack;      // under way; NULL: all are repacked
    struct strip_cache *caches; // [n_workers], for passes meanwhile
};

struct cpu_kv {
    struct kv_layout layout;
    int n_pages;
    size_t page_bytes, bytes; // of a page, of all
    uint8_t *pages;           // all layers', a layer's together
    struct kv_layer {
        size_t page_bytes;
        uint8_t *pages; // [n_pages], kv_page.h
    } * layers;         // [n_layer]
};

// The buffers of a pass.
struct cpu_workspace {
    int embd_stride;          // of rows of n_embd in what follows
    float *x;                 // [max_rows, embd_stride] the residual stream
    float *added;             // [max_rows, embd_stride] what a branch adds, where it is not added at once; or NULL
    float *qkv;               // [max_rows, qkv_stride] queries, keys, values
    int qkv_stride;           // for the largest of all layers
    float *rope[ROPE_TABLES]; // [max_rows, n_rot / 2, 2] cosine and sine
    float *logits;            // [max_logits, n_vocab]
    float *hidden;            // [max_hidden, n_embd], or NULL
    struct kept_row *kept;    // [max_rows]
    void *values[INPUT_ROLES], *blocks[INPUT_ROLES];
    struct input (*inputs)[INPUT_ROLES]; // [n_layer], in the buffers above
    struct input logits_in;
    struct row_range *page_ranges, *query_ranges, *output_ranges; // [max_rows] each
    int range_rows, range_queries;                                // of a query range, at most
    struct attention_item *query_items, *output_items;            // [max_rows + n_partials] each
    float *partials; // [n_partials, partial_size] what split ranges find: of each split and row all heads
    size_t n_partials, partial_size;
    atomic_int *items_done;     // [n_counters] zero between layers
    int most_parts, n_counters; // of a layer's attention, at most
    float *scratch;             // [workers, scratch_size]
    size_t scratch_size;

    // Experts. A slot is a row at one of its experts; slots are in order of experts, then of rows.
    float *expert_logits;                // [max_rows, count]
    struct choice *choices;              // [its layers, max_rows, used], best first
    float *shared_weight;                // [max_rows] of the shared expert
    float *expert_out;                   // [max_rows × used, embd_stride]
    struct slot *slots;                  // [max_rows × used]
    int *first_slot;                     // [count + 1]
    struct input *part_in, *part_middle; // [count + 1] of ffn's parts
    struct ffn ffn;                      // [count + 1]
};

struct backend {
    const struct model *model;
    const struct model_spec *spec;
    struct thread_pool *pool; // NULL: only to be measured
    int n_workers;
    const struct cpu_kernels *kernels;
    int first_layer, end_layer;
    int max_rows, max_logits, max_hidden, context, asked_context;
    bool exact;
    struct backend_info info;
    struct cpu_memory memory;
    struct cpu_weights weights;
    struct cpu_kv kv;
    struct cpu_workspace work;
};

struct pass {
    struct backend *b;
    const struct batch *batch;
    struct backend_work *work;
    int n_kept, n_logits, n_hidden; // rows of which something is wanted, and what
    double stage_began;             // worker 0
    bool stopped;                   // given up: set where all workers meet
    int n_page_ranges, n_query_ranges, n_output_ranges, n_query_items, n_output_items;
};

static inline bool has_last_layer(const struct backend *b) { return b->end_layer == b->spec->n_layer; }
static inline int query_size(const struct backend *b, const struct layer_spec *l) {
    return l->n_head * b->spec->head_size;
}
static inline int kv_size(const struct backend *b, const struct layer_spec *l) {
    return l->n_head_kv * b->spec->head_size;
}
static inline int qkv_size(const struct backend *b, const struct layer_spec *l) {
    return query_size(b, l) + 2 * kv_size(b, l);
}
static inline float *worker_scratch(const struct backend *b, const struct worker *w) {
    return b->work.scratch + (size_t)w->index * b->work.scratch_size;
}
static inline float *embd_row(const struct backend *b, float *rows, int row) {
    return rows + (size_t)row * (size_t)b->work.embd_stride;
}
static inline float *residual(const struct backend *b, int row) { return embd_row(b, b->work.x, row); }

struct share {
    int first, end;
};
static inline struct share row_share(const struct worker *w, int n) {
    return (struct share){(int)((int64_t)n * w->index / w->count), (int)((int64_t)n * (w->index + 1) / w->count)};
}

// buffers.c
bool buffers_open(struct backend *b, struct status *st);
// A zeroed buffer that lives as long as the backend, of count × size bytes; NULL with a status on overflow or exhausted
// memory.
void *buffer_take(struct backend *b, uint64_t count, uint64_t size, const char *what, struct status *st);

// weights.c
bool weights_open(struct backend *b, const struct backend_options *options, struct status *st);
// Repacks a few of the weights that were put off; false when none are left.
bool weights_repack(struct backend *b);

// forward.c: the whole pass, run by every worker.
void forward(struct worker *w, void *pass);
// x of a row += what a branch adds, which is normed first if the model says so. `added` may be overwritten.
void forward_add(const struct backend *b, int row, float *added, const struct norm *post_norm);

// experts.c, in this order with barriers between: routers say what every row thinks of the experts, in shares of all
// workers; every row chooses some; all rows are sorted by expert into b->work.feed, by one worker; rows are gathered by
// slots; (b->work.feed is computed;) a row's results are added to x.
void experts_route(const struct pass *p, struct worker *w, int layer, int n_rows);
void experts_choose(const struct pass *p, int layer, struct share rows, float *scratch);
void experts_sort(struct pass *p, int layer, int n_rows);
void experts_gather(const struct pass *p, int layer, int n_rows, struct share slots);
void experts_add(const struct pass *p, int layer, struct share rows, float *scratch);
// Floats of scratch that a worker needs.
size_t experts_scratch(const struct model_spec *spec);

// kv.c
bool kv_open(struct backend *b, struct status *st);
// The keys of a page of one of the backend's layers at a kv head; the values follow.
uint8_t *kv_at(const struct backend *b, int layer, int32_t page, int kv_head);
// What the batch of a pass does to whole pages. Workers share out layers, so that each list keeps its order.
void kv_move(struct worker *w, void *pass);

// device.c
int cpu_devices(struct device *out, int most);
void cpu_heaps(int device, struct device *out);

// attention.c
// Floats of scratch that a worker needs, for this many queries at once.
size_t attention_scratch(const struct model_spec *spec, int queries);
// How many rows of this layer go through a page together.
int attention_range_rows(const struct layer_spec *layer);
// Writes the keys and values of a range's rows into its page, and makes the rows' queries ready where they lie.
void attention_store(const struct pass *p, int layer, const struct row_range *range, int kv_head, float *scratch);
// In how many parts each item is handed out: its kv heads, or one part of all.
int attention_parts(const struct backend *b, int layer);
// Attends from every row of an item's range to the item's splits. Where the range has one item, that puts the results
// into `out`; else whoever finishes the last of them does, from what all have found.
void attention_attend(const struct pass *p, int layer, const struct attention_item *item, int part,
                      const struct input *out, float *scratch);
// Keys that a row at this position sees in a layer.
int attention_keys(const struct layer_spec *layer, int position);

// attention_items.c
// How many partials there is room for.
size_t attention_partials(const struct backend *b);
// Cuts n ranges into items, those of ranges that make several at the end; returns how many there are.
int attention_plan(const struct backend *b, struct row_range *ranges, int n, struct attention_item *items);

#endif
