// The buffers of a pass, sized for the largest batch and the largest layer.
#include <assert.h>
#include <string.h>

#include "engine/vulkan/cooperative.h"
#include "engine/vulkan/vulkan.h"

static uint64_t reserve(uint64_t *used, uint64_t count, uint64_t size) {
    const uint64_t at = *used;
    *used += (count * size + 255) / 256 * 256;
    return at;
}

// Quantised rows of activations.
static uint64_t reserve_codes(uint64_t *used, uint64_t rows, uint32_t stride) {
    return reserve(used, rows, stride / 32 * PIECE_BYTES);
}

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

static void find_strides(struct backend *b) {
    struct device_workspace *w = &b->work;
    const struct model_spec *s = b->spec;
    w->embd_stride = stride_of(s->n_embd);
    w->expert_stride = stride_of(s->experts.n_ff);
    w->score_stride = stride_of(s->experts.count);
    for (int i = b->first_layer; i < b->end_layer; i++) {
        const struct layer_spec *l = &s->layers[i];
        w->qkv_stride = larger(w->qkv_stride, stride_of((l->n_head + 2 * l->n_head_kv) * s->head_size));
        w->attended_stride = larger(w->attended_stride, stride_of(l->n_head * s->head_size));
        w->ffn_stride = larger(w->ffn_stride, stride_of(l->experts ? s->experts.n_ff_shared : l->n_ff));
    }
}

static uint64_t halves_bytes(const struct backend *b, uint64_t rows, uint64_t slots) {
    const struct device_workspace *w = &b->work;
    const uint32_t stride = larger(larger(w->embd_stride, w->attended_stride), w->ffn_stride);
    const uint64_t dense = rows * cooperative_stride(stride), experts = slots * cooperative_stride(w->expert_stride);
    return sizeof(uint16_t) * larger(dense, experts);
}

static uint64_t matrix_halves(const struct device_matrix *m, int n) {
    return m->format ? sizeof(uint16_t) * m->rows * cooperative_stride(m->columns) * (uint64_t)n : 0;
}

// Room for the largest matrix, or a slice of it: one expert at least. Devices without cooperative matrices need none.
static uint64_t widened_bytes(const struct backend *b) {
    const struct vulkan_device *d = b->context.device; // NULL: it is not known yet
    if (d && !d->cooperative.m) return 0;
    const uint64_t wanted = d ? d->widened_bytes : VULKAN_WIDENED_BYTES;
    const int n_experts = b->spec->experts.count;
    uint64_t largest = has_last_layer(b) ? matrix_halves(&b->weights.output, 1) : 0, least = 0;
    for (int i = b->first_layer; i < b->end_layer; i++) {
        const struct device_layer *l = &b->weights.layers[i];
        const struct device_experts *e = &l->experts;
        const struct device_matrix *const dense[] = {&l->query,       &l->key,       &l->value,      &l->output,
                                                     &l->gate,        &l->up,        &l->down,       &e->router,
                                                     &e->shared_gate, &e->shared_up, &e->shared_down};
        const struct device_matrix *const experts[] = {&e->gate, &e->up, &e->down};
        for (size_t k = 0; k < sizeof dense / sizeof *dense; k++) largest = larger(largest, matrix_halves(dense[k], 1));
        for (size_t k = 0; k < sizeof experts / sizeof *experts; k++) {
            largest = larger(largest, matrix_halves(experts[k], n_experts));
            least = larger(least, matrix_halves(experts[k], 1));
        }
    }
    return larger(least, largest < wanted ? largest : wanted);
}

// Notes where everything is in the device buffer that begins there; returns its size.
static uint64_t place_device(struct backend *b, VkDeviceAddress begin) {
    struct device_workspace *w = &b->work;
    const uint64_t rows = (uint64_t)b->max_rows, slots = rows * (uint64_t)b->spec->experts.used;
    const uint64_t embd = 4 * (uint64_t)w->embd_stride, expert = 4 * (uint64_t)w->expert_stride;
    uint64_t used = begin;
    w->x = reserve(&used, rows, embd);
    w->kept_x = reserve(&used, rows, embd);
    w->normed = reserve(&used, rows, embd);
    w->ffn_in = reserve(&used, rows, embd);
    w->added = reserve(&used, rows, embd);
    w->qkv = reserve(&used, rows, 4 * (uint64_t)w->qkv_stride);
    w->attended = reserve(&used, rows, 4 * (uint64_t)w->attended_stride);
    w->gate = reserve(&used, rows, 4 * (uint64_t)w->ffn_stride);
    w->up = reserve(&used, rows, 4 * (uint64_t)w->ffn_stride);
    w->normed_codes = reserve_codes(&used, rows, w->embd_stride);
    w->ffn_in_codes = reserve_codes(&used, rows, w->embd_stride);
    w->attended_codes = reserve_codes(&used, rows, w->attended_stride);
    w->gate_codes = reserve_codes(&used, rows, w->ffn_stride);
    w->parts = reserve(&used, WORKSPACE_PARTS, sizeof(float));
    w->scores = reserve(&used, rows, 4 * (uint64_t)w->score_stride);
    w->shared_score = reserve(&used, rows, sizeof(float));
    w->choices = reserve(&used, slots, 2 * sizeof(int32_t));
    w->expert_order = reserve(&used, slots, sizeof(int32_t));
    w->expert_tiles = reserve(&used, slots, 3 * sizeof(uint32_t));
    w->expert_gate = reserve(&used, slots, expert);
    w->expert_gate_codes = reserve_codes(&used, slots, w->expert_stride);
    w->expert_up = reserve(&used, slots, expert);
    w->expert_out = reserve(&used, slots, embd);
    w->logits_in = reserve(&used, (uint64_t)b->max_logits, embd);
    w->logits_in_codes = reserve_codes(&used, (uint64_t)b->max_logits, w->embd_stride);
    w->logits_out = reserve(&used, (uint64_t)b->max_logits, 4 * (uint64_t)b->spec->n_vocab);
    w->halves = reserve(&used, 1, halves_bytes(b, rows, slots));
    w->half_scales = reserve(&used, rows + slots, sizeof(float));
    w->widened_bytes = widened_bytes(b);
    w->widened = reserve(&used, 1, w->widened_bytes);
    w->hidden_out = reserve(&used, (uint64_t)b->max_hidden, 4 * (uint64_t)b->spec->n_embd);
    return used - begin;
}

uint64_t workspace_bytes(struct backend *b) {
    find_strides(b);
    return place_device(b, 0);
}

static bool open_device(struct backend *b, struct status *st) {
    struct device_workspace *w = &b->work;
    struct vulkan_context *c = &b->context;
    if (!vulkan_buffer_open(c->device, &w->device, workspace_bytes(b), VULKAN_MEMORY_DEVICE, "activations", st))
        return false;
    place_device(b, w->device.address);
    return vulkan_clear(c, &w->device, st);
}

static struct step_part reserve_step(uint64_t *used, int rows, uint64_t row_bytes) {
    const uint64_t bytes = (uint64_t)rows * row_bytes;
    return (struct step_part){.offset = reserve(used, 1, bytes), .bytes = bytes, .row_bytes = row_bytes};
}

enum { STEP_PARTS = 6 + ROPE_TABLES };

static void list_step_parts(struct device_workspace *w, struct step_part *out[STEP_PARTS]) {
    struct step_part *const parts[] = {&w->tokens,      &w->rows,       &w->kept,         &w->logits_rows,
                                       &w->hidden_rows, &w->embeddings, &w->rotations[0], &w->rotations[1]};
    static_assert(sizeof parts / sizeof *parts == STEP_PARTS, "every part");
    memcpy(out, parts, sizeof parts);
}

static bool open_step(struct backend *b, struct status *st) {
    struct device_workspace *w = &b->work;
    struct step_part *parts[STEP_PARTS];
    uint64_t used = 0;
    w->tokens = reserve_step(&used, b->max_rows, sizeof(int32_t));
    w->rows = reserve_step(&used, b->max_rows, sizeof(struct row_info));
    w->kept = reserve_step(&used, b->max_rows, sizeof(int32_t));
    w->logits_rows = reserve_step(&used, b->max_logits, sizeof(int32_t));
    w->hidden_rows = reserve_step(&used, b->max_hidden, sizeof(int32_t));
    for (int i = 0; i < ROPE_TABLES; i++)
        if (b->weights.rope.frequency[i])
            w->rotations[i] = reserve_step(&used, b->max_rows, (uint64_t)b->spec->rope.n_rot * sizeof(float));
    w->embeddings = reserve_step(&used, b->max_rows, 4 * (uint64_t)w->embd_stride);
    if (!vulkan_input_open(b->context.device, &w->step, used, "the rows of a step", st)) return false;
    list_step_parts(w, parts);
    for (int i = 0; i < STEP_PARTS; i++) {
        parts[i]->host = (char *)w->step.mapped + parts[i]->offset;
        parts[i]->address = w->step.address + parts[i]->offset;
    }
    return true;
}

void workspace_record_input(struct backend *b, int n_rows) {
    struct device_workspace *w = &b->work;
    struct step_part *parts[STEP_PARTS];
    if (!w->step.copy.buffer && !w->pages.copy.buffer) return;
    list_step_parts(w, parts);
    for (int i = 0; i < STEP_PARTS; i++) {
        const uint64_t wanted = (uint64_t)n_rows * parts[i]->row_bytes;
        const uint64_t size = wanted < parts[i]->bytes ? wanted : parts[i]->bytes;
        if (size) vulkan_copy_input(&b->context, &w->step, parts[i]->offset, size);
    }
    vulkan_copy_input(&b->context, &w->pages, 0, w->pages.size);
    vulkan_barrier_copies(&b->context);
}

bool workspace_open(struct backend *b, struct status *st) {
    struct device_workspace *w = &b->work;
    find_strides(b);
    const uint64_t logits = (uint64_t)b->max_logits * (uint64_t)b->spec->n_vocab * sizeof(float);
    const uint64_t hidden = has_last_layer(b) ? (uint64_t)b->max_hidden * (uint64_t)b->spec->n_embd * sizeof(float)
                                              : (uint64_t)b->max_rows * w->embd_stride * sizeof(float);
    w->hidden_readback = has_last_layer(b) ? logits : 0;
    return open_device(b, st) && open_step(b, st) &&
           vulkan_buffer_open(b->context.device, &w->readback, w->hidden_readback + hidden, VULKAN_MEMORY_READBACK,
                              "results", st);
}

void workspace_close(struct backend *b) {
    vulkan_input_close(b->context.device, &b->work.step);
    vulkan_input_close(b->context.device, &b->work.pages);
    vulkan_buffer_close(b->context.device, &b->work.device);
    vulkan_buffer_close(b->context.device, &b->work.readback);
}
