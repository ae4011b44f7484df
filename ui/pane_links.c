// The links of a message: a line each, and of the chosen one the address in full. It is opened only from here, and only
// when all of it is in sight: a text may say one address and lead to another.
#include "ui/pane_links.h"

#include <string.h>

#include "ui/list.h"
#include "ui/message_links.h"
#include "ui/pane.h"

enum { WIDTH = 100, MOST_HEIGHT = 30, MARK = 2, TEXT_SHARE = 3 }; // a third of a line is the text

struct kept {
    uint64_t asked, message; // asked: 0: the last answer
    uint32_t revision;
    struct message_link *links; // of the message, as of the revision
    struct list list;
    bool in_sight; // the address of the chosen one was, all of it
};

static void forget(struct kept *k) {
    message_links_free(k->links, k->list.count);
    k->links = NULL;
    k->list = (struct list){0};
    k->message = 0;
}

static void closed(void *kept) { forget(kept); }

void links_open(struct screen *s, uint64_t message) {
    struct kept *k = screen_open_pane(s, PANE_LINKS);
    forget(k);
    k->asked = message;
    k->in_sight = false;
}

static bool key(struct screen *s, void *kept, const struct key *k) {
    struct kept *p = kept;
    if (k->code == KEY_ENTER && p->list.count) {
        if (p->in_sight) screen_hand_out(s, COMMAND_LINKS, -1, p->links[p->list.chosen].address);
        else screen_say(s, true, "not opened: the whole address must be in sight");
        return true;
    }
    const int before = p->list.chosen;
    if (!list_key(&p->list, k)) return false;
    if (p->list.chosen != before) p->in_sight = false; // until it is drawn
    return true;
}

// A click shows the address, it opens nothing.
static void click(struct screen *s, void *kept, const struct hit *h) {
    struct kept *p = kept;
    (void)s;
    if (h->number >= p->list.count) return;
    p->list.chosen = h->number;
    p->in_sight = false;
}

static void wheel(void *kept, int step) {
    struct kept *p = kept;
    list_move(&p->list, step * VIEW_WHEEL_LINES);
    p->in_sight = false;
}

// ---- drawing ----

static void find_links(struct kept *p, const struct screen_view *v) {
    const struct view_message *m = NULL;
    for (int i = 0; i < v->n_messages; i++)
        if (p->asked ? v->messages[i].id == p->asked : v->messages[i].role == VIEW_MODEL) m = &v->messages[i];
    if (!m || (p->message == m->id && p->revision == m->revision)) return;
    const int chosen = p->list.chosen;
    forget(p);
    p->message = m->id, p->revision = m->revision;
    p->list.count = message_links_find(m->text, m->size, &p->links);
    p->list.chosen = chosen < p->list.count ? chosen : 0;
}

static void draw_row(void *context, struct view_frame *f, struct rect line, int row, bool chosen) {
    const struct message_link *l = &((const struct kept *)context)->links[row];
    struct style text = view_style(ROLE_TEXT), address = view_style(ROLE_DIM);
    if (chosen) text = address = view_chosen(f, line);
    if (chosen && f->canvas->ascii) canvas_text(f->canvas, line, line.x, line.y, text, ">", 1);
    const int room = line.width - MARK, share = room / TEXT_SHARE;
    canvas_cut(f->canvas, (struct rect){line.x + MARK, line.y, share, 1}, text, l->text);
    canvas_cut(f->canvas, (struct rect){line.x + MARK + share + 1, line.y, room - share - 1, 1}, address, l->address);
    frame_hit(f, line, HIT_ROW, row);
}

// Draws it over as many lines as it takes, or only measures it; cut nowhere but at the end of a line.
static int address_rows(struct view_frame *f, struct rect area, const char *address, bool draw) {
    const size_t size = strlen(address);
    int rows = 0;
    for (size_t at = 0; at < size; rows++) {
        const size_t fit = text_fit(address + at, size - at, area.width, NULL);
        if (!fit) return 1 << 20;
        if (draw) canvas_text(f->canvas, area, area.x, area.y + rows, view_bold(ROLE_LINK), address + at, fit);
        at += fit;
    }
    return rows;
}

static void draw(struct view_frame *f, struct rect area, void *kept) {
    struct kept *p = kept;
    find_links(p, f->view);
    const int wanted = p->list.count + 6;
    struct rect box = view_over(f, area, (struct view_size){WIDTH, wanted < 8 ? 8 : wanted, MOST_HEIGHT}, PANE_LINKS,
                                "Enter opens, Esc closes");
    struct rect in = view_over_inside(box);
    p->in_sight = false;
    f->cursor_x = f->cursor_y = -1;
    if (!p->list.count) canvas_print(f->canvas, in, in.x, in.y, view_style(ROLE_DIM), "no links in this message");
    if (!p->list.count || in.height < 2 || in.width < 8) return;
    const char *address = p->links[p->list.chosen].address;
    const int need = address_rows(f, in, address, false), foot = need < in.height - 1 ? need : in.height - 1;
    const int height = in.height - foot - (in.height - foot > 2); // a blank line between, where there is room
    const struct rect below = {in.x, in.y + in.height - foot, in.width, foot};
    list_draw(&p->list, f, (struct rect){in.x, in.y, in.width, height},
              (struct rect){box.x, in.y - 1, box.width, height + 2}, draw_row, p);
    address_rows(f, below, address, true);
    p->in_sight = need <= foot;
}

const struct pane pane_links = {
    .keeps = sizeof(struct kept), .closed = closed, .draw = draw, .key = key, .click = click, .wheel = wheel};
