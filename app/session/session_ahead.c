// The message being written is read ahead: its conversation and its whole words are computed while nothing else is, or
// once it has settled in rows that others have to spare, so that the answer begins at once when it is sent. One at a
// time, of whichever chat is written in.
#include <stdlib.h>
#include <string.h>

#include "app/session/asked.h"
#include "app/session/session_state.h"
#include "engine/base/panic.h"
#include "engine/metrics.h"

#define MOST_BYTES (1u << 20) // longer messages are not read ahead: they would hardly fit

void session_ahead_stop(struct session *s) {
    if (s->ahead.request && s->client) engine_cancel(s->client, s->ahead.request);
    free(s->ahead.text);
    s->ahead = (struct session_ahead){0};
}

static bool is_blank(char c) { return strchr(" \t\r\n", c) != NULL; } // and NUL

// Without the last word, if that may go on, and without blanks at the end.
static size_t wanted(const char *text, bool settled) {
    size_t size = strlen(text);
    while (!settled && size && !is_blank(text[size - 1])) size--;
    while (size && is_blank(text[size - 1])) size--;
    return size;
}

static uint64_t submit(struct session *s, struct session_chat *chat, int parent, const char *text,
                       enum read_ahead how) {
    const struct conversation *talk = &chat->conversation;
    struct asked asked = asked_open_with(talk, parent, text);
    struct request_params params = session_request_with(s, talk, &asked);
    params.read_ahead = how;
    const uint64_t id = engine_submit(s->client, &params);
    asked_close(&asked);
    return id;
}

// Otherwise little of it may be computed before it changes.
static bool nobody_waits(const struct engine_metrics *f) { return f->running <= 0 && f->queue <= 0; }

void session_read_ahead(struct session *s, struct session_chat *chat, int parent, const char *text, bool settled) {
    const size_t size = text ? wanted(text, settled) : 0;
    const enum read_ahead how = settled ? READ_AHEAD_ALL : READ_AHEAD_WORDS;
    const struct conversation *talk = &chat->conversation;
    const bool in_time = s->client && !s->held && (settled || nobody_waits(engine_metrics(s->client)));
    const bool there =
        in_time && size <= MOST_BYTES && !talk->unread_rows && (parent < 0 || !session_answer_at(chat, parent));
    if (!size || !there || !s->p.settings->read_ahead) {
        session_ahead_stop(s);
        return;
    }
    const struct session_ahead *a = &s->ahead;
    if (a->request && a->conversation == talk->id && a->parent == parent && a->how >= how && strlen(a->text) == size &&
        !memcmp(a->text, text, size))
        return;
    session_ahead_stop(s);
    session_title_stop(s, true);
    char *words = xstrndup(text, size);
    s->ahead = (struct session_ahead){.request = submit(s, chat, parent, words, how),
                                      .conversation = talk->id,
                                      .parent = parent,
                                      .how = how,
                                      .text = words};
}

bool session_prompt(struct session *s, const struct conversation *talk, const struct asked *asked,
                    struct prompt_tokens *out) {
    const struct request_params params = session_request_with(s, talk, asked);
    *out = (struct prompt_tokens){0};
    return s->client && engine_prompt(s->client, &params, out);
}

bool session_find(struct session *s, struct session_chat *chat) {
    const struct conversation *talk = &chat->conversation;
    const int last = conversation_last(talk);
    if (!s->client || s->held || last < 0 || s->finding) return false;
    s->finding = submit(s, chat, last, "", READ_AHEAD_FIND);
    s->finding_in = talk->id;
    return true;
}

void session_found(struct session *s, const struct engine_event *event) {
    if (!s->finding || event->request != s->finding || event->kind != EVENT_STATE || event->state < REQUEST_FINISHED)
        return;
    s->finding = 0;
    for (int i = 0; i < s->count; i++) {
        struct session_chat *chat = s->chats[i];
        if (chat->conversation.id != s->finding_in) continue;
        chat->n_asked = event->n_prompt;
        chat->n_cached = event->n_reused;
        session_tell(s, &(struct session_event){.kind = SESSION_CHANGED, .chat = chat});
    }
}
