#include "engine/memory_size.h"

#include <stdio.h>

#include "engine/serve/scheduler.h"

enum { FEWEST_PAGES = 16 }; // however little memory there is

// A number in a small file of the system, found by scanf's format; 0 when there is none.
static uint64_t system_number(const char *path, const char *format) {
    FILE *f = fopen(path, "r");
    unsigned long long value = 0;
    char line[256];
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f)) found = sscanf(line, format, &value) == 1;
    if (f) fclose(f);
    return found ? value : 0;
}

// What this process may still take: of the machine, and of its control group where that is bounded.
static uint64_t available_bytes(void) {
    uint64_t machine = system_number("/proc/meminfo", "MemAvailable: %llu kB") * 1024;
    uint64_t limit = system_number("/sys/fs/cgroup/memory.max", "%llu");
    uint64_t used = system_number("/sys/fs/cgroup/memory.current", "%llu");
    uint64_t group = limit > used ? limit - used : 0;
    return limit && group < machine ? group : machine;
}

static int default_pages(const struct model_file *m, uint64_t page_bytes, int context) {
    uint64_t bytes = available_bytes(), weights = m->info.weight_bytes;
    uint64_t pages = (bytes > weights ? bytes - weights : 0) / 4 / page_bytes;
    uint64_t most = (uint64_t)SCHEDULER_MAX_RUNNING * (uint64_t)kv_pages_for(context);
    if (pages > most) pages = most;
    if (pages > FIGURES_MAX_PAGES) pages = FIGURES_MAX_PAGES;
    return pages < FEWEST_PAGES ? FEWEST_PAGES : (int)pages;
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
    return true;
}
