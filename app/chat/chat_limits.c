// What the machine, or the device that the model runs on, can do at most, as the chat comes to know it: from the file
// of limits, or measured while nothing has run for a while. No answer waits for that or shares the processor with it.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "app/bench/limits_file.h"
#include "app/bench/limits_meter.h"
#include "app/chat/chat_state.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/device.h"
#include "engine/metrics.h"

#define QUIET_NS     (3 * NANOSECONDS / 2) // after the last answer
#define MOST_TRIES   4                     // of measuring unasked
#define MORE         1.05                  // of a limit: it was measured while others had the memory
#define CACHES_BYTES (256u << 20)          // weights that no cache holds, where its size is not known
#define BEYOND_CACHE 4                     // so many times the cache: next to nothing of it is found there again
#define FRESH        86400                 // seconds; measured later than that they are again

struct chat_limits {
    char engine[sizeof((struct engine_metrics *)0)->backend]; // that is measured, as the file names it
    char device[sizeof((struct part_metrics *)0)->device];
    int n_threads;
    struct machine_limits limits; // the best that is known
    struct machine_limits fresh;  // since the engine is there: what the file gets
    double cache_bytes;           // of the processor; 0: not known
    bool known, exceeded;         // exceeded: the engine read more
    int tries;
    uint64_t due; // clock_ns when they are to be measured; 0: not at all
    bool asked;   // by a person, who is told
    struct limits_meter *meter;
    int fd; // eventfd of the meter
};

void chat_limits_open(struct chat *c) {
    c->limits = xcalloc(1, sizeof *c->limits);
    c->limits->cache_bytes = machine_cache_bytes();
    c->limits->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->limits->fd < 0) panic("eventfd: %s", strerror(errno));
}

void chat_limits_close(struct chat *c) {
    struct machine_limits unused;
    if (c->limits->meter) {
        limits_meter_stop(c->limits->meter);
        limits_meter_take(c->limits->meter, &unused);
    }
    close(c->limits->fd);
    free(c->limits);
    c->limits = NULL;
}

int chat_limits_fd(const struct chat *c) { return c->limits->fd; }

// Of a model on several devices the one with most of its layers, for want of a limit that would be right for all.
static const char *measured_engine(const struct engine_metrics *f) {
    const struct part_metrics *part = metrics_main_part(f);
    return part ? part->description : f->backend;
}

static double cache_bytes(const struct chat_limits *l) { return device_is_processor(l->device) ? l->cache_bytes : 0; }

static void plan(struct chat_limits *l) {
    if (l->tries < MOST_TRIES) l->due = clock_ns() + QUIET_NS;
}

// A job of the worker's with the file.
struct limits_job {
    struct chat *chat;
    char engine[sizeof((struct chat_limits *)0)->engine];
    struct machine_limits limits;
    bool instead, known;
    long long age;
};

static void use_file(struct chat *c, void (*work)(void *job), void (*done)(void *job)) {
    struct limits_job *j = xcalloc(1, sizeof *j);
    *j = (struct limits_job){.chat = c, .limits = c->limits->fresh, .instead = c->limits->asked};
    memcpy(j->engine, c->limits->engine, sizeof j->engine);
    worker_do(session_worker(c->session), work, done, j);
}

static void add_work(void *job) {
    struct limits_job *j = job;
    limits_file_add(j->chat->p.limits_path, j->engine, &j->limits, j->instead);
}

static void read_work(void *job) {
    struct limits_job *j = job;
    j->known = limits_file_read(j->chat->p.limits_path, j->engine, &j->limits, &j->age);
}

// Unless there is another engine by now, or they were measured meanwhile.
static void read_done(void *job) {
    struct limits_job *j = job;
    struct chat_limits *l = j->chat->limits;
    if (l && j->chat->client && !strcmp(l->engine, j->engine) && !l->known) {
        l->known = j->known;
        if (l->known) l->limits = j->limits;
        if (!l->known || j->age >= FRESH) plan(l);
        j->chat->stale = true;
    }
    free(j);
}

void chat_limits_engine(struct chat *c) {
    struct chat_limits *l = c->limits;
    chat_limits_yield(c);
    l->due = 0;
    l->known = l->exceeded = false;
    if (!c->client || !c->p.limits_path) return;
    const struct engine_metrics *f = engine_metrics(c->client);
    const struct part_metrics *part = metrics_main_part(f);
    snprintf(l->engine, sizeof l->engine, "%s", measured_engine(f));
    snprintf(l->device, sizeof l->device, "%s", part ? part->device : "cpu");
    l->n_threads = f->n_threads;
    if (!metric_known(l->n_threads)) return; // it computes elsewhere
    l->fresh = (struct machine_limits){0};
    use_file(c, read_work, read_done);
}

void chat_limits_yield(struct chat *c) {
    if (c->limits->meter) limits_meter_stop(c->limits->meter);
}

// Whoever has something else in mind waits for the meter to be gone, which it soon is.
static bool quiet(const struct chat *c) {
    for (int i = 0; i < session_count(c->session); i++)
        if (session_busy(session_chat(c->session, i))) return false;
    return c->client && !chat_serve_clients(c) && !model_host_loading(c->p.host) && !c->limits->meter;
}

// The engine uses the processor although no answer waits for it.
static bool preparing(const struct chat *c) { return engine_metrics(c->client)->preparing; }

static uint64_t due(const struct chat *c) {
    uint64_t settled = c->moved ? c->moved + QUIET_NS : 0;
    return settled > c->limits->due ? settled : c->limits->due;
}

uint64_t chat_limits_due(const struct chat *c) { return c->limits->due && quiet(c) ? due(c) : 0; }

// Of two measurements within some days the better one is nearer to what the machine can do; what a person asked for
// counts alone.
static void take(struct chat *c, const struct machine_limits *measured) {
    struct chat_limits *l = c->limits;
    if (!l->known || l->asked) l->limits = l->fresh = *measured;
    machine_limits_raise(&l->limits, measured);
    machine_limits_raise(&l->fresh, measured);
    l->known = true;
    l->exceeded = false;
    use_file(c, add_work, free);
    if (l->asked)
        chat_say(c, false, "at most %s reads %.1f GB/s and computes %.2f TOP/s of 8-bit integers, %.2f of floats",
                 device_is_processor(l->device) ? "this machine" : l->device, l->limits.read_bytes / 1e9,
                 l->limits.int8_operations / 1e12, l->limits.float_operations / 1e12);
    l->asked = false;
    c->stale = true;
}

static void meter_ended(struct chat *c) {
    struct chat_limits *l = c->limits;
    struct machine_limits measured;
    uint64_t times;
    if (read(l->fd, &times, sizeof times) < 0 && errno != EAGAIN) panic("eventfd: %s", strerror(errno));
    bool done = limits_meter_take(l->meter, &measured);
    l->meter = NULL;
    if (done) take(c, &measured);
    else plan(l);
}

void chat_limits_turn(struct chat *c, uint64_t now) {
    struct chat_limits *l = c->limits;
    struct status st;
    if (l->meter && limits_meter_done(l->meter)) meter_ended(c);
    uint64_t at = chat_limits_due(c);
    if (!at || now < at) return;
    if (preparing(c)) {
        l->due = now + QUIET_NS;
        return;
    }
    l->due = 0;
    l->tries++;
    l->meter = limits_meter_start(l->device, l->n_threads, l->fd, &st);
    if (l->meter) return;
    if (l->asked) chat_say(c, true, "%s", st.text);
    l->asked = false;
    plan(l);
}

// By how much the work was faster than the limit; 1 where it was not.
static double excess(double rate, double limit) { return limit > 0 && rate > limit ? rate / limit : 1; }

static double operations_limit(const struct chat *c) {
    return machine_limits_operations(&c->limits->limits, model_host_info(c->p.host)->float_share);
}

// What was done can be done: the limit was measured while others had the machine.
void chat_limits_check(struct chat *c, const struct stage_work *all) {
    struct chat_limits *l = c->limits;
    const char *engine = measured_engine(engine_metrics(c->client));
    if (*l->engine && strcmp(l->engine, engine)) chat_limits_engine(c); // a device failed, and it goes on elsewhere
    if (!l->known || !(all->seconds > 0)) return;
    double weights = (double)model_host_info(c->p.host)->weight_bytes;
    const double cache = cache_bytes(l);
    bool streams = weights >= (cache > 0 ? BEYOND_CACHE * cache : CACHES_BYTES);
    double bytes = streams ? excess(all->bytes / all->seconds, l->limits.read_bytes) : 1;
    double operations = excess(all->operations / all->seconds, operations_limit(c));
    if (bytes <= 1 && operations <= 1) return;
    bool anew = !l->exceeded && (bytes > MORE || operations > MORE);
    l->limits.read_bytes *= bytes;
    l->limits.int8_operations *= operations, l->limits.float_operations *= operations;
    if (bytes > 1) l->fresh.read_bytes = l->limits.read_bytes;
    if (operations > 1)
        l->fresh.int8_operations = l->limits.int8_operations, l->fresh.float_operations = l->limits.float_operations;
    l->exceeded |= anew;
    if (anew) plan(l);
}

void chat_limits_measure(struct chat *c) {
    struct chat_limits *l = c->limits;
    if (!c->client || !c->p.limits_path) {
        chat_say(c, true, c->client ? "there is no folder for caches to keep it in" : "no model is loaded");
        return;
    }
    l->asked = true;
    l->tries = 0;
    l->due = 1;
    chat_say(c, false,
             quiet(c) && !preparing(c) ? "measuring what this machine can do" : "measured as soon as nothing runs");
}

// What every step reads: the weights, and the keys and values of those that run.
static double bytes_read(const struct chat *c, const struct engine_metrics *f) {
    double kv = f && f->n_pages > 0 && metric_known(f->pages_used) && metric_known((double)f->kv_bytes)
                    ? (double)f->kv_bytes * f->pages_used / f->n_pages
                    : 0;
    return (double)model_host_info(c->p.host)->weight_bytes + kv;
}

void chat_limits_show(const struct chat *c, const struct engine_metrics *f, struct view_time *out) {
    const struct chat_limits *l = c->limits;
    out->most_bytes = l->known ? l->limits.read_bytes : 0;
    out->most_operations = l->known ? operations_limit(c) : 0;
    out->cache_share = machine_cache_share(bytes_read(c, f), cache_bytes(l));
}
