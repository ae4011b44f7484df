// What a chat without messages shows: what to ask, what to try, and the keys to know.
#include <stdio.h>
#include <string.h>

#include "ui/flow.h"
#include "ui/keys.h"
#include "ui/view.h"

struct tip {
    enum ui_command_id command;
    const char *text;
}; // text NULL: the command's own help

enum { THINGS = 3 };
static const struct tip things[][THINGS] = {
    {{COMMAND_SEND, "sends what you write; watch the panes while it is answered"},
     {COMMAND_NEW, "begins a second chat while the first still answers"},
     {COMMAND_KNOB_UP, "raises the chosen knob, even in mid-answer"}},
    // Without a template.
    {{COMMAND_SEND, "has what you write continued as it is"},
     {COMMAND_PROMPT, "shows its tokens, also while you write"},
     {COMMAND_TOKENS, "shows the tokens that follow, and how likely they were"}},
};
static const struct tip keys[] = {{COMMAND_HELP, NULL},
                                  {COMMAND_PALETTE, NULL},
                                  {COMMAND_NEWLINE, NULL},
                                  {COMMAND_INTERRUPT, NULL},
                                  {COMMAND_QUIT, NULL}};
#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static int key_columns(const struct tip *tips, int n) {
    int columns = 0;
    for (int i = 0; i < n; i++) {
        int width = (int)strlen(keys_name(tips[i].command));
        columns = width > columns ? width : columns;
    }
    return columns;
}

static int draw_tips(struct view_frame *f, struct rect area, int y, const struct tip *tips, int n) {
    int first = key_columns(things[f->view->raw], THINGS), second = key_columns(keys, COUNT(keys));
    int x = area.x + 4 + (first > second ? first : second);
    for (int i = 0; i < n; i++) {
        if (!*keys_name(tips[i].command)) continue;
        const char *text = tips[i].text ? tips[i].text : ui_commands[tips[i].command].help;
        size_t size = strlen(text);
        canvas_print(f->canvas, area, area.x + 2, y, view_style(ROLE_ACCENT), "%s", keys_name(tips[i].command));
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
    bool roomy = area.height >= 12, asks = v->n_questions > 0 && !v->raw;
    int y = area.y + (area.height > 22 ? (area.height - 16) / 3 : 0);
    canvas_print(f->canvas, area, area.x, y++, view_bold(ROLE_MODEL),
                 v->raw ? "Text for %s to continue" : "Talk with %s", v->model_name ? v->model_name : "the model");
    if (v->loading && !v->metrics)
        canvas_print(f->canvas, area, area.x, y++, view_style(ROLE_DIM),
                     "which is being loaded; you can write meanwhile");
    if (asks) y = draw_questions(f, area, roomy ? draw_heading(f, area, y, "Three things to ask") : y);
    const struct tip *tips = things[v->raw] + asks; // sending needs no word beside questions
    y = draw_tips(f, area, roomy ? draw_heading(f, area, y, asks ? "And to try" : "Three things to try") : y, tips,
                  THINGS - asks);
    draw_tips(f, area, roomy ? draw_heading(f, area, y, "Keys to know") : y, keys, COUNT(keys));
}
