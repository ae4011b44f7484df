// The store of a session, which only the worker's thread touches. Jobs carry copies and bring back rows or texts. A
// chat has at most one write under way: the next one needs the rows of the one before.
#include <stdlib.h>
#include <string.h>

#include "app/session/session_state.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"

#define SAVE_AGAIN_NS (2 * NANOSECONDS) // after a save that failed
#define STALLED_NS    (2 * NANOSECONDS) // a write that takes longer counts as failed

bool session_store_ready(struct session *s, struct status *st) {
    if (!s->store) s->store = store_open(s->p.store_path, st);
    return s->store;
}

void session_close_store(struct session *s) {
    if (s->store) store_close(s->store);
}

static void tell(struct session *s, enum session_event_kind kind, struct session_chat *chat, const char *text) {
    session_tell(s, &(struct session_event){.kind = kind, .chat = chat, .text = text});
}

void session_say(struct session *s, enum session_event_kind kind, struct session_chat *chat, const char *what,
                 const struct status *st) {
    char *text = xasprintf("%s: %s", what, st->text);
    tell(s, kind, chat, text);
    free(text);
}

// ---- which chats there are ----

struct listing {
    struct session *session;
    struct settings initial;
    struct conversation *found; // oldest first
    int count, capacity;
    struct draft draft; // of the chat that has not begun
    bool opened, drafted; // drafted: what is there now
    struct status status, draft_status;
};

static void keep_found(void *context, struct conversation *found) {
    struct listing *l = context;
    if (l->count == l->capacity) {
        l->capacity = l->capacity ? 2 * l->capacity : 64;
        l->found = xrealloc(l->found, (size_t)l->capacity * sizeof *l->found);
    }
    l->found[l->count++] = *found;
}

static void list_work(void *job) {
    struct listing *l = job;
    struct session *s = l->session;
    l->opened = session_store_ready(s, &l->status);
    if (!l->opened) return;
    store_list(s->store, &l->initial, keep_found, l, &l->status);
    l->drafted = store_read_draft(s->store, 0, &l->draft, &l->draft_status);
}

// The store's draft, unless the user has written something meanwhile.
static void take_draft(struct session_chat *chat, struct draft *draft, int64_t row) {
    chat->draft_known = true;
    chat->draft_row = draft->text ? row : NOT_IN_STORE;
    if (chat->draft.text) draft_free(draft);
    else chat->draft = *draft;
    *draft = (struct draft){0};
    if (chat->draft_dirty) chat->save_draft_at = clock_ns();
}

static void list_done(void *job) {
    struct listing *l = job;
    struct session *s = l->session;
    int n_pinned = 0;
    for (int i = l->count - 1; i >= 0; i--) {
        const bool pinned = l->found[i].pinned && !l->found[i].archived;
        session_add(s, &l->found[i], pinned ? n_pinned++ : s->count)->own_settings = true;
    }
    for (int i = 0; i < s->count && l->drafted; i++) // the chat that session_open made
        if (!s->chats[i]->draft_known && !s->chats[i]->conversation.row) take_draft(s->chats[i], &l->draft, 0);
    draft_free(&l->draft);
    if (!l->opened) s->problem = l->status;
    if (l->status.code) session_say(s, SESSION_LISTED, NULL, "conversations are not saved", &l->status);
    else if (l->draft_status.code)
        session_say(s, SESSION_LISTED, NULL, "the last draft cannot be read", &l->draft_status);
    else tell(s, SESSION_LISTED, NULL, NULL);
    settings_free(&l->initial);
    free(l->found);
    free(l);
}

void session_list(struct session *s) {
    struct listing *l = xcalloc(1, sizeof *l);
    l->session = s;
    l->initial = settings_of_conversation(s->p.settings);
    worker_do(s->worker, list_work, list_done, l);
}

// ---- reading one ----

struct reading {
    struct session *session;
    struct session_chat *chat;
    struct conversation conversation;
    struct draft draft;
    bool read, drafted; // what is there now
    struct status status, draft_status;
};

static void read_work(void *job) {
    struct reading *r = job;
    struct store *store = session_store_ready(r->session, &r->status) ? r->session->store : NULL;
    r->draft_status = r->status;
    r->read = store && r->conversation.unread_rows && store_read(store, &r->conversation, &r->status);
    r->drafted = store && store_read_draft(store, r->conversation.row, &r->draft, &r->draft_status);
}

void session_take_messages(struct conversation *to, struct conversation *from) {
    to->messages = from->messages, to->count = from->count, to->capacity = from->capacity, to->first = from->first;
    to->unread_rows = false;
    from->messages = NULL, from->count = 0;
}

static void read_done(void *job) {
    struct reading *r = job;
    struct session *s = r->session;
    struct session_chat *chat = r->chat;
    chat->reading = false;
    if (r->read) session_take_messages(&chat->conversation, &r->conversation), session_find_edit(chat);
    if (r->drafted && !chat->draft_known) take_draft(chat, &r->draft, chat->conversation.row);
    draft_free(&r->draft);
    if (chat->conversation.unread_rows) session_say(s, SESSION_READ, chat, "this chat cannot be read", &r->status);
    else if (!r->drafted) session_say(s, SESSION_READ, chat, "the draft of this chat cannot be read", &r->draft_status);
    else tell(s, SESSION_READ, chat, NULL);
    if (chat->sends && r->read) session_send_waiting(s, chat);
    chat->sends = false;
    conversation_close(&r->conversation);
    free(r);
}

void session_read(struct session *s, struct session_chat *chat) {
    bool missing = chat->conversation.unread_rows || (!chat->draft_known && chat->conversation.row);
    if (!missing || chat->reading || chat->deleting) return;
    struct reading *r = xcalloc(1, sizeof *r);
    r->session = s;
    r->chat = chat;
    conversation_open(&r->conversation, 0, &chat->conversation.settings);
    r->conversation.row = chat->conversation.row;
    r->conversation.unread_rows = chat->conversation.unread_rows;
    chat->reading = true;
    worker_do(s->worker, read_work, read_done, r);
}

// ---- writing ----

struct writing {
    struct session *session;
    struct session_chat *chat;
    struct conversation conversation; // what was dirty of it
    bool whole;                       // the conversation too, not the draft alone
    struct draft draft;
    bool draft_known, draft_dirty;
    int64_t draft_row;
    bool written, draft_written;
    struct status status;
};

// An empty chat has no row: its draft moves once it has one.
static bool write_draft(struct store *store, struct writing *w) {
    int64_t row = w->conversation.row;
    if (!w->draft_known) return true;
    bool moves = w->draft_row != NOT_IN_STORE && w->draft_row != row;
    if (moves && !store_save_draft(store, w->draft_row, &(struct draft){0}, &w->status)) return false;
    if (moves) w->draft_row = NOT_IN_STORE, w->draft_dirty = true;
    bool differs = w->draft.text || w->draft_row != NOT_IN_STORE;
    if (w->draft_dirty && differs && !store_save_draft(store, row, &w->draft, &w->status)) return false;
    w->draft_row = w->draft.text ? row : NOT_IN_STORE;
    w->draft_dirty = false;
    return true;
}

// A changed draft does not write the conversation: another confab may have changed that.
static void write_work(void *job) {
    struct writing *w = job;
    if (!session_store_ready(w->session, &w->status)) return;
    struct store *store = w->session->store;
    w->written = !w->whole || store_save(store, &w->conversation, &w->status);
    w->draft_written = w->written && write_draft(store, w);
}

static void sooner(uint64_t *at, uint64_t other) {
    if (!*at || other < *at) *at = other;
}

static void write_failed(struct session *s, struct session_chat *chat, const struct writing *w) {
    bool again = w->conversation.gone || w->conversation.torn; // write all of it, at once
    uint64_t at = clock_ns() + (again ? 0 : SAVE_AGAIN_NS);
    sooner(w->written ? &chat->save_draft_at : &chat->save_at, at);
    bool known = !strcmp(s->problem.text, w->status.text); // said once, not every two seconds
    if (again || known) return;
    s->problem = w->status;
    session_say(s, SESSION_UNSAVED, chat, "not saved, kept in memory and tried again", &w->status);
}

static void write_done(void *job) {
    struct writing *w = job;
    struct session *s = w->session;
    struct session_chat *chat = w->chat;
    chat->saving = false;
    s->writing = 0;
    for (int i = 0; i < s->count; i++)
        if (s->chats[i]->saving) s->writing = clock_ns();
    if (w->whole) conversation_put_back(&chat->conversation, &w->conversation, w->written);
    if (w->draft_known) chat->draft_row = w->draft_row;
    chat->draft_dirty |= w->draft_dirty;
    if (!w->draft_written) {
        write_failed(s, chat, w);
    } else if (s->problem.code) {
        s->problem = (struct status){0};
        tell(s, SESSION_SAVED, NULL, NULL);
    }
    if (chat->deleting) session_delete_now(s, chat);
    conversation_close(&w->conversation);
    draft_free(&w->draft);
    free(w);
}

static struct draft draft_copy(const struct draft *d) {
    return (struct draft){
        .text = d->text ? xstrdup(d->text) : NULL, .folds = d->folds ? xstrdup(d->folds) : NULL, .point = d->point};
}

static void write_chat(struct session *s, struct session_chat *chat, uint64_t now) {
    struct conversation *talk = &chat->conversation;
    bool due = chat->save_at && now >= chat->save_at, whole = due && (talk->row || talk->count || talk->named);
    bool unsaved = !talk->row && talk->count && !whole; // it could not be written so far
    bool known = chat->draft_known && !unsaved, moves = chat->draft_row != NOT_IN_STORE && chat->draft_row != talk->row;
    if (due) chat->save_at = 0;
    chat->save_draft_at = 0;
    if (!s->p.store_path || talk->private || (!whole && !(known && (chat->draft_dirty || moves)))) return;
    if (whole) session_count_tokens(s, chat);
    struct writing *w = xcalloc(1, sizeof *w);
    *w = (struct writing){.session = s,
                          .chat = chat,
                          .whole = whole,
                          .draft = draft_copy(&chat->draft),
                          .draft_known = known,
                          .draft_dirty = chat->draft_dirty,
                          .draft_row = chat->draft_row};
    if (whole) conversation_take_changes(talk, &w->conversation);
    else conversation_open(&w->conversation, 0, &talk->settings), w->conversation.row = talk->row;
    if (known) chat->draft_dirty = false;
    chat->saving = true;
    if (!s->writing) s->writing = now;
    worker_do(s->worker, write_work, write_done, w);
}

void session_save_later(struct session_chat *chat, uint64_t delay_ns) { sooner(&chat->save_at, clock_ns() + delay_ns); }

uint64_t session_save_due(const struct session *s) {
    uint64_t due = 0;
    for (int i = 0; i < s->count; i++) {
        const struct session_chat *chat = s->chats[i];
        if (chat->saving || chat->deleting) continue;
        if (chat->save_at) sooner(&due, chat->save_at);
        if (chat->save_draft_at) sooner(&due, chat->save_draft_at);
    }
    if (s->writing && !s->problem.code) sooner(&due, s->writing + STALLED_NS);
    return due;
}

// A disk that does not answer saves nothing.
static void check_stall(struct session *s, uint64_t now) {
    if (!s->writing || s->problem.code || now < s->writing + STALLED_NS) return;
    status_fail(&s->problem, STATUS_IO, "%s: the disk does not answer", s->p.store_path);
    session_say(s, SESSION_UNSAVED, NULL, "not saved, kept in memory and tried again", &s->problem);
}

void session_save_turn(struct session *s) {
    uint64_t now = clock_ns();
    for (int i = 0; i < s->count; i++) {
        struct session_chat *chat = s->chats[i];
        bool due = (chat->save_at && now >= chat->save_at) || (chat->save_draft_at && now >= chat->save_draft_at);
        if (due && !chat->saving && !chat->deleting) write_chat(s, chat, now);
    }
    check_stall(s, now);
}

bool session_unsaved(const struct session *s) { return s->problem.code; }
