#include "engine/serve/memory_size.h"

#include "engine/serve/drafter_file.h"
#include "engine/serve/placement_choose.h"
#include "engine/serve/scheduler.h"

enum {
    FEWEST_PAGES = 16,  // however little memory there is
    CONVERSATIONS = 16, // more pages than these need are not taken unasked
};

// What parts take with one page.
static bool measure(struct memory_size *size, const struct model_file *m, const struct engine_params *p, int context,
                    const struct placement_plan *plan, struct status *st) {
    struct scheduler_params scheduler = {.model = &m->model,
                                         .n_threads = p->n_threads,
                                         .n_pages = 1,
                                         .context = context,
                                         .prefill_chunk = p->prefill_chunk,
                                         .options = p->options};
    const struct backend_params params = scheduler_backend_params(&scheduler);
    size->page_bytes = 0;
    for (int i = 0; i < plan->n; i++) {
        const struct placement_plan part = {.parts = {plan->parts[i]}, .n = 1};
        if (!placement_measure(&part, &params, &size->parts[i], st)) return false;
        size->page_bytes += size->parts[i].kv;
    }
    return true;
}

// What was converted as the file was opened is a part of what the weights take: there already, unless it was only
// described.
static uint64_t room_of(const struct model_file *m, uint64_t available) {
    return available && !m->described ? available + gguf_own_bytes(&m->gguf) : available;
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t pages_in(uint64_t room, uint64_t beside, uint64_t page_bytes) {
    return !page_bytes ? UINT64_MAX : room > beside ? (room - beside) / page_bytes : 0;
}

static int default_pages(const struct model_file *m, const struct memory_size *size, const struct placement_plan *plan,
                         int context, uint64_t room) {
    const uint64_t converted = gguf_own_bytes(&m->gguf); // and perhaps read in place
    uint64_t beside = 0, in_place = 0, kv = 0;           // in the machine's memory
    uint64_t pages = least((uint64_t)CONVERSATIONS * (uint64_t)kv_pages_for(context), METRICS_MAX_PAGES);
    for (int i = 0; i < plan->n; i++) {
        const struct backend_memory *part = &size->parts[i];
        const uint64_t taken = part->weights + part->buffers, own = plan->parts[i].own_room;
        if (own) pages = least(pages, pages_in(own, taken, part->kv));
        else beside += taken, in_place += part->in_place, kv += part->kv;
    }
    pages = least(pages, pages_in(room, beside + (converted > in_place ? converted : in_place), 4 * kv));
    return pages < FEWEST_PAGES ? FEWEST_PAGES : (int)pages;
}

static bool add(uint64_t *sum, uint64_t bytes) { return checked_add(*sum, bytes, sum); }

static bool add_part(struct model_memory *m, const struct backend_memory *taken, int n_pages, bool own) {
    uint64_t kv;
    if (!checked_mul((uint64_t)n_pages, taken->kv, &kv)) return false;
    if (own)
        return add(&m->on_devices, taken->weights) && add(&m->on_devices, taken->buffers) && add(&m->on_devices, kv);
    return add(&m->in_place, taken->in_place) && add(&m->weights, taken->weights) && add(&m->buffers, taken->buffers) &&
           add(&m->kv, kv);
}

static bool add_up(struct memory_size *size, const struct model_file *file, const struct placement_plan *plan) {
    struct model_memory *m = &size->memory;
    *m = (struct model_memory){
        .weights = gguf_own_bytes(&file->gguf), .kv_tokens = size->n_pages * KV_PAGE_TOKENS, .context = size->context};
    for (int i = 0; i < plan->n; i++)
        if (!add_part(m, &size->parts[i], size->n_pages, plan->parts[i].own_room)) return false;
    return add(&m->total, m->weights) && add(&m->total, m->buffers) && add(&m->total, m->kv);
}

bool memory_size_plan(struct memory_size *out, const struct model_file *m, const struct engine_params *p,
                      const struct placement_plan *plan, uint64_t available, struct status *st) {
    const int most_tokens = METRICS_MAX_PAGES * KV_PAGE_TOKENS;
    if (p->kv_tokens < 0 || p->kv_tokens > most_tokens)
        return status_fail(st, STATUS_LIMIT, "a KV cache of %d tokens is not possible, %d are the most", p->kv_tokens,
                           most_tokens);
    int own = m->info.n_context;
    int asked = p->context > 0 && p->context < own ? p->context : own;
    *out = (struct memory_size){.asked_context = asked};
    if (!measure(out, m, p, asked, plan, st)) return false;
    out->n_pages =
        p->kv_tokens ? kv_pages_for(p->kv_tokens) : default_pages(m, out, plan, asked, room_of(m, available));
    out->context = asked < out->n_pages * KV_PAGE_TOKENS ? asked : out->n_pages * KV_PAGE_TOKENS;
    if (out->context < asked && !measure(out, m, p, out->context, plan, st)) return false; // buffers are smaller, too
    if (add_up(out, m, plan)) return true;
    return status_fail(st, STATUS_LIMIT, "%s: the sizes of weights and KV cache overflow", m->gguf.path);
}

#define MEBIBYTES(bytes) ((unsigned long long)((bytes) >> 20))

static bool fits_device(const struct memory_size *size, int part, const struct model_file *m,
                        const struct placement_plan *plan, struct status *st) {
    const struct placement_part *on = &plan->parts[part];
    const struct backend_memory *need = &size->parts[part];
    const uint64_t kv = (uint64_t)size->n_pages * need->kv, total = need->weights + need->buffers + kv;
    char name[16];
    if (!on->own_room || total <= on->own_room) return true;
    placement_part_name(on, name);
    return status_fail(st, STATUS_MEMORY,
                       "%s: %llu MiB of memory are free on %s, the weights of layers %d to %d need %llu MiB, buffers "
                       "%llu MiB and a KV cache of %d tokens %llu MiB",
                       m->gguf.path, MEBIBYTES(on->own_room), name, on->first_layer, on->end_layer - 1,
                       MEBIBYTES(need->weights), MEBIBYTES(need->buffers), size->memory.kv_tokens, MEBIBYTES(kv));
}

// The system promises memory that it does not have and kills whoever uses it: so it is asked beforehand.
bool memory_size_choose(struct memory_size *out, const struct model_file *m, const struct engine_params *p,
                        const struct placement_plan *plan, uint64_t available, struct status *st) {
    const uint64_t room = room_of(m, available);
    if (!memory_size_plan(out, m, p, plan, available, st)) return false;
    for (int i = 0; i < plan->n; i++)
        if (!fits_device(out, i, m, plan, st)) return false;
    const struct model_memory *need = &out->memory;
    if (!available || need->total <= room) return true;
    return status_fail(st, STATUS_MEMORY,
                       "%s: %llu MiB of memory are free, the weights need %llu MiB, buffers %llu MiB and a KV cache of "
                       "%d tokens %llu MiB",
                       m->gguf.path, MEBIBYTES(room), MEBIBYTES(need->weights), MEBIBYTES(need->buffers),
                       need->kv_tokens, MEBIBYTES(need->kv));
}

// ---- local_engine.h ----

static void add_drafter(struct model_memory *m, const struct model_memory *drafter) {
    m->weights += drafter->weights;
    m->in_place += drafter->in_place;
    m->buffers += drafter->buffers;
    m->kv += drafter->kv;
    m->total += drafter->total;
    m->on_devices += drafter->on_devices;
}

bool local_engine_memory(const struct model_file *m, const struct engine_params *p, uint64_t available,
                         struct model_memory *out, struct status *st) {
    struct memory_size size;
    struct model_memory drafter = {0};
    if (!m->info.has_weights) {
        if (st) *st = m->weight_status;
        return false;
    }
    struct status *why = p->draft_refused ? p->draft_refused : st;
    const bool drafts = p->draft != DRAFT_MODEL || drafter_file_memory(p, m, available, &drafter, why);
    if (!drafts && !p->draft_refused) return false;
    struct placement_plan plan;
    uint64_t left = available; // 0: not known
    if (available) left = available > drafter.total ? available - drafter.total : 1;
    if (!placement_choose(&plan, m, p, left, st) || !memory_size_plan(&size, m, p, &plan, left, st)) return false;
    *out = size.memory;
    add_drafter(out, &drafter);
    return true;
}

int local_engine_tokens_that_fit(const struct model_file *m, enum kv_type kv_type, uint64_t available) {
    const struct placement_plan cpu = placement_on(&cpu_backend, 0);
    struct memory_size size;
    struct engine_params most = {.kv_tokens = METRICS_MAX_PAGES * KV_PAGE_TOKENS,
                                 .options = {.kv_type = kv_type, .quick_start = true}};
    if (!m->info.has_weights || !memory_size_plan(&size, m, &most, &cpu, available, NULL)) return 0;
    uint64_t beside = size.memory.total - size.memory.kv;
    uint64_t pages = pages_in(room_of(m, available), beside, size.page_bytes);
    return (int)least(pages, METRICS_MAX_PAGES) * KV_PAGE_TOKENS;
}

uint64_t local_engine_token_bytes(const struct model_file *m, enum kv_type kv_type) {
    const struct placement_plan cpu = placement_on(&cpu_backend, 0);
    struct engine_params page = {.options.kv_type = kv_type};
    struct memory_size size;
    bool measured = m->info.has_weights && measure(&size, m, &page, KV_PAGE_TOKENS, &cpu, NULL);
    return measured ? size.page_bytes / KV_PAGE_TOKENS : 0;
}
