// Deleting chats: they go from the store at once, with what the engine saved of them, and stay in memory until the
// session ends, so that they can be brought back.
#include <stdlib.h>

#include "app/session/session_state.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/local_engine.h"

struct deletion {
    struct session *session;
    struct session_chat *chat;
    struct conversation conversation; // to be read first, where it has unread_rows
    struct draft draft;               // likewise, where it is not known
    bool draft_known;
    int64_t draft_row;
    uint64_t owner;
    bool deleted;
    struct status status;
};

static void delete_work(void *job) {
    struct deletion *d = job;
    struct conversation *c = &d->conversation;
    if (!session_store_ready(d->session, &d->status)) return;
    struct store *store = d->session->store;
    if (c->unread_rows) store_read(store, c, NULL); // one that cannot be read is deleted for good
    if (!d->draft_known) store_read_draft(store, c->row, &d->draft, NULL);
    d->deleted = store_delete(store, c, &d->status);
    if (d->deleted && d->owner && d->session->p.kv_folder) local_engine_remove_saved(d->session->p.kv_folder, d->owner);
    if (d->deleted && d->draft_row == 0) store_save_draft(store, 0, &(struct draft){0}, NULL);
}

static void delete_done(void *job) {
    struct deletion *d = job;
    struct conversation *talk = &d->chat->conversation;
    d->chat->deleting = false;
    if (talk->unread_rows && !d->conversation.unread_rows) session_take_messages(talk, &d->conversation);
    if (!d->chat->draft_known && !d->chat->draft.text) d->chat->draft = d->draft, d->draft = (struct draft){0};
    if (d->deleted) session_remove(d->session, d->chat);
    else session_say(d->session, SESSION_KEPT, d->chat, "not deleted", &d->status);
    conversation_close(&d->conversation);
    draft_free(&d->draft);
    free(d);
}

void session_delete_now(struct session *s, struct session_chat *chat) {
    const struct conversation *talk = &chat->conversation;
    struct deletion *d = xcalloc(1, sizeof *d);
    *d = (struct deletion){.session = s,
                           .chat = chat,
                           .draft_known = chat->draft_known,
                           .draft_row = chat->draft_row,
                           .owner = session_disk_owner(s, talk)};
    conversation_open(&d->conversation, 0, &talk->settings);
    d->conversation.row = talk->row;
    d->conversation.unread_rows = talk->unread_rows;
    worker_do(s->worker, delete_work, delete_done, d);
}

void session_delete(struct session *s, struct session_chat *chat) {
    bool stored = chat->conversation.row || chat->draft_row == 0 || chat->saving || chat->reading;
    if (chat->deleting) return;
    if (!s->p.store_path || !stored) {
        session_remove(s, chat);
        return;
    }
    chat->deleting = true;
    if (!chat->saving) session_delete_now(s, chat); // otherwise once its row is known
}

// ---- bringing back ----

void session_keep_deleted(struct session *s, struct session_chat *chat) {
    if (!chat->conversation.count && !chat->conversation.waiting.count && !chat->draft.text) { // nothing is lost
        session_chat_free(chat);
        return;
    }
    s->deleted = xrealloc(s->deleted, (size_t)(s->n_deleted + 1) * sizeof *s->deleted);
    s->deleted[s->n_deleted++] = chat;
}

void session_forget_deleted(struct session *s) {
    for (int i = 0; i < s->n_deleted; i++) session_chat_free(s->deleted[i]);
    free(s->deleted);
}

// No row is its own any more: all of it is written again.
struct session_chat *session_undelete(struct session *s) {
    if (!s->n_deleted) return NULL;
    struct session_chat *old = s->deleted[--s->n_deleted];
    struct conversation *talk = &old->conversation;
    talk->row = 0;
    talk->dirty = true;
    talk->archived = false;
    for (int i = 0; i < talk->count; i++) talk->messages[i].row = 0, talk->messages[i].dirty = true;
    struct session_chat *chat = session_add(s, talk, talk->pinned ? 0 : session_first_unpinned(s));
    conversation_open(talk, 0, s->p.settings); // it has moved
    chat->state = old->state;
    chat->own_settings = old->own_settings;
    chat->draft_known = true;
    chat->draft = old->draft;
    chat->draft_dirty = chat->draft.text;
    old->draft = (struct draft){0};
    session_chat_free(old);
    session_find_edit(chat);
    session_save_later(chat, 0);
    return chat;
}
