#include "ui/pane_search.h"

#include <stdio.h>
#include <string.h>

#include "ui/screen_state.h"

enum { LABEL = 8 }; // columns

struct kept {
    struct text_field field;
    struct transcript *transcript; // that is searched
    bool from_text;                // for its text cursor, which goes with the match
};

// Once more, it searches for the same.
void search_open(struct screen *s) {
    struct kept *k = screen_open_pane(s, PANE_SEARCH);
    k->transcript = s->transcript;
    k->from_text = screen_has_open(s, PANE_TEXT);
    k->field.selected = k->field.size > 0;
    transcript_search(k->transcript, k->field.text);
}

static int rows(int width, bool ascii) { return (void)width, (void)ascii, 2; }

// Where a chat is read one stands at its end, so that the way leads up.
static int step_of(const struct key *k) {
    const bool control = k->code == KEY_CONTROL;
    if (k->code == KEY_ENTER || k->code == KEY_UP || (control && k->number == 'p')) return -1;
    return k->code == KEY_DOWN || (control && k->number == 'n') ? 1 : 0;
}

static bool key(struct screen *s, void *kept, const struct key *k) {
    struct kept *p = kept;
    if (k->code == KEY_ENTER && p->from_text) return screen_close_pane(s, PANE_SEARCH), true;
    if (step_of(k)) return transcript_search_step(p->transcript, step_of(k)), true;
    if (k->code == KEY_PAGE_UP || k->code == KEY_PAGE_DOWN || !text_field_key(&p->field, k)) return false;
    transcript_search(p->transcript, p->field.text);
    return true;
}

static const char *const hints[2][2] = {
    {"Enter, ↑: match above   ↓: match below   Esc closes", "Enter, Up: match above   Down: match below   Esc closes"},
    {"↑: match above   ↓: match below   Enter goes on there",
     "Up: match above   Down: match below   Enter goes on there"},
};

static void draw(struct view_frame *f, struct rect area, void *kept) {
    const struct kept *p = kept;
    struct canvas *c = f->canvas;
    char count[48] = "";
    int at, all = transcript_search_count(p->transcript, &at);
    canvas_fill(c, area, view_style(ROLE_TEXT), ' '); // over the message
    if (p->field.size && all) snprintf(count, sizeof count, "%d of %d", at, all);
    else if (p->field.size) snprintf(count, sizeof count, "not found");
    const int width = (int)strlen(count), room = area.width - LABEL - width - 1;
    canvas_text(c, area, area.x, area.y, view_bold(ROLE_ACCENT), "Search", 6);
    f->cursor_y = area.y;
    f->cursor_x = text_field_draw(&p->field, c, (struct rect){area.x + LABEL, area.y, room > 1 ? room : 1, 1},
                                  view_style(ROLE_TEXT));
    if (room > 0)
        canvas_text(c, area, area.x + area.width - width, area.y, view_style(all ? ROLE_STRONG : ROLE_WARN), count,
                    (size_t)width);
    if (area.height > 1)
        canvas_cut(c, (struct rect){area.x, area.y + 1, area.width, 1}, view_style(ROLE_DIM),
                   hints[p->from_text][c->ascii]);
}

const struct pane pane_search = {
    .keeps = sizeof(struct kept), .rows = rows, .passes_on = true, .draw = draw, .key = key};
