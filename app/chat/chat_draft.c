// Drafts: what stands in the composer belongs to the chat on screen. It is put aside when another chat comes, and given
// to the session, which keeps it.
#include <string.h>

#include "app/chat/chat_state.h"
#include "engine/base/clock.h"

#define SAVE_NS     (2 * NANOSECONDS) // after a key; a draft is rewritten as a whole, so large ones are less often
#define AHEAD_NS    (NANOSECONDS / 10) // after a key: whole words are read ahead
#define SETTLED_NS  (3 * NANOSECONDS / 10) // without one: the message may be complete
#define LARGE_SHIFT 20                // as often for each MiB

void chat_draft_take(struct chat *c) {
    struct draft now;
    c->draft_at = 0;
    if (!c->composing) return;
    screen_draft(c->screen, &now);
    if (c->edits) session_set_edit(c->composing, &now);
    else session_set_draft(c->composing, &now);
}

static void show(struct chat *c) {
    const struct session_chat *chat = c->composing;
    c->edits = chat->editing;
    screen_set_draft(c->screen, chat->editing ? &chat->edit : &chat->draft);
}

void chat_draft_edit(struct chat *c, int message) {
    chat_draft_take(c);
    if (c->edits) screen_set_composer(c->screen, ""); // readline can bring it back
    session_begin_edit(c->composing, message);
    show(c);
}

void chat_draft_edit_end(struct chat *c, struct session_chat *chat) {
    session_end_edit(chat);
    if (c->composing == chat) show(c);
}

void chat_draft_show(struct chat *c, struct session_chat *chat) {
    if (c->composing == chat) return;
    chat_draft_take(c);
    c->composing = chat;
    c->settled_at = clock_ns();
    show(c);
}

void chat_draft_read(struct chat *c) {
    struct draft now;
    if (c->edits) return; // the draft is put aside
    screen_draft(c->screen, &now);
    bool typed = now.text; // meanwhile: that is the draft
    if (typed && c->composing->editing) session_set_draft(c->composing, &now);
    else draft_free(&now);
    if (!typed || c->composing->editing) show(c);
}

void chat_draft_typed(struct chat *c) {
    const struct session_chat *chat = c->composing;
    uint64_t size = chat && chat->draft.text ? strlen(chat->draft.text) : 0;
    if (!c->draft_at) c->draft_at = clock_ns() + SAVE_NS * (1 + (size >> LARGE_SHIFT));
    if (!c->ahead_at) c->ahead_at = clock_ns() + AHEAD_NS;
    c->settled_at = clock_ns() + SETTLED_NS;
}

// A model's message that is edited is not read ahead: nothing is asked with it yet.
static void read_ahead(struct chat *c, bool settled) {
    struct session_chat *chat = c->composing;
    struct draft now;
    c->ahead_at = 0;
    if (settled) c->settled_at = 0;
    if (!chat || !c->p.settings->read_ahead) return;
    const struct conversation *talk = &chat->conversation;
    const bool asks = !chat->editing || talk->messages[chat->edited].role == MESSAGE_USER;
    const int parent = chat->editing ? talk->messages[chat->edited].parent : conversation_last(talk);
    screen_draft(c->screen, &now);
    session_read_ahead(c->session, chat, parent, asks ? now.text : NULL, settled);
    draft_free(&now);
}

uint64_t chat_draft_due(const struct chat *c) {
    const uint64_t all[] = {c->draft_at, c->ahead_at, c->settled_at};
    uint64_t due = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] && (!due || all[i] < due)) due = all[i];
    return due;
}

void chat_draft_turn(struct chat *c, uint64_t now) {
    if (c->settled_at && now >= c->settled_at) read_ahead(c, true);
    else if (c->ahead_at && now >= c->ahead_at) read_ahead(c, false);
    if (c->draft_at && now >= c->draft_at) chat_draft_take(c);
}
