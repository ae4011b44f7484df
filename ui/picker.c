#include "ui/picker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "ui/filter.h"

enum { WIDTH = 100, LEAST_NAME = 18, GAP = 2, MARK = 2, HEAD = 1, FOOT = 2, MOST_HEIGHT = 24 };

void picker_open(struct picker *p, const char *filter) {
    p->open = true;
    line_edit_set(&p->filter, filter);
    p->filter.selected = false;
    p->chosen = p->scroll = 0;
    p->moved = *filter;
}

static void forget_models(struct picker *p) {
    for (int i = 0; i < p->count; i++) free(p->models[i].name), free(p->models[i].search), free(p->models[i].refusal);
    free(p->models);
    p->models = NULL;
    p->count = 0;
}

void picker_close(struct picker *p) {
    forget_models(p);
    *p = (struct picker){0};
}

// ---- the list ----

static bool is_match(const struct picker *p, int model) {
    return filter_matches(p->filter.text, p->models[model].search);
}

static int count_matches(const struct picker *p) {
    int n = 0;
    for (int i = 0; i < p->count; i++) n += is_match(p, i);
    return n;
}

// The index of the row'th match; −1: there are not so many.
static int match_index(const struct picker *p, int row) {
    for (int i = 0; i < p->count; i++)
        if (is_match(p, i) && row-- == 0) return i;
    return -1;
}

static int match_row(const struct picker *p, int model) {
    int row = 0;
    for (int i = 0; i < model; i++) row += is_match(p, i);
    return row;
}

const struct picker_model *picker_at(const struct picker *p, int row) {
    int i = row >= 0 ? match_index(p, row) : -1;
    return i >= 0 ? &p->models[i] : NULL;
}

// The first match that can be loaded.
static void choose_first(struct picker *p) {
    p->chosen = 0;
    for (int i = 0; i < p->count; i++) {
        if (p->models[i].refusal || !is_match(p, i)) continue;
        p->chosen = match_row(p, i);
        return;
    }
}

static void choose_loaded(struct picker *p) {
    for (int i = 0; i < p->count && !p->moved; i++)
        if (p->models[i].loaded && is_match(p, i)) p->chosen = match_row(p, i);
}

// A list that changes keeps the chosen model where it has it still.
static void keep_models(struct picker *p, const struct screen_view *v) {
    if (p->models && p->version == v->models_version) return;
    const struct picker_model *chosen = picker_at(p, p->chosen);
    char *name = chosen ? xstrdup(chosen->name) : NULL;
    forget_models(p);
    p->version = v->models_version;
    p->models = xcalloc((size_t)v->n_models + 1, sizeof *p->models);
    p->count = v->n_models;
    for (int i = 0; i < p->count; i++) {
        const struct view_model *m = &v->models[i];
        p->models[i] =
            (struct picker_model){.name = xstrdup(m->name),
                                  .search = xasprintf("%s %s %s %s", m->name, m->family, m->format, m->source),
                                  .refusal = m->refusal ? xstrdup(m->refusal) : NULL,
                                  .loaded = m->loaded};
    }
    for (int i = 0; i < p->count && name; i++)
        if (!strcmp(p->models[i].name, name) && is_match(p, i)) p->chosen = match_row(p, i);
    choose_loaded(p);
    free(name);
}

// ---- keys ----

void picker_scroll(struct picker *p, int rows) {
    int most = count_matches(p) - 1;
    p->moved = true;
    p->chosen += rows;
    if (p->chosen > most) p->chosen = most;
    if (p->chosen < 0) p->chosen = 0;
}

static int moved_rows(const struct picker *p, const struct key *k) {
    int page = p->height > 1 ? p->height - 1 : 1;
    switch (k->code) {
    case KEY_UP: return -1;
    case KEY_DOWN: return 1;
    case KEY_PAGE_UP: return -page;
    case KEY_PAGE_DOWN: return page;
    case KEY_CONTROL: return k->number == 'n' ? 1 : k->number == 'p' ? -1 : 0;
    default: return 0;
    }
}

const struct picker_model *picker_key(struct picker *p, const struct key *k) {
    int rows = moved_rows(p, k);
    bool leaves = k->code == KEY_ESCAPE || (k->code == KEY_CONTROL && (k->number == 'c' || k->number == 'g'));
    if (rows) {
        picker_scroll(p, rows);
    } else if (leaves) {
        p->open = false;
    } else if (k->code == KEY_ENTER) {
        return picker_at(p, p->chosen);
    } else if (line_edit_key(&p->filter, k)) {
        p->scroll = 0;
        p->moved = true;
        choose_first(p);
    }
    return NULL;
}

// ---- drawing ----

enum column { COLUMN_FAMILY, COLUMN_PARAMETERS, COLUMN_FORMAT, COLUMN_SIZE, COLUMN_SOURCE, COLUMNS };

static const char *column_text(const struct view_model *m, enum column column) {
    const char *const texts[COLUMNS] = {m->family, m->parameters, m->format, m->size, m->source};
    return texts[column];
}

// Widths of the columns beside the name, 0 for those that there is no room for: the least important go first.
static void column_widths(const struct screen_view *v, int room, int widths[COLUMNS]) {
    static const enum column dropped[] = {COLUMN_SOURCE, COLUMN_FAMILY, COLUMN_PARAMETERS, COLUMN_FORMAT, COLUMN_SIZE};
    int all = MARK;
    int longest = LEAST_NAME;
    for (int i = 0; i < v->n_models; i++) {
        int width = text_width(v->models[i].name, strlen(v->models[i].name));
        if (width > longest) longest = width;
    }
    if (longest > room * 2 / 3) longest = room * 2 / 3;
    for (int c = 0; c < COLUMNS; c++) {
        widths[c] = 0;
        for (int i = 0; i < v->n_models; i++) {
            const char *text = column_text(&v->models[i], (enum column)c);
            int width = text_width(text, strlen(text));
            if (width > widths[c]) widths[c] = width;
        }
        if (widths[c]) all += widths[c] + GAP;
    }
    for (int d = 0; d < COLUMNS && all + longest > room; d++) {
        enum column c = dropped[d];
        if (widths[c]) all -= widths[c] + GAP;
        widths[c] = 0;
    }
}

static void draw_row(struct view_frame *f, struct rect line, const struct view_model *m, const int widths[COLUMNS],
                     bool chosen) {
    struct style name = view_style(m->refusal ? ROLE_DIM : ROLE_TEXT), rest = view_style(ROLE_DIM), mark;
    mark = view_style(m->loaded ? ROLE_GOOD : ROLE_ACCENT);
    if (chosen) {
        rest = (struct style){ROLE_SELECTED, ROLE_SELECTED_GROUND, 0, 0};
        name = (struct style){ROLE_SELECTED, ROLE_SELECTED_GROUND, m->refusal ? CELL_STRIKE : CELL_BOLD, 0};
        mark = rest; // other colours suit the ground only
        canvas_fill(f->canvas, line, rest, ' ');
    }
    if (m->loaded) canvas_symbol(f->canvas, line, line.x, line.y, mark, "●", '*');
    else if (chosen && f->canvas->ascii) canvas_text(f->canvas, line, line.x, line.y, mark, ">", 1);
    int end = line.x + line.width;
    for (int c = COLUMNS - 1; c >= 0; c--) {
        const char *text = column_text(m, (enum column)c);
        int width = text_width(text, strlen(text));
        bool right = c == COLUMN_SIZE || c == COLUMN_PARAMETERS;
        if (!widths[c]) continue;
        end -= widths[c];
        canvas_text(f->canvas, line, right ? end + widths[c] - width : end, line.y, rest, text, strlen(text));
        end -= GAP;
    }
    canvas_cut(f->canvas, (struct rect){line.x + MARK, line.y, end - line.x - MARK, 1}, name, m->name);
}

static void draw_rows(struct picker *p, struct view_frame *f, struct rect area, struct rect box) {
    const struct screen_view *v = f->view;
    int widths[COLUMNS], n = count_matches(p), most = n > area.height ? n - area.height : 0;
    p->height = area.height;
    if (p->chosen >= n) p->chosen = n ? n - 1 : 0;
    if (p->scroll > p->chosen) p->scroll = p->chosen;
    if (p->scroll < p->chosen - area.height + 1) p->scroll = p->chosen - area.height + 1;
    if (p->scroll > most) p->scroll = most;
    column_widths(v, area.width, widths);
    for (int i = 0; i < area.height && p->scroll + i < n; i++) {
        struct rect line = {area.x, area.y + i, area.width, 1};
        draw_row(f, line, &v->models[match_index(p, p->scroll + i)], widths, p->scroll + i == p->chosen);
        frame_hit(f, line, HIT_ROW, p->scroll + i);
    }
    int right = box.x + box.width - 2;
    if (p->scroll > 0) canvas_symbol(f->canvas, box, right, area.y - 1, view_style(ROLE_ACCENT), "▲", '^');
    if (p->scroll < most) canvas_symbol(f->canvas, box, right, area.y + area.height, view_style(ROLE_ACCENT), "▼", 'v');
}

// The end of a text that is too long says more than its beginning.
static void draw_end(struct canvas *c, struct rect line, struct style s, const char *text) {
    size_t size = strlen(text), at = 0;
    int width = text_width(text, size), w;
    if (width > line.width) {
        while (at < size && width > line.width - 1) at += text_cluster(text + at, size - at, &w), width -= w;
        canvas_symbol(c, line, line.x, line.y, s, "…", '~');
        line.x++;
    }
    canvas_text(c, line, line.x, line.y, s, text + at, size - at);
}

// About the chosen one: why it cannot be loaded, or where it lies and what the row had no room for.
static void draw_foot(const struct picker *p, struct view_frame *f, struct rect line) {
    const struct screen_view *v = f->view;
    int index = match_index(p, p->chosen);
    if (index < 0) return;
    const struct view_model *m = &v->models[index];
    if (m->refusal) {
        canvas_cut(f->canvas, line, view_style(ROLE_WARN), m->refusal);
        return;
    }
    draw_end(f->canvas, line, view_style(ROLE_DIM), m->path);
}

static void draw_filter(struct picker *p, struct view_frame *f, struct rect in, int *x, int *y) {
    static const char hint[] = "type to find a model";
    struct rect line = {in.x + MARK, in.y, in.width - MARK, 1};
    canvas_symbol(f->canvas, in, in.x, in.y, view_style(ROLE_ACCENT), "›", '>');
    *x = line_edit_draw(&p->filter, f->canvas, line, view_style(ROLE_STRONG)), *y = in.y;
    if (!p->filter.size) canvas_text(f->canvas, line, line.x, line.y, view_style(ROLE_DIM), hint, sizeof hint - 1);
}

static void draw_empty(const struct picker *p, struct view_frame *f, struct rect in) {
    const char *text = f->view->models_looking ? "looking for models"
                       : p->count              ? "no model is called so"
                                               : "there are no models";
    canvas_text(f->canvas, in, in.x + MARK, in.y + HEAD, view_style(ROLE_DIM), text, strlen(text));
}

void picker_draw(struct picker *p, struct view_frame *f, int *cursor_x, int *cursor_y) {
    if (!p->open) return;
    struct canvas *c = f->canvas;
    keep_models(p, f->view);
    int most = c->height * 4 / 5, wanted = p->count + HEAD + FOOT + 2, width = c->width < WIDTH ? c->width : WIDTH;
    if (most > MOST_HEIGHT) most = MOST_HEIGHT;
    if (most < 10) most = c->height;
    if (wanted < 8) wanted = 8;
    int height = wanted < most ? wanted : most;
    struct rect box = {(c->width - width) / 2, (c->height - height) / 3, width, height};
    canvas_fill(c, box, view_style(ROLE_TEXT), ' ');
    f->n_hits = 0; // what lies below cannot be clicked
    canvas_box(c, box, 0, "models", "Enter loads, Esc closes", ROLE_BORDER_ACTIVE);
    struct rect in = rect_inside(box);
    if (in.width > 20) in.x++, in.width -= 2;
    if (in.height < HEAD + 1) return;
    draw_filter(p, f, in, cursor_x, cursor_y);
    int foot = in.height >= HEAD + FOOT + 2 ? FOOT : 0;
    if (!count_matches(p)) draw_empty(p, f, in);
    draw_rows(p, f, (struct rect){in.x, in.y + HEAD, in.width, in.height - HEAD - foot}, box);
    if (foot) draw_foot(p, f, (struct rect){in.x, in.y + in.height - 1, in.width, 1});
}
