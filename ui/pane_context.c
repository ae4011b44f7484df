// The context: every message that the model is asked with, or not, with its tokens and pages and whether it is cached;
// and what a change to the chosen one would cost to read again, before it is made.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "ui/clamp.h"
#include "ui/list.h"
#include "ui/message_keys.h"
#include "ui/pane.h"
#include "ui/screen_state.h"

enum {
    WIDTH = 110,
    MOST_HEIGHT = 60,
    HEAD = 1,   // rows
    COSTS = 1,  // rows
    ROOMY = 60, // columns, from which on there are pages too
    WORDY = 90, // and figures have words
    AUTHOR = 6, // columns, and where it is roomy
    AUTHOR_ROOMY = 10,
    COLUMN = 8, // of a figure
};

struct kept {
    struct list list;
    uint64_t *ids; // of the rows of the last draw
    int room;
};

static void opened(void *kept) { ((struct kept *)kept)->list = (struct list){.chosen = INT32_MAX}; }

static void closed(void *kept) { free(((struct kept *)kept)->ids); }

static void keep_rows(struct kept *k, const struct view_context *v) {
    k->list.count = v ? v->n_rows : 0;
    if (k->list.count > k->room) {
        k->room = 2 * k->list.count;
        k->ids = xrealloc(k->ids, (size_t)k->room * sizeof *k->ids);
    }
    for (int i = 0; i < k->list.count; i++) k->ids[i] = v->rows[i].id;
}

// Id of the message with the cursor, also where keys come faster than draws; 0: none, or the system prompt.
static uint64_t chosen_message(const struct kept *k) {
    return k->list.count ? k->ids[clamp(k->list.chosen, 0, k->list.count - 1)] : 0;
}

// ---- keys ----

// What leads elsewhere closes the pane.
static void run(struct screen *s, const struct kept *k, enum ui_command_id command) {
    const uint64_t chosen = chosen_message(k);
    if (!chosen) return;
    const bool goes = command == COMMAND_CONTEXT;
    if (goes || command == COMMAND_EDIT) screen_close_pane(s, PANE_CONTEXT), screen_close_pane(s, PANE_SELECT);
    if (!goes) screen_hand_out_message(s, command, chosen, NULL);
    if (!goes) return;
    screen_open_pane(s, PANE_SELECT);
    transcript_select(s->transcript, chosen);
}

static bool key(struct screen *s, void *kept, const struct key *k) {
    struct kept *c = kept;
    const int command = message_keys_command(k, MESSAGE_IN_CONTEXT);
    if (command >= 0) return run(s, c, (enum ui_command_id)command), true;
    return list_key(&c->list, k);
}

static void click(struct screen *s, void *kept, const struct hit *h) {
    struct kept *k = kept;
    if (h->kind == HIT_CHOICE) run(s, k, (enum ui_command_id)h->number);
    else if (h->kind == HIT_ROW && h->number == k->list.chosen) run(s, k, COMMAND_CONTEXT);
    else if (h->kind == HIT_ROW) k->list.chosen = h->number;
}

static void wheel(void *kept, int step) { list_move(&((struct kept *)kept)->list, step * VIEW_WHEEL_LINES); }

// ---- drawing ----

static int page_tokens(const struct view_frame *f) {
    const struct engine_metrics *g = f->view->metrics;
    return g && g->page_tokens > 0 ? g->page_tokens : 0;
}

// That begin with this message; those of all messages add up.
static int pages_of(const struct view_frame *f, const struct view_context_row *r) {
    const int page = page_tokens(f);
    if (!page) return -1;
    return (r->first + r->tokens + page - 1) / page - (r->first + page - 1) / page;
}

// Read already, in part, not at all, or left out.
static void draw_mark(struct view_frame *f, struct rect line, const struct view_context_row *r, struct style s) {
    static const struct {
        const char *mark;
        char ascii;
    } marks[] = {{" ", ' '}, {"○", 'o'}, {"◐", '~'}, {"●", '*'}, {"·", '.'}};
    const int cached = f->view->context->cached;
    int state = 4; // not known
    if (!r->asked) state = 0;
    else if (cached >= 0) state = cached <= r->first ? 1 : cached < r->first + r->tokens ? 2 : 3;
    canvas_symbol(f->canvas, line, line.x, line.y, s, marks[state].mark, marks[state].ascii);
}

static void draw_number(struct view_frame *f, struct rect line, int right, struct style s, const char *text) {
    canvas_text(f->canvas, line, line.x + line.width - right - (int)strlen(text), line.y, s, text, strlen(text));
}

static void draw_row(void *context, struct view_frame *f, struct rect line, int row, bool chosen) {
    (void)context;
    const struct view_context_row *r = &f->view->context->rows[row];
    const bool roomy = line.width >= ROOMY;
    const int author = roomy ? AUTHOR_ROOMY : AUTHOR;
    struct style text = view_style(r->asked ? ROLE_TEXT : ROLE_DIM), dim = view_style(ROLE_DIM), mark = dim;
    struct style who = view_style(r->role == VIEW_USER ? ROLE_USER : r->role == VIEW_MODEL ? ROLE_MODEL : ROLE_DIM);
    frame_hit(f, line, HIT_ROW, row);
    if (chosen) text = dim = mark = who = view_chosen(f, line);
    if (f->canvas->ascii || f->without_colours) {
        if (chosen) canvas_symbol(f->canvas, line, line.x, line.y, mark, ">", '>');
        line = rect_after(line, 1);
    }
    char number[VIEW_NUMBER], tokens[VIEW_NUMBER + 1];
    snprintf(tokens, sizeof tokens, "%s%s", r->guessed && r->asked ? "~" : "", view_number(r->tokens, number));
    draw_number(f, line, roomy ? COLUMN : 0, text, r->asked ? tokens : "-");
    if (roomy) draw_number(f, line, 0, dim, r->asked ? view_number(pages_of(f, r), number) : "-");
    line.width -= COLUMN * (1 + roomy) + 1;
    draw_mark(f, line, r, mark);
    line = rect_after(line, 2);
    canvas_cut(f->canvas, (struct rect){line.x, line.y, author < line.width ? author : line.width, 1}, who, r->author);
    line = rect_after(line, author + 1);
    if (r->use && line.width > 0) line = rect_after(line, canvas_cut(f->canvas, line, dim, r->use) + 2);
    char words[VIEW_WORDS];
    if (line.width > 0) canvas_cut(f->canvas, line, text, view_words(r->text, r->size, words));
}

// "1,204 of 2,048 tokens, 38 pages; 60 to read", shortened until it fits.
static void draw_head(struct view_frame *f, struct rect line) {
    const struct view_context *v = f->view->context;
    const bool known = v->cached >= 0;
    const int page = page_tokens(f), tokens = known ? v->asked : v->tokens, unread = tokens - v->cached;
    char used[VIEW_NUMBER], all[VIEW_NUMBER], pages[VIEW_NUMBER], left[VIEW_NUMBER], text[6 * VIEW_NUMBER];
    int n = snprintf(text, sizeof text, "%s of %s tokens", view_number(tokens, used),
                     view_number(f->view->context_size, all));
    if (page && line.width >= ROOMY)
        n += snprintf(text + n, sizeof text - (size_t)n, ", %s pages", view_number((tokens + page - 1) / page, pages));
    if (known)
        snprintf(text + n, sizeof text - (size_t)n, unread ? "; %s not cached" : "; all cached",
                 view_number(unread, left));
    canvas_cut(f->canvas, line, view_style(ROLE_DIM), text);
    if (line.width < ROOMY) return;
    draw_number(f, line, COLUMN, view_style(ROLE_DIM), "tokens");
    draw_number(f, line, 0, view_style(ROLE_DIM), "pages");
}

// "drop 812 tokens (1.9 s)", if it fits. Returns the column behind it.
static int draw_cost(struct view_frame *f, struct rect line, int x, const char *what, int tokens) {
    const double rate = f->view->context->rate;
    char number[VIEW_NUMBER], seconds[VIEW_NUMBER], text[3 * VIEW_NUMBER] = "nothing";
    view_number(tokens, number);
    const char *unit = line.width < WORDY ? "" : tokens == 1 ? " token" : " tokens";
    int n = tokens ? snprintf(text, sizeof text, "%s%s", number, unit) : 0;
    if (rate > 0 && tokens) snprintf(text + n, sizeof text - (size_t)n, " (%s)", view_seconds(tokens / rate, seconds));
    if (x + (int)(strlen(what) + 1 + strlen(text)) > line.x + line.width) return x;
    return x + view_figure(f, line, x, line.y, what, ROLE_TEXT, text) + 2;
}

// What is to be read again if it is done: all behind what changes. An edited message has nothing behind it.
static void draw_costs(struct view_frame *f, struct rect line, const struct view_context_row *r) {
    static const char lead[] = "to read again: ";
    const bool folded = r->asked && r->tokens == r->folded && r->folded < r->whole;
    int x = line.x;
    if (line.width >= ROOMY) x += canvas_text(f->canvas, line, x, line.y, view_style(ROLE_DIM), lead, strlen(lead));
    if (r->asked) x = draw_cost(f, line, x, "drop", r->after);
    else x = draw_cost(f, line, x, "restore", r->whole + r->after);
    if (folded) x = draw_cost(f, line, x, "unfold", r->whole + r->after);
    else if (r->folded < r->whole) x = draw_cost(f, line, x, "fold", r->folded + r->after);
    draw_cost(f, line, x, "edit", r->whole);
}

static void draw(struct view_frame *f, struct rect area, void *kept) {
    struct kept *k = kept;
    const struct view_context *v = f->view->context;
    keep_rows(k, v);
    const int rows = k->list.count > 3 ? k->list.count : 3;
    struct rect box = view_over(f, area, (struct view_size){WIDTH, rows + HEAD + COSTS + 1 + 2, MOST_HEIGHT},
                                PANE_CONTEXT, "Esc closes");
    struct rect in = view_over_inside(box);
    const int foot = in.height >= HEAD + COSTS + 4 ? COSTS + 1 : COSTS, height = in.height - HEAD - foot;
    if (!v) return;
    draw_head(f, (struct rect){in.x, in.y, in.width, in.height > 0});
    struct rect body = {in.x, in.y + HEAD, in.width, height > 0 ? height : 0};
    if (!v->n_rows) canvas_cut(f->canvas, body, view_style(ROLE_DIM), "no messages");
    if (height > 0) list_draw(&k->list, f, body, box, draw_row, NULL);
    if (height < 0 || !v->n_rows) return;
    const struct view_context_row *chosen = &v->rows[clamp(k->list.chosen, 0, v->n_rows - 1)];
    if (chosen->id) draw_costs(f, (struct rect){in.x, body.y + height, in.width, 1}, chosen);
    message_keys_draw(f, (struct rect){in.x, body.y + height + COSTS, in.width, foot - COSTS}, MESSAGE_IN_CONTEXT);
}

const struct pane pane_context = {.keeps = sizeof(struct kept),
                                  .opened = opened,
                                  .closed = closed,
                                  .draw = draw,
                                  .key = key,
                                  .click = click,
                                  .wheel = wheel};
