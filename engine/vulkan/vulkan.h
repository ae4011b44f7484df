// What the files of the Vulkan backend share: the opened model on its device, and the buffers of a pass.
//
// For a pass the host writes what the rows are into the mapped step buffer and runs the commands of all layers, which
// it has recorded for as many rows before: a short one is one submission, for which it waits once. Matrices stay in the
// blocks of the file; shaders decode them. Rows of activations are f32 and start every `stride` floats, a multiple of
// 32, with zeros behind them.
#ifndef CONFAB_VULKAN_VULKAN_H
#define CONFAB_VULKAN_VULKAN_H

#include "engine/backend.h"
#include "engine/base/thread_pool.h"
#include "engine/model/rope.h"
#include "engine/vulkan/context.h"

struct device_matrix {
    const struct block_format *format; // NULL: absent
    VkDeviceAddress address;
    uint32_t rows, columns; // of experts: of one
};

struct device_norm {
    VkDeviceAddress weight, bias; // 0: none
};

struct device_experts {
    struct device_matrix router, gate, up, down; // of all experts, one behind the other
    struct device_matrix shared_gate, shared_up, shared_down, shared_router;
    VkDeviceAddress router_bias, choice_bias, gate_bias, up_bias, down_bias;
};

struct device_layer {
    const struct layer_spec *spec;
    struct device_norm attention_norm, attention_post_norm, ffn_norm, ffn_post_norm, query_norm, key_norm;
    struct device_matrix query, key, value, output, gate, up, down;
    VkDeviceAddress query_bias, key_bias, value_bias, output_bias, gate_bias, up_bias, down_bias, sinks;
    struct device_experts experts;
    uint32_t kv_start; // where it begins in a page
    uint64_t page_bytes;
};

// Weights lie in chunks, each a buffer.
enum { MOST_CHUNKS = 256 };
struct device_weights {
    struct vulkan_buffer chunks[MOST_CHUNKS];
    uint64_t sizes[MOST_CHUNKS];
    int n_chunks;
    uint64_t bytes;
    bool quantised;              // any matrix
    struct device_layer *layers; // [n_layer], those of other backends zero
    struct device_norm output_norm;
    struct device_matrix embedding, output;
    VkDeviceAddress output_bias, grids;
    struct rope_tables rope;
};

// KV pages lie in chunks, each a buffer; in a page its layers, one behind the other.
struct device_pages {
    struct vulkan_buffer *chunks; // [n_chunks]
    int n_chunks, chunk_pages;
};

struct row_info { // as in shaders/common.glsl
    int32_t position, first_page;
    float query_scale;
};

// A part of the step buffer, which the host fills in anew for every pass.
struct step_part {
    void *host;
    VkDeviceAddress address;
    uint64_t offset, bytes, row_bytes;
};

enum { WORKSPACE_PARTS = 2 << 20 };
struct device_workspace {
    struct vulkan_input step, pages;
    struct step_part tokens;                   // [max_rows]
    struct step_part rows;                     // [max_rows] struct row_info
    struct step_part kept;                     // [max_rows] rows of which something is wanted
    struct step_part logits_rows, hidden_rows; // of the kept ones: [max_logits], [max_hidden]
    struct step_part rotations[ROPE_TABLES];   // [max_rows, n_rot]
    struct step_part embeddings;               // [max_rows, embd_stride]
    uint32_t embd_stride, qkv_stride, attended_stride, ffn_stride, expert_stride, score_stride;

    struct vulkan_buffer device;             // what follows are addresses in it
    VkDeviceAddress x, kept_x;               // [max_rows, embd_stride] residuals, of all rows and of the kept ones
    VkDeviceAddress normed, ffn_in, added;   // the same size
    VkDeviceAddress qkv, attended, gate, up; // [max_rows, their stride]
    VkDeviceAddress normed_codes, ffn_in_codes, attended_codes, gate_codes; // the same quantised: shaders/codes.glsl
    VkDeviceAddress parts; // of attention, where work groups share the keys of a row: [WORKSPACE_PARTS] floats
    VkDeviceAddress scores, shared_score, choices, expert_gate, expert_gate_codes, expert_up, expert_out;
    VkDeviceAddress expert_order, expert_tiles; // slots by their experts: shaders/group.comp
    VkDeviceAddress logits_in, logits_in_codes, logits_out, hidden_out;
    VkDeviceAddress halves, half_scales; // of the rows that are multiplied: shaders/halve.comp
    VkDeviceAddress widened;             // matrices, or slices of them, as halves: shaders/widen.comp
    uint64_t widened_bytes;
    struct vulkan_buffer readback; // logits, then hidden states
    uint64_t hidden_readback;      // where those begin
};

// The commands of a pass over so many rows, of which so many results are wanted. What the rows are stands in the step
// buffer, so that they are recorded once.
//
// They are cut into lists that run one by one: systems take a device for hung when one of them takes seconds, and
// between them a batch can be given up.
struct recorded_list {
    struct vulkan_list commands;
    uint8_t *ends; // [most_times] stage that ends at each time but the first
};
enum { MOST_PASSES = 32, MOST_LISTS = 256 };
struct pass_shape { // what the commands depend on
    int n_rows;
    int n_kept, n_logits, n_hidden; // rows of which something is wanted, and what
    int reach;                      // the highest power of two that is at most the tokens of the longest conversation
    int long_segments;              // on average, or not
    int timed;                      // a timestamp after each stage: together they cost a few per cent of a short pass
};
struct recorded_pass {
    struct pass_shape shape;
    struct recorded_list lists[MOST_LISTS];
    int n_lists;
    struct backend_work work;    // without seconds, and without what depends on the rows' positions
    double seconds[STAGE_COUNT]; // of the last run of a timed one
    uint64_t last_used;
};

struct pipeline_list { // that are to be built
    struct vulkan_pipeline items[VULKAN_MOST_PIPELINES];
    int n;
    atomic_int next;
    struct vulkan_device *device;
    pthread_t threads[4];
    int n_threads;
};

struct backend {
    const struct model *model;
    const struct model_spec *spec;
    struct thread_pool *pool; // of for_each
    struct arena arena;
    struct vulkan_context context;
    int first_layer, end_layer, n_pages;
    int max_rows, max_logits, max_hidden, asked_context;
    enum kv_type kv_type;
    struct backend_info info;
    struct device_weights weights;
    struct device_pages pages;
    struct device_workspace work;
    struct recorded_pass passes[MOST_PASSES];
    int n_passes;
    uint64_t n_runs;
    struct pipeline_list *building;
};

static inline bool has_last_layer(const struct backend *b) { return b->end_layer == b->spec->n_layer; }
static inline uint32_t stride_of(int n) { return ((uint32_t)n + 31) / 32 * 32; }
enum { PIECE_BYTES = 48 }; // of 32 activations, quantised

// weights.c: places all weights of b's layers, allocates and uploads them. Without a device: only counts the bytes.
bool weights_place(struct backend *b, struct status *st);
bool weights_upload(struct backend *b, const struct backend_options *options, struct status *st);

// workspace.c
bool workspace_open(struct backend *b, struct status *st);
void workspace_close(struct backend *b);
uint64_t workspace_bytes(struct backend *b); // that it will take on the device
// Commands that bring to the device what the host writes for so many rows, where it does not write there.
void workspace_record_input(struct backend *b, int n_rows);

// pages.c
bool pages_open(struct backend *b, struct status *st);
void pages_close(struct backend *b);
uint64_t layer_page_bytes(const struct backend *b, int layer);
VkDeviceAddress page_address(const struct backend *b, int32_t page);
bool pages_transfer(struct backend *b, const struct batch *batch, struct status *st); // reads and writes
// The copies, as commands that run once.
bool pages_record_copies(struct backend *b, const struct batch *batch, struct status *st);

// limits.c
bool vulkan_limits(VkPhysicalDevice physical, struct device_limits *out, struct status *st);

// pass.c: the copies of a batch and its rows
bool vulkan_forward(struct backend *b, const struct batch *batch, struct backend_result *out, struct status *st);
void passes_close(struct backend *b);
// The pipelines that decoding one conversation and long prompts need are built on threads beside, from here on; all
// others, and those that a pass needs before, are built as they are needed.
void pipelines_start(struct backend *b);
void pipelines_finish(struct backend *b); // leaves out what is not built yet

#endif
