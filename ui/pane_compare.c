// Versions of a message side by side: columns where there is room, otherwise tabs. Each scrolls by itself. The one in
// focus is the one that the path leads through, so that closing the pane goes on with it; keys are about it.
#include "ui/pane_compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "ui/clamp.h"
#include "ui/message_keys.h"
#include "ui/pane.h"
#include "ui/screen_state.h"
#include "ui/transcript.h"

enum {
    ROWS = 2,         // of keys, at most
    LEAST = 37,       // columns of a version
    GAP = 3,          // between them, with a line
    TABS_HEIGHT = 6,  // from which on there is a bar of tabs
    KNOBS_HEIGHT = 8, // and a line of knobs
    ASKED_HEIGHT = 12 // and one of what they answer
};

struct kept {
    struct transcript **columns;
    uint64_t *ids;       // of the last draw
    int n_columns, room; // n_columns: 0 until it is drawn
    int focus, first;    // first: at the left
};

static int rows(int width, bool ascii) { return message_keys_rows(width, ascii, MESSAGE_COMPARED, ROWS); }

static void opened(void *kept) { ((struct kept *)kept)->n_columns = 0; }

static void closed(void *kept) {
    struct kept *k = kept;
    for (int i = 0; i < k->room; i++) transcript_close(k->columns[i]);
    free(k->columns);
    free(k->ids);
}

// What streams is followed, the rest is read from its beginning.
static void keep_columns(struct kept *k, const struct screen_view *v) {
    if (v->n_columns > k->room) {
        k->columns = xrealloc(k->columns, (size_t)v->n_columns * sizeof *k->columns);
        k->ids = xrealloc(k->ids, (size_t)v->n_columns * sizeof *k->ids);
        for (; k->room < v->n_columns; k->room++) k->columns[k->room] = transcript_open(), k->ids[k->room] = 0;
    }
    for (int i = 0; i < v->n_columns; i++) {
        bool other = i >= k->n_columns || k->ids[i] != v->columns[i].id;
        k->ids[i] = v->columns[i].id;
        if (other && v->columns[i].streaming) transcript_bottom(k->columns[i]);
        else if (other) transcript_top(k->columns[i]);
    }
    k->n_columns = v->n_columns;
    k->focus = v->column;
}

bool compare_open_thinking(void *kept) {
    struct kept *k = kept;
    return k->n_columns && transcript_open_thinking(k->columns[k->focus]);
}

// ---- keys ----

static void focus_on(struct screen *s, struct kept *k, int column) {
    if (column < 0 || column >= k->n_columns || column == k->focus) return;
    k->focus = column;
    s->facts.compared = k->ids[column];
    screen_hand_out_message(s, COMMAND_TREE, k->ids[column], NULL);
}

static void run(struct screen *s, struct kept *k, enum ui_command_id command) {
    if (command == COMMAND_VERSION_PREVIOUS) focus_on(s, k, k->focus - 1);
    else if (command == COMMAND_VERSION_NEXT) focus_on(s, k, k->focus + 1);
    else if (command == COMMAND_COMPARE) screen_close_pane(s, PANE_COMPARE);
    else screen_run(s, command);
}

static bool scroll(struct transcript *t, const struct key *k) {
    if (k->modifiers & ~KEY_CTRL || (k->modifiers && k->code != KEY_HOME && k->code != KEY_END)) return false;
    switch (k->code) {
    case KEY_UP: transcript_scroll(t, -1); return true;
    case KEY_DOWN: transcript_scroll(t, 1); return true;
    case KEY_PAGE_UP: transcript_pages(t, -1); return true;
    case KEY_PAGE_DOWN: transcript_pages(t, 1); return true;
    case KEY_HOME: transcript_top(t); return true;
    case KEY_END: transcript_bottom(t); return true;
    default: return false;
    }
}

static bool key(struct screen *s, void *kept, const struct key *k) {
    struct kept *c = kept;
    int command = message_keys_command(k, MESSAGE_COMPARED);
    bool digit = k->code == KEY_TEXT && k->size == 1 && !k->modifiers && k->text[0] >= '1' && k->text[0] <= '9';
    if (command >= 0) run(s, c, (enum ui_command_id)command);
    else if (digit) focus_on(s, c, k->text[0] - '1');
    else if (k->code == KEY_TAB && !k->modifiers && c->n_columns) focus_on(s, c, (c->focus + 1) % c->n_columns);
    else return c->n_columns && scroll(c->columns[c->focus], k);
    return true;
}

static void click(struct screen *s, void *kept, const struct hit *h) {
    struct kept *k = kept;
    if (h->kind == HIT_CHOICE) {
        run(s, k, (enum ui_command_id)h->number);
    } else {
        focus_on(s, k, h->number);
        if (h->kind == HIT_THINKING) transcript_open_thinking(k->columns[h->number]);
    }
}

static void wheel(void *kept, int step) {
    struct kept *k = kept;
    if (k->n_columns) transcript_scroll(k->columns[k->focus], step * VIEW_WHEEL_LINES);
}

static void wheel_on(void *kept, const struct hit *h, int step) {
    struct kept *k = kept;
    if (h->kind == HIT_CHOICE) wheel(k, step);
    else transcript_scroll(k->columns[h->number], step * VIEW_WHEEL_LINES);
}

// ---- drawing ----

// "38.2 tok/s, 12 tokens" of one that is being written; what it does before its first token stands below.
static const char *state_of(const struct view_column *v, char out[4 * VIEW_NUMBER]) {
    char tokens[VIEW_NUMBER], rate[VIEW_NUMBER];
    const char *plural = v->n_tokens == 1 ? "" : "s";
    if (!v->streaming) return v->failed ? "failed" : v->note ? v->note : "complete";
    if (v->state == REQUEST_PENDING) return "waiting";
    if (v->state == REQUEST_PREFILLING) return "reading";
    view_number(v->n_tokens, tokens);
    if (v->tokens_per_second <= 0) snprintf(out, 4 * VIEW_NUMBER, "%s token%s", tokens, plural);
    else
        snprintf(out, 4 * VIEW_NUMBER, "%s tok/s, %s token%s", view_rate((double)v->tokens_per_second, rate), tokens,
                 plural);
    return out;
}

static int draw_mark(struct view_frame *f, struct rect line, const struct view_column *v, struct style s) {
    const char *mark = v->streaming ? "◐" : v->failed ? "✗" : "●";
    canvas_symbol(f->canvas, line, line.x, line.y, s, mark, v->streaming ? '~' : v->failed ? 'x' : '*');
    if (v->marked) canvas_symbol(f->canvas, line, line.x + 1, line.y, s, "✓", '+');
    return 2 + v->marked;
}

// The styles of a title and what follows it; the line of the one in focus is filled, and marked where colours do not
// show that. Returns the rest of the line.
static struct rect begin_title(struct view_frame *f, struct rect line, bool focus, struct style *title,
                               struct style *more) {
    *title = view_bold(ROLE_MODEL), *more = view_style(ROLE_DIM);
    if (focus) *title = *more = view_chosen(f, line);
    if (focus && (f->canvas->ascii || f->without_colours))
        canvas_symbol(f->canvas, line, line.x, line.y, *title, ">", '>');
    return (struct rect){line.x + 1, line.y, line.width - 1, 1};
}

// "◐ ‹2/4› TinyLlama  38.2 tok/s, 12 tokens"
static void draw_title(struct view_frame *f, struct rect line, int column) {
    const struct view_column *v = &f->view->columns[column];
    char number[32], state[4 * VIEW_NUMBER];
    struct style title, more;
    line = begin_title(f, line, column == f->view->column, &title, &more);
    line = rect_after(line, draw_mark(f, line, v, title));
    snprintf(number, sizeof number, f->canvas->ascii ? "<%d/%d>" : "‹%d/%d›", column + 1, f->view->n_columns);
    line = rect_after(line, canvas_cut(f->canvas, line, title, number) + 1);
    if (v->author && line.width > 0) {
        const struct rect half = {line.x, line.y, line.width / 2, 1};
        line = rect_after(line, canvas_cut(f->canvas, half, title, v->author) + 2);
    }
    if (line.width > 0) canvas_cut(f->canvas, line, more, state_of(v, state));
}

// The chosen knob first, as many as fit.
static void draw_knobs(struct view_frame *f, struct rect line, int column) {
    const struct view_column *v = &f->view->columns[column];
    struct style label = view_style(ROLE_DIM), value = view_style(ROLE_KNOB);
    int x = line.x, chosen = clamp(f->view->knob, 0, KNOB_COUNT - 1);
    for (int i = 0; v->sampling && i < KNOB_COUNT; i++) {
        enum sampling_knob_id knob = (enum sampling_knob_id)((chosen + i) % KNOB_COUNT);
        char text[16];
        const char *name = sampling_knobs[knob].label;
        int width = (int)(strlen(name) + 1 + strlen(sampling_format(v->sampling, knob, text)));
        if (x + width > line.x + line.width) return;
        bool turns = !i && v->streaming && column == f->view->column; // by the keys of knobs
        struct style s = turns ? view_bold(ROLE_KNOB_ACTIVE) : value;
        x += canvas_print(f->canvas, line, x, line.y, turns ? s : label, "%s ", name);
        x += canvas_print(f->canvas, line, x, line.y, s, "%s", text) + 2;
    }
}

static void draw_text(struct view_frame *f, struct kept *k, struct rect area, int column) {
    const struct screen_view *whole = f->view;
    struct screen_view own = *whole;
    const int first = f->n_hits;
    own.messages = whole->columns[column].messages;
    own.n_messages = whole->columns[column].n_messages;
    own.editing = NULL;
    f->view = &own;
    enum transcript_below below = transcript_draw(k->columns[column], f, area);
    f->view = whole;
    for (int i = first; i < f->n_hits; i++) f->hits[i].number = column;
    struct style s = view_bold(ROLE_ACCENT);
    int y = area.y + area.height - 1;
    if (below != TRANSCRIPT_AT_END) canvas_symbol(f->canvas, area, area.x + area.width - 1, y, s, "↓", 'v');
}

static void draw_column(struct view_frame *f, struct kept *k, struct rect area, int column) {
    int head = 1 + (area.height >= KNOBS_HEIGHT);
    frame_hit(f, area, HIT_ROW, column);
    draw_title(f, (struct rect){area.x, area.y, area.width, area.height > 0}, column);
    if (head > 1) draw_knobs(f, (struct rect){area.x + 1, area.y + 1, area.width - 1, 1}, column);
    if (area.height <= head) return;
    draw_text(f, k, (struct rect){area.x + 1, area.y + head, area.width - 1, area.height - head}, column);
}

// "● 2  temp 0.70" for each.
static void draw_tabs(struct view_frame *f, struct rect line) {
    const struct screen_view *v = f->view;
    int knob = clamp(v->knob, 0, KNOB_COUNT - 1);
    for (int i = 0, x = line.x; i < v->n_columns; i++) {
        const struct view_column *c = &v->columns[i];
        struct rect tab = {x, line.y, (line.x + line.width - x) / (v->n_columns - i), 1};
        char text[64], value[16] = "";
        struct style title, more;
        x += tab.width;
        frame_hit(f, tab, HIT_ROW, i);
        struct rect room = begin_title(f, (struct rect){tab.x, tab.y, tab.width - 1, 1}, i == v->column, &title, &more);
        if (c->sampling) sampling_format(c->sampling, (enum sampling_knob_id)knob, value);
        snprintf(text, sizeof text, "%d  %s %s", i + 1, sampling_knobs[knob].label, value);
        if (!c->sampling || text_width(text, strlen(text)) + 2 > room.width) snprintf(text, sizeof text, "%d", i + 1);
        int used = draw_mark(f, room, c, title);
        canvas_cut(f->canvas, (struct rect){room.x + used, room.y, room.width - used, 1}, more, text);
    }
}

static void draw_asked(struct view_frame *f, struct rect line, const struct view_message *asked) {
    const struct style who = view_bold(asked->role == VIEW_USER ? ROLE_USER : ROLE_MODEL);
    char words[VIEW_WORDS];
    line = rect_after(line, canvas_cut(f->canvas, line, who, view_author(f->view, asked->role, asked->author)) + 2);
    if (line.width > 0)
        canvas_cut(f->canvas, line, view_style(ROLE_TEXT), view_words(asked->text, strcspn(asked->text, "\n"), words));
}

static struct rect without_row(struct rect r) { return (struct rect){r.x, r.y + 1, r.width, r.height - 1}; }

static void draw_versions(struct view_frame *f, struct kept *k, struct rect area) {
    const struct screen_view *v = f->view;
    int shown = clamp((area.width + GAP) / (LEAST + GAP), 1, v->n_columns);
    k->first = clamp(clamp(k->first, v->column - shown + 1, v->column), 0, v->n_columns - shown);
    if (v->asked && area.height >= ASKED_HEIGHT) {
        draw_asked(f, (struct rect){area.x + 1, area.y, area.width - 1, 1}, v->asked);
        area = without_row(without_row(area));
    }
    if (shown < v->n_columns && area.height >= TABS_HEIGHT) {
        draw_tabs(f, (struct rect){area.x, area.y, area.width, 1});
        area = without_row(area);
    }
    for (int i = 0, x = area.x; i < shown; i++) {
        int width = (area.x + area.width - x - GAP * (shown - 1 - i)) / (shown - i);
        draw_column(f, k, (struct rect){x, area.y, width, area.height}, k->first + i);
        x += width + GAP;
        for (int y = area.y; i + 1 < shown && y < area.y + area.height; y++)
            canvas_symbol(f->canvas, area, x - GAP / 2 - 1, y, view_style(ROLE_BORDER), "│", '|');
    }
}

static void draw(struct view_frame *f, struct rect area, void *kept) {
    canvas_fill(f->canvas, area, view_style(ROLE_TEXT), ' '); // over the message
    f->cursor_x = f->cursor_y = -1;
    message_keys_draw(f, area, MESSAGE_COMPARED);
    if (!f->view->n_columns) return;
    keep_columns(kept, f->view);
    struct rect room = f->layout->transcript;
    room.width -= room.width > LEAST; // text does not touch the border
    draw_versions(f, kept, room);
}

const struct pane pane_compare = {.keeps = sizeof(struct kept),
                                  .rows = rows,
                                  .passes_on = true,
                                  .opened = opened,
                                  .closed = closed,
                                  .draw = draw,
                                  .key = key,
                                  .click = click,
                                  .wheel = wheel,
                                  .wheel_on = wheel_on};
