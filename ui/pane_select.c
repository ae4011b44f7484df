// Selecting: while a message of the transcript is selected, what can be done with it stands in the message's place, and
// a key each does it. All else goes on as without it.
#include <stdio.h>
#include <string.h>

#include "ui/pane.h"
#include "ui/screen_state.h"
#include "ui/transcript.h"

enum { ROWS = 2, GAP = 2 };

// In the order in which they are shown as far as there is room. `key` is shown, and typed where it is one character.
static const struct {
    const char *key, *ascii, *label;
    enum ui_command_id command;
} choices[] = {
    {"↑↓", "Up/Down", "select", COMMAND_SELECT_PREVIOUS},
    {"e", "e", "edit", COMMAND_EDIT},
    {"r", "r", "answer again", COMMAND_REGENERATE},
    {"←→", "Left/Right", "version", COMMAND_VERSION_NEXT},
    {"c", "c", "copy", COMMAND_COPY},
};
enum { CHOICES = sizeof choices / sizeof *choices };

static int command_of(const struct key *k) {
    if (k->modifiers) return -1;
    switch (k->code) {
    case KEY_UP: return COMMAND_SELECT_PREVIOUS;
    case KEY_DOWN: return COMMAND_SELECT_NEXT;
    case KEY_LEFT: return COMMAND_VERSION_PREVIOUS;
    case KEY_RIGHT: return COMMAND_VERSION_NEXT;
    case KEY_ENTER: return COMMAND_EDIT;
    case KEY_TEXT: break;
    default: return -1;
    }
    for (int i = 0; i < CHOICES; i++)
        if (k->size == 1 && choices[i].key[0] == k->text[0] && !choices[i].key[1]) return (int)choices[i].command;
    return -1;
}

static bool key(struct screen *s, void *kept, const struct key *k) {
    (void)kept;
    int command = command_of(k);
    if (command >= 0) screen_run(s, (enum ui_command_id)command);
    return command >= 0;
}

static void draw(struct view_frame *f, struct rect area, void *kept) {
    struct canvas *c = f->canvas;
    int x = area.x, y = area.y;
    (void)kept;
    canvas_fill(c, area, view_style(ROLE_TEXT), ' '); // over the message
    f->cursor_x = f->cursor_y = -1;
    for (int i = 0; i < CHOICES; i++) {
        const char *name = c->ascii ? choices[i].ascii : choices[i].key, *label = choices[i].label;
        int width = text_width(name, strlen(name)) + 1 + (int)strlen(label);
        if (x > area.x && x + width > area.x + area.width) x = area.x, y++;
        if (y >= area.y + area.height) return;
        frame_hit(f, (struct rect){x, y, width, 1}, HIT_COMMAND, (int)choices[i].command);
        x += canvas_text(c, area, x, y, view_bold(ROLE_ACCENT), name, strlen(name)) + 1;
        x += canvas_text(c, area, x, y, view_style(ROLE_DIM), label, strlen(label)) + GAP;
    }
}

const struct pane pane_select = {.rows = ROWS, .passes_on = true, .draw = draw, .key = key};
