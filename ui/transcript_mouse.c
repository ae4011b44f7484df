// The mouse over the text of the transcript: what it selects is as the last draw showed it.
#include "ui/transcript_state.h"

static const struct lines *row_lines(const struct transcript *t, const struct text_row *r) {
    for (int i = 0; i < t->n_entries; i++)
        if (t->entries[i].id == r->message)
            return r->thinking ? &t->entries[i].thoughts.lines : transcript_lines(&t->entries[i]);
    return NULL;
}

// What is drawn there, or nearest to it in the rows above, or below. Message 0: nothing is.
static struct text_spot spot_at(const struct transcript *t, int x, int y) {
    const struct text_cursor *c = &t->text;
    int at = y - c->top < 0 ? 0 : y - c->top < c->n_rows ? y - c->top : c->n_rows - 1, row = at;
    while (row >= 0 && !c->rows[row].message) row--;
    for (row = row < 0 ? at : row; row >= 0 && row < c->n_rows && !c->rows[row].message;) row++;
    const struct lines *l = row >= 0 && row < c->n_rows ? row_lines(t, &c->rows[row]) : NULL;
    if (!l || c->rows[row].row >= (int)l->n_rows) return (struct text_spot){0};
    const struct text_row *r = &c->rows[row];
    return (struct text_spot){r->message, r->thinking, lines_at(l, r->row, x - r->x)};
}

static void grow_to_word(const struct transcript *t, struct text_spot *from, struct text_spot *to) {
    const struct text_row r = {.message = to->message, .thinking = to->thinking};
    const struct lines *l = row_lines(t, &r);
    if (!l || to->at >= l->size) return;
    from->at = text_motion_word(l->text, l->size, to->at);
    to->at = text_motion_word_end(l->text, l->size, to->at);
}

bool transcript_mouse_press(struct transcript *t, int x, int y, int presses) {
    struct text_cursor *c = &t->text;
    struct text_spot spot = spot_at(t, x, y);
    c->pressed = spot;
    if (!spot.message || (!c->on && presses < 2)) return false;
    c->anchor = spot;
    c->kind = presses < 2 ? TEXT_NONE : presses == 2 ? TEXT_LETTERS : TEXT_LINES;
    if (presses == 2) grow_to_word(t, &c->anchor, &spot);
    c->at = spot;
    c->on = c->holds = c->moved = true;
    c->column = -1;
    c->n_steps = 0;
    return true;
}

bool transcript_mouse_drag(struct transcript *t, int x, int y) {
    struct text_cursor *c = &t->text;
    const struct text_spot spot = spot_at(t, x, y);
    if (!c->pressed.message || !spot.message) return false;
    c->anchor = c->pressed;
    c->at = spot;
    c->kind = TEXT_LETTERS;
    c->on = c->holds = true;
    c->column = -1;
    c->n_steps = 0;
    if (y < c->top) transcript_text_step(t, TEXT_UP);
    if (y >= c->top + c->n_rows) transcript_text_step(t, TEXT_DOWN);
    return true;
}

void transcript_mouse_release(struct transcript *t) { t->text.pressed = (struct text_spot){0}; }
