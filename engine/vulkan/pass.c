// Passes: the host lays out the rows in the step buffer, and runs the commands for as many; where there are none yet
// they are recorded.
#include "engine/vulkan/pass.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/base/system.h"
#include "engine/vulkan/shaders.h"

// ---- what the rows are, in the step buffer ----

static void write_rotations(struct backend *b, int row, int position) {
    const int n_rot = b->spec->rope.n_rot;
    for (int t = 0; t < ROPE_TABLES; t++)
        if (b->weights.rope.frequency[t])
            rope_rotation(&b->weights.rope, (enum rope_table)t, n_rot, position,
                          (float *)b->work.rotations[t].host + (size_t)row * (size_t)n_rot);
}

// What the first layer reads of a row, where that is no token of the matrix.
static const float *row_input(const struct pass *p, int row) {
    const struct batch *batch = p->batch;
    return p->b->first_layer ? batch->hidden + (size_t)row * (size_t)batch->hidden_stride : batch->rows[row].embedding;
}

static void write_row(struct pass *p, int row, int position, int first_page) {
    struct backend *b = p->b;
    struct device_workspace *w = &b->work;
    const struct batch_row *from = &p->batch->rows[row];
    const float *input = row_input(p, row);
    ((struct row_info *)w->rows.host)[row] = (struct row_info){
        .position = position, .first_page = first_page, .query_scale = rope_query_scale(b->spec, position)};
    ((int32_t *)w->tokens.host)[row] = input ? -1 : from->token;
    if (input)
        memcpy((float *)w->embeddings.host + (size_t)row * w->embd_stride, input,
               (size_t)b->spec->n_embd * sizeof *input);
    write_rotations(b, row, position);
    if (!from->output || !has_last_layer(b)) return;
    if (from->output & ROW_LOGITS) ((int32_t *)w->logits_rows.host)[p->shape.n_logits++] = p->shape.n_kept;
    if (from->output & ROW_HIDDEN) ((int32_t *)w->hidden_rows.host)[p->shape.n_hidden++] = p->shape.n_kept;
    ((int32_t *)w->kept.host)[p->shape.n_kept++] = row;
}

static int pages_of(const struct batch_segment *s) { return (s->position + s->n_rows - 1) / KV_PAGE_TOKENS + 1; }

// The page list grows with what the batches need.
static bool make_room(struct pass *p) {
    struct device_workspace *w = &p->b->work;
    uint64_t n = 0;
    for (int i = 0; i < p->batch->n_segments; i++) n += (uint64_t)pages_of(&p->batch->segments[i]);
    if (n * sizeof(VkDeviceAddress) <= w->pages.size) return true;
    passes_close(p->b); // they have its address
    vulkan_input_close(p->b->context.device, &w->pages);
    return vulkan_input_open(p->b->context.device, &w->pages, 2 * n * sizeof(VkDeviceAddress), "the page list", p->st);
}

enum { LONG_SEGMENT = 4 }; // rows

static bool write_rows(struct pass *p) {
    if (!make_room(p)) return false;
    int first_page = 0;
    p->shape.reach = 1;
    p->shape.long_segments = p->shape.n_rows >= LONG_SEGMENT * p->batch->n_segments;
    for (int i = 0; i < p->batch->n_segments; i++) {
        const struct batch_segment *s = &p->batch->segments[i];
        const int n = pages_of(s);
        VkDeviceAddress *pages = (VkDeviceAddress *)p->b->work.pages.mapped + first_page;
        for (int k = 0; k < n; k++) pages[k] = page_address(p->b, s->pages[k]);
        for (int k = 0; k < s->n_rows; k++) write_row(p, s->first_row + k, s->position + k, first_page);
        first_page += n;
        while (p->shape.reach <= (s->position + s->n_rows) / 2) p->shape.reach *= 2;
    }
    assert(p->shape.n_logits <= p->b->max_logits && p->shape.n_hidden <= p->b->max_hidden);
    return true;
}

// ---- commands ----

static void list_pipeline(struct pipeline_list *list, const char *shader, const uint32_t *constants, int n) {
    struct vulkan_pipeline wanted = {.shader = shader_find(shader)->name, .n_constants = n};
    memcpy(wanted.constants, constants, (size_t)n * sizeof *constants);
    for (int i = 0; i < list->n; i++)
        if (!memcmp(&list->items[i], &wanted, sizeof wanted)) return;
    if (list->n < VULKAN_MOST_PIPELINES) list->items[list->n++] = wanted;
}

void pass_run(struct pass *p, const char *shader, const uint32_t *constants, int n, const void *push, size_t size,
              uint32_t x, uint32_t y, uint32_t z) {
    if (!p->ok || !x || !y || !z) return;
    if (!p->record) {
        list_pipeline(p->list, shader, constants, n);
        return;
    }
    const VkPipeline pipeline = vulkan_pipeline(p->b->context.device, shader, constants, n, p->st);
    p->ok = pipeline != VK_NULL_HANDLE;
    if (p->ok) vulkan_dispatch(&p->b->context, pipeline, push, size, x, y, z);
}

void pass_barrier(struct pass *p) {
    p->halved = p->widened_begin = p->widened_end = 0;
    if (p->ok && p->record) vulkan_barrier(&p->b->context);
}

static int times_of_list(const struct pass *p) { return 3 + 4 * (p->b->end_layer - p->b->first_layer); }

static void begin_list(struct pass *p) {
    struct recorded_pass *r = p->record;
    struct vulkan_context *c = &p->b->context;
    struct recorded_list *l = &r->lists[r->n_lists++];
    const int n = p->shape.timed ? times_of_list(p) : 0;
    l->ends = xcalloc((size_t)n + 1, sizeof *l->ends);
    p->ok = vulkan_list_open(c, &l->commands, n, p->st) && vulkan_begin(c, &l->commands, p->st);
    if (p->ok) vulkan_time(c);
    p->list_operations = 0;
}

void pass_end_stage(struct pass *p, enum backend_stage stage) {
    struct recorded_pass *r = p->record;
    if (!p->ok || !r) return;
    struct recorded_list *l = &r->lists[r->n_lists - 1];
    stage_work_add(&r->work.stages[stage], &p->work, 1);
    p->list_operations += p->work.operations;
    p->work = (struct stage_work){0};
    vulkan_time(&p->b->context);
    if (l->commands.n_times) l->ends[l->commands.n_times - 1] = (uint8_t)stage;
    if (p->list_operations < p->b->context.device->list_operations || r->n_lists == MOST_LISTS || stage == STAGE_LOGITS)
        return;
    p->ok = vulkan_end(&p->b->context, p->st);
    if (p->ok) begin_list(p);
}

// ---- results ----

// From an address in the device buffer.
static void copy_result(struct backend *b, VkDeviceAddress from, uint64_t to, uint64_t size) {
    const struct device_workspace *w = &b->work;
    vulkan_copy(&b->context, &w->device, from - w->device.address, &w->readback, to, size);
}

static void copy_results(struct pass *p) {
    struct backend *b = p->b;
    const struct device_workspace *w = &b->work;
    const uint64_t row = 4ull * (uint64_t)b->spec->n_vocab, hidden = 4ull * (uint64_t)b->spec->n_embd;
    vulkan_barrier_copies(&b->context);
    if (!has_last_layer(b)) copy_result(b, w->x, 0, 4ull * w->embd_stride * (uint64_t)p->shape.n_rows);
    if (p->shape.n_logits) copy_result(b, w->logits_out, 0, row * (uint64_t)p->shape.n_logits);
    if (p->shape.n_hidden) copy_result(b, w->hidden_out, w->hidden_readback, hidden * (uint64_t)p->shape.n_hidden);
}

static void count_attention(const struct backend *b, const struct batch *batch, struct stage_work *out) {
    for (int i = b->first_layer; i < b->end_layer; i++) {
        const struct device_layer *l = &b->weights.layers[i];
        for (int k = 0; k < batch->n_segments; k++) {
            const struct batch_segment *s = &batch->segments[k];
            double keys = s->position + (s->n_rows + 1) / 2; // of a row, on average
            if (l->spec->window && keys > l->spec->window) keys = l->spec->window;
            out->bytes += (double)l->page_bytes / KV_PAGE_TOKENS * (keys + s->n_rows / 2);
            out->operations += 4.0 * keys * s->n_rows * l->spec->n_head * b->spec->head_size;
        }
    }
}

static struct recorded_pass *find_pass(struct backend *b, struct pass_shape shape, bool timed) {
    shape.timed = timed;
    for (int i = 0; i < b->n_passes; i++)
        if (!memcmp(&b->passes[i].shape, &shape, sizeof shape)) return &b->passes[i];
    return NULL;
}

static void read_times(struct backend *b, struct recorded_pass *r) {
    double *seconds = xcalloc((size_t)r->lists[0].commands.most_times + 1, sizeof *seconds);
    memset(r->seconds, 0, sizeof r->seconds);
    for (int k = 0; k < r->n_lists; k++) {
        const struct recorded_list *l = &r->lists[k];
        if (!vulkan_seconds(&b->context, &l->commands, seconds)) continue;
        for (int i = 1; i < l->commands.n_times; i++) r->seconds[l->ends[i]] += seconds[i - 1];
    }
    free(seconds);
}

// Stages take as long as when they were last timed.
static void tell_work(struct backend *b, const struct batch *batch, struct recorded_pass *r, struct backend_work *out) {
    const struct recorded_pass *timed = find_pass(b, r->shape, true);
    *out = r->work;
    count_attention(b, batch, &out->stages[STAGE_ATTEND]);
    if (r->shape.timed) read_times(b, r);
    for (int i = 0; timed && i < STAGE_COUNT; i++) out->stages[i].seconds = timed->seconds[i];
}

// ---- recorded passes ----

static void pass_close(struct backend *b, struct recorded_pass *r) {
    for (int i = 0; i < r->n_lists; i++) {
        vulkan_list_close(&b->context, &r->lists[i].commands);
        free(r->lists[i].ends);
    }
    *r = (struct recorded_pass){0};
}

void passes_close(struct backend *b) {
    while (b->n_passes) pass_close(b, &b->passes[--b->n_passes]);
}

// An empty place, the one that was not used for longest where there is none.
static struct recorded_pass *find_place(struct backend *b) {
    if (b->n_passes < MOST_PASSES) return &b->passes[b->n_passes++];
    struct recorded_pass *oldest = &b->passes[0];
    for (int i = 1; i < MOST_PASSES; i++)
        if (b->passes[i].last_used < oldest->last_used) oldest = &b->passes[i];
    pass_close(b, oldest);
    return oldest;
}

static bool record(struct pass *p) {
    struct backend *b = p->b;
    struct recorded_pass *r = p->record = find_place(b);
    begin_list(p);
    if (p->ok) workspace_record_input(b, p->shape.n_rows);
    pass_stages(p);
    if (p->ok) copy_results(p);
    pass_end_stage(p, STAGE_LOGITS);
    if (p->ok && vulkan_end(&b->context, p->st)) {
        r->shape = p->shape;
        return true;
    }
    pass_close(b, r);
    return false;
}

// The first of a shape is timed, and one in many after it.
static bool find_or_record(struct pass *p) {
    enum { TIMED = 16 };
    struct backend *b = p->b;
    struct recorded_pass *timed = find_pass(b, p->shape, true);
    b->n_runs++;
    p->shape.timed = !timed || b->n_runs % TIMED == 0;
    p->record = p->shape.timed ? timed : find_pass(b, p->shape, false);
    if (!p->record && !record(p)) return false;
    p->record->last_used = b->n_runs;
    return true;
}

static bool stopped(const struct batch *batch) { return batch->stop && batch->stop(batch->stop_context); }

bool vulkan_forward(struct backend *b, const struct batch *batch, struct backend_result *out, struct status *st) {
    struct pass p = {.b = b, .batch = batch, .st = st, .shape.n_rows = batch->n_rows};
    struct vulkan_context *c = &b->context;
    const struct vulkan_list *lists[2];
    int n = 0;
    if (batch->n_copies) {
        if (!pages_record_copies(b, batch, st)) return false;
        lists[n++] = &c->once;
    }
    if (!batch->n_rows) return !n || vulkan_run(c, lists, n, st);
    if (!write_rows(&p) || !find_or_record(&p)) return false;
    for (int i = 0; i < p.record->n_lists; i++, n = 0) {
        const bool stops = stopped(batch);
        if (!stops) lists[n++] = &p.record->lists[i].commands;
        if (n && !vulkan_run(c, lists, n, st)) return false;
        if (stops) return status_fail(st, STATUS_CANCELLED, "the batch was given up");
    }
    *out = (struct backend_result){.logits = b->work.readback.mapped,
                                   .hidden = (float *)((char *)b->work.readback.mapped + b->work.hidden_readback),
                                   .hidden_stride = has_last_layer(b) ? b->spec->n_embd : (int)b->work.embd_stride};
    tell_work(b, batch, p.record, &out->work);
    return true;
}

// ---- pipelines beforehand ----

static void *build_pipelines(void *context) {
    struct pipeline_list *list = context;
    for (int i; (i = atomic_fetch_add(&list->next, 1)) < list->n;) {
        const struct vulkan_pipeline *p = &list->items[i];
        vulkan_pipeline(list->device, p->shader, p->constants, p->n_constants, NULL);
    }
    vulkan_save_pipelines(list->device);
    return NULL;
}

void pipelines_start(struct backend *b) {
    struct pipeline_list *list = b->building = xcalloc(1, sizeof *list);
    list->device = b->context.device;
    const int rows[] = {1, b->max_rows};
    for (int i = 0; i < 2; i++) {
        const int results = has_last_layer(b) && b->max_logits ? 1 : 0;
        struct pass p = {.b = b,
                         .ok = true,
                         .list = list,
                         .shape = {.n_rows = rows[i],
                                   .n_kept = results,
                                   .n_logits = results,
                                   .reach = b->asked_context,
                                   .long_segments = rows[i] >= LONG_SEGMENT}};
        pass_stages(&p);
    }
    const int most = (int)(sizeof list->threads / sizeof *list->threads), wanted = thread_pool_size(b->pool);
    while (list->n_threads < most && list->n_threads < wanted &&
           system_start_thread(&list->threads[list->n_threads], build_pipelines, list, NULL))
        list->n_threads++;
}

void pipelines_finish(struct backend *b) {
    struct pipeline_list *list = b->building;
    if (!list) return;
    atomic_store(&list->next, list->n);
    for (int i = 0; i < list->n_threads; i++) pthread_join(list->threads[i], NULL);
    free(list);
    b->building = NULL;
}
