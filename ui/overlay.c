#include "ui/overlay.h"

#include <stdio.h>
#include <string.h>

#include "ui/filter.h"

#define HELP_COLUMNS 76
#define HELP_GROUPS  8
#define NAME_BELOW   36 // columns: where the help would be cut the name says more

void overlay_open(struct overlay *o, enum overlay_kind kind) { *o = (struct overlay){.kind = kind}; }

// ---- what is listed ----

struct overlay_row {
    int command;       // −1: a heading or a blank
    const char *group; // NULL: a blank
};

static bool matches(const char *filter, int command) {
    const char *old = ui_command_old_name((enum ui_command_id)command);
    char text[256];
    snprintf(text, sizeof text, "%s %s %s %s", ui_commands[command].name, ui_commands[command].group,
             ui_commands[command].help, old ? old : "");
    return filter_matches(filter, text);
}

static int help_rows(struct overlay_row *rows) {
    const char *groups[HELP_GROUPS];
    int n_groups = 0, n = 0;
    for (int c = 0; c < COMMAND_COUNT; c++) {
        int g = 0;
        while (g < n_groups && strcmp(groups[g], ui_commands[c].group) != 0) g++;
        if (g == n_groups && n_groups < HELP_GROUPS) groups[n_groups++] = ui_commands[c].group;
    }
    for (int g = 0; g < n_groups; g++) {
        if (g) rows[n++] = (struct overlay_row){-1, NULL};
        rows[n++] = (struct overlay_row){-1, groups[g]};
        for (int c = 0; c < COMMAND_COUNT; c++)
            if (strcmp(ui_commands[c].group, groups[g]) == 0) rows[n++] = (struct overlay_row){c, groups[g]};
    }
    return n;
}

#define MOST_ROWS (COMMAND_COUNT + 2 * HELP_GROUPS)

static int list_rows(const struct overlay *o, struct overlay_row rows[MOST_ROWS]) {
    if (o->kind == OVERLAY_HELP) return help_rows(rows);
    int n = 0;
    for (int c = 0; c < COMMAND_COUNT; c++)
        if (c != COMMAND_PALETTE && c != COMMAND_SEND && matches(o->filter.text, c))
            rows[n++] = (struct overlay_row){c, ui_commands[c].group};
    return n;
}

int overlay_command(const struct overlay *o, int row) {
    struct overlay_row rows[MOST_ROWS];
    int n = list_rows(o, rows);
    return row >= 0 && row < n ? rows[row].command : -1;
}

// ---- keys ----

void overlay_scroll(struct overlay *o, int rows) {
    struct overlay_row all[MOST_ROWS];
    int n = list_rows(o, all), *at = o->kind == OVERLAY_PALETTE ? &o->chosen : &o->scroll;
    int most = o->kind == OVERLAY_PALETTE ? n - 1 : n - o->height;
    *at += rows;
    if (*at > most) *at = most;
    if (*at < 0) *at = 0;
}

static int moved_rows(const struct overlay *o, const struct key *k) {
    int page = o->height > 1 ? o->height - 1 : 1;
    switch (k->code) {
    case KEY_UP: return -1;
    case KEY_DOWN: return 1;
    case KEY_PAGE_UP: return -page;
    case KEY_PAGE_DOWN: return page;
    case KEY_HOME: return o->kind == OVERLAY_HELP ? -MOST_ROWS : 0;
    case KEY_END: return o->kind == OVERLAY_HELP ? MOST_ROWS : 0;
    case KEY_CONTROL: return k->number == 'n' ? 1 : k->number == 'p' ? -1 : 0;
    default: return 0;
    }
}

int overlay_key(struct overlay *o, const struct key *k) {
    int rows = moved_rows(o, k), command = -1;
    bool leaves = k->code == KEY_ESCAPE || (k->code == KEY_CONTROL && (k->number == 'c' || k->number == 'g'));
    if (o->kind == OVERLAY_HELP)
        leaves |=
            k->code == KEY_ENTER || (k->code == KEY_TEXT && k->size == 1 && (k->text[0] == 'q' || k->text[0] == ' '));
    if (rows) {
        overlay_scroll(o, rows);
    } else if (leaves) {
        o->kind = OVERLAY_NONE;
    } else if (o->kind == OVERLAY_PALETTE && k->code == KEY_ENTER) {
        command = overlay_command(o, o->chosen);
        o->kind = OVERLAY_NONE;
    } else if (o->kind == OVERLAY_PALETTE && line_edit_key(&o->filter, k)) {
        o->chosen = o->scroll = 0;
    }
    return command;
}

// ---- drawing ----

static struct rect centred(const struct canvas *c, int width, int height) {
    if (width > c->width) width = c->width;
    if (height > c->height) height = c->height;
    return (struct rect){(c->width - width) / 2, (c->height - height) / 3, width, height};
}

static void draw_row(struct view_frame *f, struct rect line, const struct overlay_row *row, int key_columns,
                     bool chosen) {
    struct style help = view_style(ROLE_TEXT), key = view_style(ROLE_ACCENT);
    if (row->command < 0) {
        if (row->group)
            canvas_text(f->canvas, line, line.x, line.y, view_bold(ROLE_HEADING), row->group, strlen(row->group));
        return;
    }
    const struct ui_command_info *c = &ui_commands[row->command];
    char name[VIEW_NUMBER];
    if (chosen) {
        help = (struct style){ROLE_SELECTED, ROLE_SELECTED_GROUND, CELL_BOLD, 0};
        key = (struct style){ROLE_SELECTED, ROLE_SELECTED_GROUND, 0, 0}; // other colours suit the ground only
        canvas_fill(f->canvas, line, help, ' ');
        if (f->canvas->ascii) canvas_text(f->canvas, line, line.x, line.y, key, ">", 1);
    }
    canvas_print(f->canvas, line, line.x + 1, line.y, key, "%s", view_key(c->key, name));
    bool roomy = line.width - key_columns >= NAME_BELOW;
    struct rect rest = {line.x + 1 + key_columns, line.y, line.width - 1 - key_columns, 1};
    canvas_cut(f->canvas, rest, help, roomy ? c->help : c->name);
}

static int key_columns(void) {
    int widest = 0;
    char name[VIEW_NUMBER];
    for (int c = 0; c < COMMAND_COUNT; c++) {
        int width = (int)strlen(view_key(ui_commands[c].key, name));
        widest = width > widest ? width : widest;
    }
    return widest + 2;
}

static void draw_list(struct overlay *o, struct view_frame *f, struct rect area, const struct overlay_row *rows, int n,
                      struct rect box) {
    int keys = key_columns();
    o->height = area.height;
    int most = n > area.height ? n - area.height : 0;
    if (o->kind == OVERLAY_PALETTE) {
        if (o->scroll > o->chosen) o->scroll = o->chosen;
        if (o->scroll < o->chosen - area.height + 1) o->scroll = o->chosen - area.height + 1;
    }
    if (o->scroll > most) o->scroll = most;
    for (int i = 0; i < area.height && o->scroll + i < n; i++) {
        struct rect line = {area.x, area.y + i, area.width, 1};
        int row = o->scroll + i;
        draw_row(f, line, &rows[row], keys, o->kind == OVERLAY_PALETTE && row == o->chosen);
        if (rows[row].command >= 0) frame_hit(f, line, HIT_ROW, row);
    }
    int right = box.x + box.width - 2;
    if (o->scroll > 0) canvas_symbol(f->canvas, box, right, box.y, view_style(ROLE_ACCENT), "▲", '^');
    if (o->scroll < most)
        canvas_symbol(f->canvas, box, right, box.y + box.height - 1, view_style(ROLE_ACCENT), "▼", 'v');
}

void overlay_draw(struct overlay *o, struct view_frame *f, int *cursor_x, int *cursor_y) {
    if (o->kind == OVERLAY_NONE) return;
    struct overlay_row rows[MOST_ROWS];
    bool palette = o->kind == OVERLAY_PALETTE;
    int n = list_rows(o, rows), head = palette ? 1 : 0, wanted = palette ? COMMAND_COUNT : n;
    int height = wanted + head + 2, most = f->canvas->height * 4 / 5;
    if (palette && most > 18) most = 18;
    if (most < 10) most = f->canvas->height;
    struct rect box = centred(f->canvas, HELP_COLUMNS, height < most ? height : most);
    canvas_fill(f->canvas, box, view_style(ROLE_TEXT), ' ');
    f->n_hits = 0; // what lies below cannot be clicked
    canvas_box(f->canvas, box, 0, palette ? "commands" : "help",
               palette ? "Enter runs, Esc closes" : "Esc closes, Shift+mouse selects text", ROLE_BORDER_ACTIVE);
    struct rect in = rect_inside(box);
    if (in.width > 20) in.x++, in.width -= 2;
    if (palette && in.height > 0) {
        struct rect line = {in.x + 2, in.y, in.width - 2, 1};
        canvas_symbol(f->canvas, in, in.x, in.y, view_style(ROLE_ACCENT), "›", '>');
        *cursor_x = line_edit_draw(&o->filter, f->canvas, line, view_style(ROLE_STRONG)), *cursor_y = in.y;
        if (!o->filter.size)
            canvas_text(f->canvas, line, line.x, line.y, view_style(ROLE_DIM), "type to find a command", 22);
        if (n == 0) canvas_text(f->canvas, in, in.x + 2, in.y + 1, view_style(ROLE_DIM), "no command is called so", 23);
    } else {
        *cursor_x = *cursor_y = -1;
    }
    draw_list(o, f, (struct rect){in.x, in.y + head, in.width, in.height - head > 0 ? in.height - head : 0}, rows, n,
              box);
}
