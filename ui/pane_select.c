// Selecting: while a message of the transcript is selected, what can be done with it stands in the message's place, and
// a key each does it. All else goes on as without it.
#include "ui/message_keys.h"
#include "ui/pane.h"

enum { ROWS = 3 }; // at most

static int rows(int width, bool ascii) { return message_keys_rows(width, ascii, MESSAGE_SELECTED, ROWS); }

static bool key(struct screen *s, void *kept, const struct key *k) {
    (void)kept;
    int command = message_keys_command(k, MESSAGE_SELECTED);
    if (command >= 0) screen_run(s, (enum ui_command_id)command);
    return command >= 0;
}

static void click(struct screen *s, void *kept, const struct hit *h) {
    (void)kept;
    screen_run(s, (enum ui_command_id)h->number);
}

static void draw(struct view_frame *f, struct rect area, void *kept) {
    (void)kept;
    canvas_fill(f->canvas, area, view_style(ROLE_TEXT), ' '); // over the message
    f->cursor_x = f->cursor_y = -1;
    message_keys_draw(f, area, MESSAGE_SELECTED);
}

const struct pane pane_select = {.rows = rows, .passes_on = true, .draw = draw, .key = key, .click = click};
