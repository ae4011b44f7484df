// Generations: from what is asked to the engine's request, and from its events to the reply.
//
//   begun ──► pieces of a stream, or kept for a whole reply ──► every answer has ended ──► freed
//     └──► abandoned: cancelled, and freed when its answers have ended
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "app/server/server_state.h"
#include "engine/base/clock.h"

#define PING_SECONDS 15
#define MOST_SCORED  65536 // tokens of a request's prompts, each for every answer: a reply lists some 4 KiB of each

static void generation_free(struct generation *g) {
    struct generation **at = &g->server->generations;
    while (*at != g) at = &(*at)->next;
    *at = g->next;
    for (int i = 0; i < g->n_answers; i++) {
        bytes_free(&g->answers[i].texts[0]), bytes_free(&g->answers[i].texts[1]);
        json_decref(g->answers[i].logprobs);
    }
    g->server->n_answers -= g->n_open;
    server_model_rest(g->model);
    for (int i = 0; i < g->n_stops; i++) free(g->stops[i]);
    free(g->stops);
    for (int i = 0; i < g->n_prompts; i++) bytes_free(&g->prompts[i].echo);
    free(g->prompts);
    free(g->answers);
    free(g);
}

static void abandon(void *owner) {
    struct generation *g = owner;
    g->exchange = NULL;
    for (int i = 0; i < g->n_prompts; i++) engine_cancel(g->model->client, g->prompts[i].request);
}

static struct bytes text_of(const struct model_file *file, const struct request_params *p) {
    struct bytes text = {0};
    if (p->raw) bytes_add(&text, p->raw, strlen(p->raw));
    else text.data = model_file_detokenize(file, p->ids, (size_t)p->n_ids, &text.size, NULL);
    return text;
}

void generation_begin(struct server *s, struct exchange *x, const struct reply_form *form, struct server_model *m,
                      const struct request_params *requests, const struct ask *a) {
    struct generation *g = xcalloc(1, sizeof *g);
    const int n = ask_answers(a);
    *g = (struct generation){.server = s,
                             .exchange = x,
                             .form = form,
                             .model = m,
                             .created = (int64_t)time(NULL),
                             .asked = x->complete,
                             .submitted = clock_ns(),
                             .heard = clock_ns(),
                             .stream = a->stream,
                             .with_usage = a->with_usage,
                             .logprobs = a->logprobs,
                             .scored = requests->score_prompt,
                             .only_echo = a->only_echo,
                             .top_logprobs = a->top_logprobs,
                             .prompts = xcalloc(1 + (size_t)a->n_others, sizeof *g->prompts),
                             .n_prompts = 1 + a->n_others,
                             .n_each = a->n_answers,
                             .n_answers = n,
                             .n_open = n,
                             .answers = xcalloc((size_t)n, sizeof *g->answers),
                             .next = s->generations};
    g->stops = xcalloc((size_t)a->n_stops + 1, sizeof *g->stops);
    for (; g->n_stops < a->n_stops; g->n_stops++) g->stops[g->n_stops] = xstrdup(a->stops[g->n_stops]);
    s->generations = g;
    s->n_answers += n;
    server_model_use(m);
    x->owner = g, x->gone = abandon;
    g->number = requests->conversation;
    for (int i = 0; i < g->n_prompts; i++) {
        if (a->echo) g->prompts[i].echo = text_of(m->file, &requests[i]);
        g->prompts[i].request = engine_submit(m->client, &requests[i]);
    }
}

// ---- logprobs ----

static json_t *token_json(const struct model_file *file, int32_t id, float probability) {
    size_t size = 0;
    char *text = model_file_detokenize(file, &id, 1, &size, NULL);
    json_t *bytes = json_array();
    for (size_t i = 0; text && i < size; i++) json_array_append_new(bytes, json_integer((unsigned char)text[i]));
    json_t *logprob = isnan(probability) ? json_null() : json_real(probability > 0 ? log((double)probability) : -9999);
    json_t *token =
        json_pack("{s:o, s:o, s:o}", "token", reply_text(text, text ? size : 0), "logprob", logprob, "bytes", bytes);
    free(text);
    return token;
}

static void note_logprobs(const struct generation *g, struct generated *answer, const struct engine_event *e) {
    json_t *token = token_json(g->model->file, e->token, e->probability), *top = json_array();
    for (int i = 0; i < e->n_alternatives && i < g->top_logprobs; i++)
        json_array_append_new(top, token_json(g->model->file, e->alternatives[i].id, e->alternatives[i].probability));
    json_object_set_new(token, "top_logprobs", top);
    if (!answer->logprobs) answer->logprobs = json_array();
    json_array_append_new(answer->logprobs, token);
}

// ---- events ----

static void begin_stream(struct generation *g) {
    if (g->begun) return;
    g->begun = true;
    http_stream(g->exchange, g->form->stream_type);
}

uint64_t generations_due(const struct server *s) {
    uint64_t due = 0;
    for (const struct generation *g = s->generations; g; g = g->next)
        if (g->stream && g->exchange && (!due || g->heard < due)) due = g->heard;
    return due ? due + PING_SECONDS * NANOSECONDS : 0;
}

void generations_ping(struct server *s) {
    const uint64_t now = clock_ns();
    for (struct generation *g = s->generations; g; g = g->next) {
        if (!g->stream || !g->exchange || now < g->heard + PING_SECONDS * NANOSECONDS) continue;
        begin_stream(g);
        g->form->ping(g);
        g->heard = now;
    }
}

static void take_text(struct generation *g, int index, const struct engine_event *e) {
    struct generated *answer = &g->answers[index];
    if (g->only_echo) return;
    if (e->token >= 0) figures_token(&g->model->figures, g->submitted, answer->last, e->at);
    if (e->token >= 0) answer->last = e->at;
    if (!g->first) g->first = e->at, g->state = REQUEST_DECODING;
    if (e->token >= 0) answer->n_tokens++, answer->n_thinking += e->channel == CHANNEL_THINKING;
    if (!g->exchange) return;
    const bool listed = g->logprobs && e->token >= 0 && e->channel == CHANNEL_ANSWER;
    if (listed) note_logprobs(g, answer, e);
    if (!g->stream || g->form->keeps) bytes_add(&answer->texts[e->channel], e->text, e->size);
    if (g->stream && (e->size || listed)) {
        begin_stream(g);
        g->form->piece(g, index, e);
        g->heard = clock_ns();
        answer->any = true;
    }
}

// Cancels all answers, and tells why.
static void reply_refused(struct generation *g, const struct refusal *r) {
    struct exchange *x = g->exchange;
    abandon(g);
    if (!g->begun) {
        reply_refusal(x, g->form, r);
        return;
    }
    g->form->write(x, g->form->error(r));
    http_end(x);
}

static void reply_failed(struct generation *g, const struct engine_event *e) {
    struct refusal r = {0};
    const bool too_long = e->reason == FINISH_CONTEXT, stopped = e->state == REQUEST_CANCELLED;
    refuse(&r, too_long ? 400 : stopped ? 503 : 500, NULL, "%s", e->size ? e->text : "the answer was stopped");
    r.code = too_long ? "context_length_exceeded" : NULL;
    reply_refused(g, &r);
}

static void reply_ended(struct generation *g) {
    struct exchange *x = g->exchange;
    if (g->stream) g->form->end(g), http_end(x);
    else reply_json(x, 200, g->form->whole(g));
    g->exchange = NULL;
}

static void take_end(struct generation *g, int index, const struct engine_event *e) {
    struct generated *answer = &g->answers[index];
    answer->ended = true;
    answer->reason = e->reason;
    answer->stop = e->stop > 0 && e->stop <= g->n_stops ? g->stops[e->stop - 1] : NULL;
    answer->n_tokens = g->only_echo ? 0 : e->n_generated;
    g->ended = e->at;
    figures_end(&g->model->figures, g->submitted, e);
    g->n_open--, g->server->n_answers--;
    if (g->exchange && e->state != REQUEST_FINISHED) reply_failed(g, e);
    if (g->exchange && g->stream) {
        begin_stream(g);
        g->form->end_answer(g, index);
    }
    if (g->exchange && !g->n_open) reply_ended(g);
    if (!g->n_open) generation_free(g);
}

int generation_prompt(const struct generation *g, uint64_t request) {
    for (int i = 0; i < g->n_prompts; i++)
        if (g->prompts[i].request == request) return i;
    return -1;
}

static void note_tokens(struct generation *g, struct generated_prompt *p, const struct engine_event *e) {
    g->n_prompt += e->n_prompt - p->n_tokens;
    g->n_reused += e->n_reused - p->n_reused;
    p->n_tokens = e->n_prompt, p->n_reused = e->n_reused;
}

static void bound_scores(struct generation *g) {
    struct refusal r = {0};
    if (!g->scored || !g->exchange || (int64_t)g->n_prompt * g->n_each <= MOST_SCORED) return;
    refuse(&r, 400, "logprobs", "too many tokens to score with echo (maximum %d)", MOST_SCORED);
    reply_refused(g, &r);
}

void generation_take(struct server *s, const struct server_model *m, const struct engine_event *e) {
    struct generation *g = s->generations;
    int prompt = -1;
    while (g && (g->model != m || (prompt = generation_prompt(g, e->request)) < 0)) g = g->next;
    if (!g) return;
    const int index = prompt * g->n_each + e->answer;
    if (g->answers[index].ended) return;
    if (e->kind == EVENT_STATE) note_tokens(g, &g->prompts[prompt], e), bound_scores(g);
    if (e->kind == EVENT_STATE && !g->first && e->state < REQUEST_FINISHED) g->state = e->state;
    if (e->kind == EVENT_PROMPT && g->exchange) note_logprobs(g, &g->answers[index], e);
    if (e->kind == EVENT_TEXT) take_text(g, index, e);
    else if (e->kind == EVENT_STATE && e->state >= REQUEST_FINISHED) take_end(g, index, e);
}

struct generation *generation_of(const struct server *s, const struct exchange *x) {
    struct generation *g = s->generations;
    while (g && g->exchange != x) g = g->next;
    return g;
}

void generation_cancel(struct generation *g, const char *why) {
    struct engine_event e = {.state = REQUEST_CANCELLED, .reason = FINISH_CANCELLED, .at = clock_ns()};
    e.size = (size_t)snprintf(e.text, sizeof e.text, "%s", why);
    if (g->exchange) reply_failed(g, &e);
}

void generations_stop(struct server *s, const struct server_model *m, const char *why) {
    for (struct generation *g = s->generations, *next; g; g = next) {
        next = g->next;
        if (m && g->model != m) continue;
        generation_cancel(g, why);
        generation_free(g);
    }
}
