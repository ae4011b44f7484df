// Which panes there are beside the chat, how large they are, and which one is zoomed: presets, sizes by keys and by the
// mouse.
#include "ui/keys.h"
#include "ui/screen_state.h"

enum { STEP_COLUMNS = 2, STEP_ROWS = 1 };

static const struct preset {
    enum pane_arrangement arrangement;
    int presets; // the panes that are in so many
} presets[] = {{ARRANGE_AUTO, 1}, {ARRANGE_AUTO, 2}, {ARRANGE_AUTO, 3}, {ARRANGE_AUTO, 4},
               {ARRANGE_AUTO, 5}, {ARRANGE_WIDE, 2}, {ARRANGE_TALL, 2}};
enum { N_PRESETS = sizeof presets / sizeof *presets };

// ---- the layout ----

static enum pane_id focused(const struct screen *s) { return s->panes >> s->focus & 1 ? s->focus : PANE_CHAT; }

static struct layout make(const struct screen *s, int width, int height, int lines) {
    return layout_make(&(struct layout_params){.width = width,
                                               .height = height,
                                               .wanted = s->zoomed ? 0 : s->panes,
                                               .arrangement = s->arrangement,
                                               .sizes = &s->sizes,
                                               .zoomed = s->zoomed ? focused(s) : PANE_CHAT,
                                               .composer_lines = lines});
}

void screen_layout(struct screen *s, int width, int height) {
    if (screen_has_open(s, PANE_READ)) {
        s->layout = layout_read(width, height);
        return;
    }
    if (!s->panes_chosen) s->panes = layout_default_panes(width, height, s->arrangement);
    s->layout = make(s, width, height, 1);
    int lines = 0, columns = view_padded(s->layout.composer).width;
    for (int i = 0; i < s->n_stack; i++) {
        const struct pane *open = pane_actions[s->stack[i]];
        if (open->rows) lines = open->rows(columns, s->ascii);
    }
    if (!lines) lines = composer_lines(s->composer, columns);
    if (lines > 1) s->layout = make(s, width, height, lines);
}

// ---- which ones ----

void screen_set_panes(struct screen *s, const struct pane_choice *choice) {
    s->panes = choice->shown & PANES_BESIDE;
    s->panes_chosen = choice->shown;
    s->arrangement = choice->arrangement;
    s->sizes = choice->sizes;
}

struct pane_choice screen_pane_choice(const struct screen *s) {
    const uint32_t shown = s->panes_chosen ? s->panes | 1u << PANE_CHAT : 0; // not 0, even if none is shown
    return (struct pane_choice){shown, s->arrangement, s->sizes};
}

uint32_t screen_panes(const struct screen *s) { return s->panes; }

uint32_t screen_panes_with_room(const struct screen *s) {
    const struct layout l = make(s, s->canvas.width, s->canvas.height, 1);
    uint32_t shown = 0;
    for (int p = PANES_FIRST; p < PANES_END; p++) shown |= (uint32_t)(l.panes[p].width > 0) << p;
    return shown;
}

void screen_choose_panes(struct screen *s, uint32_t set) {
    s->panes = set;
    s->panes_chosen = true;
    s->zoomed = false;
}

static uint32_t panes_of(const struct preset *preset) {
    uint32_t set = 0;
    for (int p = PANES_FIRST; p < PANES_END; p++) set |= (uint32_t)(panes[p].presets >= preset->presets) << p;
    return set;
}

void screen_next_preset(struct screen *s) {
    int next = 0;
    for (int i = 0; i < N_PRESETS; i++)
        if (presets[i].arrangement == s->arrangement && panes_of(&presets[i]) == s->panes) next = (i + 1) % N_PRESETS;
    s->arrangement = presets[next].arrangement;
    screen_choose_panes(s, panes_of(&presets[next]));
}

// ---- the one in focus ----

static void say_size(struct screen *s) {
    screen_layout(s, s->canvas.width, s->canvas.height);
    const struct rect r = s->layout.panes[s->focus];
    const char *title = s->focus == PANE_CHAT ? "chat" : panes[s->focus].title;
    if (r.width) screen_say(s, false, "%s: %d columns, %d rows", title, r.width, r.height);
    else screen_say(s, false, "%s: no room here; Enter zooms it", title);
}

void screen_focus_step(struct screen *s, int step) {
    s->focus = focused(s);
    if (screen_has_open(s, PANE_FOCUS)) {
        do s->focus = (enum pane_id)(((int)s->focus + step + PANES_END) % PANES_END);
        while (focused(s) != s->focus);
    } else {
        screen_open_pane(s, PANE_FOCUS);
    }
    say_size(s);
}

void screen_zoom(struct screen *s) {
    s->focus = focused(s);
    s->zoomed = !s->zoomed;
    screen_close_pane(s, PANE_FOCUS);
    const char *key = keys_name(COMMAND_ZOOM), *title = s->focus == PANE_CHAT ? "the chat" : panes[s->focus].title;
    if (s->zoomed) screen_say(s, false, "%s alone: %s%sEsc brings the others back", title, key, *key ? " or " : "");
}

// ---- sizes ----

void screen_size(struct screen *s, enum ui_command_id id) {
    const bool across = id == COMMAND_WIDER || id == COMMAND_NARROWER;
    struct layout_edge edge;
    s->zoomed = false;
    if (id != COMMAND_RESET_SIZES && !screen_has_open(s, PANE_FOCUS)) screen_open_pane(s, PANE_FOCUS);
    s->focus = focused(s);
    screen_layout(s, s->canvas.width, s->canvas.height);
    if (id == COMMAND_RESET_SIZES) {
        s->sizes = (struct pane_sizes){0};
    } else if (layout_edge_of(&s->layout, s->focus, across, &edge)) {
        int step = across ? STEP_COLUMNS : STEP_ROWS;
        if (id == COMMAND_NARROWER || id == COMMAND_SHORTER) step = -step;
        if (edge.after == s->focus) step = -step;
        layout_edge_move(&s->layout, &edge, edge.at + step, &s->sizes);
    }
    say_size(s);
}

bool screen_drag(struct screen *s, const struct key *k) {
    const bool was = s->dragging, free = s->n_stack == 1 || pane_actions[screen_top(s)]->passes_on;
    const int at = s->dragged.across ? k->x : k->y;
    if (k->action == MOUSE_PRESS) {
        s->dragging = k->number == 0 && free && !s->zoomed && !frame_find(&s->frame, k->x, k->y) &&
                      layout_edge_at(&s->layout, k->x, k->y, &s->dragged);
        s->grip = s->dragged.at - (s->dragged.across ? k->x : k->y);
        s->moved = false;
    } else if (k->action == MOUSE_DRAG && was) {
        layout_edge_move(&s->layout, &s->dragged, at + s->grip, &s->sizes);
        s->moved = true;
    } else if (k->action == MOUSE_RELEASE) {
        s->dragging = false;
        if (was && s->moved) screen_hand_out(s, COMMAND_WIDER, -1, NULL); // the sizes have changed
    }
    return was || s->dragging;
}
