// Figures over time, and totals since the start, across all engines there were.
#include <math.h>

#include "app/chat/chat_state.h"
#include "engine/base/clock.h"
#include "engine/metrics.h"

#define STALE_NS (2 * NANOSECONDS) // a rate over a longer time would be of a pause

// The system is asked once a second.
static void take_use(struct chat *c, uint64_t now) {
    const uint64_t since = now - c->use_at;
    if (since < NANOSECONDS) return;
    const struct machine_use use = machine_use_now();
    const bool known = since < STALE_NS;
    const double all = use.all - c->use.all;
    c->own_share = known && all > 0 ? (float)((use.own - c->use.own) / all) : NAN;
    c->machine_share = known && all > 0 ? (float)((use.busy - c->use.busy) / all) : NAN;
    c->watts = known ? (float)((use.joules - c->use.joules) / ((double)since * 1e-9)) : NAN;
    c->use = use;
    c->use_at = now;
}

// Without tokens there is no latency.
void chat_timeline_add(struct chat *c, const struct engine_metrics *f, uint64_t now) {
    const float latency = c->latency[c->n_samples - 1];
    const bool paged = metric_known(f->pages_used) && metric_known(f->pages_kept) && f->n_pages > 0;
    take_use(c, now);
    const float values[SERIES_COUNT] = {
        [SERIES_DECODE] = f->decode_now,
        [SERIES_PREFILL] = f->prefill_now,
        [SERIES_LATENCY] = latency > 0 ? latency : NAN,
        [SERIES_KV] = paged ? (float)(f->pages_used + f->pages_kept) / (float)f->n_pages : NAN,
        [SERIES_RUNNING] = (float)f->running,
        [SERIES_OWN] = c->own_share,
        [SERIES_MACHINE] = c->machine_share,
        [SERIES_POWER] = c->watts,
    };
    timeline_add(&c->timeline, (double)now * 1e-9, values);
}

static int64_t sum(int64_t before, int64_t now) { return now >= 0 ? before + now : before > 0 ? before : -1; }

struct view_totals chat_totals(const struct chat *c, const struct engine_metrics *f) {
    const struct view_totals *before = &c->totals;
    if (!f) return *before;
    const bool known = metric_known((double)f->prefill_tokens) && metric_known((double)f->reused_tokens);
    return (struct view_totals){
        .read = sum(before->read, known ? f->prefill_tokens + f->reused_tokens : METRIC_UNKNOWN),
        .reused = sum(before->reused, f->reused_tokens),
        .written = sum(before->written, f->decode_tokens),
        .preemptions = sum(before->preemptions, f->preemptions),
        .failures = before->failures,
    };
}

static int64_t counted(int64_t total) { return total > 0 ? total : 0; }

void chat_timeline_release(struct chat *c) {
    const struct view_totals t = chat_totals(c, c->client ? engine_metrics(c->client) : NULL);
    c->totals = (struct view_totals){counted(t.read), counted(t.reused), counted(t.written), counted(t.preemptions),
                                     t.failures};
}
