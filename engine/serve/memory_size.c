#include "engine/serve/memory_size.h"

#include "engine/base/machine_memory.h"
#include "engine/serve/registry.h"
#include "engine/serve/scheduler.h"

enum {
    FEWEST_PAGES = 16,  // however little memory there is
    CONVERSATIONS = 16, // more pages than these need are not taken unasked
};

// What backends take with one page.
static bool measure(struct backend_memory *out, const struct model_file *m, const struct engine_params *p, int context,
                    const struct placement_plan *plan, struct status *st) {
    struct scheduler_params scheduler = {.model = &m->model,
                                         .n_threads = p->n_threads,
                                         .n_pages = 1,
                                         .context = context,
                                         .prefill_chunk = p->prefill_chunk,
                                         .options = p->options};
    const struct backend_params params = scheduler_backend_params(&scheduler);
    return placement_measure(plan, &params, out, st);
}

// What was converted as the file was opened is a part of what the weights take: there already, unless it was only
// described.
static uint64_t room_of(const struct model_file *m, uint64_t available) {
    return available && !m->described ? available + gguf_own_bytes(&m->gguf) : available;
}

static int default_pages(const struct model_file *m, const struct backend_memory *taken, int context, uint64_t room) {
    const uint64_t converted = gguf_own_bytes(&m->gguf); // and perhaps read in place
    const uint64_t read = converted > taken->in_place ? converted : taken->in_place;
    const uint64_t beside = taken->weights + taken->buffers + read;
    uint64_t pages = (room > beside ? room - beside : 0) / 4 / taken->kv;
    uint64_t most = (uint64_t)CONVERSATIONS * (uint64_t)kv_pages_for(context);
    if (pages > most) pages = most;
    if (pages > METRICS_MAX_PAGES) pages = METRICS_MAX_PAGES;
    return pages < FEWEST_PAGES ? FEWEST_PAGES : (int)pages;
}

static bool add_up(struct memory_size *size, const struct model_file *file, const struct backend_memory *taken) {
    struct model_memory *m = &size->memory;
    *m = (struct model_memory){.in_place = taken->in_place,
                               .buffers = taken->buffers,
                               .kv_tokens = size->n_pages * KV_PAGE_TOKENS,
                               .context = size->context};
    return checked_add(taken->weights, gguf_own_bytes(&file->gguf), &m->weights) &&
           checked_mul((uint64_t)size->n_pages, taken->kv, &m->kv) && checked_add(m->weights, m->buffers, &m->total) &&
           checked_add(m->total, m->kv, &m->total);
}

bool memory_size_plan(struct memory_size *out, const struct model_file *m, const struct engine_params *p,
                      const struct placement_plan *plan, uint64_t available, struct status *st) {
    const int most_tokens = METRICS_MAX_PAGES * KV_PAGE_TOKENS;
    if (p->kv_tokens < 0 || p->kv_tokens > most_tokens)
        return status_fail(st, STATUS_LIMIT, "a KV cache of %d tokens is not possible, %d are the most", p->kv_tokens,
                           most_tokens);
    int own = m->info.n_context;
    int asked = p->context > 0 && p->context < own ? p->context : own;
    struct backend_memory taken;
    if (!measure(&taken, m, p, asked, plan, st)) return false;
    int n_pages = p->kv_tokens ? kv_pages_for(p->kv_tokens) : default_pages(m, &taken, asked, room_of(m, available));
    int context = asked < n_pages * KV_PAGE_TOKENS ? asked : n_pages * KV_PAGE_TOKENS;
    *out = (struct memory_size){.n_pages = n_pages, .context = context, .asked_context = asked, .page_bytes = taken.kv};
    if (context < asked && !measure(&taken, m, p, context, plan, st)) return false; // buffers are smaller, too
    if (add_up(out, m, &taken)) return true;
    return status_fail(st, STATUS_LIMIT, "%s: the sizes of weights and KV cache overflow", m->gguf.path);
}

// The system promises memory that it does not have and kills whoever uses it: so it is asked beforehand.
bool memory_size_choose(struct memory_size *out, const struct model_file *m, const struct engine_params *p,
                        const struct placement_plan *plan, struct status *st) {
    const uint64_t mebibyte = 1 << 20, available = machine_memory_free(), room = room_of(m, available);
    if (!memory_size_plan(out, m, p, plan, available, st)) return false;
    const struct model_memory *need = &out->memory;
    if (!available || need->total <= room) return true;
    return status_fail(st, STATUS_MEMORY,
                       "%s: %llu MiB of memory are free, the weights need %llu MiB, buffers %llu MiB and a KV cache of "
                       "%d tokens %llu MiB",
                       m->gguf.path, (unsigned long long)(room / mebibyte),
                       (unsigned long long)(need->weights / mebibyte), (unsigned long long)(need->buffers / mebibyte),
                       need->kv_tokens, (unsigned long long)(need->kv / mebibyte));
}

// ---- local_engine.h ----

bool local_engine_memory(const struct model_file *m, const struct engine_params *p, uint64_t available,
                         struct model_memory *out, struct status *st) {
    struct memory_size size;
    if (!m->info.has_weights) {
        if (st) *st = m->weight_status;
        return false;
    }
    struct placement_plan plan;
    if (!registry_place(p->options.device, &plan, st) || !memory_size_plan(&size, m, p, &plan, available, st))
        return false;
    *out = size.memory;
    return true;
}

int local_engine_tokens_that_fit(const struct model_file *m, enum kv_type kv_type, uint64_t available) {
    struct memory_size size;
    struct engine_params most = {.kv_tokens = METRICS_MAX_PAGES * KV_PAGE_TOKENS,
                                 .options = {.kv_type = kv_type, .quick_start = true}};
    struct placement_plan plan;
    if (!m->info.has_weights || !registry_place(NULL, &plan, NULL) ||
        !memory_size_plan(&size, m, &most, &plan, available, NULL))
        return 0;
    uint64_t beside = size.memory.total - size.memory.kv, room = room_of(m, available);
    uint64_t pages = (room > beside ? room - beside : 0) / size.page_bytes;
    return (int)(pages < METRICS_MAX_PAGES ? pages : METRICS_MAX_PAGES) * KV_PAGE_TOKENS;
}

uint64_t local_engine_token_bytes(const struct model_file *m, enum kv_type kv_type) {
    struct engine_params page = {.options.kv_type = kv_type};
    struct backend_memory taken;
    struct placement_plan plan;
    bool measured = m->info.has_weights && registry_place(NULL, &plan, NULL) &&
                    measure(&taken, m, &page, KV_PAGE_TOKENS, &plan, NULL);
    return measured ? taken.kv / KV_PAGE_TOKENS : 0;
}
