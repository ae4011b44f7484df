// What belongs to the chat's pane beside the transcript: the context gauge, and the hint in a chat without messages.
#include <stdio.h>
#include <string.h>

#include "ui/flow.h"
#include "ui/view.h"

#define GAUGE_COLUMNS 10

// "1,204 / 8,192 tokens ▓▓▓░░░░░░░", shortened until it fits; "~1,204" of a guess.
void view_gauge(struct view_frame *f, struct rect line) {
    const struct screen_view *v = f->view;
    if (v->context_size <= 0) return;
    char used[VIEW_NUMBER], size[VIEW_NUMBER], text[3 * VIEW_NUMBER];
    double share = (double)v->context_used / v->context_size;
    enum theme_role role = share >= 0.95 ? ROLE_BAD : share >= 0.8 ? ROLE_WARN : ROLE_TEXT;
    const char *about = v->context_guessed ? "~" : "";
    int width = snprintf(text, sizeof text, "%s%s / %s tokens", about, view_number(v->context_used, used),
                         view_number(v->context_size, size));
    if (width > line.width) width = snprintf(text, sizeof text, "%s%s/%s", about, used, size);
    if (width > line.width) return;
    int x = line.x + canvas_text(f->canvas, line, line.x, line.y, view_style(role), text, (size_t)width) + 1;
    if (x + GAUGE_COLUMNS <= line.x + line.width)
        canvas_gauge(f->canvas, line, x, line.y, GAUGE_COLUMNS, share > 1 ? 1 : share,
                     share >= 0.8 ? role : ROLE_GAUGE);
}

// A bar of which a piece goes to and fro.
static void draw_unknown(struct canvas *c, struct rect line, int x, int width, uint64_t step) {
    int piece = width / 4 + 1, way = width - piece, at = way > 0 ? (int)(step % (uint64_t)(2 * way)) : 0;
    if (at > way) at = 2 * way - at;
    for (int i = 0; i < width; i++) {
        bool on = i >= at && i < at + piece;
        canvas_symbol(c, line, x + i, line.y, view_style(on ? ROLE_GAUGE : ROLE_KV_FREE), on ? "▓" : "░",
                      on ? '#' : '-');
    }
}

// "loading TinyLlama Q4_0 ▓▓▓▓░░░░░░ 42% of 608 MiB Esc stops it", shortened until it fits.
void view_loading(struct view_frame *f, struct rect line, uint64_t step) {
    const struct view_loading *l = f->view->loading;
    struct canvas *c = f->canvas;
    char share[48] = "";
    const char *hint = l->stoppable ? " Esc stops it " : " ";
    size_t size = strlen(l->text), n = 0;
    if (l->done >= 0) n = (size_t)snprintf(share, sizeof share, " %3d%%", (int)(l->done * 100));
    int fixed = GAUGE_COLUMNS + (int)n + (int)strlen(hint) + 2, x = line.x, name;
    int of = (n ? 4 : 1) + (int)strlen(l->size);
    if (fixed + text_width(l->text, size) + of <= line.width && n + (size_t)of < sizeof share)
        snprintf(share + n, sizeof share - n, "%s%s", n ? " of " : " ", l->size), fixed += of;
    if (fixed + 8 > line.width) hint = " ", fixed = GAUGE_COLUMNS + (int)n + 3;
    size_t fit = text_fit(l->text, size, line.width - fixed, &name);
    if (fixed + 8 > line.width) fit = 0, name = 0; // the bar alone
    x += canvas_text(c, line, x, line.y, view_style(ROLE_ACCENT), " ", 1);
    x += canvas_text(c, line, x, line.y, view_style(ROLE_ACCENT), l->text, fit);
    if (fit && fit < size) canvas_symbol(c, line, x - 1, line.y, view_style(ROLE_ACCENT), "…", '~');
    if (fit) x += canvas_text(c, line, x, line.y, view_style(ROLE_ACCENT), " ", 1);
    int room = line.x + line.width - x - (int)strlen(share) - (int)strlen(hint);
    int width = room < 3 * GAUGE_COLUMNS ? room : 3 * GAUGE_COLUMNS;
    if (l->done < 0) draw_unknown(c, line, x, width, step);
    else canvas_gauge(c, line, x, line.y, width, (double)l->done, ROLE_GAUGE);
    x += width > 0 ? width : 0;
    x += canvas_text(c, line, x, line.y, view_style(ROLE_STRONG), share, strlen(share));
    canvas_text(c, line, x, line.y, view_style(ROLE_DIM), hint, strlen(hint));
}

struct tip {
    enum ui_command_id command;
    const char *text;
}; // text NULL: the command's own help

static const struct tip things[] = {
    {COMMAND_SEND, "sends what you write; watch the panes while it is answered"},
    {COMMAND_NEW, "begins a second chat while the first still answers"},
    {COMMAND_KNOB_UP, "raises the chosen knob, even in mid-answer"},
};
static const struct tip keys[] = {{COMMAND_HELP, NULL},
                                  {COMMAND_PALETTE, NULL},
                                  {COMMAND_NEWLINE, NULL},
                                  {COMMAND_INTERRUPT, NULL},
                                  {COMMAND_QUIT, NULL}};
#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static int key_columns(const struct tip *tips, int n) {
    int columns = 0;
    char key[VIEW_NUMBER];
    for (int i = 0; i < n; i++) {
        int width = (int)strlen(view_key(ui_commands[tips[i].command].key, key));
        columns = width > columns ? width : columns;
    }
    return columns;
}

static int draw_tips(struct view_frame *f, struct rect area, int y, const struct tip *tips, int n) {
    int first = key_columns(things, COUNT(things)), second = key_columns(keys, COUNT(keys));
    int x = area.x + 4 + (first > second ? first : second);
    for (int i = 0; i < n; i++) {
        char key[VIEW_NUMBER];
        const char *text = tips[i].text ? tips[i].text : ui_commands[tips[i].command].help;
        size_t size = strlen(text);
        canvas_print(f->canvas, area, area.x + 2, y, view_style(ROLE_ACCENT), "%s",
                     view_key(ui_commands[tips[i].command].key, key));
        for (size_t at = 0, end; at < size; y++) {
            size_t next = flow_break(text, size, at, area.x + area.width - x, &end);
            canvas_text(f->canvas, area, x, y, view_style(ROLE_DIM), text + at, end - at);
            if (y < area.y + area.height)
                frame_hit(f, (struct rect){area.x, y, area.width, 1}, HIT_COMMAND, tips[i].command);
            at = next;
        }
    }
    return y;
}

static int draw_questions(struct view_frame *f, struct rect area, int y) {
    for (int i = 0; i < f->view->n_questions; i++, y++) {
        const char *text = f->view->questions[i];
        if (y >= area.y + area.height) continue;
        struct rect line = {area.x + 2, y, area.width - 2, 1};
        int width = canvas_cut(f->canvas, line, view_style(ROLE_ACCENT), text);
        frame_hit(f, (struct rect){area.x + 2, y, width, 1}, HIT_QUESTION, i);
    }
    return y;
}

static int draw_heading(struct view_frame *f, struct rect area, int y, const char *text) {
    canvas_text(f->canvas, area, area.x, y + 1, view_style(ROLE_TEXT), text, strlen(text));
    return y + 2;
}

// In a low pane the headings and the blank lines go, so that the keys stay.
void view_welcome(struct view_frame *f, struct rect area) {
    const struct screen_view *v = f->view;
    bool roomy = area.height >= 12, asks = v->n_questions > 0;
    int y = area.y + (area.height > 22 ? (area.height - 16) / 3 : 0);
    canvas_print(f->canvas, area, area.x, y++, view_bold(ROLE_MODEL), "Talk with %s",
                 v->model_name ? v->model_name : "the model");
    if (v->loading && !v->figures)
        canvas_print(f->canvas, area, area.x, y++, view_style(ROLE_DIM),
                     "which is being loaded; you can write meanwhile");
    if (asks) y = draw_questions(f, area, roomy ? draw_heading(f, area, y, "Three things to ask") : y);
    const struct tip *tips = asks ? things + 1 : things; // sending needs no word beside questions
    y = draw_tips(f, area, roomy ? draw_heading(f, area, y, asks ? "And to try" : "Three things to try") : y, tips,
                  COUNT(things) - asks);
    draw_tips(f, area, roomy ? draw_heading(f, area, y, "Keys to know") : y, keys, COUNT(keys));
}
