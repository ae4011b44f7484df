// What the files of the CPU backend share: the opened model, its buffers, and one pass over a batch.
//
// A pass is SPMD: every worker runs forward() and they meet at barriers between steps. Within a step each item of work
// writes its own part of a buffer, so nothing is locked.
#ifndef CONFAB_CPU_CPU_H
#define CONFAB_CPU_CPU_H

#include "engine/backend.h"
#include "engine/cpu/matrix.h"

struct cpu_layer {
    const float *attention_norm, *feed_norm;
    const float *query_norm, *key_norm; // NULL without qk_norm
    const float *bias;                  // [q + k + v], or NULL
    struct matrix query, key, value, output, gate, up, down;
};

struct region {
    void *data;
    size_t size;
};

// Rows of one segment that lie in one page.
struct row_range {
    const struct batch_segment *segment;
    int row, n_rows; // rows of the batch
    int position;    // of the first
    int result;      // where the results of the first row go; the others follow
};

struct backend {
    const struct model *model;
    const struct model_spec *spec;
    struct thread_pool *pool;
    const struct cpu_kernels *kernels;
    int n_pages, max_rows, max_outputs;
    bool exact;
    struct arena arena;
    struct region regions[16]; // large buffers, freed at close
    int n_regions;
    char description[64];

    struct cpu_layer *layers; // [n_layer]
    const float *output_norm;
    struct matrix output;
    double *frequency;     // [n_rot / 2] radians a position
    double weight_bytes, output_bytes, operations_a_row, operations_an_output; // for struct backend_work

    size_t page_bytes; // of one layer
    uint8_t *kv;       // [n_layer][n_pages][page_bytes]

    // Buffers of a pass.
    float *x;      // [max_rows, n_embd] the residual stream
    float *qkv;    // [max_rows, qkv_size] queries, keys, values
    float *rope;   // [max_rows, n_rot / 2, 2] cosine and sine
    float *logits; // [max_outputs, n_vocab]
    struct input attention_in, attention_out, feed_in, feed_down, logits_in;
    struct row_range *page_ranges, *query_ranges, *output_ranges; // [max_rows] each
    float *scratch; // [workers, scratch_size]
    size_t scratch_size;
};

struct pass {
    struct backend *b;
    const struct batch *batch;
    struct backend_work *work;
    double stage_began; // worker 0
    int n_page_ranges, n_query_ranges, n_output_ranges;
};

static inline int query_size(const struct model_spec *s) { return s->n_head * s->head_size; }
static inline int kv_size(const struct model_spec *s) { return s->n_head_kv * s->head_size; }
static inline int qkv_size(const struct model_spec *s) { return query_size(s) + 2 * kv_size(s); }
static inline float *worker_scratch(const struct backend *b, const struct worker *w) {
    return b->scratch + (size_t)w->index * b->scratch_size;
}

// weights.c
bool weights_open(struct backend *b, struct status *st);
// A zeroed buffer that lives as long as the backend, of count × size bytes; NULL with a status on overflow or exhausted
// memory.
void *buffer_take(struct backend *b, uint64_t count, uint64_t size, const char *what, struct status *st);

// forward.c: the whole pass, run by every worker.
void forward(struct worker *w, void *pass);

// attention.c
size_t attention_page_bytes(const struct model_spec *spec, bool exact); // of one layer
// Floats of scratch that a worker needs.
size_t attention_scratch(const struct model_spec *spec);
// How many rows a query range may have.
int attention_range_rows(const struct model_spec *spec);
// Writes the keys and values of a range's rows into its page.
void attention_store(const struct pass *p, int layer, const struct row_range *range, int kv_head, float *scratch);
// Attends from every row of a range and puts the results into `out`. Items are ranges × attention_parts.
int attention_parts(const struct backend *b);
void attention_attend(const struct pass *p, int layer, const struct row_range *range, int part, const struct input *out,
                      float *scratch);
// Bytes of keys and values that a row at this position reads, in one layer.
size_t attention_bytes(const struct backend *b, int position);

#endif
