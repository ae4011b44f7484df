#include "engine/memory_size.h"

#include "engine/base/machine_memory.h"
#include "engine/serve/scheduler.h"

enum { FEWEST_PAGES = 16 }; // however little memory there is

// Weights of which the backend makes a copy in another order. Others stay in the mapped file, which is no memory of
// ours.
static uint64_t copied_bytes(const struct model_file *m, bool exact) {
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < m->gguf.n_tensors && !exact; i++)
        if (m->gguf.tensors[i].format->elements > 1) bytes += m->gguf.tensors[i].size;
    return bytes;
}

static int default_pages(const struct model_file *m, uint64_t page_bytes, int context) {
    uint64_t bytes = machine_memory_free(), weights = m->info.weight_bytes;
    uint64_t pages = (bytes > weights ? bytes - weights : 0) / 4 / page_bytes;
    uint64_t most = (uint64_t)SCHEDULER_MAX_RUNNING * (uint64_t)kv_pages_for(context);
    if (pages > most) pages = most;
    if (pages > FIGURES_MAX_PAGES) pages = FIGURES_MAX_PAGES;
    return pages < FEWEST_PAGES ? FEWEST_PAGES : (int)pages;
}

// The system promises memory that it does not have and kills whoever uses it: so it is asked beforehand.
static bool check_memory(const struct memory_size *size, const struct model_file *m, bool exact, struct status *st) {
    const uint64_t mebibyte = 1 << 20, available = machine_memory_free();
    uint64_t weights = copied_bytes(m, exact), pages, all;
    if (checked_mul((uint64_t)size->n_pages, size->page_bytes, &pages) && checked_add(weights, pages, &all) &&
        (!available || all <= available))
        return true;
    return status_fail(
        st, STATUS_MEMORY,
        "%s: %llu MiB of memory are free, the weights need %llu MiB and a KV cache of %d tokens %llu MiB", m->gguf.path,
        (unsigned long long)(available / mebibyte), (unsigned long long)(weights / mebibyte),
        size->n_pages * KV_PAGE_TOKENS, (unsigned long long)(pages / mebibyte));
}

bool memory_size_choose(struct memory_size *out, const struct model_file *m, const struct engine_params *p,
                        const struct backend_ops *ops, struct status *st) {
    const int most_tokens = FIGURES_MAX_PAGES * KV_PAGE_TOKENS;
    if (p->kv_tokens < 0 || p->kv_tokens > most_tokens)
        return status_fail(st, STATUS_LIMIT, "a KV cache of %d tokens is not possible, %d are the most", p->kv_tokens,
                           most_tokens);
    int own = m->info.n_context;
    int context = p->context > 0 && p->context < own ? p->context : own;
    out->page_bytes = ops->page_bytes(&m->model.spec, p->exact);
    out->n_pages = p->kv_tokens ? kv_pages_for(p->kv_tokens) : default_pages(m, out->page_bytes, context);
    out->context = context < out->n_pages * KV_PAGE_TOKENS ? context : out->n_pages * KV_PAGE_TOKENS;
    return check_memory(out, m, p->exact, st);
}
