// The list of chats: a state mark, the title, and at the right what the chat is doing now. Below them the clients whose
// requests are being answered, as many as there is room for.
#include <stdio.h>
#include <string.h>

#include "ui/list.h"
#include "ui/pane.h"
#include "ui/pane_chats.h"
#include "ui/pane_clients.h"

static const struct {
    const char *mark;
    char ascii;
} states[REQUEST_STATE_COUNT] = {
    [REQUEST_PENDING] = {"◌", '.'},  [REQUEST_PREFILLING] = {"◐", '~'}, [REQUEST_DECODING] = {"●", '*'},
    [REQUEST_FINISHED] = {"○", 'o'}, [REQUEST_FAILED] = {"✗", 'x'},     [REQUEST_CANCELLED] = {"◇", '-'},
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

struct style chats_mark_style(const struct view_chat *chat) {
    struct style style = view_style(state_role(chat));
    if (style.role == ROLE_PREFILL) style.shade = THEME_STEPS; // the near end is for graphs: too dim for text
    return style;
}

void chats_draw_mark(struct view_frame *f, struct rect line, const struct view_chat *chat, struct style style) {
    const enum request_state state = chat->state < REQUEST_STATE_COUNT ? chat->state : REQUEST_FINISHED;
    canvas_symbol(f->canvas, line, line.x, line.y, style, states[state].mark, states[state].ascii);
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

static const char *label_of(const struct view_chat *chat) {
    return chat->unread ? "new" : chat->pinned ? "pin" : chat->private ? "priv" : "";
}

static void draw_chat(struct view_frame *f, struct rect line, const struct view_chat *chat, bool current) {
    uint8_t ground = current ? ROLE_SELECTED_GROUND : ROLE_GROUND;
    struct style title = {.role = current ? ROLE_SELECTED : ROLE_TEXT, .ground = ground};
    if (current || chat->unread) title.attributes = CELL_BOLD;
    if (current) canvas_fill(f->canvas, line, title, ' ');
    struct rect inside = {line.x + 1, line.y, line.width - 2, 1};
    struct style mark = current ? title : chats_mark_style(chat); // states' colours suit the ground only
    mark.attributes = 0;
    chats_draw_mark(f, inside, chat, mark);
    char text[VIEW_NUMBER];
    progress(chat, text);
    if (!text[0]) snprintf(text, sizeof text, "%s", label_of(chat));
    int width = text_width(text, strlen(text)), x = inside.x + inside.width - width;
    struct style right = current || chat->busy ? mark : (struct style){.role = ROLE_ACCENT, .ground = ground};
    struct rect room = {inside.x + 2, line.y, inside.width - 2 - (width ? width + 1 : 0), 1};
    if (room.width < 4) room.width = inside.width - 2, width = 0;
    const char *name = chat->title && chat->title[0] ? chat->title : "New chat";
    canvas_cut(f->canvas, room, title, name);
    if (width) canvas_text(f->canvas, inside, x, line.y, right, text, strlen(text));
}

// ---- clients ----

// Rows that they get of `room`: what the chats leave, and at least a third of it. A heading is among them.
static int client_rows(const struct screen_view *v, int room) {
    const int clients = clients_count(v), left = room - v->n_listed, least = room / 3;
    const int most = left > least ? left : least;
    if (!clients || room < 2) return 0;
    return clients + 1 <= most ? clients + 1 : most > 2 ? most : 1;
}

static void draw_client(struct view_frame *f, struct rect line, const struct view_client *client) {
    char text[VIEW_NUMBER];
    const struct style style = clients_style(client);
    const int width = (int)strlen(clients_progress(client, text));
    const struct rect inside = {line.x + 1, line.y, line.width - 2, 1};
    clients_draw_mark(f, inside, style);
    struct rect room = {inside.x + 2, line.y, inside.width - 3 - width, 1};
    if (room.width >= 4) canvas_text(f->canvas, inside, inside.x + inside.width - width, line.y, style, text, width);
    else room.width = inside.width - 2;
    canvas_cut(f->canvas, room, view_style(ROLE_TEXT), client->name);
}

static void draw_clients(struct view_frame *f, struct rect area) {
    const struct view_serving *s = f->view->serving;
    const int clients = clients_count(f->view), room = area.height > clients ? clients : area.height - 2;
    const int shown = s && s->n_clients < room ? s->n_clients : room;
    const struct style dim = view_style(ROLE_DIM);
    for (int y = 0; y < area.height; y++) {
        const struct rect line = {area.x, area.y + y, area.width, 1};
        const int row = y - 1;
        if (row < 0 && area.height > 1) canvas_print(f->canvas, line, line.x + 1, line.y, dim, "Clients");
        else if (row < 0)
            canvas_print(f->canvas, line, line.x + 1, line.y, dim, clients == 1 ? "%d client" : "%d clients", clients);
        else if (row < shown) draw_client(f, line, &s->clients[row]);
        else if (row == shown) canvas_print(f->canvas, line, line.x + 3, line.y, dim, "and %d more", clients - shown);
        frame_hit(f, line, HIT_ROW, row < 0 ? 0 : row < shown ? row : shown);
    }
}

// ---- the pane ----

struct kept {
    struct list list;
    uint64_t current; // the chat that it was last scrolled to show
};

static void draw_row(void *context, struct view_frame *f, struct rect line, int row, bool chosen) {
    (void)context, (void)chosen;
    draw_chat(f, line, &f->view->chats[row], row == f->view->current);
    frame_hit(f, line, HIT_CHAT, row);
}

// A chat that has just come on screen is brought into sight, and when the list has another height.
static void draw(struct view_frame *f, struct rect box, void *kept) {
    struct kept *k = kept;
    const struct screen_view *v = f->view;
    uint64_t current = view_chat_id(v);
    view_pane(f, box, PANE_CHATS, NULL);
    struct rect inside = rect_inside(box), clients = inside;
    clients.height = client_rows(v, inside.height);
    inside.height -= clients.height;
    clients.y += v->n_listed < inside.height ? v->n_listed + 1 : inside.height; // a blank line between
    k->list.plain = true;
    k->list.count = v->n_listed;
    if (current != k->current || inside.height != k->list.height || k->list.scroll > v->n_listed)
        list_show(&k->list, v->current, inside.height);
    k->current = current;
    list_draw(&k->list, f, inside, box, draw_row, NULL);
    draw_clients(f, clients);
    if (v->unsaved)
        canvas_print(f->canvas, box, box.x + 2, box.y + box.height - 1, view_bold(ROLE_BAD), "%s", "not saved");
}

static void click(struct screen *s, void *kept, const struct hit *h) {
    (void)kept;
    if (h->kind == HIT_ROW) clients_open(s, h->number);
    else screen_hand_out(s, COMMAND_NEXT, h->number, NULL);
}

static void wheel(void *kept, int step) { list_move(&((struct kept *)kept)->list, step); }

const struct pane pane_chats = {.keeps = sizeof(struct kept), .draw = draw, .click = click, .wheel = wheel};
