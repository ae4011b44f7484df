// Selecting text: keys as in vi move a cursor over the text of the transcript, from which it is selected and copied;
// they stand in the message's place. The mouse does it too, by dragging.
#include "ui/key_labels.h"
#include "ui/pane.h"
#include "ui/pane_search.h"
#include "ui/screen_state.h"

enum { ROWS = 3 }; // at most

enum deed { STEP, LETTERS, LINES, COPY, QUOTE, SEARCH, MESSAGE };

// In the order in which they are shown, in few words where there is little room.
static const struct {
    const char *keys[4]; // that do it
    enum deed deed;
    enum text_step step;
    const char *shown, *label; // with those that follow it; NULL: it is not
} choices[] = {
    {{"v"}, LETTERS, 0, "v", "select"},
    {{"V"}, LINES, 0, "V", "lines"},
    {{"o"}, STEP, TEXT_OTHER_END, NULL, NULL},
    {{"y", "Enter", "c"}, COPY, 0, "y", "copy"},
    {{">"}, QUOTE, 0, ">", "quote"},
    {{"Tab"}, MESSAGE, 0, "Tab", "message"},
    {{"/"}, SEARCH, 0, "/ n N", "search"},
    {{"n"}, STEP, TEXT_MATCH_BELOW, NULL, NULL},
    {{"N"}, STEP, TEXT_MATCH_ABOVE, NULL, NULL},
    {{"h", "Left"}, STEP, TEXT_LEFT, "hjkl", "move"},
    {{"j", "Down"}, STEP, TEXT_DOWN, NULL, NULL},
    {{"k", "Up"}, STEP, TEXT_UP, NULL, NULL},
    {{"l", "Right", "Space"}, STEP, TEXT_RIGHT, NULL, NULL},
    {{"w"}, STEP, TEXT_WORD, "w b e", "word"},
    {{"b"}, STEP, TEXT_WORD_BACK, NULL, NULL},
    {{"e"}, STEP, TEXT_WORD_END, NULL, NULL},
    {{"0", "Home"}, STEP, TEXT_LINE_BEGIN, "0 ^ $", "line"},
    {{"^"}, STEP, TEXT_LINE_FIRST, NULL, NULL},
    {{"$", "End"}, STEP, TEXT_LINE_END, NULL, NULL},
    {{"{"}, STEP, TEXT_BLOCK_BACK, "{ }", "block"},
    {{"}"}, STEP, TEXT_BLOCK, NULL, NULL},
    {{"g", "Ctrl+Home"}, STEP, TEXT_TOP, "g G", "ends"},
    {{"G", "Ctrl+End"}, STEP, TEXT_BOTTOM, NULL, NULL},
    {{"PgUp", "Ctrl+B"}, STEP, TEXT_PAGE_UP, NULL, NULL},
    {{"PgDn"}, STEP, TEXT_PAGE_DOWN, NULL, NULL},
    {{"Ctrl+U"}, STEP, TEXT_HALF_UP, NULL, NULL},
    {{"Ctrl+D"}, STEP, TEXT_HALF_DOWN, NULL, NULL},
};
enum { CHOICES = sizeof choices / sizeof *choices };

static int labels_of(struct key_label labels[CHOICES]) {
    int count = 0;
    for (int i = 0; i < CHOICES; i++) {
        const char *label = choices[i].label;
        const bool step = choices[i].deed == STEP; // of several keys
        if (label) labels[count++] = (struct key_label){choices[i].shown, label, label, step ? -1 : i};
    }
    return count;
}

static int rows(int width, bool ascii) {
    struct key_label labels[CHOICES];
    return (void)ascii, key_labels_rows(labels, labels_of(labels), width, ROWS);
}

static void draw(struct view_frame *f, struct rect area, void *kept) {
    struct key_label labels[CHOICES];
    canvas_fill(f->canvas, area, view_style(ROLE_TEXT), ' '); // over the message
    const bool shown = transcript_text_cursor(kept, &f->cursor_x, &f->cursor_y);
    if (!shown || !rect_holds(f->layout->transcript, f->cursor_x, f->cursor_y)) f->cursor_x = f->cursor_y = -1;
    key_labels_draw(labels, labels_of(labels), f, area);
}

// The message that the cursor is in, to be selected as a whole.
static void select_message(struct screen *s, struct transcript *t) {
    const uint64_t message = transcript_text_message(t);
    screen_close_pane(s, PANE_TEXT);
    if (!message) return;
    screen_open_pane(s, PANE_SELECT);
    transcript_select(t, message);
}

static void act(struct screen *s, struct transcript *t, int choice) {
    switch (choices[choice].deed) {
    case STEP: transcript_text_step(t, choices[choice].step); break;
    case LETTERS: transcript_text_select(t, TEXT_LETTERS); break;
    case LINES: transcript_text_select(t, TEXT_LINES); break;
    case COPY:
    case QUOTE: transcript_text_copy(t, choices[choice].deed == QUOTE); break;
    case SEARCH: search_open(s); break;
    case MESSAGE: select_message(s, t); break;
    }
}

static int find_choice(const struct key *k) {
    struct key own;
    for (int i = 0; i < CHOICES; i++)
        for (int n = 0; n < 4 && choices[i].keys[n]; n++)
            if (key_parse(choices[i].keys[n], &own) && key_equal(&own, k)) return i;
    return -1;
}

static bool key(struct screen *s, void *kept, const struct key *k) {
    const bool ends = k->code == KEY_ESCAPE && transcript_text_kind(kept);
    const int choice = find_choice(k);
    if (ends) transcript_text_select(kept, transcript_text_kind(kept));
    else if (choice >= 0) act(s, kept, choice);
    return ends || choice >= 0;
}

static void click(struct screen *s, void *kept, const struct hit *h) { act(s, kept, h->number); }

const struct pane pane_text = {
    .rows = rows, .letters = true, .passes_on = true, .draw = draw, .key = key, .click = click};
