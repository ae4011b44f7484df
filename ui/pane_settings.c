// Settings: all that can be set, found by what is typed; one is chosen, with its help below. Two lists: what the chat
// on the screen has of its own, and what the program has and new chats begin with.
#include "ui/pane_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "ui/filter.h"
#include "ui/list.h"
#include "ui/pane.h"
#include "ui/pane_dialog.h"
#include "ui/text_field.h"

enum { WIDTH = 84, MOST_HEIGHT = 26, HEAD = 1, FOOT = 3, MOST = 96, TYPED_MOST = 180 };

struct kept {
    struct text_field filter;
    struct list list;
    bool of_program; // otherwise of the chat
    int rows[MOST];  // places in the view's settings
    // Of the last frame, for keys that come before the next one.
    struct view_setting chosen;
    char *value; // of the chosen one
};

// ---- the list ----

static const char *value_of(const struct kept *p, const struct view_setting *v) {
    return p->of_program ? v->value : v->own;
}

static bool matches(const struct kept *p, const struct view_setting *v) {
    char text[512];
    if (!value_of(p, v)) return false;
    snprintf(text, sizeof text, "%s %s %s", v->key, value_of(p, v), v->help);
    return filter_matches(p->filter.text, text);
}

// Those that are called so come first.
static void find(struct kept *p, const struct screen_view *v) {
    p->list.count = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < v->n_settings && p->list.count < MOST; i++) {
            const bool called = !strncmp(v->settings[i].key, p->filter.text, p->filter.size);
            if (called == !pass && matches(p, &v->settings[i])) p->rows[p->list.count++] = i;
        }
}

static void closed(void *kept) { free(((struct kept *)kept)->value); }

static void opened(void *kept) {
    struct kept *p = kept;
    free(p->value);
    *p = (struct kept){0};
}

void settings_open(struct screen *s, const char *filter) {
    struct kept *p = screen_open_pane(s, PANE_SETTINGS);
    text_field_set(&p->filter, filter);
}

// ---- keys ----

static void set(struct screen *s, const struct kept *p, const char *value) {
    char *text = xasprintf("%s %s", p->chosen.key, value);
    screen_hand_out(s, COMMAND_SETTINGS, p->of_program, text);
    free(text);
}

// The choice `step` further; after the last comes the first.
static void set_choice(struct screen *s, const struct kept *p, int step) {
    const char *words[16], *at = p->chosen.choices;
    int n = 0, now = 0;
    for (; n < 16; n++, at++) {
        words[n] = at;
        const size_t size = strcspn(at, "|");
        if (strlen(p->value) == size && !memcmp(p->value, at, size)) now = n;
        at += size;
        if (!*at) break;
    }
    const char *word = words[(now + step + n + 1) % (n + 1)];
    char *copy = xstrndup(word, strcspn(word, "|"));
    set(s, p, copy);
    free(copy);
}

// What is long is changed in the editor.
static void change(struct screen *s, const struct kept *p, int step) {
    if (!p->value) return;
    if (p->chosen.choices) {
        set_choice(s, p, step);
    } else if (p->chosen.adds) {
        static const char help[] = "is added to the list; Del in the list of settings clears it";
        dialog_ask_setting(s, p->of_program, p->chosen.key, help, "");
    } else if (strlen(p->value) > TYPED_MOST || strchr(p->value, '\n')) {
        screen_hand_out(s, COMMAND_EDITOR, p->of_program, p->chosen.key);
    } else {
        dialog_ask_setting(s, p->of_program, p->chosen.key, p->chosen.help, p->value);
    }
}

static bool key(struct screen *s, void *kept, const struct key *k) {
    struct kept *p = kept;
    if (list_key(&p->list, k)) return true;
    switch (k->code) {
    case KEY_ENTER: change(s, p, 1); return true;
    case KEY_TAB: p->of_program = !p->of_program, p->list.chosen = 0; return true;
    case KEY_DELETE:
        if (p->value) set(s, p, "");
        return true;
    case KEY_LEFT:
    case KEY_RIGHT:
        if (p->filter.size || !p->value || !p->chosen.choices) break;
        set_choice(s, p, k->code == KEY_LEFT ? -1 : 1);
        return true;
    default: break;
    }
    if (!text_field_key(&p->filter, k)) return false;
    p->list.chosen = p->list.scroll = 0;
    return true;
}

// A click chooses, another one changes it.
static void click(struct screen *s, void *kept, const struct hit *h) {
    struct kept *p = kept;
    if (h->number >= p->list.count) return;
    if (p->list.chosen == h->number) change(s, p, 1);
    p->list.chosen = h->number;
}

static void wheel(void *kept, int step) { list_move(&((struct kept *)kept)->list, step * VIEW_WHEEL_LINES); }

// ---- drawing ----

static void draw_row(void *context, struct view_frame *f, struct rect line, int row, bool chosen) {
    const struct kept *p = context;
    const struct view_setting *v = &f->view->settings[p->rows[row]];
    const char *value = value_of(p, v), *shown = *value ? value : "not set";
    const bool changed = strcmp(value, v->initial);
    struct style key = view_style(ROLE_ACCENT), style = changed ? view_bold(ROLE_STRONG) : view_style(ROLE_DIM);
    char words[VIEW_WORDS];
    if (chosen) key = style = view_chosen(f, line);
    if (chosen && f->canvas->ascii) canvas_text(f->canvas, line, line.x, line.y, key, ">", 1);
    struct rect rest = rect_after(line, 2);
    const int width = line.width / 3 > 14 ? line.width / 3 : 14;
    canvas_cut(f->canvas, (struct rect){rest.x, rest.y, width - 1, 1}, key, v->key);
    canvas_cut(f->canvas, rect_after(rest, width), style, view_words(shown, strlen(shown), words));
    frame_hit(f, line, HIT_ROW, row);
}

// About the chosen one: its help in two lines, and in the last its default and when a change takes effect.
static void draw_foot(struct kept *p, struct view_frame *f, struct rect foot) {
    if (!p->list.count) {
        canvas_text(f->canvas, foot, foot.x + 2, foot.y, view_style(ROLE_DIM), "no matching setting", 19);
        return;
    }
    const struct view_setting *v = &f->view->settings[p->rows[p->list.chosen]];
    char text[256];
    const char *initial = *v->initial ? v->initial : "not set";
    canvas_cut(f->canvas, (struct rect){foot.x, foot.y + foot.height - 2, foot.width, 1}, view_style(ROLE_TEXT),
               v->help);
    snprintf(text, sizeof text, "default %.60s; takes effect %s", initial, v->effect);
    canvas_cut(f->canvas, (struct rect){foot.x, foot.y + foot.height - 1, foot.width, 1}, view_style(ROLE_DIM), text);
}

static void keep_chosen(struct kept *p, const struct screen_view *v) {
    free(p->value);
    p->value = NULL;
    if (p->list.chosen >= p->list.count) return;
    p->chosen = v->settings[p->rows[p->list.chosen]];
    p->value = xstrdup(value_of(p, &p->chosen));
}

static void draw(struct view_frame *f, struct rect area, void *kept) {
    struct kept *p = kept;
    find(p, f->view);
    const int wanted = f->view->n_settings + HEAD + FOOT + 2;
    static const char *const notes[2][2] = {{"of this chat", "of the program"},
                                            {"of this chat, Tab: of the program", "of the program, Tab: of this chat"}};
    struct rect box = view_over(f, area, (struct view_size){WIDTH, wanted, MOST_HEIGHT}, PANE_SETTINGS,
                                notes[area.width >= 60][p->of_program]);
    struct rect in = view_over_inside(box);
    if (in.height < HEAD + 1) return;
    text_field_draw_filter(&p->filter, f, in, "type to find a setting; Enter changes it, Del resets it");
    const int foot = in.height >= HEAD + FOOT + 2 ? FOOT : 0, height = in.height - HEAD - foot;
    list_draw(&p->list, f, (struct rect){in.x, in.y + HEAD, in.width, height},
              (struct rect){box.x, in.y, box.width, height + 2}, draw_row, p);
    if (foot) draw_foot(p, f, (struct rect){in.x, in.y + in.height - foot, in.width, foot});
    keep_chosen(p, f->view);
}

const struct pane pane_settings = {.keeps = sizeof(struct kept),
                                   .opened = opened,
                                   .closed = closed,
                                   .as_shown = true,
                                   .draw = draw,
                                   .key = key,
                                   .click = click,
                                   .wheel = wheel};
