// Focus: while a pane is chosen, its border is marked, and what can be done with its size stands in the message's
// place, a key each. All else goes on as without it.
#include "ui/message_keys.h"
#include "ui/screen_state.h"

enum { ROWS = 3 }; // at most

static int rows(int width, bool ascii) { return message_keys_rows(width, ascii, PANE_IN_FOCUS, ROWS); }

static bool key(struct screen *s, void *kept, const struct key *k) {
    const int command = message_keys_command(k, PANE_IN_FOCUS);
    (void)kept;
    if (k->code == KEY_TAB && k->modifiers == KEY_SHIFT) screen_focus_step(s, -1);
    else if (command >= 0) screen_run(s, (enum ui_command_id)command);
    else return false;
    return true;
}

static void click(struct screen *s, void *kept, const struct hit *h) {
    (void)kept;
    screen_run(s, (enum ui_command_id)h->number);
}

static void draw(struct view_frame *f, struct rect area, void *kept) {
    (void)kept;
    canvas_fill(f->canvas, area, view_style(ROLE_TEXT), ' '); // over the message
    f->cursor_x = f->cursor_y = -1;
    message_keys_draw(f, area, PANE_IN_FOCUS);
}

const struct pane pane_focus = {.rows = rows, .passes_on = true, .draw = draw, .key = key, .click = click};
