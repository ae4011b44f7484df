// Drafts: what stands in the composer belongs to the chat on screen. It is put aside when another chat comes, and given
// to the session, which keeps it.
#include <string.h>

#include "app/chat/chat_state.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"

#define SAVE_NS     (2 * NANOSECONDS) // after a key; a draft is rewritten as a whole, so large ones are less often
#define LARGE_SHIFT 20                // as often for each MiB

void chat_draft_take(struct chat *c) {
    struct draft now;
    c->draft_at = 0;
    if (!c->composing) return;
    screen_draft(c->screen, &now);
    if (!c->composing->editing) {
        session_set_draft(c->composing, &now);
    } else {
        draft_free(&c->composing->edit);
        c->composing->edit = now;
    }
}

static void show(struct chat *c) {
    const struct session_chat *chat = c->composing;
    screen_set_draft(c->screen, chat->editing ? &chat->edit : &chat->draft);
}

void chat_draft_edit(struct chat *c, int message) {
    struct session_chat *chat = c->composing;
    const struct message *m = &chat->conversation.messages[message];
    chat_draft_take(c);
    draft_free(&chat->edit);
    chat->editing = true;
    chat->edited = message;
    chat->edit = (struct draft){.text = m->size ? xstrdup(m->text) : NULL, .point = m->size};
    show(c);
}

void chat_draft_edit_end(struct chat *c, struct session_chat *chat) {
    chat->editing = false;
    draft_free(&chat->edit);
    if (c->composing == chat) show(c);
}

void chat_draft_show(struct chat *c, struct session_chat *chat) {
    if (c->composing == chat) return;
    chat_draft_take(c);
    c->composing = chat;
    show(c);
}

void chat_draft_read(struct chat *c) {
    struct draft now;
    if (c->composing->editing) return; // it is put aside already
    screen_draft(c->screen, &now);
    if (!now.text) screen_set_draft(c->screen, &c->composing->draft);
    draft_free(&now);
}

void chat_draft_typed(struct chat *c) {
    const struct session_chat *chat = c->composing;
    uint64_t size = chat && chat->draft.text ? strlen(chat->draft.text) : 0;
    if (!c->draft_at) c->draft_at = clock_ns() + SAVE_NS * (1 + (size >> LARGE_SHIFT));
}

void chat_draft_turn(struct chat *c, uint64_t now) {
    if (c->draft_at && now >= c->draft_at) chat_draft_take(c);
}
