// The list of chats: a state mark, the title, and at the right what the chat is doing now.
#include <stdio.h>
#include <string.h>

#include "ui/view.h"

static const struct {
    const char *mark;
    char ascii;
    enum theme_role role;
} states[] = {
#define X(id, name, mark, ascii) [id] = {mark, ascii[0], ROLE_DIM},
    REQUEST_STATES(X)
#undef X
};

static enum theme_role state_role(const struct view_chat *chat) {
    switch (chat->state) {
    case REQUEST_DECODING: return ROLE_GOOD;
    case REQUEST_PREFILLING: return ROLE_PREFILL;
    case REQUEST_PENDING: return chat->busy ? ROLE_WARN : ROLE_DIM;
    case REQUEST_FAILED: return ROLE_BAD;
    default: return ROLE_DIM;
    }
}

static const char *progress(const struct view_chat *chat, char out[VIEW_NUMBER]) {
    out[0] = 0;
    if (!chat->busy) return out;
    if (chat->state == REQUEST_PREFILLING && chat->prefill_total > 0) {
        snprintf(out, VIEW_NUMBER, "%d%%", (int)(100LL * chat->prefill_done / chat->prefill_total));
    } else if (chat->state == REQUEST_DECODING && chat->tokens_per_second > 0) {
        snprintf(out, VIEW_NUMBER, chat->tokens_per_second < 9.95 ? "%.1f/s" : "%.0f/s",
                 (double)chat->tokens_per_second);
    } else if (chat->state == REQUEST_PENDING) {
        snprintf(out, VIEW_NUMBER, "waits");
    }
    return out;
}

static void draw_chat(struct view_frame *f, struct rect line, const struct view_chat *chat, bool current) {
    uint8_t ground = current ? ROLE_SELECTED_GROUND : ROLE_GROUND;
    struct style title = {.role = current ? ROLE_SELECTED : ROLE_TEXT, .ground = ground};
    if (current || chat->unread) title.attributes = CELL_BOLD;
    if (current) canvas_fill(f->canvas, line, title, ' ');
    struct rect inside = {line.x + 1, line.y, line.width - 2, 1};
    enum request_state state = chat->state < REQUEST_STATE_COUNT ? chat->state : REQUEST_FINISHED;
    struct style mark = {.role = (uint8_t)(current ? ROLE_SELECTED : state_role(chat)),
                         .ground = ground}; // states' colours suit the ground only
    if (mark.role == ROLE_PREFILL) mark.shade = THEME_STEPS; // the near end is for graphs: too dim for text
    canvas_symbol(f->canvas, inside, inside.x, line.y, mark, states[state].mark, states[state].ascii);
    char text[VIEW_NUMBER];
    progress(chat, text);
    if (!text[0] && chat->unread) snprintf(text, sizeof text, "new");
    int width = text_width(text, strlen(text)), x = inside.x + inside.width - width;
    struct style right = current || chat->busy ? mark : (struct style){.role = ROLE_ACCENT, .ground = ground};
    struct rect room = {inside.x + 2, line.y, inside.width - 2 - (width ? width + 1 : 0), 1};
    if (room.width < 4) room.width = inside.width - 2, width = 0;
    const char *name = chat->title && chat->title[0] ? chat->title : "New chat";
    canvas_cut(f->canvas, room, title, name);
    if (width) canvas_text(f->canvas, inside, x, line.y, right, text, strlen(text));
}

void view_chats(struct view_frame *f, struct rect box, int *scroll) {
    const struct screen_view *v = f->view;
    view_box(f, box, 1, "chats", COMMAND_BOX_1);
    struct rect inside = rect_inside(box);
    int most = v->n_chats > inside.height ? v->n_chats - inside.height : 0;
    if (*scroll > most) *scroll = most;
    if (*scroll < 0) *scroll = 0;
    for (int row = 0; row < inside.height && *scroll + row < v->n_chats; row++) {
        int i = *scroll + row;
        struct rect line = {inside.x, inside.y + row, inside.width, 1};
        draw_chat(f, line, &v->chats[i], i == v->current);
        frame_hit(f, line, HIT_CHAT, i);
    }
    if (v->unsaved)
        canvas_print(f->canvas, box, box.x + 2, box.y + box.height - 1, view_bold(ROLE_BAD), "%s", "not saved");
    int right = box.x + box.width - 2, bottom = box.y + box.height - 1;
    if (*scroll > 0) canvas_symbol(f->canvas, box, right, box.y, view_style(ROLE_ACCENT), "▲", '^');
    if (*scroll < most) canvas_symbol(f->canvas, box, right, bottom, view_style(ROLE_ACCENT), "▼", 'v');
}
