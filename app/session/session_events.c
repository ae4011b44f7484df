// What the engine says of answers becomes text, figures and notes of their messages; and how answers end.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/session/asked.h"
#include "app/session/session_state.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/metrics.h"

#define SAVE_STREAMING_NS (NANOSECONDS - NANOSECONDS / 20) // a partial answer is saved at least every second

// ---- how it ends ----

// Milliseconds since 1970 at this clock_ns.
static int64_t wall_ms(uint64_t at) { return (int64_t)((clock_wall_ns() - (clock_ns() - at)) / 1000000); }

// Tokens a second after the first one; 0: too few to tell.
static double rate_of(const struct session_answer *a, int n_tokens) {
    double tokens = n_tokens - 1 - a->n_returns - a->n_given,
           seconds = (double)(a->last_token - a->first_token - a->away) * 1e-9;
    return rate_is_steady(tokens, seconds) ? tokens / seconds : 0;
}

// ", prompt 1204 (1100 cached), read at 512 tok/s"
static char *prompt_note(const struct session_answer *a, const struct engine_event *end) {
    char cached[32] = "", rate[48] = "";
    const int computed = end->n_prompt - end->n_reused;
    const double seconds = a->reading && a->first_token > a->reading ? (double)(a->first_token - a->reading) * 1e-9 : 0;
    if (end->n_prompt <= 0) return xstrdup("");
    if (end->n_reused > 0) snprintf(cached, sizeof cached, " (%d cached)", end->n_reused);
    if (computed > 0 && rate_is_steady(computed, seconds))
        snprintf(rate, sizeof rate, ", read at %.0f tok/s", computed / seconds);
    return xasprintf(", prompt %d%s%s", end->n_prompt, cached, rate);
}

// With what `end` says of drafts and the prompt; NULL: nothing.
static char *metrics_note(const struct session_answer *a, const char *reason, int n_tokens,
                          const struct engine_event *end) {
    char rate[32] = "", first[32] = "", drafts[32] = "";
    if (n_tokens == 0 && *reason) return xstrdup(reason);
    double speed = rate_of(a, n_tokens);
    if (speed > 0) snprintf(rate, sizeof rate, "%.*f tok/s, ", speed < 99.95, speed);
    double wait = a->first_token ? (double)(a->first_token - a->submitted) * 1e-9 : 0;
    if (a->first_token && wait < 1) snprintf(first, sizeof first, ", first %.0f ms", wait * 1e3);
    if (a->first_token && wait >= 1) snprintf(first, sizeof first, ", first %.1f s", wait);
    if (end && end->n_accepted > 0) snprintf(drafts, sizeof drafts, ", drafts %d/%d", end->n_accepted, end->n_drafted);
    char *prompt = end ? prompt_note(a, end) : xstrdup("");
    char *note = xasprintf("%s%s%s%d token%s%s%s%s", reason, *reason ? ", " : "", rate, n_tokens,
                           n_tokens == 1 ? "" : "s", first, drafts, prompt);
    free(prompt);
    return note;
}

// `a` is none of the chat's answers any more.
static void end(struct session_chat *chat, struct session_answer *a, enum request_state state, const char *note) {
    struct conversation *talk = &chat->conversation;
    int message = a->message;
    conversation_note(talk, message, note);
    talk->messages[message].state = state == REQUEST_FAILED      ? MESSAGE_FAILED
                                    : state == REQUEST_CANCELLED ? MESSAGE_STOPPED
                                                                 : MESSAGE_COMPLETE;
    talk->messages[message].ended = wall_ms(clock_ns());
    session_start_free(a->start);
    memmove(a, a + 1, (size_t)(chat->answers + --chat->n_answers - a) * sizeof *a);
    chat->state = chat->n_answers ? chat->answers[chat->n_answers - 1].state : state;
    session_save_later(chat, 0);
}

static void stop(struct session *s, struct session_chat *chat, struct session_answer *a) {
    a->stopped = true;
    if (a->request && !a->refused) engine_cancel_answer(s->client, a->request, a->index); // its event ends it
    else end(chat, a, REQUEST_CANCELLED, "stopped");
}

void session_stop(struct session *s, struct session_chat *chat) {
    for (int i = chat->n_answers - 1; i >= 0; i--) stop(s, chat, &chat->answers[i]);
}

void session_stop_answer(struct session *s, struct session_chat *chat, int message) {
    for (int i = chat->n_answers - 1; i >= 0; i--)
        if (chat->answers[i].message == message) stop(s, chat, &chat->answers[i]);
}

void session_set_answer_sampling(struct session *s, struct session_chat *chat, int message,
                                 const struct sampling *sampling) {
    for (int i = 0; i < chat->n_answers; i++) {
        struct session_answer *a = &chat->answers[i];
        if (a->message != message) continue;
        conversation_set_sampling(&chat->conversation, message, sampling);
        a->own_sampling = true;
        if (a->request) engine_set_answer_sampling(s->client, a->request, a->index, sampling);
        session_save_later(chat, 0);
    }
}

void session_count_tokens(struct session *s, struct session_chat *chat) {
    const struct engine_metrics *f = chat->n_answers && s->client ? engine_metrics(s->client) : NULL;
    for (int i = 0; f && i < f->n_requests; i++) {
        const struct request_metrics *r = &f->requests[i];
        for (int k = 0; k < chat->n_answers; k++) {
            const struct session_answer *a = &chat->answers[k];
            struct message *m = &chat->conversation.messages[a->message];
            if (r->request == a->request && r->answer == a->index && metric_known(r->n_context))
                m->tokens = r->n_context - r->n_generated + a->n_tokens - m->thinking_tokens;
        }
    }
}

int session_abandon_chat(struct session *s, struct session_chat *chat, const char *reason) {
    int running = 0;
    session_count_tokens(s, chat);
    for (int i = chat->n_answers - 1; i >= 0; i--) {
        struct session_answer *a = &chat->answers[i];
        if (!a->request) continue;
        engine_cancel(s->client, a->request);
        char *note = metrics_note(a, reason, a->n_tokens, NULL);
        end(chat, a, REQUEST_CANCELLED, note);
        free(note);
        running++;
    }
    return running;
}

int session_abandon(struct session *s, const char *reason) {
    int running = 0;
    for (int i = 0; i < s->count; i++) running += session_abandon_chat(s, s->chats[i], reason);
    return running;
}

// ---- events ----

static void take_thought(struct session_chat *chat, struct session_answer *a, const struct engine_event *event) {
    if (!a->first_thought) a->first_thought = event->at;
    double seconds = (double)(event->at - a->first_thought) * 1e-9;
    conversation_think(&chat->conversation, a->message, event->text, event->size, seconds);
    if (event->token >= 0) chat->conversation.messages[a->message].thinking_tokens++;
}

// What it begins with has the figures that it had where it was drawn.
static void take_token(struct session_chat *chat, const struct session_answer *a, const struct engine_event *event) {
    struct message *m = &chat->conversation.messages[a->message];
    const size_t end = event->channel == CHANNEL_THINKING ? m->thinking_size : m->size;
    const struct session_start *start = a->start;
    const int at = m->drawn.count;
    const bool known = start && event->token >= 0 && at < start->n + (start->forced >= 0) && at < start->tokens.count &&
                       isnan(event->probability) &&
                       (at == start->n ? event->token == start->forced : event->token == start->tokens.tokens[at].id);
    if (known) message_tokens_add_known(&m->drawn, event, end, &start->tokens, at);
    else message_tokens_add(&m->drawn, event, end);
}

static void take_text(struct session_chat *chat, struct session_answer *a, const struct engine_event *event) {
    if (a->replays) {
        conversation_clear(&chat->conversation, a->message);
        a->n_tokens = 0;
        a->replays = false;
    }
    const bool given = event->token >= 0 && isnan(event->probability);
    if (!a->first_token && event->token >= 0 && !given) {
        a->first_token = event->at;
        chat->conversation.messages[a->message].begun = wall_ms(event->at);
    }
    if (event->token >= 0) { // otherwise text that was held back
        a->last_token = event->at;
        a->n_tokens++;
        a->n_given += given;
    }
    if (event->channel == CHANNEL_THINKING) take_thought(chat, a, event);
    else conversation_append(&chat->conversation, a->message, event->text, event->size);
    take_token(chat, a, event);
    session_save_later(chat, SAVE_STREAMING_NS);
}

// Said once in a chat, as long as it stays the same.
static void take_notice(struct session_chat *chat, const struct session_answer *a, const struct engine_event *event) {
    struct conversation *talk = &chat->conversation;
    int m = talk->messages[a->message].parent;
    while (m >= 0 && !talk->messages[m].notice) m = talk->messages[m].parent;
    if (m >= 0 && !strcmp(talk->messages[m].notice, event->text)) return;
    conversation_notice(talk, a->message, event->text);
    session_save_later(chat, 0);
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

static void take_end(struct session *s, struct session_chat *chat, struct session_answer *a,
                     const struct engine_event *event) {
    struct message *m = &chat->conversation.messages[a->message];
    const int own = event->n_generated - m->thinking_tokens; // thoughts are not read again
    const bool last = a->message == conversation_last(&chat->conversation);
    m->tokens = event->n_prompt + own;
    struct message *asked = &chat->conversation.messages[m->parent];
    if (event->n_prompt && asked->tokens != event->n_prompt) asked->tokens = event->n_prompt, asked->dirty = true;
    if (event->n_prompt && event->state != REQUEST_FAILED) {
        const bool same = asked_messages(&chat->conversation, m->parent) == a->n_asked;
        if (same) asked_count(&chat->conversation, a->message, event->n_prompt, own);
        else conversation_count(&chat->conversation, a->message, own); // who knows which of the others took how many
    }
    char *note = event->state == REQUEST_FAILED
                     ? xstrdup(event->text)
                     : metrics_note(a, reason_text(event->reason), event->n_generated, event);
    end(chat, a, event->state, note);
    free(note);
    const bool goes_on = last && (event->state == REQUEST_FINISHED || chat->steers);
    session_tell(s, &(struct session_event){.kind = SESSION_ENDED, .chat = chat, .reason = event->reason});
    if (goes_on) session_send_waiting(s, chat);
    session_title_later(s, chat);
}

// All answers of a request are refused together, one after the other: those that nobody has stopped meanwhile are asked
// for again, or end, with the last one. False: it does not concern this event.
static bool refuse(struct session *s, struct session_chat *chat, struct session_answer *a,
                   const struct engine_event *event) {
    const uint64_t request_id = a->request;
    int first = 0, end_of;
    if (event->state != REQUEST_FAILED || event->reason != FINISH_CONTEXT) return false;
    if (!a->makes_room && s->p.settings->overflow != OVERFLOW_DROP) return false;
    if (a->stopped) end(chat, a, REQUEST_CANCELLED, "stopped");
    else a->refused = true;
    while (first < chat->n_answers && chat->answers[first].request != request_id) first++;
    for (end_of = first; end_of < chat->n_answers && chat->answers[end_of].request == request_id; end_of++)
        if (!chat->answers[end_of].refused) return true;
    if (first == end_of || session_drop_oldest(s, chat, first, event->n_prompt)) return true;
    for (int i = end_of - 1; i >= first; i--) take_end(s, chat, &chat->answers[i], event);
    return true;
}

// Between its tokens an answer may have to give way to others: that says nothing of its speed.
static void take_wait(struct session_answer *a, const struct engine_event *event) {
    if (event->state == REQUEST_PENDING && a->first_token && !a->left) a->left = event->at;
    if (event->state != REQUEST_DECODING || !a->left) return;
    a->away += event->at - a->left;
    a->left = 0;
    a->n_returns++;
}

static void take_state(struct session *s, struct session_chat *chat, struct session_answer *a,
                       const struct engine_event *event) {
    chat->state = a->state = event->state;
    if (event->state == REQUEST_PREFILLING && !a->reading) a->reading = event->at;
    take_wait(a, event);
    const bool ended = event->state >= REQUEST_FINISHED;
    if (ended && !refuse(s, chat, a, event) && !session_go_on(s, chat, a, event)) take_end(s, chat, a, event);
}

static void take_event(struct session *s, struct session_chat *chat, struct session_answer *a,
                       const struct engine_event *event) {
    if (event->kind == EVENT_TEXT) take_text(chat, a, event);
    else if (event->kind == EVENT_NOTICE) take_notice(chat, a, event);
    else take_state(s, chat, a, event);
    session_tell(s, &(struct session_event){.kind = SESSION_CHANGED, .chat = chat});
}

static bool find_answer(const struct session *s, const struct engine_event *event, struct session_chat **chat,
                        struct session_answer **answer) {
    for (int i = 0; i < s->count; i++) {
        for (int k = 0; k < s->chats[i]->n_answers; k++) {
            struct session_answer *a = &s->chats[i]->answers[k];
            if (a->request != event->request || a->index != event->answer) continue;
            *chat = s->chats[i];
            *answer = a;
            return true;
        }
    }
    return false; // deleted meanwhile
}

void session_poll(struct session *s) {
    struct engine_event event;
    struct session_chat *chat;
    struct session_answer *answer;
    while (s->client && engine_poll(s->client, &event))
        if (find_answer(s, &event, &chat, &answer)) take_event(s, chat, answer, &event);
        else session_found(s, &event), session_titled(s, &event);
}
