// Help: all commands, group by group.
#include <string.h>

#include "ui/command_list.h"
#include "ui/list.h"
#include "ui/pane.h"

#define COLUMNS 76

struct kept {
    struct list list;
    struct command_row rows[COMMAND_ROWS_MOST];
};

static void opened(void *kept) {
    struct kept *k = kept;
    const char *groups[COMMAND_GROUPS];
    int n_groups = 0, n = 0;
    for (int c = 0; c < COMMAND_COUNT; c++) {
        int g = 0;
        while (g < n_groups && strcmp(groups[g], ui_commands[c].group) != 0) g++;
        if (g == n_groups && n_groups < COMMAND_GROUPS) groups[n_groups++] = ui_commands[c].group;
    }
    for (int g = 0; g < n_groups; g++) {
        if (g) k->rows[n++] = (struct command_row){-1, NULL};
        k->rows[n++] = (struct command_row){-1, groups[g]};
        for (int c = 0; c < COMMAND_COUNT; c++)
            if (strcmp(ui_commands[c].group, groups[g]) == 0) k->rows[n++] = (struct command_row){c, groups[g]};
    }
    k->list = (struct list){.count = n, .plain = true};
}

static bool key(struct screen *s, void *kept, const struct key *k) {
    struct kept *help = kept;
    bool leaves = k->code == KEY_ENTER || (k->code == KEY_TEXT && k->size == 1 && strchr("q ", k->text[0]));
    if (leaves) screen_close_pane(s, PANE_HELP);
    return leaves || list_key(&help->list, k);
}

static void click(struct screen *s, void *kept, const struct hit *h) {
    int command = ((struct kept *)kept)->rows[h->number].command;
    screen_close_pane(s, PANE_HELP);
    screen_run(s, (enum ui_command_id)command);
}

static void wheel(void *kept, int step) { list_move(&((struct kept *)kept)->list, step * VIEW_WHEEL_LINES); }

static void draw_row(void *context, struct view_frame *f, struct rect line, int row, bool chosen) {
    const struct command_row *rows = context;
    command_row_draw(f, line, &rows[row], chosen);
    if (rows[row].command >= 0) frame_hit(f, line, HIT_ROW, row);
}

static void draw(struct view_frame *f, struct rect area, void *kept) {
    struct kept *k = kept;
    struct rect box = view_over(f, area, (struct view_size){COLUMNS, k->list.count + 2, area.height}, PANE_HELP,
                                "Esc closes, Shift+mouse selects text");
    list_draw(&k->list, f, view_over_inside(box), box, draw_row, k->rows);
}

const struct pane pane_help = {
    .keeps = sizeof(struct kept), .opened = opened, .draw = draw, .key = key, .click = click, .wheel = wheel};
