// Reading: the transcript alone, from the first column on, without borders and panes, and the mouse is the terminal's:
// what it selects are lines of text and nothing else. The conversation's pane draws it (layout_read).
#include "ui/pane.h"
#include "ui/transcript.h"

static bool key(struct screen *s, void *kept, const struct key *k) {
    static const enum ui_command_id commands[] = {COMMAND_PAGE_UP, COMMAND_PAGE_DOWN, COMMAND_TOP, COMMAND_BOTTOM,
                                                  COMMAND_THINKING};
    const int id = screen_bound(s, k);
    if (k->code == KEY_UP || k->code == KEY_DOWN) {
        transcript_scroll(kept, k->code == KEY_UP ? -1 : 1);
        return true;
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (id != (int)commands[i]) continue;
        screen_run(s, commands[i]);
        return true;
    }
    return false;
}

static void draw(struct view_frame *f, struct rect area, void *kept) {
    (void)kept;
    const struct rect last = {area.x, area.y + area.height - 1, area.width, 1};
    f->cursor_x = f->cursor_y = -1;
    if (!f->status.text) return;
    canvas_fill(f->canvas, last, view_style(ROLE_TEXT), ' ');
    canvas_cut(f->canvas, last,
               view_style(f->status.fading ? ROLE_DIM
                          : f->status.bad  ? ROLE_BAD
                                           : ROLE_ACCENT),
               f->status.text);
}

const struct pane pane_read = {.draw = draw, .key = key};
