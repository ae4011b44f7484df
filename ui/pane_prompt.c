// The prompt, token by token: ids and texts in rows, like a dump of bytes. The message goes on being written meanwhile,
// and what it adds to the prompt is seen at once.
#include "ui/pane_prompt.h"

#include <stdio.h>
#include <string.h>

#include "ui/clamp.h"
#include "ui/list.h"
#include "ui/screen_state.h"

enum {
    SHORT = 16, // rows above the message, below which it takes all of them
    LEAST = 5,  // otherwise, and half of them at most
    OFFSET = 7, // columns of the number of the row's first token
    ID = 6,
    CELL = 22 // of a token, at least
};

struct kept {
    struct list list; // of rows
    bool left;        // the end, which it follows otherwise
};

static void opened(void *kept) { *(struct kept *)kept = (struct kept){.list = {.plain = true, .height = 1}}; }

static void scroll(struct kept *k, int rows) {
    list_move(&k->list, rows);
    k->left = k->list.scroll < k->list.count - k->list.height;
}

// Pages are its own, commands what they are without it, and all else is the message's.
static bool key(struct screen *s, void *kept, const struct key *k) {
    struct kept *p = kept;
    if (!k->modifiers && (k->code == KEY_PAGE_UP || k->code == KEY_PAGE_DOWN)) {
        const int page = p->list.height > 1 ? p->list.height - 1 : 1;
        scroll(p, k->code == KEY_PAGE_UP ? -page : page);
        return true;
    }
    if (k->code == KEY_ESCAPE || screen_bound(s, k) >= 0) return false;
    return pane_actions[PANE_COMPOSER]->key(s, s->composer, k);
}

static void click(struct screen *s, void *kept, const struct hit *h) { (void)s, (void)kept, (void)h; }

static void wheel(void *kept, int step) { scroll(kept, step * VIEW_WHEEL_LINES); }

// ---- drawing ----

static int columns_of(const struct layout *l) {
    return clamp((view_inside(l->panes[PANE_CHAT]).width - OFFSET) / CELL, 1, 16);
}

static int rows_of(const struct layout *l, const struct view_prompt *p) {
    return (p->n_tokens + columns_of(l) - 1) / columns_of(l);
}

static struct rect place(const struct layout *l, const struct view_prompt *p) {
    const struct rect chat = l->panes[PANE_CHAT];
    const int end = l->rule.height ? l->rule.y : l->composer.y, above = end - chat.y;
    const int rows = clamp(rows_of(l, p) + (p->problem != NULL) + 2, LEAST, above / 2);
    const int height = above < SHORT ? above : rows;
    return (struct rect){chat.x, end - height, chat.width, height};
}

void prompt_make_room(struct layout *l, const struct view_prompt *prompt) {
    const int rows = prompt ? place(l, prompt).y - l->transcript.y : 0;
    if (rows > 0) l->transcript.height = rows;
}

static void draw_token(struct view_frame *f, struct rect cell, const struct prompt_token *t) {
    const struct style style = t->special ? view_bold(ROLE_ACCENT) : view_style(ROLE_TEXT);
    canvas_print(f->canvas, cell, cell.x, cell.y, view_style(ROLE_DIM), "%*d", ID, t->id);
    if (t->special) canvas_symbol(f->canvas, cell, cell.x + ID + 1, cell.y, style, "◆", '*');
    view_token(f, rect_after(cell, ID + 2), style, t->text);
}

struct rows {
    const struct view_prompt *prompt;
    int columns;
};

static void draw_row(void *context, struct view_frame *f, struct rect line, int row, bool chosen) {
    const struct rows *r = context;
    const int first = row * r->columns, width = (line.width - OFFSET) / r->columns;
    (void)chosen;
    canvas_print(f->canvas, line, line.x, line.y, view_style(ROLE_DIM), "%*d", OFFSET - 2, first);
    for (int i = 0; i < r->columns && first + i < r->prompt->n_tokens; i++)
        draw_token(f, (struct rect){line.x + OFFSET + i * width, line.y, width - 1, 1}, &r->prompt->tokens[first + i]);
}

// "raw, 12 tokens, 1 special"
static void write_note(const struct screen_view *v, char out[64]) {
    char number[VIEW_NUMBER], more[32] = "";
    int special = 0;
    for (int i = 0; i < v->prompt->n_tokens; i++) special += v->prompt->tokens[i].special;
    if (special) snprintf(more, sizeof more, ", %d special", special);
    snprintf(out, 64, "%s%s token%s%s", v->raw ? "raw, " : "", view_number(v->prompt->n_tokens, number),
             v->prompt->n_tokens == 1 ? "" : "s", more);
}

static void draw(struct view_frame *f, struct rect area, void *kept) {
    struct kept *k = kept;
    const struct view_prompt *v = f->view->prompt;
    char note[64] = "";
    (void)area;
    if (!v) return;
    struct rows rows = {v, columns_of(f->layout)};
    k->list.count = rows_of(f->layout, v);
    struct rect box = place(f->layout, v);
    write_note(f->view, note);
    canvas_fill(f->canvas, box, view_style(ROLE_TEXT), ' ');
    canvas_box(f->canvas, box, 0, panes[PANE_PROMPT].title, note, ROLE_BORDER_ACTIVE);
    frame_hit(f, box, HIT_ROW, 0); // what lies below cannot be clicked
    struct rect r = view_inside(box);
    if (v->problem) {
        canvas_cut(f->canvas, (struct rect){r.x, r.y, r.width, 1}, view_style(ROLE_WARN), v->problem);
        r.y++, r.height--;
    }
    if (!k->left) k->list.scroll = k->list.count;
    list_draw(&k->list, f, r, box, draw_row, &rows);
}

const struct pane pane_prompt = {.keeps = sizeof(struct kept),
                                 .passes_on = true,
                                 .opened = opened,
                                 .draw = draw,
                                 .key = key,
                                 .click = click,
                                 .wheel = wheel};
