// Entries of the log over the chat: a line each, with those of a level and above, and those with the words typed. The
// cursor follows the newest until it is moved; below the list the entry that has it can be read in full.
#include <stdio.h>
#include <string.h>

#include "ui/flow.h"
#include "ui/log_view.h"
#include "ui/pane.h"

enum {
    WIDTH = 140,
    MOST_HEIGHT = 50,
    HEAD = 1,
    FOOT = 3, // rows for the entry with the cursor
    MARK = 2, // columns
    TIME = 9, // likewise; and of the level and the module
    LEVEL = 8,
    MODULE = 8,
    ROOMY = 60, // columns from which on a line has all three
};

static void opened(void *kept) {
    struct log_view *k = kept;
    k->filter = (struct text_field){0};
    k->list = (struct list){.height = 1};
    k->left = false;
}

// ---- keys ----

static void choose(struct log_view *k, int row) {
    k->left = row < k->list.count - 1;
    if (row < k->list.count) k->chosen = k->numbers[row];
}

static void copy(struct screen *s, const struct log_view *k) {
    struct log_entry entry;
    char line[LOG_LINE], how[128];
    const uint64_t number = k->list.count ? k->numbers[k->list.chosen] : UINT64_MAX;
    if (!log_read(number, &entry, 1) || entry.number != number) return; // the ring has lost it meanwhile
    const bool copied = screen_copy(s, line, log_format(&entry, line), how);
    screen_say(s, !copied, "%s", how);
}

static bool key(struct screen *s, void *kept, const struct key *k) {
    struct log_view *p = kept;
    if (list_key(&p->list, k)) choose(p, p->list.chosen);
    else if (k->code == KEY_TAB) log_view_next_level(p, k->modifiers & KEY_SHIFT ? -1 : 1);
    else if (k->code == KEY_ENTER) copy(s, p);
    else return text_field_key(&p->filter, k);
    return true;
}

static void click(struct screen *s, void *kept, const struct hit *h) {
    struct log_view *k = kept;
    (void)s;
    if (h->kind == HIT_CHOICE) log_view_next_level(k, 1);
    else if (h->number < k->list.count) choose(k, h->number);
}

static void wheel(void *kept, int step) {
    struct log_view *k = kept;
    list_move(&k->list, step * VIEW_WHEEL_LINES);
    choose(k, k->list.chosen);
}

// ---- drawing ----

static const struct log_entry *entry_of(const struct log_view *k, const struct screen_view *v, int row) {
    return &v->log[k->numbers[row] - v->log[0].number];
}

static void take_entries(struct log_view *k, const struct screen_view *v) {
    int shown[LOG_RING];
    k->list.count = log_view_find(k, v, k->filter.text, shown);
    k->list.chosen = k->list.count - 1;
    for (int i = 0; i < k->list.count; i++) k->numbers[i] = v->log[shown[i]].number;
    while (k->left && k->list.chosen > 0 && k->numbers[k->list.chosen] > k->chosen) k->list.chosen--;
    k->unread = v->n_log ? v->log[v->n_log - 1].number + 1 : k->unread;
}

struct rows {
    const struct log_view *kept;
    const struct screen_view *view;
};

static void draw_row(void *context, struct view_frame *f, struct rect line, int row, bool chosen) {
    const struct rows *r = context;
    const struct log_entry *e = entry_of(r->kept, r->view, row);
    struct style style = view_style(log_view_role(e->level)), rest = view_style(ROLE_DIM);
    char when[16];
    if (chosen) style = rest = view_chosen(f, line);
    if (chosen && f->canvas->ascii) canvas_text(f->canvas, line, line.x, line.y, style, ">", 1);
    struct rect room = rect_after(line, MARK);
    if (line.width >= ROOMY) {
        log_view_time(e, when);
        canvas_print(f->canvas, room, room.x, room.y, rest, "%-*s", TIME, when);
        canvas_print(f->canvas, room, room.x + TIME, room.y, style, "%-*s", LEVEL, log_level_name(e->level));
        canvas_print(f->canvas, room, room.x + TIME + LEVEL, room.y, rest, "%-*s", MODULE, e->module);
        room = rect_after(room, TIME + LEVEL + MODULE);
    } else {
        const char *mark = log_view_mark(e->level);
        room = rect_after(room, canvas_text(f->canvas, room, room.x, room.y, style, mark, strlen(mark)));
    }
    canvas_cut(f->canvas, room, style, e->text);
    frame_hit(f, line, HIT_ROW, row);
}

// Where and when it came from, and as much of it as there is room for.
static void draw_foot(struct view_frame *f, struct rect foot, const struct log_entry *e) {
    const size_t size = strlen(e->text);
    char when[16];
    size_t at = 0, end;
    log_view_time(e, when);
    int x = foot.x + canvas_print(f->canvas, foot, foot.x, foot.y, view_style(ROLE_DIM), "%s ", when);
    x += canvas_print(f->canvas, foot, x, foot.y, view_style(log_view_role(e->level)), "%s ", log_level_name(e->level));
    canvas_print(f->canvas, foot, x, foot.y, view_style(ROLE_DIM), "%s", e->module);
    for (int y = foot.y + 1; y < foot.y + foot.height && at < size; y++) {
        const size_t next = flow_break(e->text, size, at, foot.width, &end);
        const bool last = y + 1 == foot.y + foot.height;
        if (last) canvas_cut(f->canvas, (struct rect){foot.x, y, foot.width, 1}, view_style(ROLE_TEXT), e->text + at);
        else canvas_text(f->canvas, foot, foot.x, y, view_style(ROLE_TEXT), e->text + at, end - at);
        at = next;
    }
}

static void draw(struct view_frame *f, struct rect area, void *kept) {
    struct log_view *k = kept;
    char note[40];
    const int width = snprintf(note, sizeof note, "%s (Tab)", log_view_level(k));
    take_entries(k, f->view);
    const int wanted = f->view->n_log + HEAD + FOOT + 2;
    struct rect box = view_over(f, area, (struct view_size){WIDTH, wanted, MOST_HEIGHT}, PANE_LOG_ENTRIES, note);
    const struct rect level = {box.x + box.width - 2 - width, box.y, width, 1};
    if (level.x > box.x + 5) frame_hit(f, level, HIT_CHOICE, 0); // otherwise the title has the room
    struct rect in = view_over_inside(box);
    if (in.height < HEAD + 1) return;
    text_field_draw_filter(&k->filter, f, in, "type words to find; Enter copies the entry");
    const int foot = k->list.count && in.height >= HEAD + FOOT + 3 ? FOOT : 0, height = in.height - HEAD - foot;
    struct rows rows = {k, f->view};
    if (!k->list.count)
        canvas_print(f->canvas, in, in.x + MARK, in.y + HEAD, view_style(ROLE_DIM), "no matching entry");
    list_draw(&k->list, f, (struct rect){in.x, in.y + HEAD, in.width, height},
              (struct rect){box.x, in.y, box.width, height + 2}, draw_row, &rows);
    if (foot)
        draw_foot(f, (struct rect){in.x, in.y + in.height - foot, in.width, foot},
                  entry_of(k, f->view, k->list.chosen));
}

// What it keeps is the pane's beside the chat.
const struct pane pane_log_entries = {.opened = opened, .draw = draw, .key = key, .click = click, .wheel = wheel};
