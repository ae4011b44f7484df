#include "ui/dialog.h"

#include <stdio.h>
#include <string.h>

enum { ANSWER = 9, CURSOR = 2 }; // columns that the label leaves to them

static const struct style style_label = {.role = ROLE_ACCENT, .attributes = CELL_BOLD};
static const struct style style_hint = {.role = ROLE_DIM};
static const struct style style_text = {.role = ROLE_TEXT};

void dialog_text(struct dialog *d, enum ui_command_id command, const char *label, const char *hint,
                 const char *initial) {
    *d = (struct dialog){.state = DIALOG_OPEN, .command = command};
    snprintf(d->label, sizeof d->label, "%s", label);
    snprintf(d->hint, sizeof d->hint, "%s", hint);
    line_edit_set(&d->edit, initial);
}

void dialog_confirm(struct dialog *d, enum ui_command_id command, const char *label) {
    *d = (struct dialog){.state = DIALOG_OPEN, .command = command, .asks = true};
    snprintf(d->label, sizeof d->label, "%s", label);
    snprintf(d->hint, sizeof d->hint, "y: yes   any other key: no");
}

void dialog_close(struct dialog *d) { d->state = DIALOG_CLOSED; }

void dialog_key(struct dialog *d, const struct key *k) {
    if (k->code == KEY_MOUSE) return;
    bool leaves = k->code == KEY_ESCAPE || (k->code == KEY_CONTROL && (k->number == 'c' || k->number == 'g'));
    if (d->asks) {
        bool yes = k->code == KEY_TEXT && k->size == 1 && (k->text[0] == 'y' || k->text[0] == 'Y') && !k->modifiers;
        d->state = yes ? DIALOG_ACCEPTED : DIALOG_CLOSED;
    } else if (leaves) {
        d->state = DIALOG_CLOSED;
    } else if (k->code == KEY_ENTER) {
        d->state = d->edit.size ? DIALOG_ACCEPTED : DIALOG_CLOSED;
    } else {
        line_edit_key(&d->edit, k);
    }
}

void dialog_draw(const struct dialog *d, struct canvas *c, struct rect area, int *x, int *y) {
    int least = d->asks ? CURSOR : ANSWER, room = area.width > least ? area.width - least : 0;
    int column = area.x + canvas_cut(c, (struct rect){area.x, area.y, room, area.height > 0}, style_label, d->label) + (room > 0);
    *y = area.y;
    struct rect line = {column, area.y, area.x + area.width - column, 1};
    bool below = area.height > 1;
    if (d->asks) {
        *x = column;
        if (!below) column += 2;
    } else {
        canvas_fill(c, line, style_text, ' ');
        *x = line_edit_draw(&d->edit, c, line, style_text);
        column += text_width(d->edit.text, d->edit.size) + 3;
    }
    if (below) canvas_cut(c, (struct rect){area.x, area.y + 1, area.width, 1}, style_hint, d->hint);
    else if (column + text_width(d->hint, strlen(d->hint)) <= area.x + area.width)
        canvas_text(c, area, column, area.y, style_hint, d->hint, strlen(d->hint));
}
