#include "ui/command_list.h"

#include <string.h>

#include "ui/keys.h"

#define NAME_BELOW 36 // columns: where the help would be cut the name says more

static int key_columns(void) {
    int widest = 0;
    for (int c = 0; c < COMMAND_COUNT; c++) {
        int width = (int)strlen(keys_name((enum ui_command_id)c));
        widest = width > widest ? width : widest;
    }
    return widest + 2;
}

void command_row_draw(struct view_frame *f, struct rect line, const struct command_row *row, bool chosen) {
    struct style help = view_style(ROLE_TEXT), key = view_style(ROLE_ACCENT);
    if (row->command < 0) {
        if (row->group)
            canvas_text(f->canvas, line, line.x, line.y, view_bold(ROLE_HEADING), row->group, strlen(row->group));
        return;
    }
    const struct ui_command_info *c = &ui_commands[row->command];
    int keys = key_columns();
    if (chosen) {
        help = (struct style){ROLE_SELECTED, ROLE_SELECTED_GROUND, CELL_BOLD, 0};
        key = (struct style){ROLE_SELECTED, ROLE_SELECTED_GROUND, 0, 0}; // other colours suit the ground only
        canvas_fill(f->canvas, line, help, ' ');
        if (f->canvas->ascii) canvas_text(f->canvas, line, line.x, line.y, key, ">", 1);
    }
    const char *key_name = keys_name((enum ui_command_id)row->command);
    bool roomy = line.width - keys >= NAME_BELOW;
    if (!*key_name && roomy) { // what can be typed instead
        const int width = canvas_print(f->canvas, line, line.x + 1, line.y, key, "/%s", c->name);
        keys = width < keys ? keys : width + 1;
    } else {
        canvas_print(f->canvas, line, line.x + 1, line.y, key, "%s", key_name);
    }
    struct rect rest = {line.x + 1 + keys, line.y, line.width - 1 - keys, 1};
    canvas_cut(f->canvas, rest, help, roomy ? c->help : c->name);
}
