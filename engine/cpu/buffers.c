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
    b->memory.taken += bytes;
    if (bytes < LARGE_BUFFER) return arena_alloc(&b->memory.arena, (size_t)bytes);
    assert(b->memory.n_regions < MAX_REGIONS);
    void *p = region_alloc((size_t)bytes);
    if (!p) {
        status_fail(st, STATUS_MEMORY, "%s: no memory for %" PRIu64 " bytes", what, bytes);
        return NULL;
    }
    b->memory.regions[b->memory.n_regions++] = (struct region){p, (size_t)bytes};
    if (b->memory.small_pages) madvise(p, (size_t)bytes, MADV_NOHUGEPAGE);
    numa_spread(numa_machine(), p, (size_t)bytes);
    return p;
}

// --- inputs ----------------------------------------------------------------------------------------------------------

// The forms in which an input is kept follow from what reads it.
static void note_reader(struct input *in, const struct matrix *m) {
    if (!m->format) return;
    in->columns = m->columns;
    in->wants_blocks |= m->packed;
    in->wants_values |= !m->packed;
}

static void note_readers(const struct backend *b, const struct cpu_layer *l, struct input inputs[INPUT_ROLES]) {
    const struct cpu_experts *x = &l->experts;
    const struct {
        enum input_role role;
        const struct matrix *matrix;
    } readers[] = {
        {INPUT_ATTENTION, &l->query}, {INPUT_ATTENTION, &l->key}, {INPUT_ATTENTION, &l->value},
        {INPUT_ATTENDED, &l->output}, {INPUT_FFN, &l->gate},      {INPUT_FFN, &l->up},
        {INPUT_FFN_MIDDLE, &l->down}, {INPUT_FFN, &x->router},    {INPUT_FFN, &x->shared_router},
        {INPUT_FFN, &x->shared_gate}, {INPUT_FFN, &x->shared_up}, {INPUT_FFN_MIDDLE, &x->shared_down},
    };
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        note_reader(&inputs[readers[i].role], readers[i].matrix);
    for (int i = 0; l->spec->experts && i < b->spec->experts.count; i++) {
        const struct matrix *in[] = {&x->gate[i], &x->up[i]};
        for (int k = 0; k < 2; k++) { // what is gathered is there before
            note_reader(&inputs[INPUT_FFN], in[k]);
            note_reader(&inputs[INPUT_EXPERTS], in[k]);
        }
        note_reader(&inputs[INPUT_EXPERTS_MIDDLE], &x->down[i]);
    }
    // Heads that are no whole blocks are put together as values first.
    inputs[INPUT_ATTENDED].wants_values |=
        l->spec->n_head / l->spec->n_head_kv * b->spec->head_size % BLOCK_COLUMNS != 0;
}

static uint64_t role_rows(const struct backend *b, enum input_role role) {
    const uint64_t rows = (uint64_t)b->max_rows;
    if (role == INPUT_LOGITS) return (uint64_t)b->max_logits;
    return role == INPUT_EXPERTS || role == INPUT_EXPERTS_MIDDLE ? rows * (uint64_t)b->spec->experts.used : rows;
}

static void use_buffers(const struct backend *b, struct input *in, enum input_role role) {
    in->values = in->wants_values ? b->work.values[role] : NULL;
    in->blocks = in->wants_blocks ? b->work.blocks[role] : NULL;
}

static bool open_role(struct backend *b, enum input_role role, struct status *st) {
    uint64_t values = 0, blocks = 0;
    for (int i = b->first_layer; i <= b->end_layer; i++) {
        const struct input *in = i < b->end_layer ? &b->work.inputs[i][role] : &b->work.logits_in;
        if (i == b->end_layer && role != INPUT_LOGITS) continue;
        const uint64_t columns = (uint64_t)in->columns;
        if (in->wants_values && values < columns) values = columns;
        if (in->wants_blocks && blocks < columns / BLOCK_COLUMNS) blocks = columns / BLOCK_COLUMNS;
    }
    const uint64_t rows = role_rows(b, role), block = sizeof(struct activation_block);
    if (values && !(b->work.values[role] = buffer_take(b, rows, values * sizeof(float), "activations", st)))
        return false;
    if (blocks && !(b->work.blocks[role] = buffer_take(b, rows, blocks * block, "activations", st))) return false;
    for (int i = b->first_layer; i < b->end_layer; i++) use_buffers(b, &b->work.inputs[i][role], role);
    return true;
}

static bool open_inputs(struct backend *b, struct status *st) {
    b->work.inputs = arena_alloc(&b->memory.arena, (size_t)b->spec->n_layer * sizeof *b->work.inputs);
    for (int i = b->first_layer; i < b->end_layer; i++) note_readers(b, &b->weights.layers[i], b->work.inputs[i]);
    note_reader(&b->work.logits_in, &b->weights.output);
    for (int role = 0; role < INPUT_ROLES; role++)
        if (!open_role(b, role, st)) return false;
    use_buffers(b, &b->work.logits_in, INPUT_LOGITS);
    return true;
}

// --- everything else -------------------------------------------------------------------------------------------------

static bool open_rope(struct backend *b, struct status *st) {
    const struct rope_spec *rope = &b->spec->rope;
    for (int t = 0; t < ROPE_TABLES; t++)
        if (b->weights.rope.frequency[t] &&
            !(b->work.rope[t] =
                  buffer_take(b, (uint64_t)b->max_rows, (uint64_t)rope->n_rot * sizeof(float), "rotations", st)))
            return false;
    return true;
}

static bool open_experts(struct backend *b, struct status *st) {
    const struct expert_spec *e = &b->spec->experts;
    const uint64_t rows = (uint64_t)b->max_rows, slots = rows * (uint64_t)e->used, parts = (uint64_t)e->count + 1;
    if (!e->count) return true;
    b->work.part_in = arena_alloc(&b->memory.arena, (size_t)parts * sizeof *b->work.part_in);
    b->work.part_middle = arena_alloc(&b->memory.arena, (size_t)parts * sizeof *b->work.part_middle);
    b->work.ffn.gated = arena_alloc(&b->memory.arena, (size_t)parts * sizeof *b->work.ffn.gated);
    b->work.ffn.down = arena_alloc(&b->memory.arena, (size_t)parts * sizeof *b->work.ffn.down);
    b->work.first_slot = arena_alloc(&b->memory.arena, (size_t)parts * sizeof *b->work.first_slot);
    return (b->work.choices = buffer_take(b, slots, (uint64_t)(b->end_layer - b->first_layer) * sizeof *b->work.choices,
                                          "choices", st)) &&
           (b->work.expert_logits =
                buffer_take(b, rows, (uint64_t)e->count * sizeof *b->work.expert_logits, "choices", st)) &&
           (b->work.shared_weight = buffer_take(b, rows, sizeof *b->work.shared_weight, "choices", st)) &&
           (b->work.slots = buffer_take(b, slots, sizeof *b->work.slots, "choices", st)) &&
           (b->work.expert_out = buffer_take(b, slots, (uint64_t)b->work.embd_stride * sizeof *b->work.expert_out,
                                             "results of experts", st));
}

static bool adds_later(const struct backend *b) {
    for (int i = b->first_layer; i < b->end_layer; i++) {
        const struct cpu_layer *l = &b->weights.layers[i];
        if (l->attention_post_norm.weight || l->ffn_post_norm.weight || l->experts.shared_up.format) return true;
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
        const struct layer_spec *l = b->weights.layers[i].spec;
        const int size = qkv_size(b, l);
        if (b->work.qkv_stride < size) b->work.qkv_stride = size;
        if (group < l->n_head / l->n_head_kv) group = l->n_head / l->n_head_kv;
        if (rows > attention_range_rows(l)) rows = attention_range_rows(l);
        if (b->work.most_parts < l->n_head_kv) b->work.most_parts = l->n_head_kv;
        const size_t partials = (size_t)l->n_head * ((size_t)b->kv.layout.padded + 2);
        if (b->work.partial_size < partials) b->work.partial_size = partials;
    }
    b->work.qkv_stride = row_stride(b->work.qkv_stride);
    b->work.embd_stride = row_stride(b->spec->n_embd);
    b->work.range_rows = rows;
    b->work.range_queries = rows * group;
}

static bool open_items(struct backend *b, struct status *st) {
    const uint64_t rows = (uint64_t)b->max_rows;
    b->work.n_partials = attention_partials(b);
    b->work.n_counters = b->n_workers * b->work.most_parts * 8;
    b->work.items_done = arena_alloc(&b->memory.arena, (size_t)b->work.n_counters * sizeof *b->work.items_done);
    const uint64_t items = rows + b->work.n_partials;
    return (b->work.query_items = buffer_take(b, items, sizeof *b->work.query_items, "ranges", st)) &&
           (b->work.output_items = buffer_take(b, items, sizeof *b->work.output_items, "ranges", st)) &&
           (b->exact ||
            (b->work.partials = buffer_take(b, b->work.n_partials, b->work.partial_size * sizeof *b->work.partials,
                                            "what attention finds", st)));
}

static size_t largest(size_t a, size_t b) { return a > b ? a : b; }

bool buffers_open(struct backend *b, struct status *st) {
    const struct model_spec *s = b->spec;
    const uint64_t rows = (uint64_t)b->max_rows, workers = (uint64_t)b->n_workers;
    find_extremes(b);
    b->work.scratch_size = largest((size_t)s->n_embd, attention_scratch(s, b->work.range_queries));
    b->work.scratch_size = (largest(b->work.scratch_size, experts_scratch(s)) + 15) & ~(size_t)15;
    const uint64_t row_bytes = (uint64_t)b->work.embd_stride * sizeof *b->work.x;
    const uint64_t logits = has_last_layer(b) ? (uint64_t)b->max_logits : 0;
    return (b->work.x = buffer_take(b, rows, row_bytes, "residuals", st)) &&
           (!adds_later(b) || (b->work.added = buffer_take(b, rows, row_bytes, "residuals", st))) &&
           (b->work.qkv = buffer_take(b, rows, (uint64_t)b->work.qkv_stride * sizeof *b->work.qkv, "queries", st)) &&
           (!logits ||
            (b->work.logits = buffer_take(b, logits, (uint64_t)s->n_vocab * sizeof *b->work.logits, "logits", st))) &&
           (!b->max_hidden || !has_last_layer(b) ||
            (b->work.hidden = buffer_take(b, (uint64_t)b->max_hidden, (uint64_t)s->n_embd * sizeof *b->work.hidden,
                                          "results", st))) &&
           (b->work.kept = buffer_take(b, rows, sizeof *b->work.kept, "ranges", st)) &&
           (b->work.page_ranges = buffer_take(b, rows, sizeof *b->work.page_ranges, "ranges", st)) &&
           (b->work.query_ranges = buffer_take(b, rows, sizeof *b->work.query_ranges, "ranges", st)) &&
           (b->work.output_ranges = buffer_take(b, rows, sizeof *b->work.output_ranges, "ranges", st)) &&
           (b->work.scratch = buffer_take(b, workers, b->work.scratch_size * sizeof *b->work.scratch, "scratch", st)) &&
           open_items(b, st) && open_rope(b, st) && open_inputs(b, st) && open_experts(b, st) && kv_open(b, st);
}
