#include "app/session/session.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "app/session/session_state.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"

#define CLOSE_PATIENCE 10000 // ms that saving may take where the person waits for its outcome

void session_tell(struct session *s, const struct session_event *event) {
    if (s->p.tell) s->p.tell(s->p.context, event);
}

// ---- turns of the loop ----

static int engine_fd(void *context) {
    const struct session *s = context;
    return s->client && clock_ns() >= s->rest ? engine_event_fd(s->client) : -1;
}

static void engine_turn(void *context, bool ready) {
    (void)ready; // what waits while nobody is woken up is taken along
    session_poll(context);
}

static uint64_t title_due(void *context) { return ((struct session *)context)->titling.due; }

static void title_turn(void *context, bool ready) {
    (void)ready;
    session_title_turn(context);
}

static int store_fd(void *context) { return worker_fd(((struct session *)context)->worker); }
static uint64_t store_due(void *context) { return session_save_due(context); }

static void store_turn(void *context, bool ready) {
    struct session *s = context;
    if (ready) worker_collect(s->worker);
    session_save_turn(s);
}

// ---- chats ----

struct session_chat *session_add(struct session *s, struct conversation *conversation, int index) {
    if (s->count == s->capacity) {
        s->capacity = s->capacity ? 2 * s->capacity : 16;
        s->chats = xrealloc(s->chats, (size_t)s->capacity * sizeof *s->chats);
    }
    memmove(s->chats + index + 1, s->chats + index, (size_t)(s->count++ - index) * sizeof *s->chats);
    struct session_chat *chat = s->chats[index] = xcalloc(1, sizeof *chat);
    chat->conversation = *conversation;
    chat->conversation.id = s->next_id++;
    chat->state = REQUEST_FINISHED;
    chat->draft_row = NOT_IN_STORE;
    return chat;
}

void session_chat_free(struct session_chat *chat) {
    conversation_close(&chat->conversation);
    draft_free(&chat->draft);
    draft_free(&chat->edit);
    for (int i = 0; i < chat->n_answers; i++) session_start_free(chat->answers[i].start);
    free(chat->answers);
    free(chat);
}

uint64_t session_disk_owner(const struct session *s, const struct conversation *talk) {
    const int64_t number = talk->created ? talk->created : talk->row; // neither is given twice
    return s->p.store_path && !talk->private ? (uint64_t)number : 0;
}

void session_remove(struct session *s, struct session_chat *chat) {
    session_stop(s, chat);
    session_abandon_chat(s, chat, "stopped");
    if (s->ahead.conversation == chat->conversation.id) session_ahead_stop(s);
    if (s->titling.conversation == chat->conversation.id) session_title_stop(s, false);
    if (s->client) engine_forget(s->client, chat->conversation.id, session_disk_owner(s, &chat->conversation));
    session_tell(s, &(struct session_event){.kind = SESSION_DELETED, .chat = chat});
    int index = session_index(s, chat);
    memmove(s->chats + index, s->chats + index + 1, (size_t)(--s->count - index) * sizeof *s->chats);
    session_forget_matches(s, chat);
    session_keep_deleted(s, chat);
}

int session_count(const struct session *s) { return s->count; }

int session_listed(const struct session *s) {
    int count = s->count;
    while (count && s->chats[count - 1]->conversation.archived) count--;
    return count;
}

int session_first_unpinned(const struct session *s) {
    int first = 0;
    while (first < s->count && s->chats[first]->conversation.pinned) first++;
    return first;
}

struct session_chat *session_chat(const struct session *s, int index) {
    return s->chats[index];
}

int session_index(const struct session *s, const struct session_chat *chat) {
    for (int i = 0; i < s->count; i++)
        if (s->chats[i] == chat) return i;
    return -1;
}

struct session_chat *session_new(struct session *s) {
    struct conversation fresh;
    conversation_open(&fresh, 0, s->p.settings);
    struct session_chat *chat = session_add(s, &fresh, session_first_unpinned(s));
    chat->draft_known = true;
    return chat;
}

struct session_chat *session_new_private(struct session *s) {
    struct session_chat *chat = session_new(s);
    chat->conversation.private = true;
    return chat;
}

void session_changed(struct session_chat *chat) {
    chat->conversation.dirty = true;
    session_save_later(chat, 0);
}

void session_settings_changed(struct session_chat *chat) {
    chat->own_settings = true;
    session_changed(chat);
}

void session_rename(struct session_chat *chat, const char *title) {
    conversation_rename(&chat->conversation, title);
    session_save_later(chat, 0);
}

void session_tag(struct session_chat *chat, const char *tags) {
    conversation_tag(&chat->conversation, tags);
    session_save_later(chat, 0);
}

static void move_to(struct session *s, const struct session_chat *chat, int to) {
    const int from = session_index(s, chat);
    struct session_chat *moved = s->chats[from];
    if (from < to) memmove(s->chats + from, s->chats + from + 1, (size_t)(to - from) * sizeof *s->chats);
    else memmove(s->chats + to + 1, s->chats + to, (size_t)(from - to) * sizeof *s->chats);
    s->chats[to] = moved;
}

// Pinned ones stand first and archived ones last; none is both.
static void place(struct session *s, struct session_chat *chat, bool pinned, bool archived) {
    struct conversation *talk = &chat->conversation;
    move_to(s, chat, s->count - 1);
    talk->pinned = pinned, talk->archived = archived;
    if (!archived) move_to(s, chat, pinned ? 0 : session_first_unpinned(s));
    session_changed(chat);
}

void session_pin(struct session *s, struct session_chat *chat, bool pin) { place(s, chat, pin, false); }

void session_archive(struct session *s, struct session_chat *chat, bool archive) { place(s, chat, false, archive); }

// One of its answers at least has its own sampling.
static bool has_own(const struct session_chat *chat, uint64_t request) {
    for (int i = 0; i < chat->n_answers; i++)
        if (chat->answers[i].request == request && chat->answers[i].own_sampling) return true;
    return false;
}

void session_set_sampling(struct session *s, struct session_chat *chat, const struct sampling *sampling) {
    chat->conversation.settings.sampling = *sampling;
    session_changed(chat);
    for (int i = 0; i < chat->n_answers; i++) {
        const struct session_answer *a = &chat->answers[i];
        if (a->own_sampling) continue;
        conversation_set_sampling(&chat->conversation, a->message, sampling);
        if (!a->request) continue;
        if (has_own(chat, a->request)) engine_set_answer_sampling(s->client, a->request, a->index, sampling);
        else if (!i || a[-1].request != a->request) engine_set_sampling(s->client, a->request, sampling);
    }
}

bool session_change_setting(struct session *s, struct session_chat *chat, int id, const char *text,
                            const struct model_info *model, struct status *st) {
    struct settings *own = &chat->conversation.settings;
    if (!setting_change(own, id, text, model, st)) return false;
    const struct sampling sampling = own->sampling;
    if (id >= SETTING_FIRST_KNOB) session_set_sampling(s, chat, &sampling);
    session_settings_changed(chat);
    return true;
}

void session_begin_with_defaults(struct session *s) {
    for (int i = 0; i < s->count; i++) {
        struct conversation *talk = &s->chats[i]->conversation;
        const bool begun = talk->count || talk->unread_rows || s->chats[i]->own_settings;
        if (!begun) conversation_set_settings(talk, s->p.settings);
    }
}

void session_set_draft(struct session_chat *chat, struct draft *draft) {
    if (draft_equal(draft, &chat->draft)) {
        draft_free(draft);
        return;
    }
    draft_free(&chat->draft);
    chat->draft = *draft;
    chat->draft_dirty = true;
    chat->save_draft_at = clock_ns();
}

// ---- opening and closing ----

struct session *session_open(const struct session_params *p, struct status *st) {
    struct session *s = xcalloc(1, sizeof *s);
    s->p = *p;
    s->next_id = 1;
    s->worker = worker_open(st);
    if (!s->worker) {
        free(s);
        return NULL;
    }
    loop_add(p->loop, &(struct loop_source){engine_fd, POLLIN, NULL, engine_turn, s});
    loop_add(p->loop, &(struct loop_source){NULL, 0, title_due, title_turn, s});
    loop_add(p->loop, &(struct loop_source){store_fd, POLLIN, store_due, store_turn, s});
    struct session_chat *chat = session_new(s);
    chat->draft_known = !p->store_path;
    if (p->store_path) session_list(s);
    return s;
}

struct worker *session_worker(struct session *s) {
    return s->worker;
}

// What is saved may have to be saved once more, when the chat changed meanwhile.
static bool save_all(struct session *s, int timeout_ms, struct status *st) {
    bool answers = worker_wait(s->worker, timeout_ms);
    s->problem = (struct status){0};
    for (int i = 0; i < s->count; i++) {
        struct session_chat *chat = s->chats[i];
        if (chat->save_at) chat->save_at = clock_ns();
        if (chat->draft_dirty) chat->save_draft_at = clock_ns();
    }
    while (answers && session_save_due(s) && !s->problem.code) {
        session_save_turn(s);
        answers = worker_wait(s->worker, timeout_ms);
    }
    if (!answers) status_fail(&s->problem, STATUS_IO, "%s: the disk does not answer", s->p.store_path);
    if (s->problem.code && st) *st = s->problem;
    return !s->problem.code;
}

bool session_save(struct session *s, struct status *st) { return save_all(s, CLOSE_PATIENCE, st); }

bool session_close(struct session *s, struct status *st) {
    s->p.tell = NULL;
    session_ahead_stop(s);
    session_title_stop(s, false);
    session_abandon(s, "stopped");
    for (int i = 0; i < s->count; i++) session_stop(s, s->chats[i]);
    bool saved = save_all(s, -1, st) || status_prefix(st, "not saved");
    worker_close(s->worker);
    session_close_store(s);
    for (int i = 0; i < s->count; i++) session_chat_free(s->chats[i]);
    session_forget_deleted(s);
    session_forget_matches(s, NULL);
    free(s->searched), free(s->to_search);
    free(s->chats);
    free(s->model);
    free(s);
    return saved;
}

// ---- the engine ----

void session_set_client(struct session *s, struct engine_client *client, const char *model) {
    if (s->client != client) {
        session_ahead_stop(s);
        session_title_stop(s, false);
        s->finding = 0;
        for (int i = 0; i < s->count; i++) s->chats[i]->n_asked = 0; // what another engine had cached
    }
    s->client = client;
    free(s->model);
    s->model = xstrdup(model);
}

void session_hold(struct session *s, bool wait) {
    s->held = wait;
    if (!s->held && s->client) session_request_waiting(s);
}

void session_rest(struct session *s, uint64_t until) { s->rest = until; }
