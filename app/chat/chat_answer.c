// Requests of the chat controller and their events.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/chat/chat_state.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/metrics.h"

#define SAVE_STREAMING_NS (NANOSECONDS - NANOSECONDS / 20) // a partial answer is saved at least every second

bool chat_left_out(const struct conversation *talk, int message) {
    const struct message *m = &talk->messages[message];
    return m->role == MESSAGE_MODEL && m->state == MESSAGE_FAILED && !m->size;
}

// What is asked of the engine: the messages of a path. Texts are borrowed but for those that were joined.
struct asked {
    struct engine_message *messages;
    char **joined;
    int count, n_joined;
};

// Templates want user and model to take turns: what was asked before an answer of which nothing came goes with the next
// question.
static void asked_add(struct asked *p, const struct message *m) {
    struct engine_message *before = p->count ? &p->messages[p->count - 1] : NULL;
    const char *role = message_role_name(m->role);
    if (before && m->role == MESSAGE_USER && !strcmp(before->role, role)) {
        before->text = p->joined[p->n_joined++] = xasprintf("%s\n\n%s", before->text, m->text);
        return;
    }
    p->messages[p->count++] = (struct engine_message){.role = role, .text = m->text, .thinking = m->thinking};
}

// The messages from the first one to `last`, after the system prompt. An answer of which nothing came is left out, with
// its question when that could not be answered.
static struct asked asked_open(const struct chat *c, const struct conversation *talk, int last) {
    int n = 1, length = 0;
    for (int m = last; m >= 0; m = talk->messages[m].parent) n++;
    struct asked p = {.messages = xcalloc((size_t)n, sizeof *p.messages), .joined = xcalloc((size_t)n, sizeof(char *))};
    int *path = xcalloc((size_t)n, sizeof *path);
    for (int m = last; m >= 0; m = talk->messages[m].parent) {
        if (chat_left_out(talk, m) && talk->messages[m].parent >= 0) m = talk->messages[m].parent;
        else if (talk->messages[m].role == MESSAGE_USER || talk->messages[m].size) path[length++] = m;
    }
    if (c->p.settings->system)
        p.messages[p.count++] = (struct engine_message){.role = "system", .text = c->p.settings->system};
    while (length) asked_add(&p, &talk->messages[path[--length]]);
    free(path);
    return p;
}

static void asked_close(struct asked *p) {
    for (int i = 0; i < p->n_joined; i++) free(p->joined[i]);
    free(p->joined);
    free(p->messages);
}

static void chat_request(struct chat *c, struct chat_entry *e) {
    struct conversation *talk = &e->conversation;
    const struct settings *s = c->p.settings;
    chat_limits_yield(c);
    struct asked asked = asked_open(c, talk, talk->messages[e->answer].parent);
    e->request = engine_submit(c->engine, &(struct request_params){
                                              .conversation = talk->id,
                                              .messages = asked.messages,
                                              .n_messages = asked.count,
                                              .sampling = talk->sampling,
                                              .reasoning = (enum reasoning)s->reasoning,
                                              .stops = (const char *const *)s->stops.texts,
                                              .n_stops = s->stops.count,
                                              .max_tokens = s->max_tokens,
                                              .time_limit = s->time_limit,
                                          });
    conversation_set_model(talk, e->answer, c->model_name);
    c->moved = clock_ns();
    if (!c->tick) c->tick = c->moved;
    asked_close(&asked);
}

void chat_submit(struct chat *c, struct chat_entry *e, int parent) {
    e->answer = conversation_add(&e->conversation, parent, MESSAGE_MODEL, "", 0);
    e->conversation.messages[e->answer].state = MESSAGE_STREAMING;
    e->state = REQUEST_PENDING;
    e->submitted = clock_ns();
    e->first_token = e->last_token = e->first_thought = e->left = e->away = 0;
    e->n_tokens = e->n_returns = 0;
    e->parked = chat_model_waits(c);
    if (!e->parked) chat_request(c, e);
    chat_save_later(e, 0);
}

void chat_unpark(struct chat *c, struct chat_entry *e) {
    if (e->parked) chat_request(c, e);
    e->parked = false;
}

static void answer_thought(struct chat_entry *e, const struct engine_event *event) {
    if (!e->first_thought) e->first_thought = event->at;
    double seconds = (double)(event->at - e->first_thought) * 1e-9;
    conversation_think(&e->conversation, e->answer, event->text, event->size, seconds);
    if (event->token >= 0) e->conversation.messages[e->answer].thinking_tokens++;
}

static void answer_text(struct chat_entry *e, const struct engine_event *event) {
    if (!e->first_token) e->first_token = event->at;
    if (event->token >= 0) { // otherwise text that was held back
        e->last_token = event->at;
        e->n_tokens++;
    }
    if (event->channel == CHANNEL_THINKING) answer_thought(e, event);
    else conversation_append(&e->conversation, e->answer, event->text, event->size);
    chat_save_later(e, SAVE_STREAMING_NS);
}

// Said once in a chat, as long as it stays the same.
static void answer_notice(struct chat *c, struct chat_entry *e, const struct engine_event *event) {
    const struct conversation *talk = &e->conversation;
    int m = talk->messages[e->answer].parent;
    while (m >= 0 && !talk->messages[m].notice) m = talk->messages[m].parent;
    if (m >= 0 && !strcmp(talk->messages[m].notice, event->text)) return;
    conversation_notice(&e->conversation, e->answer, event->text);
    chat_save_later(e, 0);
    c->stale = true;
}

// What ended an answer, for the note under it; "" when it ended by itself.
static const char *reason_text(enum finish_reason reason) {
    switch (reason) {
    case FINISH_LENGTH: return "cut at max-tokens";
    case FINISH_CONTEXT: return "the context is full";
    case FINISH_TIME: return "time limit reached";
    case FINISH_CANCELLED: return "stopped";
    case FINISH_NONE:
    case FINISH_END:
    case FINISH_ERROR: break;
    }
    return "";
}

// Between its tokens an answer may have to give way to others: that says nothing of its speed.
static void answer_waits(struct chat_entry *e, const struct engine_event *event) {
    if (event->state == REQUEST_PENDING && e->first_token && !e->left) e->left = event->at;
    if (event->state != REQUEST_DECODING || !e->left) return;
    e->away += event->at - e->left;
    e->left = 0;
    e->n_returns++;
}

// Tokens a second after the first one; 0: too few to tell.
static double answer_rate(const struct chat_entry *e, int n_tokens) {
    double tokens = n_tokens - 1 - e->n_returns, seconds = (double)(e->last_token - e->first_token - e->away) * 1e-9;
    return rate_is_steady(tokens, seconds) ? tokens / seconds : 0;
}

static char *answer_figures(const struct chat_entry *e, const char *reason, int n_tokens) {
    char rate[32] = "", first[32] = "";
    if (n_tokens == 0 && *reason) return xstrdup(reason);
    double speed = answer_rate(e, n_tokens);
    if (speed > 0) snprintf(rate, sizeof rate, "%.*f tok/s, ", speed < 99.95, speed);
    double wait = e->first_token ? (double)(e->first_token - e->submitted) * 1e-9 : 0;
    if (e->first_token && wait < 1) snprintf(first, sizeof first, ", first %.0f ms", wait * 1e3);
    if (e->first_token && wait >= 1) snprintf(first, sizeof first, ", first %.1f s", wait);
    return xasprintf("%s%s%s%d token%s%s", reason, *reason ? ", " : "", rate, n_tokens, n_tokens == 1 ? "" : "s",
                     first);
}

void chat_count(struct chat *c, struct chat_entry *e) {
    const struct engine_figures *f = e->request ? engine_figures(c->engine) : NULL;
    struct message *answer = &e->conversation.messages[e->answer];
    for (int i = 0; f && i < f->n_requests; i++) {
        const struct request_figures *r = &f->requests[i];
        if (r->request == e->request)
            answer->tokens = r->n_context - r->n_generated + e->n_tokens - answer->thinking_tokens;
    }
}

static void answer_end(struct chat_entry *e, enum message_state state, const char *note) {
    conversation_note(&e->conversation, e->answer, note);
    e->conversation.messages[e->answer].state = state;
    e->request = 0;
    e->parked = false;
    chat_save_later(e, 0);
}

void chat_stop(struct chat *c, struct chat_entry *e) {
    if (e->request) engine_cancel(c->engine, e->request);
    if (!e->parked) return;
    e->state = REQUEST_CANCELLED;
    answer_end(e, MESSAGE_STOPPED, "stopped");
}

static void answer_finished(struct chat *c, struct chat_entry *e, const struct engine_event *event) {
    struct message *answer = &e->conversation.messages[e->answer];
    answer->tokens = event->n_prompt + event->n_generated - answer->thinking_tokens; // thoughts are not read again
    if (event->state == REQUEST_FAILED) {
        answer_end(e, MESSAGE_FAILED, event->text);
    } else {
        char *note = answer_figures(e, reason_text(event->reason), event->n_generated);
        answer_end(e, event->state == REQUEST_CANCELLED ? MESSAGE_STOPPED : MESSAGE_COMPLETE, note);
        free(note);
    }
    int context = engine_figures(c->engine)->context;
    if (event->reason == FINISH_CONTEXT && e == chat_current(c)) // elsewhere the note says it
        chat_say(c, true, "the context of %d tokens is full: begin a new chat%s", context,
                 context < model_host_info(c->p.host)->n_context ? ", or start confab with a larger --context" : "");
    if (e != chat_current(c)) e->unread = true;
}

static struct chat_entry *entry_of_request(const struct chat *c, const struct engine_event *event) {
    for (int i = 0; i < c->n_entries; i++)
        if (c->entries[i]->conversation.id == event->conversation && c->entries[i]->request == event->request)
            return c->entries[i];
    return NULL; // deleted meanwhile
}

void chat_event(struct chat *c, const struct engine_event *event) {
    struct chat_entry *e = entry_of_request(c, event);
    if (!e) return;
    if (event->kind == EVENT_TEXT) {
        answer_text(e, event);
        return;
    }
    if (event->kind == EVENT_NOTICE) {
        answer_notice(c, e, event);
        return;
    }
    e->state = event->state;
    answer_waits(e, event);
    bool ended =
        event->state == REQUEST_FINISHED || event->state == REQUEST_FAILED || event->state == REQUEST_CANCELLED;
    if (ended) answer_finished(c, e, event);
}

void chat_abandon(struct chat *c, struct chat_entry *e, const char *reason) {
    bool running = e->request;
    chat_count(c, e);
    chat_stop(c, e);
    if (!running) return;
    char *note = answer_figures(e, reason, e->n_tokens);
    e->state = REQUEST_CANCELLED;
    answer_end(e, MESSAGE_STOPPED, note);
    free(note);
}
