#include "ui/completion.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "ui/pane.h"
#include "ui/slash.h"

enum { COLUMNS = 64, ROWS = 8 };

void completion_open(struct completion *c, struct worker *reader) { c->paths = path_list_open(reader); }

void completion_close(struct completion *c) {
    path_list_close(c->paths);
    free(c->into);
}

// ---- what there is ----

static const struct view_setting *setting_of(const struct completion *c, int row) {
    return !c->names && c->rows[row] >= COMMAND_COUNT ? &c->settings[c->rows[row] - COMMAND_COUNT] : NULL;
}

static const char *word_of(const struct completion *c, int row) {
    const struct view_setting *setting = setting_of(c, row);
    return c->names ? c->names[c->rows[row]] : setting ? setting->key : ui_commands[c->rows[row]].name;
}

static const char *argument_of(const struct completion *c, int row) {
    return setting_of(c, row) ? "VALUE" : ui_command_argument((enum ui_command_id)c->rows[row]);
}

// What is there as a whole comes first: Enter runs it.
static void add_beginning(struct completion *c, int id, const char *word, const char *typed, size_t size, bool whole) {
    const bool fits = !strncmp(word, typed, size) && (strlen(word) == size) == whole;
    if (fits && c->list.count < COMPLETION_ROWS) c->rows[c->list.count++] = id;
}

static void find_commands(struct completion *c, const char *typed, size_t size) {
    c->names = NULL;
    for (int pass = 0; pass < 2; pass++)
        for (int id = 0; id < COMMAND_COUNT; id++)
            add_beginning(c, id, ui_commands[id].name, typed, size, !pass);
    for (int i = 0; size && i < c->n_settings; i++)
        if (ui_command_find(c->settings[i].key, strlen(c->settings[i].key)) < 0)
            for (int whole = 1; whole >= 0; whole--)
                add_beginning(c, COMMAND_COUNT + i, c->settings[i].key, typed, size, whole);
}

// The last part of a path; the rest is its folder.
static void find_paths(struct completion *c, const char *path, size_t size) {
    size_t folder = size;
    while (folder && path[folder - 1] != '/') folder--;
    const int count = path_list_names(c->paths, path, folder, &c->names);
    for (int i = 0; i < count; i++) {
        add_beginning(c, i, c->names[i], path + folder, size - folder, true);
        add_beginning(c, i, c->names[i], path + folder, size - folder, false);
    }
}

// In a folder that was gone into, whose name may have blanks.
static bool goes_on(const struct completion *c, const char *line, size_t point) {
    const size_t size = c->into ? strlen(c->into) : 0;
    return size && point >= size && !memcmp(line, c->into, size);
}

// Where the path begins that is typed behind an '@' or the command that attaches files; -1: none is.
static long path_start(const struct completion *c, const char *line, size_t point, size_t command) {
    size_t start = point;
    if (command && ui_command_find(line + 1, command - 1) == COMMAND_ATTACH && point > command)
        return slash_argument(line) - line;
    while (start && !strchr(" \t\n", line[start - 1])) start--;
    if (start < point && line[start] == '@') return (long)start + 1;
    return goes_on(c, line, point) ? (long)c->into_from : -1;
}

void completion_update(struct completion *c, const struct composer *message) {
    size_t point;
    const char *line = composer_line(message, &point);
    const bool alone = line[0] == '/' && !line[1];
    const size_t size = c->editing ? 0 : alone ? 1 : slash_size(line), before = c->to;
    const long path = path_start(c, line, point, size);
    c->list.count = 0;
    c->from = path >= 0 ? (size_t)path : 1;
    c->to = point;
    if (composer_searching(message)) return;
    if (size && point == size) find_commands(c, line + 1, size - 1);
    else if (path >= 0 && (size_t)path <= point) find_paths(c, line + path, point - (size_t)path);
    else path_list_forget(c->paths), c->names = NULL; // files come and go
    if (before != point || !c->list.count) c->list.chosen = c->list.scroll = 0;
    if (!c->list.count) c->left = false;
    if (c->left) c->list.count = 0;
}

// ---- keys ----

static void take_word(struct completion *c, struct composer *message, int row) {
    char text[64];
    size_t point;
    composer_line(message, &point);
    snprintf(text, sizeof text, "%s%s", word_of(c, row), argument_of(c, row) ? " " : "");
    composer_replace(message, 1, point, text);
}

static void go_into(struct completion *c, const struct composer *message) {
    size_t point;
    const char *line = composer_line(message, &point);
    free(c->into);
    c->into = xstrndup(line, point);
    c->into_from = c->from;
}

// A folder is gone into. A file behind an '@' is attached, and the word goes.
static void take_path(struct completion *c, struct screen *s, struct composer *message, const char *name) {
    size_t folder = c->to, point;
    const char *line = composer_line(message, &point);
    while (folder > c->from && line[folder - 1] != '/') folder--;
    if (line[c->from - 1] != '@' || name[strlen(name) - 1] == '/') {
        composer_replace(message, folder, point, name);
        go_into(c, message);
        return;
    }
    char *path = xasprintf("%.*s%s", (int)(folder - c->from), line + c->from, name);
    composer_replace(message, c->from - 1, point, "");
    screen_hand_out(s, COMMAND_ATTACH, -1, path);
    free(path);
}

void completion_take(struct completion *c, struct screen *s, struct composer *message, int row) {
    if (row >= c->list.count) return;
    if (c->names) take_path(c, s, message, word_of(c, row));
    else take_word(c, message, row);
}

// What is typed in full is sent, but for a file that is to be attached.
static bool sends(const struct completion *c, const struct composer *message) {
    size_t point, size = strlen(word_of(c, c->list.chosen));
    const char *line = composer_line(message, &point);
    const bool attaches = c->names && line[c->from - 1] == '@';
    return !attaches && size <= point - c->from && !memcmp(line + point - size, word_of(c, c->list.chosen), size);
}

bool completion_key(struct completion *c, struct screen *s, struct composer *message, const struct key *k) {
    if (!c->list.count || k->modifiers) return false;
    switch (k->code) {
    case KEY_ENTER:
        if (sends(c, message)) return false;
        completion_take(c, s, message, c->list.chosen);
        return true;
    case KEY_TAB: completion_take(c, s, message, c->list.chosen); return true;
    case KEY_ESCAPE: c->left = true; return true;
    case KEY_UP:
    case KEY_DOWN:
    case KEY_PAGE_UP:
    case KEY_PAGE_DOWN: return list_key(&c->list, k);
    default: return false;
    }
}

// ---- drawing ----

static void draw_command(const struct completion *c, struct view_frame *f, struct rect line, int row,
                         struct style name, struct style help) {
    const char *argument = argument_of(c, row);
    const struct view_setting *setting = setting_of(c, row);
    char text[64];
    snprintf(text, sizeof text, "/%s%s%s", word_of(c, row), argument ? " " : "", argument ? argument : "");
    const int used = canvas_cut(f->canvas, line, name, text) + 2, third = line.width / 3;
    const struct rect rest = rect_after(line, used > third ? used : third);
    if (rest.width >= 8) canvas_cut(f->canvas, rest, help, setting ? setting->help : ui_commands[c->rows[row]].help);
}

static void draw_row(void *context, struct view_frame *f, struct rect line, int row, bool chosen) {
    const struct completion *c = context;
    struct style name = view_style(ROLE_ACCENT), help = view_style(ROLE_DIM);
    if (chosen) name = help = view_chosen(f, line);
    if (chosen && f->canvas->ascii) canvas_text(f->canvas, line, line.x, line.y, name, ">", 1);
    if (c->names) canvas_cut(f->canvas, rect_after(line, 1), name, word_of(c, row));
    else draw_command(c, f, rect_after(line, 1), row, name, help);
    frame_hit(f, line, HIT_ROW, row);
}

void completion_draw(struct completion *c, struct view_frame *f) {
    const struct rect message = f->layout->composer, below = f->layout->rule.height ? f->layout->rule : message;
    int height = (c->list.count < ROWS ? c->list.count : ROWS) + 2;
    if (height > below.y) height = below.y;
    if (!c->list.count || height < 3) return;
    const int width = message.width < COLUMNS ? message.width : COLUMNS;
    const struct rect box = {message.x, below.y - height, width, height};
    canvas_fill(f->canvas, box, view_style(ROLE_TEXT), ' ');
    canvas_box(f->canvas, box, 0, NULL, "Tab takes it", ROLE_BORDER_ACTIVE);
    frame_hit(f, box, HIT_ROW, c->list.count); // what lies below cannot be clicked
    list_draw(&c->list, f, rect_inside(box), box, draw_row, c);
}
