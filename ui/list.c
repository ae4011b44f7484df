#include "ui/list.h"

#include "ui/clamp.h"

void list_move(struct list *l, int rows) {
    if (l->plain) l->scroll = clamp(l->scroll + rows, 0, l->count - l->height);
    else l->chosen = clamp(l->chosen + rows, 0, l->count - 1);
}

void list_show(struct list *l, int row, int height) {
    if (l->scroll > row) l->scroll = row;
    if (l->scroll < row - height + 1) l->scroll = row - height + 1;
}

bool list_key(struct list *l, const struct key *k) {
    int page = l->height > 1 ? l->height - 1 : 1, rows;
    switch (k->code) {
    case KEY_UP: rows = -1; break;
    case KEY_DOWN: rows = 1; break;
    case KEY_PAGE_UP: rows = -page; break;
    case KEY_PAGE_DOWN: rows = page; break;
    case KEY_HOME: rows = l->plain ? -l->count : 0; break;
    case KEY_END: rows = l->plain ? l->count : 0; break;
    case KEY_CONTROL: rows = l->plain ? 0 : k->number == 'n' ? 1 : k->number == 'p' ? -1 : 0; break;
    default: rows = 0;
    }
    if (rows) list_move(l, rows);
    return rows;
}

void list_draw(struct list *l, struct view_frame *f, struct rect area, struct rect frame, list_row *row,
               void *context) {
    int most = l->count > area.height ? l->count - area.height : 0;
    l->height = area.height;
    if (!l->plain) {
        l->chosen = clamp(l->chosen, 0, l->count - 1);
        list_show(l, l->chosen, area.height);
    }
    l->scroll = clamp(l->scroll, 0, most);
    for (int i = 0; i < area.height && l->scroll + i < l->count; i++) {
        struct rect line = {area.x, area.y + i, area.width, 1};
        row(context, f, line, l->scroll + i, !l->plain && l->scroll + i == l->chosen);
    }
    int right = frame.x + frame.width - 2, bottom = frame.y + frame.height - 1;
    if (l->scroll > 0) canvas_symbol(f->canvas, frame, right, frame.y, view_style(ROLE_ACCENT), "▲", '^');
    if (l->scroll < most) canvas_symbol(f->canvas, frame, right, bottom, view_style(ROLE_ACCENT), "▼", 'v');
}
