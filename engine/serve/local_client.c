// Clients of the local engine, on their threads: they push commands, and read metrics and what they watch.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/model/opened_model.h"
#include "engine/serve/local_engine_state.h"

// Below the clients a conversation is its client's number and its own, so that they do not mix.
static uint64_t conversation_key(const struct local_client *c, uint64_t conversation) {
    return c->number << 32 | conversation;
}

// ---- requests ----

static struct local_request *request_copy(const struct request_params *p) {
    struct local_request *r = xcalloc(1, sizeof *r);
    *r = (struct local_request){.encoding = {.source = prompt_source_copy(p), .background = p->background},
                                .ignore_end = p->ignore_end,
                                .n_stops = p->n_stops,
                                .grammar = grammar_share(p->grammar)};
    r->stops = xcalloc((size_t)p->n_stops + 1, sizeof *r->stops);
    for (int i = 0; i < p->n_stops; i++) r->stops[i] = xstrdup(p->stops[i]);
    return r;
}

void local_request_spread(struct local_request *r, const struct sampling *s) {
    for (int i = 0; i < r->request.n_answers; i++) r->samplings[i] = sampler_for_answer(s, i);
}

static void request_add_answers(struct local_request *r, const struct request_params *p) {
    const size_t n = (size_t)r->request.n_answers;
    r->answers = xcalloc(n, sizeof *r->answers);
    r->samplings = xcalloc(n, sizeof *r->samplings);
    for (size_t i = 0; i < n; i++) r->answers[i].request = r;
    if (p->samplings) memcpy(r->samplings, p->samplings, n * sizeof *r->samplings);
    else local_request_spread(r, &p->sampling);
}

void local_request_free(struct local_request *r) {
    encoding_free(&r->encoding);
    grammar_drop(r->grammar);
    for (int i = 0; i < r->n_stops; i++) free(r->stops[i]);
    free(r->stops);
    free(r->answers);
    free(r->samplings);
    free(r);
}

// ---- clients ----

static void push(struct engine_client *c, struct command command) {
    command.client = (struct local_client *)c;
    queue_push(&((struct local_engine *)c->engine)->commands, &command);
}

void local_client_free(struct local_client *c) {
    watch_close(c->watch);
    free(c->latest);
    engine_client_free(&c->client);
}

static struct engine_client *local_client_open(struct engine *e, struct status *st) {
    struct local_client *c = engine_client_new(sizeof *c, e, st);
    if (!c) return NULL;
    c->number = atomic_fetch_add(&((struct local_engine *)e)->last_client, 1) + 1;
    c->latest = xcalloc(1, sizeof *c->latest);
    return &c->client;
}

static void local_leave(struct engine_client *c) { push(c, (struct command){.kind = COMMAND_LEAVE}); }

static uint64_t local_submit(struct engine_client *c, const struct request_params *p) {
    struct local_client *client = (struct local_client *)c;
    struct local_engine *e = (struct local_engine *)c->engine;
    struct local_request *r = request_copy(p);
    r->client = client;
    r->request = (struct scheduler_request){.id = atomic_fetch_add(&e->last_request, 1) + 1,
                                            .conversation = conversation_key(client, p->conversation),
                                            .n_answers = p->n_answers > 1 ? p->n_answers : 1,
                                            .disk_owner = p->disk_owner,
                                            .max_tokens = p->max_tokens,
                                            .room = p->room,
                                            .read_ahead = p->read_ahead,
                                            .background = p->background,
                                            .score_prompt = p->score_prompt,
                                            .time_limit = p->time_limit,
                                            .submitted = clock_seconds()};
    request_add_answers(r, p);
    const uint64_t id = r->request.id; // r may be gone once it is pushed
    // Ids need no encoding; they go straight on unless others are to be served before, or a grammar needs a vocabulary.
    if (p->ids && !p->begun_text && !p->grammar && encoder_idle(&e->encoder)) {
        encoding_run(&r->encoding, e->file);
        r->encoded = true;
        push(c, (struct command){.kind = COMMAND_SUBMIT, .request = r});
        return id;
    }
    push(c, (struct command){.kind = COMMAND_SUBMIT, .request = r});
    encoder_push(&e->encoder, &r->encoding);
    return id;
}

static void local_cancel(struct engine_client *c, uint64_t request, int answer) {
    push(c, (struct command){.kind = COMMAND_CANCEL, .id = request, .answer = answer});
}

static void local_set_sampling(struct engine_client *c, uint64_t request, int answer, const struct sampling *s) {
    push(c, (struct command){.kind = COMMAND_SAMPLING, .id = request, .answer = answer, .sampling = *s});
}

static void local_focus(struct engine_client *c, uint64_t conversation) {
    uint64_t key = conversation_key((struct local_client *)c, conversation);
    push(c, (struct command){.kind = COMMAND_FOCUS, .id = key});
}

static void local_forget(struct engine_client *c, uint64_t conversation, uint64_t disk_owner) {
    uint64_t key = conversation_key((struct local_client *)c, conversation);
    push(c, (struct command){.kind = COMMAND_FORGET, .id = key, .owner = disk_owner});
}

static const struct engine_metrics *local_metrics(struct engine_client *client) {
    struct local_client *c = (struct local_client *)client;
    struct engine_metrics *f = c->latest;
    if (!metrics_read(&((struct local_engine *)client->engine)->metrics, f)) return f;
    for (int i = 0; i < f->n_requests; i++)
        f->requests[i].conversation = local_client_conversation(c, f->requests[i].conversation);
    for (int i = 0; i < f->n_pages && i < METRICS_MAX_PAGES; i++)
        f->pages[i].conversation = local_client_conversation(c, f->pages[i].conversation);
    for (int i = 0; i < METRICS_MOMENTS; i++) {
        f->moments[i].conversation = local_client_conversation(c, f->moments[i].conversation);
        f->moments[i].reader = local_client_conversation(c, f->moments[i].reader);
    }
    const bool listed = f->page.page >= 0 && f->page.page < METRICS_MAX_PAGES;
    if (!listed || f->pages[f->page.page].conversation > CONVERSATION_MOST) *f->page.text = 0;
    return f;
}

static void local_look_at_page(struct engine_client *client, int page) {
    push(client, (struct command){.kind = COMMAND_LOOK_AT_PAGE, .page = page});
}

static void local_watch(struct engine_client *client, uint64_t request, int answer) {
    struct local_client *c = (struct local_client *)client;
    if (!c->watch) c->watch = watch_open(((struct local_engine *)client->engine)->file->model.spec.n_vocab);
    push(client, (struct command){.kind = COMMAND_WATCH, .id = request, .answer = answer});
}

static bool local_distribution(struct engine_client *client, const struct sampling *s, struct distribution *out) {
    const struct local_client *c = (struct local_client *)client;
    return c->watch && watch_explain(c->watch, ((struct local_engine *)client->engine)->file->tokenizer, s, out);
}

// As much as fits; bytes that are not characters as numbers: a token may be a part of one.
static void prompt_text(struct span piece, char *out, size_t size) {
    size_t n = 0;
    for (size_t at = 0, used; at < piece.size; at += used) {
        uint32_t code;
        char shown[5] = "";
        used = utf8_decode(piece.data + at, piece.size - at, &code);
        if (code != UTF8_REPLACEMENT) memcpy(shown, piece.data + at, used);
        else used = 1, snprintf(shown, sizeof shown, "\\x%02x", piece.data[at] & 0xffu);
        if (n + strlen(shown) >= size) break;
        memcpy(out + n, shown, strlen(shown));
        n += strlen(shown);
    }
    out[n] = 0;
}

static bool local_prompt(struct engine_client *client, const struct request_params *p, struct prompt_tokens *out) {
    const struct model_file *file = ((struct local_engine *)client->engine)->file;
    struct encoding e = {.source = prompt_source_copy(p)};
    encoding_run(&e, file);
    out->tokens = xcalloc(e.tokens.count + 1, sizeof *out->tokens);
    for (; out->n < (int)e.tokens.count; out->n++) {
        struct prompt_token *t = &out->tokens[out->n];
        const struct span piece = tokenizer_piece(file->tokenizer, e.tokens.ids[out->n], true);
        t->id = e.tokens.ids[out->n];
        t->special = piece.size && !tokenizer_piece(file->tokenizer, t->id, false).size;
        prompt_text(piece, t->text, sizeof t->text);
    }
    out->refused = e.outcome.refused;
    encoding_free(&e);
    return true;
}

static bool local_logits(struct engine *e, const int32_t *ids, int n, float *out, struct status *st) {
    struct logits_job job = {.text = {.ids = ids, .n = n, .out = out}, .st = st};
    bool ok;
    if (!queue_open(&job.done, sizeof ok, st)) return false;
    queue_push(&((struct local_engine *)e)->commands, &(struct command){.kind = COMMAND_LOGITS, .logits = &job});
    queue_wait(&job.done, &ok, -1);
    queue_close(&job.done);
    return ok;
}

const struct engine_ops local_engine_ops = {.name = "local",
                                            .close = local_engine_close,
                                            .logits = local_logits,
                                            .client_open = local_client_open,
                                            .client_close = local_leave,
                                            .submit = local_submit,
                                            .cancel = local_cancel,
                                            .set_sampling = local_set_sampling,
                                            .focus = local_focus,
                                            .forget = local_forget,
                                            .metrics = local_metrics,
                                            .look_at_page = local_look_at_page,
                                            .watch = local_watch,
                                            .prompt = local_prompt,
                                            .distribution = local_distribution};
