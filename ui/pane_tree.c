// The tree: all messages of the chat as a graph, a line each, with what its branches take of the KV cache.
#include "ui/pane_tree.h"

#include <stdio.h>
#include <string.h>

#include "ui/clamp.h"
#include "ui/list.h"
#include "ui/message_keys.h"
#include "ui/pane.h"
#include "ui/pane_dialog.h"
#include "ui/screen_state.h"
#include "ui/tree.h"

enum {
    WIDTH = 120,
    MOST_HEIGHT = 60,
    HEAD = 1,   // rows
    TALL = 16,  // rows, from which on all keys are named
    ROOMY = 60, // columns, from which on figures have words
    LANE = 2,   // columns
    AUTHOR = 6, // columns at most, and where it is roomy
    AUTHOR_ROOMY = 14,
};

struct kept {
    struct list list;
    struct tree tree;
    uint64_t chosen;             // id of the message with the cursor; 0: the end of the path
    char name[TEXT_FIELD_BYTES]; // of the chosen one
};

void tree_open(struct screen *s) {
    bool selects = screen_has_open(s, PANE_SELECT);
    uint64_t selected = selects ? transcript_selected(s->transcript) : 0;
    struct kept *k = screen_open_pane(s, PANE_TREE);
    k->chosen = selected;
}

static void closed(void *kept) { tree_free(&((struct kept *)kept)->tree); }

// ---- keys ----

// What leads elsewhere closes the pane.
static void run(struct screen *s, struct kept *k, enum ui_command_id command) {
    if (!k->chosen && command != COMMAND_RESTORE) return;
    if (command == COMMAND_NAME) {
        dialog_ask_name(s, k->chosen, k->name);
        return;
    }
    bool leaves = command == COMMAND_TREE || command == COMMAND_EDIT || command == COMMAND_REGENERATE ||
                  command == COMMAND_COPY_CHAT;
    if (leaves) screen_close_pane(s, PANE_TREE), screen_close_pane(s, PANE_SELECT);
    screen_hand_out_message(s, command, k->chosen, NULL);
    if (command != COMMAND_TREE) return;
    screen_open_pane(s, PANE_SELECT);
    transcript_select(s->transcript, k->chosen);
}

// The cursor stays with its message when others come or go.
static void choose(struct kept *k) {
    k->list.chosen = clamp(k->list.chosen, 0, k->tree.n_rows - 1);
    k->chosen = k->tree.n_rows ? k->tree.rows[k->list.chosen].id : 0;
}

static bool key(struct screen *s, void *kept, const struct key *k) {
    struct kept *t = kept;
    int command = message_keys_command(k, MESSAGE_IN_TREE);
    if (command >= 0) return run(s, t, (enum ui_command_id)command), true;
    if (!list_key(&t->list, k)) return false;
    choose(t);
    return true;
}

// Once more on the chosen message: goes there.
static void click(struct screen *s, void *kept, const struct hit *h) {
    struct kept *t = kept;
    bool goes = h->kind == HIT_ROW && h->number == t->list.chosen;
    if (h->kind == HIT_CHOICE) run(s, t, (enum ui_command_id)h->number);
    else if (goes) run(s, t, COMMAND_TREE);
    if (h->kind != HIT_ROW) return;
    t->list.chosen = h->number;
    choose(t);
}

static void wheel(void *kept, int step) {
    struct kept *t = kept;
    list_move(&t->list, step * VIEW_WHEEL_LINES);
    choose(t);
}

// ---- drawing ----

struct drawing {
    struct kept *k;
    int author; // columns
};

// "├─", and "│ " for each of the lanes at its left; where there are too many the ones at the left are left out.
static struct rect draw_lanes(struct view_frame *f, struct rect line, const struct tree_row *r, int row,
                              struct style s) {
    int most = line.width / 4 / LANE, from = r->lane > most ? r->lane - most : 0;
    for (int lane = from; lane < r->lane; lane++) {
        bool begins = r->begins && lane + 1 == r->lane;
        canvas_symbol(f->canvas, line, line.x, line.y, s, !begins ? "│" : row ? "├" : "╭", !begins ? '|' : '+');
        if (begins) canvas_symbol(f->canvas, line, line.x + 1, line.y, s, "─", '-');
        if (from && lane == from && !begins) canvas_symbol(f->canvas, line, line.x, line.y, s, "…", '~');
        line = rect_after(line, LANE);
    }
    return line;
}

// "‹1/2› 2 pages, 3 shared", in a narrow one "‹1/2› 2+3". Returns its columns.
static int draw_branch(struct view_frame *f, struct rect line, const struct view_node *m, const struct tree_row *r,
                       struct style s) {
    const struct engine_metrics *g = f->view->metrics;
    char text[96], own[VIEW_NUMBER], shared[VIEW_NUMBER];
    const char *unit = g && g->page_tokens > 0 ? "page" : "token";
    if (m->n_versions <= 1) return 0;
    int n = snprintf(text, sizeof text, f->canvas->ascii ? "<%d/%d> " : "‹%d/%d› ", m->version, m->n_versions);
    view_number(r->own, own), view_number(r->shared, shared);
    if (line.width < ROOMY) snprintf(text + n, sizeof text - (size_t)n, "%s+%s", own, shared);
    else snprintf(text + n, sizeof text - (size_t)n, "%s %s%s, %s shared", own, unit, r->own == 1 ? "" : "s", shared);
    int width = text_width(text, strlen(text));
    if (width > line.width / 2) return 0;
    canvas_text(f->canvas, line, line.x + line.width - width, line.y, s, text, strlen(text));
    return width + 1;
}

static void draw_mark(struct view_frame *f, struct rect line, const struct view_node *m, struct style s) {
    const char *mark = m->streaming ? "◐" : m->failed ? "✗" : m->on_path ? "●" : "○";
    canvas_symbol(f->canvas, line, line.x, line.y, s, mark,
                  m->streaming ? '~'
                  : m->failed  ? 'x'
                  : m->on_path ? '*'
                               : 'o');
}

static void draw_row(void *context, struct view_frame *f, struct rect line, int row, bool chosen) {
    const struct drawing *d = context;
    const struct tree_row *r = &d->k->tree.rows[row];
    const struct view_node *m = &f->view->nodes[r->node];
    struct style lane = view_style(ROLE_DIM), text = view_style(m->on_path ? ROLE_TEXT : ROLE_DIM),
                 name = view_style(ROLE_ACCENT);
    struct style mark = view_bold(m->streaming ? ROLE_GOOD
                                  : m->failed  ? ROLE_BAD
                                  : m->on_path ? ROLE_ACCENT
                                               : ROLE_DIM);
    struct style who = view_style(m->role == VIEW_USER ? ROLE_USER : ROLE_MODEL);
    frame_hit(f, line, HIT_ROW, row);
    if (chosen) lane = text = name = mark = who = view_chosen(f, line);
    if (f->canvas->ascii || f->without_colours) {
        if (chosen) canvas_symbol(f->canvas, line, line.x, line.y, mark, ">", '>');
        line = rect_after(line, 1);
    }
    line.width -= draw_branch(f, line, m, r, chosen ? text : lane);
    line = draw_lanes(f, line, r, row, lane);
    draw_mark(f, line, m, mark);
    line = rect_after(line, 2);
    struct rect author = {line.x, line.y, d->author < line.width ? d->author : line.width, 1};
    canvas_cut(f->canvas, author, who, view_author(f->view, m->role, m->author));
    line = rect_after(line, d->author + 1);
    if (m->name && line.width > 0) line = rect_after(line, canvas_cut(f->canvas, line, name, m->name) + 2);
    char beginning[VIEW_WORDS];
    if (line.width > 0) canvas_cut(f->canvas, line, text, view_words(m->text, m->size, beginning));
}

// "14 messages, 3 branches: 9 pages, without sharing 31", shortened until it fits.
static void draw_head(struct view_frame *f, struct rect line, const struct tree *t) {
    const struct engine_metrics *g = f->view->metrics;
    const char *unit = g && g->page_tokens > 0 ? "page" : "token", *plural = t->pages == 1 ? "" : "s";
    char messages[VIEW_NUMBER], branches[VIEW_NUMBER], pages[VIEW_NUMBER], unshared[VIEW_NUMBER], text[5 * VIEW_NUMBER];
    int n = snprintf(text, sizeof text, "%s message%s, %s branch%s: %s %s%s, %s without sharing",
                     view_number(t->n_rows, messages), t->n_rows == 1 ? "" : "s", view_number(t->branches, branches),
                     t->branches == 1 ? "" : "es", view_number(t->pages, pages), unit, plural,
                     view_number(t->unshared, unshared));
    if (n > line.width)
        snprintf(text, sizeof text, "%s branch%s: %s %s%s", branches, t->branches == 1 ? "" : "es", pages, unit,
                 plural);
    canvas_cut(f->canvas, line, view_style(ROLE_DIM), text);
}

static void find_chosen(struct kept *k, const struct screen_view *v) {
    const struct engine_metrics *g = v->metrics;
    tree_layout(&k->tree, v->nodes, v->n_nodes, g ? g->page_tokens : 0);
    k->list.count = k->tree.n_rows;
    if (!k->chosen) k->list.chosen = k->tree.n_rows - 1; // where the path ends
    for (int i = 0; i < k->tree.n_rows; i++)
        if (k->tree.rows[i].id == k->chosen) k->list.chosen = i;
    choose(k);
    const char *name = k->chosen ? v->nodes[k->tree.rows[k->list.chosen].node].name : NULL;
    snprintf(k->name, sizeof k->name, "%s", name ? name : "");
}

static int author_columns(const struct view_frame *f, int most) {
    int widest = 0;
    const char *measured[2] = {NULL, NULL}; // most have the author of the one before the last
    for (int i = 0; i < f->view->n_nodes; i++) {
        const struct view_node *m = &f->view->nodes[i];
        const char *author = view_author(f->view, m->role, m->author);
        if (!m->id || author == measured[0] || author == measured[1]) continue;
        int width = text_width(author, strlen(author));
        widest = width > widest ? width : widest;
        measured[0] = measured[1], measured[1] = author;
    }
    return widest < most ? widest : most;
}

static void draw(struct view_frame *f, struct rect area, void *kept) {
    struct kept *k = kept;
    find_chosen(k, f->view);
    int rows = k->list.count > 3 ? k->list.count : 3;
    int foot = area.width < WIDTH && area.height >= TALL ? 2 : 1;
    struct rect box =
        view_over(f, area, (struct view_size){WIDTH, rows + HEAD + foot + 2, MOST_HEIGHT}, PANE_TREE, "Esc closes");
    struct rect in = view_over_inside(box);
    if (in.height < HEAD + foot + 3) foot = 0;
    int height = in.height - HEAD - foot;
    struct drawing d = {k, author_columns(f, in.width < ROOMY ? AUTHOR : AUTHOR_ROOMY)};
    draw_head(f, (struct rect){in.x, in.y, in.width, in.height > 0}, &k->tree);
    if (!k->list.count)
        canvas_cut(f->canvas, (struct rect){in.x, in.y + HEAD, in.width, height > 0}, view_style(ROLE_DIM),
                   "no messages");
    if (height > 0) list_draw(&k->list, f, (struct rect){in.x, in.y + HEAD, in.width, height}, box, draw_row, &d);
    message_keys_draw(f, (struct rect){in.x, in.y + HEAD + height, in.width, foot}, MESSAGE_IN_TREE);
}

const struct pane pane_tree = {
    .keeps = sizeof(struct kept), .closed = closed, .draw = draw, .key = key, .click = click, .wheel = wheel};
