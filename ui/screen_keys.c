// Keys and clicks to commands, or to the pane that they are for.
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/utf8.h"
#include "ui/screen_state.h"

#define ESCAPE_NS 1000000000u
#define PRESS_NS  400000000u // in which a press is a second one

int screen_bound(const struct screen *s, const struct key *k) {
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (s->bound[i] && key_equal(&s->keys[i], k)) return i;
    return -1;
}

// The command that opens this pane closes it too.
static int opener(enum pane_id pane) {
    static const int commands[PANE_COUNT] = {
#define X(id, module, title, command) [PANE_##id] = command,
        PANES_OVER(X)
#undef X
    };
    return commands[pane];
}

// Leaving is possible from everywhere; the pane on top has the other keys first.
static void key_on_top(struct screen *s, const struct key *k) {
    enum pane_id top = screen_top(s);
    int id = screen_bound(s, k);
    if (id == COMMAND_QUIT || id == COMMAND_SUSPEND || id == COMMAND_REDRAW) {
        screen_run(s, (enum ui_command_id)id);
    } else if (id >= 0 && id == opener(top)) {
        screen_close_pane(s, top);
    } else if (pane_actions[top]->key(s, s->kept[top], k)) {
        return;
    } else if (k->code == KEY_ESCAPE || id == COMMAND_INTERRUPT || (k->code == KEY_CONTROL && k->number == 'g')) {
        screen_close_pane(s, top);
    } else if (id == COMMAND_HELP || id == COMMAND_PALETTE || id == COMMAND_THEME ||
               (id >= 0 && pane_actions[top]->passes_on)) {
        screen_run(s, (enum ui_command_id)id);
    }
}

// ---- mouse ----

static void count_press(struct screen *s, const struct key *k) {
    struct screen_presses *p = &s->presses;
    const uint64_t now = clock_ns();
    const bool again = p->count && p->x == k->x && p->y == k->y && now - p->since < PRESS_NS;
    *p = (struct screen_presses){k->x, k->y, again ? p->count % 3 + 1 : 1, now};
}

static void click(struct screen *s, const struct key *k) {
    const struct hit *h = frame_find(&s->frame, k->x, k->y);
    enum pane_id top = screen_top(s);
    const bool text = h && h->kind == HIT_TEXT; // a press there is one beside what is open
    const bool its_own = h && (h->pane == top || pane_actions[top]->passes_on) && (!text || top == PANE_TEXT);
    const bool closes = s->n_stack > 1 && !its_own;
    count_press(s, k);
    if (closes) screen_close_pane(s, top);
    if (!h || (closes && !text)) return;
    if (h->kind == HIT_COMMAND) {
        screen_run(s, (enum ui_command_id)h->number);
        return;
    }
    struct hit at = *h;
    at.x = k->x - h->area.x, at.y = k->y - h->area.y;
    pane_actions[h->pane]->click(s, s->kept[h->pane], &at);
}

static enum pane_id pane_under(const struct screen *s, int x, int y, const struct hit *h) {
    const enum pane_id top = screen_top(s);
    const bool on_it = h && h->pane == top && pane_actions[top]->wheel;
    if (s->n_stack > 1 && (on_it || !pane_actions[top]->passes_on)) return top;
    for (int p = PANES_FIRST; p < PANES_END; p++)
        if (pane_actions[p]->wheel && rect_holds(s->layout.panes[p], x, y)) return (enum pane_id)p;
    return screen_has_open(s, PANE_COMPARE) ? PANE_COMPARE : PANE_CHAT;
}

static void drag_text(struct screen *s, const struct key *k) {
    if (k->action == MOUSE_RELEASE) transcript_mouse_release(s->transcript);
    else if (!k->number && transcript_mouse_drag(s->transcript, k->x, k->y)) screen_open_pane(s, PANE_TEXT);
}

static void mouse_input(struct screen *s, const struct key *k) {
    const struct pane *top = pane_actions[screen_top(s)];
    bool other_button = k->action == MOUSE_PRESS && k->number != 0, over = s->n_stack > 1;
    const bool ends = k->action == MOUSE_RELEASE || k->action == MOUSE_DRAG; // what a press began
    const bool moves = screen_drag(s, k);
    if (ends && !moves) drag_text(s, k);
    if (moves || ends || other_button || (over && !top->click && !top->passes_on)) return;
    if (k->action == MOUSE_PRESS) {
        click(s, k);
    } else {
        const struct hit *h = frame_find(&s->frame, k->x, k->y);
        enum pane_id pane = pane_under(s, k->x, k->y, h);
        int step = k->action == MOUSE_WHEEL_UP ? -1 : 1;
        if (pane_actions[pane]->wheel_on && h && h->pane == pane) pane_actions[pane]->wheel_on(s->kept[pane], h, step);
        else if (pane_actions[pane]->wheel) pane_actions[pane]->wheel(s->kept[pane], step);
    }
}

// Esc and soon afterwards a key are what Alt and that key are bound to, for terminals and hands without Alt.
static int command_after_escape(struct screen *s, const struct key *k) {
    struct key alt = *k;
    alt.modifiers |= KEY_ALT;
    bool soon = s->escaped && clock_ns() - s->escaped < ESCAPE_NS;
    s->escaped = k->code == KEY_ESCAPE && !composer_takes_escape(s->composer) ? clock_ns() : 0;
    return soon ? screen_bound(s, &alt) : -1;
}

static bool may_take_back(const struct screen *s) {
    return composer_empty(s->composer) && !composer_searching(s->composer) && !s->facts.editing;
}

static void input(struct screen *s, const struct key *k) {
    completion_update(&s->completion, s->composer);
    if (k->code == KEY_MOUSE) {
        mouse_input(s, k);
    } else if (s->n_stack > 1) {
        key_on_top(s, k);
    } else if (completion_key(&s->completion, s, s->composer, k)) {
        return;
    } else if (k->code == KEY_UP && !k->modifiers && s->facts.waiting && may_take_back(s)) {
        screen_run(s, COMMAND_TAKE_BACK);
    } else if (k->code == KEY_ESCAPE && s->facts.stoppable) {
        screen_run(s, COMMAND_MODEL_STOP);
    } else if (k->code == KEY_ESCAPE && s->facts.editing && !composer_takes_escape(s->composer)) {
        screen_run(s, COMMAND_EDIT_STOP);
    } else if (k->code == KEY_ESCAPE && s->zoomed && !composer_takes_escape(s->composer)) {
        screen_zoom(s);
    } else {
        int id = command_after_escape(s, k);
        if (id < 0) id = screen_bound(s, k);
        if (id >= 0) screen_run(s, (enum ui_command_id)id);
        else pane_composer.key(s, s->composer, k);
    }
}

// Of letters that came together the others wait, for what the first one does.
static bool next_key(struct screen *s, struct key *k) {
    uint32_t code;
    if (s->waits) return *k = s->late, true;
    *k = s->rest;
    s->rest = (struct key){0};
    if (!k->size && !terminal_key(s->terminal, k)) return false;
    const size_t size = k->code == KEY_TEXT ? utf8_decode(k->text, k->size, &code) : k->size;
    if (size >= k->size || !pane_actions[screen_top(s)]->letters) return true;
    s->rest = *k;
    s->rest.text = s->rest.raw = k->text + size;
    s->rest.size = s->rest.raw_size = k->size - size;
    k->size = k->raw_size = size;
    return true;
}

// It only types or moves the cursor; many of these come fast.
static bool may_be_ahead(const struct key *k) {
    switch (k->code) {
    case KEY_TEXT: return !(k->modifiers & (KEY_ALT | KEY_CTRL));
    case KEY_MOUSE: return k->action != MOUSE_PRESS;
    case KEY_UP:
    case KEY_DOWN:
    case KEY_PAGE_UP:
    case KEY_PAGE_DOWN:
    case KEY_BACKSPACE:
    case KEY_PASTE: return true;
    default: return false;
    }
}

static bool waits(struct screen *s, const struct key *k) {
    s->waits = s->ahead && pane_actions[screen_top(s)]->as_shown && !may_be_ahead(k);
    if (s->waits) s->late = *k;
    return s->waits;
}

bool screen_input(struct screen *s, struct ui_command *out) {
    struct key k;
    while (s->n_queue == 0) {
        if (!next_key(s, &k) || waits(s, &k)) return false;
        s->ahead = true;
        input(s, &k);
    }
    *out = s->queue[0];
    memmove(s->queue, s->queue + 1, (size_t)--s->n_queue * sizeof *s->queue);
    return true;
}
