// Drafts: what stands in the composer belongs to the chat on screen. It is put aside when another chat comes, and kept
// in the store.
#include <string.h>

#include "app/chat/chat_state.h"
#include "engine/base/clock.h"

#define SAVE_NS      (2 * NANOSECONDS) // after a key; a draft is rewritten as a whole, so large ones are less often
#define LARGE_SHIFT  20                // as often for each MiB
#define NOT_IN_STORE (-1)

void chat_draft_open(struct chat *c, struct chat_entry *e) {
    struct status st = {0};
    e->draft_row = NOT_IN_STORE;
    e->draft_known = !c->store || store_read_draft(c->store, e->conversation.row, &e->draft, &st);
    if (!e->draft_known) chat_say(c, true, "the draft of this chat cannot be read: %s", st.text);
    if (e->draft.text) e->draft_row = e->conversation.row;
}

void chat_draft_new(struct chat_entry *e) {
    e->draft_row = NOT_IN_STORE;
    e->draft_known = true;
}

void chat_draft_take(struct chat *c) {
    struct chat_entry *e = c->composing;
    struct draft now;
    if (!e) return;
    screen_draft(c->screen, &now);
    if (draft_equal(&now, &e->draft)) {
        draft_free(&now);
        return;
    }
    draft_free(&e->draft);
    e->draft = now;
    e->draft_dirty = true;
}

void chat_draft_show(struct chat *c, struct chat_entry *e) {
    if (c->composing == e) return;
    chat_draft_take(c);
    if (c->composing) chat_draft_save_later(c->composing, 0);
    c->composing = e;
    if (!e->draft_known && !e->draft.text) chat_draft_open(c, e);
    screen_set_draft(c->screen, &e->draft);
}

void chat_draft_forget(struct chat *c, struct chat_entry *e) {
    if (c->composing == e) c->composing = NULL;
    if (c->store && e->draft_row == 0) store_save_draft(c->store, 0, &(struct draft){0}, NULL);
    draft_free(&e->draft);
}

void chat_draft_save_later(struct chat_entry *e, uint64_t delay_ns) {
    uint64_t at = clock_ns() + delay_ns;
    if (!e->draft_at || at < e->draft_at) e->draft_at = at;
}

void chat_draft_typed(struct chat *c) {
    const struct chat_entry *e = c->composing;
    uint64_t size = e->draft.text ? strlen(e->draft.text) : 0;
    if (!e->draft_at) chat_draft_save_later(c->composing, SAVE_NS * (1 + (size >> LARGE_SHIFT)));
}

// A chat that has not begun has no row yet: its draft moves when it has.
bool chat_draft_save(struct chat *c, struct chat_entry *e, struct status *st) {
    int64_t row = e->conversation.row;
    bool unsaved = !row && e->conversation.count; // it has begun, but could not be written
    if (!c->store || !e->draft_known || unsaved) return true;
    bool moves = e->draft_row != NOT_IN_STORE && e->draft_row != row;
    if (moves && !store_save_draft(c->store, e->draft_row, &(struct draft){0}, st)) return false;
    if (moves) e->draft_row = NOT_IN_STORE, e->draft_dirty = true;
    bool differs = e->draft.text || e->draft_row != NOT_IN_STORE;
    if (e->draft_dirty && differs && !store_save_draft(c->store, row, &e->draft, st)) return false;
    e->draft_row = e->draft.text ? row : NOT_IN_STORE;
    e->draft_dirty = false;
    return true;
}
