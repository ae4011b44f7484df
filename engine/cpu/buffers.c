// The buffers of a pass, sized for the largest batch and the largest layer.
#include <assert.h>
#include <inttypes.h>
#include <sys/mman.h>

#include "engine/base/numa.h"
#include "engine/base/reader.h"
#include "engine/cpu/cpu.h"

enum { LARGE_BUFFER = 1 << 20 }; // from here on a buffer has pages of its own

void *buffer_take(struct backend *b, uint64_t count, uint64_t size, const char *what, struct status *st) {
    uint64_t bytes;
    if (!checked_mul(count, size, &bytes) || bytes > SIZE_MAX / 2) {
        status_fail(st, STATUS_LIMIT, "%s: %" PRIu64 " items of %" PRIu64 " bytes overflow", what, count, size);
        return NULL;
    }
    b->taken += bytes;
    if (bytes < LARGE_BUFFER) return arena_alloc(&b->arena, (size_t)bytes);
    assert(b->n_regions < MAX_REGIONS);
    void *p = region_alloc((size_t)bytes);
    if (!p) {
        status_fail(st, STATUS_MEMORY, "%s: no memory for %" PRIu64 " bytes", what, bytes);
        return NULL;
    }
    b->regions[b->n_regions++] = (struct region){p, (size_t)bytes};
    if (b->small_pages) madvise(p, (size_t)bytes, MADV_NOHUGEPAGE);
    numa_spread(numa_machine(), p, (size_t)bytes);
    return p;
}

// --- keys and values -------------------------------------------------------------------------------------------------

static bool open_pages(struct backend *b, struct status *st) {
    uint64_t page = 0, bytes = 0;
    for (int i = b->first_layer; i < b->end_layer; i++) {
        b->layers[i].page_bytes = kv_page_bytes(&b->kv_layout, b->layers[i].spec->n_head_kv);
        page += b->layers[i].page_bytes;
    }
    if (!(b->kv = buffer_take(b, (uint64_t)b->n_pages, page, "the KV cache", st))) return false;
    for (int i = b->first_layer; i < b->end_layer; i++) {
        b->layers[i].kv = b->kv + bytes;
        bytes += b->layers[i].page_bytes * (uint64_t)b->n_pages;
    }
    b->kv_bytes = (size_t)bytes;
    return true;
}

// --- inputs ----------------------------------------------------------------------------------------------------------

// The forms in which an input is kept follow from what reads it.
static void note_reader(struct input *in, const struct matrix *m) {
    if (!m->format) return;
    in->columns = m->columns;
    in->wants_blocks |= m->prepared;
    in->wants_values |= !m->prepared;
}

static void note_readers(const struct backend *b, struct cpu_layer *l) {
    const struct cpu_experts *x = &l->experts;
    const struct {
        enum input_role role;
        const struct matrix *matrix;
    } readers[] = {
        {INPUT_ATTENTION, &l->query},  {INPUT_ATTENTION, &l->key},  {INPUT_ATTENTION, &l->value},
        {INPUT_ATTENDED, &l->output},  {INPUT_FEED, &l->gate},      {INPUT_FEED, &l->up},
        {INPUT_FEED_MIDDLE, &l->down}, {INPUT_FEED, &x->router},    {INPUT_FEED, &x->shared_router},
        {INPUT_FEED, &x->shared_gate}, {INPUT_FEED, &x->shared_up}, {INPUT_FEED_MIDDLE, &x->shared_down},
    };
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        note_reader(&l->inputs[readers[i].role], readers[i].matrix);
    for (int i = 0; l->spec->experts && i < b->spec->experts.count; i++) {
        const struct matrix *in[] = {&x->gate[i], &x->up[i]};
        for (int k = 0; k < 2; k++) { // what is gathered is there before
            note_reader(&l->inputs[INPUT_FEED], in[k]);
            note_reader(&l->inputs[INPUT_EXPERTS], in[k]);
        }
        note_reader(&l->inputs[INPUT_EXPERTS_MIDDLE], &x->down[i]);
    }
    // Heads that are no whole blocks are put together as values first.
    l->inputs[INPUT_ATTENDED].wants_values |=
        l->spec->n_head / l->spec->n_head_kv * b->spec->head_size % BLOCK_COLUMNS != 0;
}

static uint64_t role_rows(const struct backend *b, enum input_role role) {
    const uint64_t rows = (uint64_t)b->max_rows;
    if (role == INPUT_LOGITS) return (uint64_t)b->max_logits;
    return role == INPUT_EXPERTS || role == INPUT_EXPERTS_MIDDLE ? rows * (uint64_t)b->spec->experts.used : rows;
}

static void use_buffers(const struct backend *b, struct input *in, enum input_role role) {
    in->values = in->wants_values ? b->values[role] : NULL;
    in->blocks = in->wants_blocks ? b->blocks[role] : NULL;
}

static bool open_role(struct backend *b, enum input_role role, struct status *st) {
    uint64_t values = 0, blocks = 0;
    for (int i = b->first_layer; i <= b->end_layer; i++) {
        const struct input *in = i < b->end_layer ? &b->layers[i].inputs[role] : &b->logits_in;
        if (i == b->end_layer && role != INPUT_LOGITS) continue;
        const uint64_t columns = (uint64_t)in->columns;
        if (in->wants_values && values < columns) values = columns;
        if (in->wants_blocks && blocks < columns / BLOCK_COLUMNS) blocks = columns / BLOCK_COLUMNS;
    }
    const uint64_t rows = role_rows(b, role), block = sizeof(struct activation_block);
    if (values && !(b->values[role] = buffer_take(b, rows, values * sizeof(float), "activations", st))) return false;
    if (blocks && !(b->blocks[role] = buffer_take(b, rows, blocks * block, "activations", st))) return false;
    for (int i = b->first_layer; i < b->end_layer; i++) use_buffers(b, &b->layers[i].inputs[role], role);
    return true;
}

static bool open_inputs(struct backend *b, struct status *st) {
    for (int i = b->first_layer; i < b->end_layer; i++) note_readers(b, &b->layers[i]);
    note_reader(&b->logits_in, &b->output);
    for (int role = 0; role < INPUT_ROLES; role++)
        if (!open_role(b, role, st)) return false;
    use_buffers(b, &b->logits_in, INPUT_LOGITS);
    return true;
}

// --- everything else -------------------------------------------------------------------------------------------------

static bool open_rope(struct backend *b, struct status *st) {
    const struct rope_spec *rope = &b->spec->rope;
    for (int t = 0; t < ROPE_TABLES; t++)
        if (b->frequency[t] && !(b->rope[t] = buffer_take(b, (uint64_t)b->max_rows,
                                                          (uint64_t)rope->n_rot * sizeof(float), "rotations", st)))
            return false;
    return true;
}

static bool open_experts(struct backend *b, struct status *st) {
    const struct expert_spec *e = &b->spec->experts;
    const uint64_t rows = (uint64_t)b->max_rows, slots = rows * (uint64_t)e->used, parts = (uint64_t)e->count + 1;
    if (!e->count) return true;
    b->part_in = arena_alloc(&b->arena, (size_t)parts * sizeof *b->part_in);
    b->part_middle = arena_alloc(&b->arena, (size_t)parts * sizeof *b->part_middle);
    b->feed.gated = arena_alloc(&b->arena, (size_t)parts * sizeof *b->feed.gated);
    b->feed.down = arena_alloc(&b->arena, (size_t)parts * sizeof *b->feed.down);
    b->first_slot = arena_alloc(&b->arena, (size_t)parts * sizeof *b->first_slot);
    return (b->choices =
                buffer_take(b, slots, (uint64_t)(b->end_layer - b->first_layer) * sizeof *b->choices, "choices", st)) &&
           (b->expert_logits = buffer_take(b, rows, (uint64_t)e->count * sizeof *b->expert_logits, "choices", st)) &&
           (b->shared_weight = buffer_take(b, rows, sizeof *b->shared_weight, "choices", st)) &&
           (b->slots = buffer_take(b, slots, sizeof *b->slots, "choices", st)) &&
           (b->expert_out =
                buffer_take(b, slots, (uint64_t)b->embd_stride * sizeof *b->expert_out, "results of experts", st));
}

static bool adds_later(const struct backend *b) {
    for (int i = b->first_layer; i < b->end_layer; i++) {
        const struct cpu_layer *l = &b->layers[i];
        if (l->attention_post_norm.weight || l->feed_post_norm.weight || l->experts.shared_up.format) return true;
    }
    return false;
}

// From one row to the next, for n floats: an odd number of cache lines, so that the same columns of many rows, which a
// product writes together, do not crowd into a few sets of the caches.
static int row_stride(int n) { return (n + 15) / 16 * 16 | 16; }

// The largest of all layers.
static void find_extremes(struct backend *b) {
    int group = 1, rows = KV_PAGE_TOKENS;
    for (int i = b->first_layer; i < b->end_layer; i++) {
        const struct layer_spec *l = b->layers[i].spec;
        const int size = qkv_size(b, l);
        if (b->qkv_stride < size) b->qkv_stride = size;
        if (group < l->n_head / l->n_head_kv) group = l->n_head / l->n_head_kv;
        if (rows > attention_range_rows(l)) rows = attention_range_rows(l);
        if (b->most_parts < l->n_head_kv) b->most_parts = l->n_head_kv;
        const size_t findings = (size_t)l->n_head * ((size_t)b->kv_layout.padded + 2);
        if (b->finding_size < findings) b->finding_size = findings;
    }
    b->qkv_stride = row_stride(b->qkv_stride);
    b->embd_stride = row_stride(b->spec->n_embd);
    b->range_rows = rows;
    b->range_queries = rows * group;
}

static bool open_items(struct backend *b, struct status *st) {
    const uint64_t rows = (uint64_t)b->max_rows;
    b->n_findings = attention_findings(b);
    b->n_counters = b->n_workers * b->most_parts * 8;
    b->items_done = arena_alloc(&b->arena, (size_t)b->n_counters * sizeof *b->items_done);
    const uint64_t items = rows + b->n_findings;
    return (b->query_items = buffer_take(b, items, sizeof *b->query_items, "ranges", st)) &&
           (b->output_items = buffer_take(b, items, sizeof *b->output_items, "ranges", st)) &&
           (b->exact || (b->findings = buffer_take(b, b->n_findings, b->finding_size * sizeof *b->findings,
                                                   "what attention finds", st)));
}

static size_t largest(size_t a, size_t b) { return a > b ? a : b; }

bool buffers_open(struct backend *b, struct status *st) {
    const struct model_spec *s = b->spec;
    const uint64_t rows = (uint64_t)b->max_rows, workers = (uint64_t)b->n_workers;
    find_extremes(b);
    b->scratch_size = largest((size_t)s->n_embd, attention_scratch(s, b->range_queries));
    b->scratch_size = (largest(b->scratch_size, experts_scratch(s)) + 15) & ~(size_t)15;
    const uint64_t row_bytes = (uint64_t)b->embd_stride * sizeof *b->x;
    const uint64_t logits = has_last_layer(b) ? (uint64_t)b->max_logits : 0;
    return (b->x = buffer_take(b, rows, row_bytes, "residuals", st)) &&
           (!adds_later(b) || (b->added = buffer_take(b, rows, row_bytes, "residuals", st))) &&
           (b->qkv = buffer_take(b, rows, (uint64_t)b->qkv_stride * sizeof *b->qkv, "queries", st)) &&
           (!logits || (b->logits = buffer_take(b, logits, (uint64_t)s->n_vocab * sizeof *b->logits, "logits", st))) &&
           (!b->max_hidden || !has_last_layer(b) ||
            (b->hidden =
                 buffer_take(b, (uint64_t)b->max_hidden, (uint64_t)s->n_embd * sizeof *b->hidden, "results", st))) &&
           (b->kept = buffer_take(b, rows, sizeof *b->kept, "ranges", st)) &&
           (b->page_ranges = buffer_take(b, rows, sizeof *b->page_ranges, "ranges", st)) &&
           (b->query_ranges = buffer_take(b, rows, sizeof *b->query_ranges, "ranges", st)) &&
           (b->output_ranges = buffer_take(b, rows, sizeof *b->output_ranges, "ranges", st)) &&
           (b->scratch = buffer_take(b, workers, b->scratch_size * sizeof *b->scratch, "scratch", st)) &&
           open_items(b, st) && open_rope(b, st) && open_inputs(b, st) && open_experts(b, st) && open_pages(b, st);
}
