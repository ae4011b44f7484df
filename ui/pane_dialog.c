#include "ui/pane_dialog.h"

#include <stdio.h>
#include <string.h>

#include "ui/pane.h"
#include "ui/text_field.h"

enum { ANSWER = 9, CURSOR = 2 }; // columns that the label leaves to them

struct kept {
    enum ui_command_id command; // that it completes
    uint64_t message;           // that it is about
    bool optional;              // an empty text is an answer too
    bool sets;                  // the setting that the label names
    int number;                 // of the command
    bool asks;                  // yes or no; otherwise a text is typed
    char label[160], hint[160];
    struct text_field field;
};

static const struct style style_label = {.role = ROLE_ACCENT, .attributes = CELL_BOLD};
static const struct style style_hint = {.role = ROLE_DIM};
static const struct style style_text = {.role = ROLE_TEXT};

static struct kept *dialog_open(struct screen *s, enum ui_command_id command, const char *label, const char *hint) {
    struct kept *d = screen_open_pane(s, PANE_DIALOG);
    *d = (struct kept){.command = command, .number = -1};
    snprintf(d->label, sizeof d->label, "%s", label);
    snprintf(d->hint, sizeof d->hint, "%s", hint);
    return d;
}

void dialog_ask(struct screen *s, enum ui_command_id command, const char *label, const char *hint,
                const char *initial) {
    text_field_set(&dialog_open(s, command, label, hint)->field, initial);
}

void dialog_ask_name(struct screen *s, uint64_t message, const char *initial) {
    struct kept *d = dialog_open(s, COMMAND_NAME, "Name of this branch", "Enter keeps it, Esc leaves it as it was");
    text_field_set(&d->field, initial);
    d->message = message;
    d->optional = true;
}

void dialog_ask_tags(struct screen *s, const char *initial) {
    struct kept *d = dialog_open(s, COMMAND_TAG, "Tags of this chat", "words to find it by, such as work recipes");
    text_field_set(&d->field, initial);
    d->optional = true;
}

void dialog_ask_setting(struct screen *s, int number, const char *key, const char *hint, const char *initial) {
    struct kept *d = dialog_open(s, COMMAND_SETTINGS, key, hint);
    text_field_set(&d->field, initial);
    d->number = number;
    d->sets = true;
    d->optional = *initial; // which can be made empty
}

void dialog_confirm(struct screen *s, enum ui_command_id command, const char *label) {
    dialog_open(s, command, label, "y: yes   any other key: no")->asks = true;
}

static void end(struct screen *s, const struct kept *d, bool accepted) {
    char text[sizeof d->label + sizeof d->field.text];
    snprintf(text, sizeof text, d->sets ? "%s %s" : "%.0s%s", d->label, d->field.text);
    screen_close_pane(s, PANE_DIALOG);
    if (accepted && d->message) screen_hand_out_message(s, d->command, d->message, d->field.text);
    else if (accepted) screen_hand_out(s, d->command, d->number, text);
}

static int rows(int width, bool ascii) { return (void)width, (void)ascii, 2; }

static bool key(struct screen *s, void *kept, const struct key *k) {
    struct kept *d = kept;
    bool yes = k->code == KEY_TEXT && k->size == 1 && (k->text[0] | 0x20) == 'y' && !k->modifiers;
    if (d->asks) return end(s, d, yes), true;
    if (k->code == KEY_ENTER) return end(s, d, d->field.size || d->optional), true;
    return text_field_key(&d->field, k);
}

static void draw(struct view_frame *f, struct rect area, void *kept) {
    const struct kept *d = kept;
    struct canvas *c = f->canvas;
    canvas_fill(c, area, style_text, ' '); // over the message
    int least = d->asks ? CURSOR : ANSWER, room = area.width > least ? area.width - least : 0;
    int column = area.x + canvas_cut(c, (struct rect){area.x, area.y, room, area.height > 0}, style_label, d->label) +
                 (room > 0);
    f->cursor_y = area.y;
    struct rect line = {column, area.y, area.x + area.width - column, 1};
    bool below = area.height > 1;
    if (d->asks) {
        f->cursor_x = column;
        if (!below) column += 2;
    } else {
        canvas_fill(c, line, style_text, ' ');
        f->cursor_x = text_field_draw(&d->field, c, line, style_text);
        column += text_width(d->field.text, d->field.size) + 3;
    }
    if (below) canvas_cut(c, (struct rect){area.x, area.y + 1, area.width, 1}, style_hint, d->hint);
    else if (column + text_width(d->hint, strlen(d->hint)) <= area.x + area.width)
        canvas_text(c, area, column, area.y, style_hint, d->hint, strlen(d->hint));
}

const struct pane pane_dialog = {.keeps = sizeof(struct kept), .rows = rows, .draw = draw, .key = key};
