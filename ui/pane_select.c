// Selecting: while a message of the transcript is selected, or a block of it, what can be done with it stands in the
// message's place, and a key each does it. All else goes on as without it.
#include "ui/message_keys.h"
#include "ui/pane.h"
#include "ui/transcript.h"

enum { ROWS = 3 }; // at most

static int rows(int width, bool ascii) { return message_keys_rows(width, ascii, MESSAGE_SELECTED, ROWS); }

static void opened(void *kept) { transcript_block_end(kept); }

static enum message_place place_of(const void *kept) {
    return transcript_block(kept) ? MESSAGE_BLOCK : MESSAGE_SELECTED;
}

static bool key(struct screen *s, void *kept, const struct key *k) {
    int command = message_keys_command(k, place_of(kept));
    const bool leaves = k->code == KEY_ESCAPE && transcript_block(kept); // for the whole message
    if (leaves) transcript_block_end(kept);
    else if (command >= 0) screen_run(s, (enum ui_command_id)command);
    return leaves || command >= 0;
}

static void click(struct screen *s, void *kept, const struct hit *h) {
    (void)kept;
    screen_run(s, (enum ui_command_id)h->number);
}

static void draw(struct view_frame *f, struct rect area, void *kept) {
    canvas_fill(f->canvas, area, view_style(ROLE_TEXT), ' '); // over the message
    f->cursor_x = f->cursor_y = -1;
    message_keys_draw(f, area, place_of(kept));
}

const struct pane pane_select = {
    .rows = rows, .letters = true, .passes_on = true, .opened = opened, .draw = draw, .key = key, .click = click};
