#include "engine/serve/drafter_file.h"

#include <string.h>

#include "engine/base/log.h"
#include "engine/base/machine_memory.h"
#include "engine/model/opened_model.h"
#include "engine/serve/memory_size.h"
#include "engine/serve/placement_choose.h"

enum { MOST_TOKENS = 16384 }; // of its KV cache

// Files may pad a vocabulary differently: what both have is the same.
static bool same_vocabulary(const struct tokenizer *a, const struct tokenizer *b) {
    const int32_t n = tokenizer_count(a) < tokenizer_count(b) ? tokenizer_count(a) : tokenizer_count(b);
    for (int32_t i = 0; i < n; i++) {
        const struct span x = tokenizer_piece(a, i, true), y = tokenizer_piece(b, i, true);
        if (x.size != y.size || memcmp(x.data, y.data, x.size)) return false;
    }
    return true;
}

static bool check(const struct model_file *m, const struct model_file *answers, struct status *st) {
    if (!m->info.has_weights) {
        if (st) *st = m->weight_status;
        return false;
    }
    if (same_vocabulary(m->tokenizer, answers->tokenizer)) return true;
    return status_fail(st, STATUS_USAGE, "%s: cannot draft for %s (different vocabulary)", m->info.name,
                       answers->info.name);
}

static int least(int a, int b) { return a < b ? a : b; }

static struct engine_params own_params(const struct engine_params *p, const struct model_file *m,
                                       const struct model_file *answers) {
    const int context = least(p->context ? p->context : answers->info.n_context, m->info.n_context);
    struct engine_params own = *p;
    own.context = least(context, MOST_TOKENS);
    own.kv_tokens = MOST_TOKENS;
    own.draft = DRAFT_OFF;
    own.options.progress = NULL;
    own.options.quick_start = false;
    return own;
}

static struct drafter *place(const struct engine_params *p, const struct model_file *m,
                             const struct model_file *answers, struct status *st) {
    const uint64_t available = machine_memory_free();
    const struct engine_params own = own_params(p, m, answers);
    struct placement_plan plan;
    struct memory_size size;
    if (!placement_choose(&plan, m, &own, available, st) || !memory_size_choose(&size, m, &own, &plan, available, st))
        return NULL;
    const struct drafter_params params = {.placement = plan,
                                          .model = &m->model,
                                          .n_threads = p->n_threads,
                                          .n_pages = size.n_pages,
                                          .context = size.context,
                                          .asked_context = size.asked_context,
                                          .options = own.options,
                                          .n_vocab = answers->model.spec.n_vocab};
    return drafter_open(&params, st);
}

struct drafter *drafter_file_open(const struct engine_params *p, const struct model_file *answers,
                                  struct model_file **file, struct status *st) {
    struct model_file *m = model_file_open(p->draft_model, st);
    if (!m) return NULL;
    struct drafter *w = check(m, answers, st) ? place(p, m, answers, st) : NULL;
    if (w) log_info("engine", "%s drafts for %s", m->info.name, answers->info.name);
    if (w) *file = m;
    else model_file_close(m);
    return w;
}

bool drafter_file_memory(const struct engine_params *p, const struct model_file *answers, uint64_t available,
                         struct model_memory *out, struct status *st) {
    struct model_file *m = model_file_open_header(p->draft_model, false, st);
    if (!m) return false;
    const struct engine_params own = own_params(p, m, answers);
    const bool ok = local_engine_memory(m, &own, available, out, st);
    model_file_close(m);
    return ok;
}
