#include "engine/serve/moments.h"

static struct latency_moment *moment_at(struct moments *m, int64_t number) {
    return &m->ring[number % METRICS_MOMENTS];
}

static void set_machine(struct latency_moment *at, const struct machine_load *from, const struct machine_load *to) {
    const double processors = to->processors - from->processors;
    at->steal = processors > 0 ? (float)((to->stolen - from->stolen) / processors) : 0;
    at->faults = (int)(to->faults - from->faults);
    at->switches = (int)(to->switches - from->switches);
}

// A token that was waited for since before this quarter has what the machine did since the quarter before, too.
static void begin(struct moments *m, int64_t number, double waited_since) {
    const struct machine_load now = machine_load_now();
    const bool reaches_back = waited_since < (double)number * METRICS_MOMENT_SECONDS;
    if (m->last) set_machine(moment_at(m, m->last), &m->from, &now);
    m->from = m->last && reaches_back ? m->begun : now;
    m->begun = now;
    m->last = number;
    *moment_at(m, number) = (struct latency_moment){.number = number};
    set_machine(moment_at(m, number), &m->from, &now);
}

void moments_add(struct moments *m, const struct latency_moment *slowest, double time) {
    const int64_t number = (int64_t)(time / METRICS_MOMENT_SECONDS);
    if (!(slowest->seconds > 0)) return;
    if (number != m->last) begin(m, number, time - (double)slowest->seconds);
    struct latency_moment *at = moment_at(m, number);
    if (slowest->seconds <= at->seconds) return;
    const struct latency_moment before = *at;
    *at = *slowest;
    at->number = number;
    at->steal = before.steal, at->faults = before.faults, at->switches = before.switches;
}
