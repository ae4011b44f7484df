// Palette: the commands that match what is typed, one of them chosen.
#include <stdio.h>
#include <string.h>

#include "ui/command_list.h"
#include "ui/filter.h"
#include "ui/list.h"
#include "ui/pane.h"
#include "ui/text_field.h"

enum { COLUMNS = 76, MOST_HEIGHT = 18 };

struct kept {
    struct text_field filter;
    struct list list;
    struct command_row rows[COMMAND_COUNT];
};

static void find(struct kept *k) {
    k->list = (struct list){.height = k->list.height};
    for (int c = 0; c < COMMAND_COUNT; c++) {
        const struct ui_command_info *i = &ui_commands[c];
        const char *old = ui_command_old_name((enum ui_command_id)c);
        char text[256];
        snprintf(text, sizeof text, "%s %s %s %s", i->name, i->group, i->help, old ? old : "");
        if (c != COMMAND_PALETTE && c != COMMAND_SEND && filter_matches(k->filter.text, text))
            k->rows[k->list.count++] = (struct command_row){c, i->group};
    }
}

static void opened(void *kept) {
    struct kept *k = kept;
    k->filter = (struct text_field){0};
    find(k);
}

static void run(struct screen *s, const struct kept *k, int row) {
    int command = row < k->list.count ? k->rows[row].command : -1;
    screen_close_pane(s, PANE_PALETTE);
    if (command >= 0) screen_run(s, (enum ui_command_id)command);
}

static bool key(struct screen *s, void *kept, const struct key *k) {
    struct kept *palette = kept;
    if (list_key(&palette->list, k)) return true;
    if (k->code == KEY_ENTER) return run(s, palette, palette->list.chosen), true;
    if (!text_field_key(&palette->filter, k)) return false;
    find(palette);
    return true;
}

static void click(struct screen *s, void *kept, const struct hit *h) { run(s, kept, h->number); }

static void wheel(void *kept, int step) { list_move(&((struct kept *)kept)->list, step * VIEW_WHEEL_LINES); }

static void draw_row(void *context, struct view_frame *f, struct rect line, int row, bool chosen) {
    command_row_draw(f, line, (const struct command_row *)context + row, chosen);
    frame_hit(f, line, HIT_ROW, row);
}

static void draw(struct view_frame *f, struct rect area, void *kept) {
    struct kept *k = kept;
    struct rect box = view_over(f, area, (struct view_size){COLUMNS, COMMAND_COUNT + 3, MOST_HEIGHT}, PANE_PALETTE,
                                "Enter runs, Esc closes");
    struct rect in = view_over_inside(box);
    if (in.height > 0) text_field_draw_filter(&k->filter, f, in, "type to find a command");
    if (!k->list.count)
        canvas_print(f->canvas, in, in.x + 2, in.y + 1, view_style(ROLE_DIM), "no matching command");
    struct rect rows = {in.x, in.y + 1, in.width, in.height > 1 ? in.height - 1 : 0};
    list_draw(&k->list, f, rows, box, draw_row, k->rows);
}

const struct pane pane_palette = {
    .keeps = sizeof(struct kept), .opened = opened, .draw = draw, .key = key, .click = click, .wheel = wheel};
