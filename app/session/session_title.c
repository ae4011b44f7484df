// What the model calls a chat: after the first answer it is asked for a title, which takes the place of the person's
// first words. It is asked where nothing is being answered, and given up as soon as anything is to be, or to be read
// ahead: nobody waits for a title. A title that a person gave stays.
//
//   an answer ends ──► wanted ──(a moment later, nothing runs)──► asked ──► there, or no use: not wanted any more
//                         ▲                                         │
//                         └───────────── given up ──────────────────┘
#include <stdlib.h>
#include <string.h>

#include "app/session/session_state.h"
#include "app/session/title.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"

#define QUESTION "Give this conversation a title of two to six words, in its language. Reply with the title only."

#define DELAY_NS (NANOSECONDS / 2) // after an answer
#define AGAIN_NS (5 * NANOSECONDS) // after a message was read ahead in its place
#define SECONDS  60                // that it may take
enum {
    YOUNG = 6,         // messages: longer chats are known by the title that they have
    TOKENS = 32,       // of a title
    TOKENS_THINK = 512 // where the model thinks first
};

void session_set_titles(struct session *s, const struct model_info *info) {
    struct session_titling *t = &s->titling;
    session_title_stop(s, false);
    t->able = info && strcmp(info->chat_template, "none");
    if (!t->able) return;
    const bool thinks = *info->thinking && !info->chooses_thinking;
    t->reasoning = info->chooses_thinking ? REASONING_OFF : info->chooses_effort ? REASONING_LOW : REASONING_AUTO;
    t->max_tokens = thinks || info->chooses_effort ? TOKENS_THINK : TOKENS;
}

void session_title_stop(struct session *s, bool again) {
    struct session_titling *t = &s->titling;
    if (!t->request) return;
    if (s->client) engine_cancel(s->client, t->request);
    t->request = 0;
    t->size = 0;
    t->due = again ? clock_ns() + AGAIN_NS : 0;
}

// ---- asking ----

// The answer after which it is asked; −1: there is none, or the chat has a title that is better.
static int first_answer(const struct conversation *talk) {
    const int first = talk->first, answer = first < 0 ? -1 : talk->messages[first].chosen;
    if (talk->unread_rows || settings_raw(&talk->settings) || !conversation_has_first_title(talk) || answer < 0)
        return -1;
    const struct message *m = &talk->messages[answer];
    return m->role == MESSAGE_MODEL && m->state == MESSAGE_COMPLETE && m->size ? answer : -1;
}

void session_title_later(struct session *s, struct session_chat *chat) {
    const struct conversation *talk = &chat->conversation;
    if (!s->titling.able) return;
    chat->wants_title |= talk->count <= YOUNG && first_answer(talk) >= 0;
    s->titling.due = clock_ns() + DELAY_NS; // of others too, for which there was no time
}

static void ask(struct session *s, struct session_chat *chat, int answer) {
    const struct conversation *talk = &chat->conversation;
    struct asked asked = asked_open_with(talk, answer, QUESTION);
    struct request_params params = session_request_with(s, talk, &asked);
    params.disk_owner = 0; // what is said here is not gone on with
    params.n_stops = 0;
    params.sampling = sampling_default();
    sampling_set(&params.sampling, KNOB_temperature, 0);
    params.reasoning = s->titling.reasoning;
    params.max_tokens = s->titling.max_tokens;
    params.time_limit = SECONDS;
    session_tell(s, &(struct session_event){.kind = SESSION_ASKED}); // the engine has work
    s->titling.request = engine_submit(s->client, &params);
    s->titling.conversation = talk->id;
    asked_close(&asked);
}

static bool answers_run(const struct session *s) {
    for (int i = 0; i < s->count; i++)
        if (s->chats[i]->n_answers) return true;
    return false;
}

void session_title_turn(struct session *s) {
    struct session_titling *t = &s->titling;
    if (!t->due || clock_ns() < t->due) return;
    t->due = 0; // the next answer's end sets it again
    if (!t->able || !s->p.settings->name_chats || !s->client || s->held || t->request || answers_run(s)) return;
    for (int i = 0; i < s->count && !t->request; i++) {
        struct session_chat *chat = s->chats[i];
        const int answer = chat->wants_title ? first_answer(&chat->conversation) : -1;
        if (answer >= 0) ask(s, chat, answer);
        else chat->wants_title = false;
    }
}

// ---- what comes of it ----

// title: NULL: there was none.
static void end(struct session *s, const char *title) {
    struct session_titling *t = &s->titling;
    session_title_stop(s, false);
    t->due = clock_ns() + DELAY_NS; // of the next chat
    for (int i = 0; i < s->count; i++) {
        struct session_chat *chat = s->chats[i];
        if (chat->conversation.id != t->conversation) continue;
        chat->wants_title = false;
        if (!title || first_answer(&chat->conversation) < 0) continue; // a person has given another one meanwhile
        conversation_set_title(&chat->conversation, title);
        session_save_later(chat, 0);
        session_tell(s, &(struct session_event){.kind = SESSION_TITLED, .chat = chat});
    }
}

void session_titled(struct session *s, const struct engine_event *event) {
    struct session_titling *t = &s->titling;
    if (!t->request || event->request != t->request) return;
    if (event->kind == EVENT_TEXT && event->channel == CHANNEL_ANSWER && t->size + event->size <= sizeof t->text) {
        memcpy(t->text + t->size, event->text, event->size);
        t->size += event->size;
    }
    const bool ended = event->kind == EVENT_STATE && event->state >= REQUEST_FINISHED;
    char *title = title_of_answer(t->text, t->size, ended && event->reason == FINISH_END);
    if (ended || title) end(s, title); // more than a line is not waited for
    else session_tell(s, &(struct session_event){.kind = SESSION_CHANGED});
    free(title);
}
