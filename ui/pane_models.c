// Models: those to choose from that match what is typed, one chosen. It keeps what it needs of the list between frames,
// so that keys that come before the next one find it.
#include "ui/pane_models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "ui/filter.h"
#include "ui/list.h"
#include "ui/pane.h"
#include "ui/text_field.h"

enum { WIDTH = 100, LEAST_NAME = 18, GAP = 2, MARK = 2, HEAD = 1, FOOT = 2, MOST_HEIGHT = 24 };

struct model {
    char *name, *search, *refusal; // search: what is matched
    bool loaded;
};

struct kept {
    struct text_field filter;
    struct list list; // of the matches
    bool moved;       // by a person; otherwise the loaded model is the chosen one
    uint32_t version; // of the models that are kept
    struct model *models;
    int count;
    int *matches; // their indices, one a row of the list
};

static void forget_models(struct kept *p) {
    for (int i = 0; i < p->count; i++) free(p->models[i].name), free(p->models[i].search), free(p->models[i].refusal);
    free(p->models);
    free(p->matches);
    p->models = NULL, p->matches = NULL;
    p->count = p->list.count = 0;
}

static void closed(void *kept) { forget_models(kept); }

// ---- the list ----

static void find(struct kept *p) {
    p->list.count = 0;
    for (int i = 0; i < p->count; i++)
        if (filter_matches(p->filter.text, p->models[i].search)) p->matches[p->list.count++] = i;
}

void models_open(struct screen *s, const char *filter) {
    struct kept *p = screen_open_pane(s, PANE_MODELS);
    text_field_set(&p->filter, filter);
    p->filter.selected = false;
    p->list = (struct list){.height = p->list.height};
    p->moved = *filter;
    find(p);
}

static const struct model *model_at(const struct kept *p, int row) {
    return row >= 0 && row < p->list.count ? &p->models[p->matches[row]] : NULL;
}

// The first match that can be loaded.
static void choose_first(struct kept *p) {
    int row = 0;
    while (row < p->list.count && model_at(p, row)->refusal) row++;
    p->list.chosen = row < p->list.count ? row : 0;
}

static void choose_loaded(struct kept *p) {
    for (int row = 0; row < p->list.count && !p->moved; row++)
        if (model_at(p, row)->loaded) p->list.chosen = row;
}

// A list that changes keeps the chosen model where it has it still.
static void keep_models(struct kept *p, const struct screen_view *v) {
    if (p->models && p->version == v->models_version) return;
    const struct model *chosen = model_at(p, p->list.chosen);
    char *name = chosen ? xstrdup(chosen->name) : NULL;
    forget_models(p);
    p->version = v->models_version;
    p->models = xcalloc((size_t)v->n_models + 1, sizeof *p->models);
    p->matches = xcalloc((size_t)v->n_models + 1, sizeof *p->matches);
    p->count = v->n_models;
    for (int i = 0; i < p->count; i++) {
        const struct view_model *m = &v->models[i];
        p->models[i] = (struct model){.name = xstrdup(m->name),
                                      .search = xasprintf("%s %s %s %s", m->name, m->family, m->format, m->source),
                                      .refusal = m->refusal ? xstrdup(m->refusal) : NULL,
                                      .loaded = m->loaded};
    }
    find(p);
    for (int row = 0; row < p->list.count && name; row++)
        if (!strcmp(model_at(p, row)->name, name)) p->list.chosen = row;
    choose_loaded(p);
    free(name);
}

// ---- keys ----

// A path is taken as it is typed.
static bool is_path(const struct kept *p) { return !p->list.count && strchr(p->filter.text, '/'); }

static void load(struct screen *s, const char *name) {
    screen_hand_out(s, COMMAND_MODEL, -1, name);
    screen_close_pane(s, PANE_MODELS);
}

static void pick(struct screen *s, const struct model *m) {
    if (!m) return;
    if (m->refusal) {
        screen_say(s, true, "%s: %s", m->name, m->refusal);
        return;
    }
    if (m->loaded) screen_close_pane(s, PANE_MODELS);
    else load(s, m->name);
}

static bool key(struct screen *s, void *kept, const struct key *k) {
    struct kept *p = kept;
    if (list_key(&p->list, k)) return p->moved = true;
    if (k->code == KEY_ENTER && is_path(p)) return load(s, p->filter.text), true;
    if (k->code == KEY_ENTER) return pick(s, model_at(p, p->list.chosen)), true;
    if (!text_field_key(&p->filter, k)) return false;
    p->list.scroll = 0;
    p->moved = true;
    find(p);
    choose_first(p);
    return true;
}

static void click(struct screen *s, void *kept, const struct hit *h) { pick(s, model_at(kept, h->number)); }

static void wheel(void *kept, int step) {
    struct kept *p = kept;
    p->moved = true;
    list_move(&p->list, step);
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

static void draw_model(struct view_frame *f, struct rect line, const struct view_model *m, const int widths[COLUMNS],
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

struct rows {
    const struct kept *p;
    int widths[COLUMNS];
};

static void draw_row(void *context, struct view_frame *f, struct rect line, int row, bool chosen) {
    const struct rows *r = context;
    draw_model(f, line, &f->view->models[r->p->matches[row]], r->widths, chosen);
    frame_hit(f, line, HIT_ROW, row);
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
static void draw_foot(const struct kept *p, struct view_frame *f, struct rect line) {
    if (!p->list.count) return;
    const struct view_model *m = &f->view->models[p->matches[p->list.chosen]];
    if (m->refusal) {
        canvas_cut(f->canvas, line, view_style(ROLE_WARN), m->refusal);
        return;
    }
    draw_end(f->canvas, line, view_style(ROLE_DIM), m->path);
}

static void draw_empty(const struct kept *p, struct view_frame *f, struct rect in) {
    const char *text = is_path(p)                ? "Enter loads this file"
                       : f->view->models_looking ? "looking for models"
                       : p->count                ? "no matching model"
                                                 : "no models";
    canvas_text(f->canvas, in, in.x + MARK, in.y + HEAD, view_style(ROLE_DIM), text, strlen(text));
}

// To who has none yet.
static void draw_where(struct view_frame *f, struct rect in) {
    const char *folder = f->view->models_folder;
    char own[256] = "";
    if (folder) snprintf(own, sizeof own, "So is every GGUF file in %s.", folder);
    const char *const lines[] = {"What Ollama, LM Studio, llama.cpp and Hugging Face have downloaded is found.", own,
                                 "Of any other model the path can be typed or pasted here."};
    for (int i = 0, y = 0; i < 3; i++) {
        if (!*lines[i]) continue;
        canvas_cut(f->canvas, (struct rect){in.x + MARK, in.y + y, in.width - MARK, y < in.height},
                   view_style(ROLE_DIM), lines[i]);
        y++;
    }
}

static void draw(struct view_frame *f, struct rect area, void *kept) {
    struct kept *p = kept;
    keep_models(p, f->view);
    const int wanted = p->count + HEAD + FOOT + 2, least = p->count == 1 ? 10 : 9;
    const struct view_size size = {WIDTH, wanted < least ? least : wanted, MOST_HEIGHT};
    struct rect box = view_over(f, area, size, PANE_MODELS, "Enter loads, Esc closes");
    struct rect in = view_over_inside(box);
    if (in.height < HEAD + 1) return;
    text_field_draw_filter(&p->filter, f, in, "type to find a model");
    int foot = in.height >= HEAD + FOOT + 2 ? FOOT : 0, height = in.height - HEAD - foot;
    struct rows rows = {.p = p};
    if (!p->list.count) draw_empty(p, f, in);
    column_widths(f->view, in.width, rows.widths);
    list_draw(&p->list, f, (struct rect){in.x, in.y + HEAD, in.width, height},
              (struct rect){box.x, in.y, box.width, height + 2}, draw_row, &rows);
    if (p->count == 1 && p->list.count && !f->view->models_looking)
        draw_where(f, (struct rect){in.x, in.y + HEAD + 2, in.width, height - 2});
    if (foot) draw_foot(p, f, (struct rect){in.x, in.y + in.height - 1, in.width, 1});
}

const struct pane pane_models = {
    .keeps = sizeof(struct kept), .closed = closed, .draw = draw, .key = key, .click = click, .wheel = wheel};
