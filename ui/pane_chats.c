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

struct kept {
    int scroll;
    uint64_t current; // the chat that it was last scrolled to show
    int rows;         // that it had then
};

// A chat that has just come on screen is brought into sight, and when the list has another height.
static void follow_current(struct kept *k, const struct screen_view *v, int rows) {
    uint64_t current = v->current >= 0 && v->current < v->n_chats ? v->chats[v->current].id : 0;
    if (current == k->current && rows == k->rows && k->scroll <= v->n_chats) return;
    k->current = current;
    k->rows = rows;
    if (k->scroll > v->current) k->scroll = v->current;
    if (k->scroll < v->current - rows + 1) k->scroll = v->current - rows + 1;
}

static void draw(struct view_frame *f, struct rect box, void *kept) {
    struct kept *k = kept;
    const struct screen_view *v = f->view;
    view_pane(f, box, PANE_CHATS, NULL);
    struct rect inside = rect_inside(box);
    if (inside.height > 0) follow_current(k, v, inside.height);
    int most = v->n_chats > inside.height ? v->n_chats - inside.height : 0;
    if (k->scroll > most) k->scroll = most;
    if (k->scroll < 0) k->scroll = 0;
    for (int row = 0; row < inside.height && k->scroll + row < v->n_chats; row++) {
        int i = k->scroll + row;
        struct rect line = {inside.x, inside.y + row, inside.width, 1};
        draw_chat(f, line, &v->chats[i], i == v->current);
        frame_hit(f, line, HIT_CHAT, i);
    }
    if (v->unsaved)
        canvas_print(f->canvas, box, box.x + 2, box.y + box.height - 1, view_bold(ROLE_BAD), "%s", "not saved");
    int right = box.x + box.width - 2, bottom = box.y + box.height - 1;
    if (k->scroll > 0) canvas_symbol(f->canvas, box, right, box.y, view_style(ROLE_ACCENT), "▲", '^');
    if (k->scroll < most) canvas_symbol(f->canvas, box, right, bottom, view_style(ROLE_ACCENT), "▼", 'v');
}

static void wheel(void *kept, int step) { ((struct kept *)kept)->scroll += step; }

const struct pane pane_chats = {.keeps = sizeof(struct kept), .draw = draw, .wheel = wheel};
