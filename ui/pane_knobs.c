// Knobs: what the last token was drawn from, beside the knob that is being turned: the likeliest tokens as the model
// has them and as the knobs leave them, and the line behind which they are cut off. It lies above the bottom line;
// arrows turn the knobs, and all other keys do what they do without it.
#include <stdio.h>
#include <string.h>

#include "ui/clamp.h"
#include "ui/keys.h"
#include "ui/pane.h"

enum {
    WIDTH = 76,       // that it would like to have
    WIDTH_LEAST = 56, // below it the panes beside the chat give theirs
    ROWS = 24,        // at most
    FEW_ROWS = 11,    // where the room above the message has fewer it lies over that too
    TEXT = 16,        // columns of a token, at most
    SHARES = 14       // of "38.2% 51.0%" and the blanks around
};

static const struct {
    enum sampling_knob_id knob;
} filters[FILTER_COUNT] = {
#define X(id, knob) [id] = {KNOB_##knob},
    DISTRIBUTION_FILTERS(X)
#undef X
};

// ---- the lines ----

// The tokens that are listed, with the line of the cut among them.
struct list_plan {
    int above; // candidates before the line
    int more;  // kept ones that are not listed
    int below; // cut ones behind it
};

static struct list_plan plan_list(const struct distribution *d, int rows) {
    const int kept = d->left[FILTER_COUNT - 1], listed = d->n < kept ? d->n : kept;
    const bool cuts = kept < d->n_tokens;
    struct list_plan p = {.above = clamp(rows - cuts, 0, listed)};
    if (p.above < kept) { // "… N more", the line, and what comes first behind it
        p.above = clamp(rows - 1 - cuts - (kept < d->n), 0, listed);
        p.more = kept - p.above;
    }
    p.below = cuts ? clamp(rows - p.above - (p.more > 0) - 1, 0, d->n - listed) : 0;
    return p;
}

// The filter that leaves the fewest; −1: none cuts.
static int cutting_filter(const struct distribution *d) {
    int found = -1, left = d->n_tokens;
    for (int i = 0; i < FILTER_COUNT; i++)
        if (d->left[i] < left) found = i, left = d->left[i];
    return found;
}

static void share_text(float share, char out[8]) {
    double percent = 100 * (double)share;
    if (!(share > 0)) snprintf(out, 8, "-");
    else if (percent < 0.05) snprintf(out, 8, "<0.1%%");
    else snprintf(out, 8, percent < 99.95 ? "%.1f%%" : "%.0f%%", percent);
}

// The upper half is what the model says, the lower one what is drawn from.
static void draw_bars(struct view_frame *f, struct rect r, const struct distribution_candidate *c, float most) {
    int before = (int)(c->before / most * (float)r.width + 0.5f),
        after = (int)(c->after / most * (float)r.width + 0.5f);
    if (c->after > 0 && !after) after = 1;
    for (int x = 0; x < r.width && (x < before || x < after); x++) {
        const bool upper = x < before, lower = x < after;
        canvas_symbol(f->canvas, r, r.x + x, r.y, view_style(lower ? ROLE_GAUGE : ROLE_DIM),
                      upper && lower ? "█"
                      : upper        ? "▀"
                                     : "▄",
                      upper && lower ? '#'
                      : upper        ? '-'
                                     : '+');
    }
}

static void draw_candidate(struct view_frame *f, struct rect r, const struct distribution *d, int i, float most) {
    const struct distribution_candidate *c = &d->candidates[i];
    const bool drawn = c->id == d->drawn.id, cut = !(c->after > 0);
    const int text = clamp(r.width / 3, 6, TEXT);
    char before[8], after[8];
    struct style style = drawn ? view_bold(ROLE_STRONG) : view_style(cut ? ROLE_DIM : ROLE_TEXT);
    if (drawn) canvas_symbol(f->canvas, r, r.x, r.y, view_style(ROLE_ACCENT), "›", '>');
    view_token(f, (struct rect){r.x + 2, r.y, text - 1 - c->penalised, 1}, style, c->text);
    if (c->penalised) canvas_symbol(f->canvas, r, r.x + text, r.y, view_style(ROLE_WARN), "*", '*');
    draw_bars(f, (struct rect){r.x + text + 2, r.y, r.width - text - 2 - SHARES, 1}, c, most);
    share_text(c->before, before);
    share_text(c->after, after);
    canvas_print(f->canvas, r, r.x + r.width - 13, r.y, view_style(ROLE_DIM), "%6s", before);
    canvas_print(f->canvas, r, r.x + r.width - 6, r.y, style, "%6s", after);
}

static void draw_cut(struct view_frame *f, struct rect line, const struct distribution *d) {
    const int filter = cutting_filter(d);
    char left[VIEW_NUMBER], text[96];
    for (int x = 0; x < line.width; x++)
        canvas_symbol(f->canvas, line, line.x + x, line.y, view_style(ROLE_ACCENT), "─", '-');
    snprintf(text, sizeof text, " %s cuts here: %s left ", sampling_knobs[filters[filter].knob].label,
             view_number(d->left[FILTER_COUNT - 1], left));
    canvas_cut(f->canvas, (struct rect){line.x + 2, line.y, line.width - 2, 1}, view_bold(ROLE_ACCENT), text);
}

// "… 116 more", and the token that was drawn where it is one of them.
static void draw_more(struct view_frame *f, struct rect line, const struct distribution *d,
                      const struct list_plan *plan) {
    char more[VIEW_NUMBER], share[8];
    int x = line.x + 2, at = 0;
    x += canvas_print(f->canvas, line, x, line.y, view_style(ROLE_DIM), "%s %s more", f->canvas->ascii ? "..." : "…",
                      view_number(plan->more, more));
    while (at < plan->above && d->candidates[at].id != d->drawn.id) at++;
    if (at < plan->above || !(d->drawn.after > 0)) return;
    share_text(d->drawn.after, share);
    canvas_symbol(f->canvas, line, x + 2, line.y, view_style(ROLE_ACCENT), "›", '>');
    view_token(f, (struct rect){x + 4, line.y, line.x + line.width - x - 4 - SHARES, 1}, view_bold(ROLE_STRONG),
               d->drawn.text);
    canvas_print(f->canvas, line, line.x + line.width - 6, line.y, view_style(ROLE_STRONG), "%6s", share);
}

static void draw_list(struct view_frame *f, struct rect r, const struct distribution *d) {
    const struct list_plan plan = plan_list(d, r.height);
    struct rect line = {r.x, r.y, r.width, 1};
    float most = 1e-9f;
    for (int i = 0; i < d->n; i++) {
        if (d->candidates[i].before > most) most = d->candidates[i].before;
        if (d->candidates[i].after > most) most = d->candidates[i].after;
    }
    for (int i = 0; i < plan.above; i++, line.y++) draw_candidate(f, line, d, i, most);
    if (plan.more) draw_more(f, line, d, &plan), line.y++;
    if (cutting_filter(d) >= 0 && line.y < r.y + r.height) draw_cut(f, line, d), line.y++;
    const int kept = d->left[FILTER_COUNT - 1];
    for (int i = 0; i < plan.below; i++, line.y++) draw_candidate(f, line, d, kept + i, most);
}

// "32,000 › top-k 40 › top-p 12 › min-p 9": what each filter leaves; those that cut nothing are dim.
static void draw_filters(struct view_frame *f, struct rect line, const struct distribution *d) {
    char number[VIEW_NUMBER];
    int left = d->n_tokens, x = line.x;
    x += canvas_print(f->canvas, line, x, line.y, view_style(ROLE_TEXT), "%s", view_number(left, number));
    x += canvas_print(f->canvas, line, x, line.y, view_style(ROLE_DIM), line.width >= 60 ? " tokens" : "");
    for (int i = 0; i < FILTER_COUNT; i++) {
        const bool cuts = d->left[i] < left;
        const char *label = sampling_knobs[filters[i].knob].label;
        if (!cuts && (line.width < 50 || i == FILTER_TEMPERATURE)) continue;
        left = d->left[i];
        canvas_symbol(f->canvas, line, x + 1, line.y, view_style(ROLE_DIM), "›", '>');
        const int start = x += 3;
        x += canvas_print(f->canvas, line, x, line.y, view_style(ROLE_DIM), "%s ", label);
        x += canvas_print(f->canvas, line, x, line.y, cuts ? view_bold(ROLE_STRONG) : view_style(ROLE_DIM), "%s",
                          view_number(left, number));
        frame_hit(f, (struct rect){start, line.y, x - start, 1}, HIT_KNOB, (int)filters[i].knob);
    }
    if (!d->n_penalised || line.width < 60) return;
    char penalised[VIEW_NUMBER + 16];
    snprintf(penalised, sizeof penalised, "* %d penalised", d->n_penalised);
    view_figure_right(f, line, x + 2, line.y, "", ROLE_WARN, penalised);
}

static int draw_button(struct view_frame *f, struct rect line, int x, const char *text, enum ui_command_id command) {
    const int width = canvas_print(f->canvas, line, x, line.y, view_style(ROLE_ACCENT), "[%s]", text);
    frame_hit(f, (struct rect){x, line.y, width, 1}, HIT_COMMAND, (int)command);
    return width;
}

// The knob that is being turned, its value between two buttons, and what it does.
static void draw_knob(struct view_frame *f, struct rect line) {
    const enum sampling_knob_id knob = (enum sampling_knob_id)f->view->knob;
    char value[16];
    int x = line.x;
    x += canvas_print(f->canvas, line, x, line.y, view_bold(ROLE_KNOB_ACTIVE), "%s ", sampling_knobs[knob].label);
    x += draw_button(f, line, x, "-", COMMAND_KNOB_DOWN);
    x += canvas_print(f->canvas, line, x, line.y, view_bold(ROLE_KNOB_ACTIVE), " %s ",
                      sampling_format(f->view->sampling, knob, value));
    x += draw_button(f, line, x, "+", COMMAND_KNOB_UP) + 2;
    canvas_cut(f->canvas, (struct rect){x, line.y, line.x + line.width - x, 1}, view_style(ROLE_DIM),
               sampling_knobs[knob].help);
}

// ---- the pane ----

// Right above the bottom line; where there is room, above the message as well.
static struct rect place(const struct view_frame *f, struct rect area, int lines) {
    const struct layout *l = f->layout;
    const int bottom = area.height - l->sampling.height, above = l->rule.height ? l->rule.y : l->composer.y;
    const int end = above >= FEW_ROWS ? above : bottom;
    const int room = l->panes[PANE_CHAT].width >= WIDTH_LEAST ? l->panes[PANE_CHAT].width : area.width;
    const int width = room < WIDTH ? room : WIDTH;
    const int most = clamp(end * 2 / 3, FEW_ROWS, ROWS); // the answer goes on above it
    int height = lines + 2 < most ? lines + 2 : most;
    if (height > end) height = end;
    int x = l->panes[PANE_CHAT].x;
    if (x + width > area.width) x = area.width - width;
    return (struct rect){x, end - height, width, height};
}

static void draw(struct view_frame *f, struct rect area, void *kept) {
    const struct screen_view *v = f->view;
    const struct distribution *d = v->distribution;
    const bool knob = v->sampling && v->knob >= 0 && v->knob < KNOB_COUNT;
    (void)kept;
    struct rect box = place(f, area, d ? 2 + d->n + 1 : 3);
    canvas_fill(f->canvas, box, view_style(ROLE_TEXT), ' ');
    const char *legend = f->canvas->ascii ? "- model  + drawn from" : "▀ model  ▄ drawn from";
    canvas_box(f->canvas, box, 0, panes[PANE_KNOBS].title, d && box.width >= 36 ? legend : NULL, ROLE_BORDER_ACTIVE);
    frame_hit(f, box, HIT_ROW, -1); // what lies below cannot be clicked
    struct rect r = view_inside(box);
    if (knob) draw_knob(f, (struct rect){r.x, r.y++, r.width, 1}), r.height--;
    if (!d) {
        canvas_cut(f->canvas, (struct rect){r.x, r.y, r.width, 1}, view_style(ROLE_DIM),
                   "shown from the next token of this chat on");
        return;
    }
    draw_filters(f, (struct rect){r.x, r.y++, r.width, 1}, d), r.height--;
    draw_list(f, r, d);
}

static bool key(struct screen *s, void *kept, const struct key *k) {
    (void)kept;
    if (k->modifiers) return false;
    switch (k->code) {
    case KEY_LEFT: screen_run(s, COMMAND_KNOB_PREVIOUS); return true;
    case KEY_RIGHT: screen_run(s, COMMAND_KNOB_NEXT); return true;
    case KEY_UP: screen_run(s, COMMAND_KNOB_UP); return true;
    case KEY_DOWN: screen_run(s, COMMAND_KNOB_DOWN); return true;
    case KEY_ENTER: screen_run(s, COMMAND_KNOB_SET); return true;
    default: return false;
    }
}

static void click(struct screen *s, void *kept, const struct hit *h) {
    (void)kept;
    if (h->kind == HIT_KNOB) screen_hand_out(s, COMMAND_KNOB_NEXT, h->number, NULL);
}

const struct pane pane_knobs = {.passes_on = true, .draw = draw, .key = key, .click = click};
