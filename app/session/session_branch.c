// Branches of a conversation: what a person makes of its messages, beside asking for answers.
#include <stdlib.h>
#include <string.h>

#include "app/session/session_state.h"
#include "engine/base/panic.h"

int session_edit_text(struct session_chat *chat, int message, const char *text, size_t size) {
    struct conversation *talk = &chat->conversation;
    const struct message *m = &talk->messages[message];
    const bool same = m->size == size && !memcmp(m->text, text, size);
    const int version = same ? message : conversation_add(talk, m->parent, m->role, text, size);
    if (!same && talk->messages[version].role == MESSAGE_MODEL) conversation_note(talk, version, "edited");
    conversation_choose(talk, version);
    session_changed(chat);
    return version;
}

void session_edit(struct session *s, struct session_chat *chat, int message, const char *text, size_t size) {
    const int version = session_edit_text(chat, message, text, size);
    if (chat->conversation.messages[version].role == MESSAGE_USER) session_ask(s, chat, version, 1, NULL);
}

static void stop_pruned(struct session *s, struct session_chat *chat) {
    const struct conversation *talk = &chat->conversation;
    for (int i = chat->n_answers - 1; i >= 0; i--)
        if (talk->messages[chat->answers[i].message].pruned) session_stop_answer(s, chat, chat->answers[i].message);
    session_changed(chat);
}

static void keep_edit(struct session_chat *chat, const char *text) {
    conversation_set_edit(&chat->conversation, chat->edited, text);
    session_changed(chat);
}

void session_begin_edit(struct session_chat *chat, int message) {
    const struct message *m = &chat->conversation.messages[message];
    session_end_edit(chat);
    chat->editing = true;
    chat->edited = message;
    chat->edit = (struct draft){.text = m->size ? xstrdup(m->text) : NULL, .point = m->size};
    keep_edit(chat, m->text);
}

void session_set_edit(struct session_chat *chat, struct draft *edit) {
    if (!draft_equal(edit, &chat->edit)) keep_edit(chat, edit->text ? edit->text : "");
    draft_free(&chat->edit);
    chat->edit = *edit;
}

void session_end_edit(struct session_chat *chat) {
    if (chat->editing) keep_edit(chat, NULL);
    chat->editing = false;
    draft_free(&chat->edit);
}

void session_find_edit(struct session_chat *chat) {
    const struct conversation *talk = &chat->conversation;
    for (int i = 0; i < talk->count && !chat->editing; i++) {
        const char *text = talk->messages[i].edit;
        if (!text) continue;
        chat->editing = true;
        chat->edited = i;
        chat->edit = (struct draft){.text = *text ? xstrdup(text) : NULL, .point = strlen(text)};
    }
}

int session_prune(struct session *s, struct session_chat *chat, int message) {
    int count = conversation_prune(&chat->conversation, message);
    stop_pruned(s, chat);
    return count;
}

int session_keep(struct session *s, struct session_chat *chat, int message) {
    int count = conversation_keep(&chat->conversation, message);
    stop_pruned(s, chat);
    return count;
}

int session_mark(struct session_chat *chat, int message) {
    struct message *m = &chat->conversation.messages[message];
    m->marked = !m->marked;
    return conversation_marked(&chat->conversation, message);
}

int session_restore(struct session_chat *chat) {
    int message = conversation_restore(&chat->conversation);
    if (message >= 0) session_changed(chat);
    return message;
}

void session_name(struct session_chat *chat, int message, const char *name) {
    conversation_name(&chat->conversation, message, name);
    session_changed(chat);
}

// ---- a chat of its own ----

static int copy_message(struct conversation *to, int parent, const struct message *m) {
    int added = conversation_add(to, parent, m->role, m->text, m->size);
    struct message *own = &to->messages[added];
    if (m->thinking) conversation_think(to, added, m->thinking, m->thinking_size, m->thinking_seconds);
    conversation_note(to, added, m->note);
    conversation_notice(to, added, m->notice);
    if (m->name) conversation_name(to, added, m->name);
    if (m->model) conversation_set_model(to, added, m->model);
    if (m->sampling) conversation_set_sampling(to, added, m->sampling);
    own->state = m->state == MESSAGE_STREAMING ? MESSAGE_STOPPED : m->state;
    own->thinking_tokens = m->thinking_tokens;
    own->tokens = m->tokens;
    own->own_tokens = m->own_tokens;
    own->use = m->use;
    own->drawn = message_tokens_copy(&m->drawn);
    own->created = m->created, own->begun = m->begun, own->ended = m->ended;
    return added;
}

struct session_chat *session_copy(struct session *s, struct session_chat *chat, int message) {
    const struct conversation *talk = &chat->conversation;
    struct conversation copy;
    conversation_open(&copy, 0, &talk->settings);
    copy.private = talk->private;
    int *path = xcalloc((size_t)talk->count, sizeof *path), length = 0, last = -1;
    for (int m = message; m >= 0; m = talk->messages[m].parent) path[length++] = m;
    while (length) last = copy_message(&copy, last, &talk->messages[path[--length]]);
    free(path);
    char *title = xasprintf("%s (copy)", talk->title);
    conversation_rename(&copy, title);
    free(title);
    struct session_chat *added = session_add(s, &copy, session_first_unpinned(s));
    added->draft_known = true;
    session_save_later(added, 0);
    return added;
}
