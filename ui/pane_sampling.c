// The bottom line: the sampling knobs, or for a while what just happened; at the right where other programs are served,
// and the keys to know.
#include <stdio.h>
#include <string.h>

#include "ui/keys.h"
#include "ui/pane.h"
#include "ui/pane_clients.h"

static const struct {
    enum ui_command_id command;
    const char *word;
} hints[] = {
    {COMMAND_HELP, "help"},
    {COMMAND_PALETTE, "commands"},
    {COMMAND_NEW, "new"},
    {COMMAND_QUIT, "quit"},
};
#define LEAST_KNOBS 20 // columns
#define N_HINTS     ((int)(sizeof hints / sizeof *hints))

static int hint_width(int i) {
    char key[KEY_NAME];
    int width = (int)strlen(keys_short_name(hints[i].command, key));
    return width + (width > 0) + (int)strlen(hints[i].word);
}

// Draws as many hints as leave `wanted` columns to the rest, and these `least` ones where there is any room; returns
// where they begin.
static int draw_hints(struct view_frame *f, struct rect line, int wanted, int least) {
    int n = N_HINTS, width = 0;
    for (int i = 0; i < n; i++) width += hint_width(i) + 2;
    for (; n > least && line.width - width - 1 < wanted; n--) width -= hint_width(n - 1) + 2;
    if (line.width - width < 20) return line.x + line.width;
    int start = line.x + line.width - width, x = start + 1;
    for (int i = 0; i < n; i++) {
        char key[KEY_NAME];
        frame_hit(f, (struct rect){x, line.y, hint_width(i), 1}, HIT_COMMAND, hints[i].command);
        keys_short_name(hints[i].command, key);
        x += canvas_print(f->canvas, line, x, line.y, view_style(ROLE_ACCENT), "%s", key) + (*key != 0);
        x += canvas_print(f->canvas, line, x, line.y, view_style(ROLE_DIM), "%s", hints[i].word) + 2;
    }
    return start;
}

// "serving 127.0.0.1:8080, 3 clients", or as much as leaves `least` columns; returns where it begins.
static int draw_serving(struct view_frame *f, struct rect line, int least) {
    char text[VIEW_WORDS];
    const struct view_serving *s = f->view->serving;
    const int clients = clients_count(f->view);
    if (!s) return line.x + line.width;
    int width = snprintf(text, sizeof text, "serving %.100s", s->address);
    if (clients)
        width +=
            snprintf(text + width, sizeof text - (size_t)width, clients == 1 ? ", 1 client" : ", %d clients", clients);
    if (line.width - width - 2 < least) width = (int)strlen("serving");
    if (line.width - width - 2 < least) return line.x + line.width;
    const struct rect place = {line.x + line.width - width - 1, line.y, width, 1};
    canvas_text(f->canvas, place, place.x, place.y, view_style(ROLE_GOOD), text, (size_t)width);
    frame_hit(f, place, HIT_COMMAND, COMMAND_CLIENTS);
    return place.x - 1;
}

static int knob_width(const struct sampling *s, int knob) {
    char value[16];
    return (int)(strlen(sampling_knobs[knob].label) + 1 +
                 strlen(sampling_format(s, (enum sampling_knob_id)knob, value)));
}

static int draw_knob(struct view_frame *f, struct rect line, int x, int knob) {
    const struct screen_view *v = f->view;
    char value[16];
    bool chosen = knob == v->knob;
    struct style label = view_style(ROLE_DIM), style = view_style(ROLE_KNOB);
    if (chosen)
        label = view_bold(ROLE_KNOB_ACTIVE),
        style = (struct style){ROLE_KNOB_ACTIVE, ROLE_GROUND, CELL_BOLD | CELL_REVERSE, 0};
    int start = x;
    x += canvas_print(f->canvas, line, x, line.y, label, "%s", sampling_knobs[knob].label) + 1;
    x += canvas_print(f->canvas, line, x, line.y, style, "%s",
                      sampling_format(v->sampling, (enum sampling_knob_id)knob, value));
    frame_hit(f, (struct rect){start, line.y, x - start, 1}, HIT_KNOB, knob);
    return x - start;
}

// The first knob to show so that the chosen one is whole within `columns`.
static int first_knob(const struct screen_view *v, int columns) {
    int first = v->knob, width = knob_width(v->sampling, v->knob);
    while (first > 0 && width + 2 + knob_width(v->sampling, first - 1) <= columns)
        width += 2 + knob_width(v->sampling, --first);
    return first;
}

static void draw_knobs(struct view_frame *f, struct rect line, int end) {
    const struct screen_view *v = f->view;
    int all = -2, x = line.x + 1, room = end - x - 1;
    for (int i = 0; i < KNOB_COUNT; i++) all += knob_width(v->sampling, i) + 2;
    int first = all <= room ? 0 : first_knob(v, room - 3), knob = first;
    for (; knob < KNOB_COUNT; knob++) {
        int width = knob_width(v->sampling, knob);
        if (knob != first && x + width > end - (knob + 1 < KNOB_COUNT ? 2 : 1)) break;
        x += draw_knob(f, line, x, knob) + 2;
    }
    if (first > 0) canvas_symbol(f->canvas, line, line.x, line.y, view_style(ROLE_ACCENT), "‹", '<');
    if (knob < KNOB_COUNT && x - 2 < end)
        canvas_symbol(f->canvas, line, x - 1, line.y, view_style(ROLE_ACCENT), "›", '>');
}

static bool has_knob(const struct screen_view *v) { return v->sampling && v->knob >= 0 && v->knob < KNOB_COUNT; }

// The chosen knob stays beside the status where both fit, so that stepping it can be watched.
static void draw_status(struct view_frame *f, struct rect room, struct view_status status) {
    enum theme_role role = status.bad ? ROLE_BAD : status.fading ? ROLE_DIM : ROLE_STRONG;
    int x = room.x + 1, width = text_width(status.text, strlen(status.text));
    if (has_knob(f->view) && x + knob_width(f->view->sampling, f->view->knob) + 2 + width <= room.x + room.width)
        x += draw_knob(f, room, x, f->view->knob) + 2;
    canvas_cut(f->canvas, (struct rect){x, room.y, room.x + room.width - x, 1}, view_style(role), status.text);
}

static void draw(struct view_frame *f, struct rect line, void *kept) {
    (void)kept;
    struct view_status status = f->status;
    if (line.height <= 0) return;
    int wanted = 2;
    if (status.text)
        wanted += text_width(status.text, strlen(status.text)) +
                  (has_knob(f->view) ? knob_width(f->view->sampling, f->view->knob) + 2 : 0);
    else if (f->view->sampling)
        for (int i = 0; i < KNOB_COUNT; i++) wanted += knob_width(f->view->sampling, i) + 2;
    int end = draw_hints(f, line, wanted, status.text ? 0 : 1); // a status passes
    end = draw_serving(f, (struct rect){line.x, line.y, end - line.x, 1}, status.text ? wanted : LEAST_KNOBS);
    if (status.text) draw_status(f, (struct rect){line.x, line.y, end - line.x, 1}, status);
    else if (has_knob(f->view)) draw_knobs(f, line, end);
}

static void click(struct screen *s, void *kept, const struct hit *h) {
    (void)kept;
    screen_hand_out(s, COMMAND_KNOB_NEXT, h->number, NULL);
    screen_open_pane(s, PANE_KNOBS);
}

const struct pane pane_sampling = {.draw = draw, .click = click};
