#include "ui/pane_tokens.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/keys.h"
#include "ui/pane_dialog.h"
#include "ui/screen_state.h"

enum {
    ROWS = 7, // that it would like to have: the token, some alternatives, what keys do
    BAR = 24, // columns at most
    NAME = 14,
    FIGURE = 7,
    HINTED = 4, // rows from which on there is room for what keys do
    WORDY = 48, // columns from which on there is room for the id, and for what a draft is called
};

// ---- what it does ----

void tokens_open(struct screen *s) {
    if (transcript_tokens_begin(s->transcript)) {
        screen_close_pane(s, PANE_SELECT);
        screen_open_pane(s, PANE_TOKENS);
    } else {
        screen_say(s, true, "there is no answer in sight whose tokens are known");
    }
}

void tokens_fork(struct screen *s) {
    const char *key = keys_name(COMMAND_TOKENS);
    const int alternative = transcript_token_cursor(s->transcript)->alternative;
    if (!screen_has_open(s, PANE_TOKENS)) {
        screen_say(s, true, "choose a token first, with %s", *key ? key : "the command tokens");
        return;
    }
    screen_hand_out(s, COMMAND_FORK, alternative, NULL);
}

void tokens_colour(struct screen *s) {
    static const char *const texts[] = {
#define X(id, text) [id] = text,
        TOKEN_COLOURINGS(X)
#undef X
    };
    screen_say(s, false, "%s", texts[transcript_colour_tokens(s->transcript)]);
}

static void ask_text(struct screen *s, const struct key *k) {
    char initial[64];
    snprintf(initial, sizeof initial, "%.*s", (int)k->size, k->text);
    dialog_ask(s, COMMAND_FORK, "Go on with", "Enter forks the answer here, Esc leaves it as it is", initial);
}

static bool key(struct screen *s, void *kept, const struct key *k) {
    struct token_cursor *c = transcript_token_cursor(kept);
    if (k->modifiers & (KEY_ALT | KEY_CTRL)) return false;
    switch (k->code) {
    case KEY_LEFT: token_cursor_step(c, -1); return true;
    case KEY_RIGHT: token_cursor_step(c, 1); return true;
    case KEY_HOME: token_cursor_set(c, 0); return true;
    case KEY_END: token_cursor_set(c, TOKEN_LAST); return true;
    case KEY_TAB: token_cursor_unsure(c, k->modifiers & KEY_SHIFT ? -1 : 1); return true;
    case KEY_UP: token_cursor_choose(c, c->alternative - 1); return true;
    case KEY_DOWN: token_cursor_choose(c, c->alternative + 1); return true;
    case KEY_ENTER: tokens_fork(s); return true;
    case KEY_TEXT:
    case KEY_PASTE: ask_text(s, k); return true;
    default: return false;
    }
}

// A click on the alternative that is chosen forks.
static void click(struct screen *s, void *kept, const struct hit *h) {
    struct token_cursor *c = transcript_token_cursor(kept);
    if (c->alternative == h->number) tokens_fork(s);
    else token_cursor_choose(c, h->number);
}

// ---- how it looks ----

// In quotes; what cannot be seen has a sign or a name.
static void token_name(const char *text, size_t size, bool ascii, char *out, size_t room) {
    const char *mark = ascii ? "\"" : "";
    if (!size) {
        snprintf(out, room, "(no text)");
        return;
    }
    size_t n = (size_t)snprintf(out, room, "%s", ascii ? mark : "“");
    for (size_t i = 0; i < size && n + 8 < room; i++) {
        if (text[i] == '\n') n += (size_t)snprintf(out + n, room - n, "%s", ascii ? "\\n" : "↵");
        else out[n++] = text[i];
    }
    snprintf(out + n, room - n, "%s", ascii ? mark : "”");
}

static void percent(float p, char out[FIGURE + 1]) {
    if (isnan(p)) snprintf(out, FIGURE + 1, "given");
    else snprintf(out, FIGURE + 1, p < 0.0995f ? "%.2f%%" : "%.1f%%", (double)p * 100);
}

// "“word”  62.1%  1.32 bits  token 12 of 345"
static void draw_summary(struct view_frame *f, struct rect line, const struct view_token *v) {
    char name[128], figure[FIGURE + 1], number[VIEW_NUMBER], total[VIEW_NUMBER];
    struct canvas *c = f->canvas;
    token_name(v->text, v->size < 64 ? v->size : 64, c->ascii, name, sizeof name);
    percent(v->figures.probability, figure);
    int x = line.x + canvas_text(c, line, line.x, line.y, view_bold(ROLE_STRONG), name, strlen(name)) + 2;
    x += canvas_print(c, line, x, line.y, view_style(ROLE_ACCENT), "%s", figure) + 2;
    if (!isnan(v->figures.entropy))
        x += canvas_print(c, line, x, line.y, view_style(ROLE_TEXT), "%.2f bits", (double)v->figures.entropy) + 2;
    if (line.width >= WORDY) x += canvas_print(c, line, x, line.y, view_style(ROLE_DIM), "id %d", v->figures.id) + 2;
    if (v->figures.accepted && line.width >= WORDY)
        x += canvas_print(c, line, x, line.y, view_style(ROLE_ACCENT), "draft") + 2;
    char place[3 * VIEW_NUMBER];
    snprintf(place, sizeof place, "%s of %s", view_number(v->token + 1, number), view_number(v->count, total));
    view_figure_right(f, line, x, line.y, "token", ROLE_DIM, place);
}

static void draw_alternative(struct view_frame *f, struct rect line, const struct view_token *v, int i, bool chosen) {
    const struct token_alternative *a = &v->alternatives[i];
    struct canvas *c = f->canvas;
    const bool drawn = a->id == v->figures.id;
    char name[64], figure[FIGURE + 1];
    struct style style = view_style(drawn ? ROLE_STRONG : ROLE_TEXT);
    if (chosen) {
        style = view_chosen(f, line);
        canvas_symbol(c, line, line.x, line.y, style, "▸", '>');
    }
    if (drawn) canvas_symbol(c, line, line.x + 1, line.y, style, "●", '*');
    token_name(a->text, strlen(a->text), c->ascii, name, sizeof name);
    const int width = line.width > 60 ? 2 * NAME : NAME;
    struct rect room = {line.x + 3, line.y, width, 1};
    canvas_cut(c, room, style, name);
    percent(a->probability, figure);
    int x = room.x + width + 1;
    canvas_print(c, line, x + FIGURE - (int)strlen(figure), line.y, style, "%s", figure);
    x += FIGURE + 1;
    const int bar = line.x + line.width - x < BAR ? line.x + line.width - x : BAR;
    if (bar > 1) canvas_gauge(c, line, x, line.y, bar, (double)a->probability, ROLE_DECODE);
    frame_hit(f, line, HIT_ROW, i);
}

static void draw_hint(struct view_frame *f, struct rect line, bool at_end) {
    static const struct {
        const char *key, *ascii, *label, *end; // end: the label there; NULL: it does nothing
    } hints[] = {{"←→", "Left/Right", "token", NULL},  {"↑↓", "Up/Down", "choose", NULL},
                 {"Enter", "Enter", "fork", "go on"},     {"type", "type", "fork with text", "go on with text"},
                 {"Tab", "Tab", "next unsure one", NULL}, {"Esc", "Esc", "close", "close"}};
    int x = line.x;
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
        const char *key = f->canvas->ascii ? hints[i].ascii : hints[i].key;
        const char *label = at_end ? hints[i].end : hints[i].label;
        const int width = label ? text_width(key, strlen(key)) + 1 + (int)strlen(label) : 0;
        if (!label || x + width > line.x + line.width) continue;
        x += canvas_text(f->canvas, line, x, line.y, view_bold(ROLE_ACCENT), key, strlen(key)) + 1;
        x += canvas_text(f->canvas, line, x, line.y, view_style(ROLE_DIM), label, strlen(label)) + 2;
    }
}

// Behind the last token.
static void draw_end(struct view_frame *f, struct rect area, const struct view_token *v) {
    static const char end[] = "end of the answer";
    const struct rect line = {area.x, area.y, area.width, 1};
    char number[VIEW_NUMBER];
    const int x = area.x + canvas_text(f->canvas, line, line.x, line.y, view_bold(ROLE_STRONG), end, strlen(end)) + 2;
    view_figure_right(f, line, x, line.y, "tokens", ROLE_DIM, view_number(v->count, number));
    const int y = area.height >= HINTED ? area.height - 1 : 1;
    if (y < area.height) draw_hint(f, (struct rect){area.x, area.y + y, area.width, 1}, true);
}

static void draw(struct view_frame *f, struct rect area, void *kept) {
    const struct view_token *v = f->view->token;
    canvas_fill(f->canvas, area, view_style(ROLE_TEXT), ' '); // over the message
    f->cursor_x = f->cursor_y = -1;
    if (!v || area.height < 1) return;
    if (v->token == v->count) {
        draw_end(f, area, v);
        return;
    }
    const int chosen = token_cursor_show(transcript_token_cursor(kept), v), hint = area.height >= HINTED;
    const int rows = area.height - 1 - hint, first = chosen >= rows ? chosen - rows + 1 : 0;
    draw_summary(f, (struct rect){area.x, area.y, area.width, 1}, v);
    for (int i = 0; i < rows && first + i < v->n; i++)
        draw_alternative(f, (struct rect){area.x, area.y + 1 + i, area.width, 1}, v, first + i, first + i == chosen);
    if (!v->n && rows > 0)
        canvas_cut(f->canvas, (struct rect){area.x, area.y + 1, area.width, 1}, view_style(ROLE_DIM),
                   isnan(v->figures.probability) ? "given, not drawn: no alternatives" : "no alternatives");
    if (hint) draw_hint(f, (struct rect){area.x, area.y + area.height - 1, area.width, 1}, false);
}

static int rows(int width, bool ascii) { return (void)width, (void)ascii, ROWS; }

const struct pane pane_tokens = {.rows = rows, .passes_on = true, .draw = draw, .key = key, .click = click};
