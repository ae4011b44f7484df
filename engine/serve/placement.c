#include "engine/serve/placement.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"

struct placement {
    struct placement_plan plan;
    struct backend *backends[PLACEMENT_MOST_PARTS];
    struct backend_info info; // of all together
    struct part_metrics parts[PLACEMENT_MOST_PARTS];
    struct page_transfer *transfers; // [most_transfers] of one part
    int most_transfers;
};

struct placement_plan placement_on(const struct backend_ops *ops, int device) {
    return (struct placement_plan){.parts = {{.ops = ops, .device = device}}, .n = 1};
}

void placement_part_name(const struct placement_part *part, char out[16]) {
    struct device all[DEVICE_MOST];
    const bool there = part->ops->devices(all, DEVICE_MOST) > part->device;
    snprintf(out, 16, "%s", there ? all[part->device].name : part->ops->name);
}

static struct backend_params part_params(const struct placement_part *part, const struct backend_params *params) {
    struct backend_params own = *params;
    own.device = part->device;
    own.first_layer = part->first_layer;
    own.end_layer = part->end_layer;
    return own;
}

bool placement_measure(const struct placement_plan *plan, const struct backend_params *params,
                       struct backend_memory *out, struct status *st) {
    *out = (struct backend_memory){0};
    for (int i = 0; i < plan->n; i++) {
        const struct backend_params own = part_params(&plan->parts[i], params);
        struct backend_memory m = {0};
        if (!plan->parts[i].ops->measure(&own, &m, st)) return false;
        out->weights += m.weights, out->in_place += m.in_place, out->buffers += m.buffers, out->kv += m.kv;
    }
    return true;
}

// ---- opening and closing ----

// How much of a part's weights is ready, told as how much of all.
struct part_progress {
    const struct backend_options *options;
    int part, n;
};

static bool tell_progress(void *context, double done) {
    const struct part_progress *p = context;
    return p->options->progress(p->options->progress_context, (p->part + done) / p->n);
}

static void append(char *text, size_t size, const char *more) {
    const size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s", used ? " + " : "", more);
}

_Static_assert((int)PLACEMENT_MOST_PARTS == (int)METRICS_MAX_PARTS, "all parts are told of");

// What it is and takes, as params say that it was opened.
static bool describe_part(const struct placement_part *part, const struct backend_params *params,
                          const char *description, struct part_metrics *out, struct status *st) {
    struct device devices[DEVICE_MOST];
    struct backend_memory taken;
    if (!part->ops->measure(params, &taken, st)) return false;
    *out = (struct part_metrics){.first_layer = params->first_layer,
                                 .end_layer = params->end_layer ? params->end_layer : params->model->spec.n_layer,
                                 .weights = (int64_t)(taken.weights + taken.in_place),
                                 .kv = (int64_t)taken.kv,
                                 .buffers = (int64_t)taken.buffers};
    if (part->ops->devices(devices, DEVICE_MOST) > part->device)
        snprintf(out->device, sizeof out->device, "%s", devices[part->device].name);
    snprintf(out->description, sizeof out->description, "%s", description);
    return true;
}

// Of several parts only the devices find room, and layouts say which layers.
static void add_info(struct placement *p, int i, const struct backend_info *part) {
    const struct part_metrics *told = &p->parts[i];
    struct backend_info *all = &p->info;
    char layout[sizeof all->page_layout];
    const bool alone = p->plan.n == 1;
    if (alone) snprintf(layout, sizeof layout, "%s", part->page_layout);
    else snprintf(layout, sizeof layout, "%.32s %d-%d", part->page_layout, told->first_layer, told->end_layer - 1);
    append(all->description, sizeof all->description, alone ? part->description : told->device);
    append(all->page_layout, sizeof all->page_layout, layout);
    all->page_bytes += part->page_bytes;
    if (all->n_threads < part->n_threads) all->n_threads = part->n_threads;
    all->n_workers = part->n_workers; // the last one's
    all->rows_equal &= part->rows_equal;
}

struct placement *placement_open(const struct placement_plan *plan, const struct backend_params *params,
                                 struct status *st) {
    assert(plan->n >= 1 && plan->n <= PLACEMENT_MOST_PARTS);
    struct placement *p = xcalloc(1, sizeof *p);
    *p = (struct placement){.plan = *plan, .info.rows_equal = true};
    for (int i = 0; i < plan->n; i++) {
        struct part_progress progress = {&params->options, i, plan->n};
        struct backend_params own = part_params(&plan->parts[i], params);
        if (own.options.progress) own.options.progress = tell_progress, own.options.progress_context = &progress;
        const struct backend_ops *ops = plan->parts[i].ops;
        if (!(p->backends[i] = ops->open(&own, st)) ||
            !describe_part(&plan->parts[i], &own, ops->info(p->backends[i])->description, &p->parts[i], st)) {
            placement_close(p);
            return NULL;
        }
        add_info(p, i, ops->info(p->backends[i]));
    }
    return p;
}

void placement_close(struct placement *p) {
    if (!p) return;
    for (int i = 0; i < p->plan.n; i++)
        if (p->backends[i]) p->plan.parts[i].ops->close(p->backends[i]);
    free(p->transfers);
    free(p);
}

// ---- a batch ----

// The transfers of a batch as one part makes them, which has its bytes behind those of the parts before it.
static void use_part_transfers(struct placement *p, struct batch *batch, uint64_t before) {
    const int n = batch->n_reads + batch->n_writes;
    if (!n) return;
    if (n > p->most_transfers) {
        p->most_transfers = n;
        p->transfers = xrealloc(p->transfers, (size_t)n * sizeof *p->transfers);
    }
    struct page_transfer *own = p->transfers;
    for (int i = 0; i < n; i++) {
        const struct page_transfer *t = i < batch->n_reads ? &batch->reads[i] : &batch->writes[i - batch->n_reads];
        own[i] = (struct page_transfer){t->page, (char *)t->data + before};
    }
    batch->reads = own;
    batch->writes = own + batch->n_reads;
}

bool placement_run(struct placement *p, const struct batch *batch, struct backend_result *out, struct status *st) {
    if (p->plan.n == 1) return p->plan.parts[0].ops->run(p->backends[0], batch, out, st);
    struct backend_work work = {0};
    uint64_t before = 0;
    bool ok = true;
    *out = (struct backend_result){0};
    for (int i = 0; i < p->plan.n; i++) {
        const struct backend_ops *ops = p->plan.parts[i].ops;
        struct batch own = *batch;
        struct backend_result result;
        use_part_transfers(p, &own, before);
        own.hidden = out->hidden;
        own.hidden_stride = out->hidden_stride;
        if (!ok) own.n_rows = own.n_segments = 0; // pages only
        before += ops->info(p->backends[i])->page_bytes;
        if (!ops->run(p->backends[i], &own, &result, ok ? st : NULL)) ok = false;
        if (!ok) continue;
        for (int k = 0; k < STAGE_COUNT; k++) stage_work_add(&work.stages[k], &result.work.stages[k], 1);
        *out = result;
    }
    out->work = work;
    return ok;
}

bool placement_repack(struct placement *p) {
    bool left = false;
    for (int i = 0; i < p->plan.n && !left; i++) left = p->plan.parts[i].ops->repack(p->backends[i]);
    return left;
}

void placement_for_each(struct placement *p, int n, void (*item)(void *context, int i, int worker), void *context) {
    const int last = p->plan.n - 1;
    p->plan.parts[last].ops->for_each(p->backends[last], n, item, context);
}

const struct backend_info *placement_info(const struct placement *p) { return &p->info; }

int placement_parts(const struct placement *p, struct part_metrics *out) {
    memcpy(out, p->parts, (size_t)p->plan.n * sizeof *out);
    return p->plan.n;
}
