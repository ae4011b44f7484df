#include "app/server/snapshot.h"

#include <stdio.h>

#include "app/base/clean.h"
#include "app/server/server_state.h"
#include "engine/base/clock.h"
#include "engine/metrics.h"

// ---- exchanges ----

struct found {
    struct exchange *all[HTTP_CONNECTIONS];
    int count;
};

static void find(void *context, struct exchange *x) {
    struct found *f = context;
    if (f->count < HTTP_CONNECTIONS) f->all[f->count++] = x;
}

static int by_number(const void *a, const void *b) {
    const uint64_t x = (*(struct exchange *const *)a)->number, y = (*(struct exchange *const *)b)->number;
    return (x > y) - (x < y);
}

// ---- what there is to say of one ----

static void put(char *out, size_t size, const char *text) {
    char *clean = clean_line(text, size - 1);
    strcpy(out, clean);
    free(clean);
}

// "OpenAI" of "OpenAI/Python 1.30.1".
static void put_name(const struct exchange *x, char *out, size_t size) {
    const char *agent = http_header(x, "User-Agent");
    char *product = xstrndup(agent ? agent : "", agent ? strcspn(agent, "/ \t(;,") : 0);
    char address[HTTP_ADDRESS];
    if (!*product) http_address(x, address);
    put(out, size, *product ? product : address);
    free(product);
}

// What the engine knows of it.
static void put_metrics(struct server_client *c, const struct generation *g, const struct engine_metrics *f) {
    for (int i = 0; i < f->n_requests; i++) {
        const struct request_metrics *r = &f->requests[i];
        if (generation_prompt(g, r->request) < 0) continue;
        if (metric_known(r->tokens_per_second)) c->tokens_per_second += r->tokens_per_second;
        if (r->answer == 0 && r->prefill_done > 0) c->prefill_done += r->prefill_done;
        if (r->answer == 0 && r->prefill_total > 0) c->prefill_total += r->prefill_total;
    }
}

static void put_generation(struct server_client *c, const struct generation *g) {
    put(c->model, sizeof c->model, g->model->name);
    c->state = g->state;
    for (int i = 0; i < g->n_answers; i++) c->n_tokens += g->answers[i].n_tokens;
    if (g->first) c->first_token = (float)(g->first - g->submitted) / NANOSECONDS;
    put_metrics(c, g, engine_metrics(g->model->client));
}

void server_snapshot(const struct server *s, struct server_snapshot *out) {
    struct found found = {.count = 0};
    memset(out, 0, sizeof *out);
    http_each(s->http, find, &found);
    qsort(found.all, (size_t)found.count, sizeof *found.all, by_number);
    out->idle_bytes = server_pool_idle_bytes(s);
    out->n_clients = found.count;
    out->n_listed = found.count < SNAPSHOT_CLIENTS ? found.count : SNAPSHOT_CLIENTS;
    for (int i = 0; i < out->n_listed; i++) {
        struct server_client *c = &out->clients[i];
        const struct generation *g = generation_of(s, found.all[i]);
        c->number = found.all[i]->number;
        put_name(found.all[i], c->name, sizeof c->name);
        put(c->path, sizeof c->path, found.all[i]->path);
        if (g) put_generation(c, g);
    }
}

// ---- cancelling ----

bool server_cancel(struct server *s, uint64_t number) {
    static const char why[] = "the request was cancelled at the server";
    struct found found = {.count = 0};
    struct exchange *x = NULL;
    http_each(s->http, find, &found);
    for (int i = 0; i < found.count; i++)
        if (found.all[i]->number == number) x = found.all[i];
    struct generation *g = x ? generation_of(s, x) : NULL;
    struct refusal r = {0};
    if (!x) return false;
    if (g) {
        generation_cancel(g, why);
        return true;
    }
    x->gone(x->owner); // whoever was to reply need not any more
    refuse(&r, 503, NULL, "%s", why);
    reply_refusal(x, route_form(x->path), &r);
    return true;
}
