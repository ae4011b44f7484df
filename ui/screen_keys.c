// Keys and clicks to commands: what the screen does itself, and what it hands to the controller.
#include <stdio.h>
#include <string.h>

#include "engine/base/clock.h"
#include "ui/screen.h"
#include "ui/screen_state.h"

#define WHEEL_LINES 3
#define ESCAPE_NS   1000000000u
#define TITLE_ASKED 40 // columns of a title in a question

static void hand_out(struct screen *s, enum ui_command_id id, int number, const char *text) {
    if (s->n_queue == SCREEN_QUEUE) return;
    s->queue[s->n_queue++] = (struct ui_command){id, number, text};
    s->notice.seen[0] = 0; // the same status again is news again
}

// ---- commands that the screen carries out ----

// A theme that cannot be loaded is passed over; the command's text then says why.
static void next_theme(struct screen *s) {
    int at = 0;
    struct status st = {0};
    for (int i = 0; theme_list(i); i++)
        if (strcmp(theme_list(i), s->theme.name) == 0) at = i + 1;
    for (;; at++) {
        struct status *problem = st.code ? NULL : &st; // the first one is said
        if (!theme_list(at)) at = 0;
        if (theme_load(&s->theme, theme_list(at), problem)) break;
    }
    terminal_forget(s->terminal);
    snprintf(s->answer, sizeof s->answer, "%.*s", SCREEN_NOTICE - 1, st.text);
    hand_out(s, COMMAND_THEME, -1, st.code ? s->answer : NULL);
}

static void choose_panes(struct screen *s, uint32_t set) {
    s->panes = set;
    s->panes_chosen = true;
}

// The panes that are in so many presets; with the highest number that is none.
static uint32_t preset(int presets) {
    uint32_t set = 0;
    for (int p = PANE_CHAT + 1; p < PANE_COUNT; p++) set |= (uint32_t)(panes[p].presets >= presets) << p;
    return set;
}

// From all panes to none, and all again.
static void next_panes(struct screen *s) {
    int at = 1;
    while (preset(at) && preset(at) != s->panes) at++;
    choose_panes(s, preset(preset(at) ? at + 1 : 1));
}

static void ask_knob(struct screen *s) {
    if (s->facts.knob < 0 || s->facts.knob >= KNOB_COUNT) return;
    const struct sampling_knob *knob = &sampling_knobs[s->facts.knob];
    char value[16], hint[160];
    snprintf(hint, sizeof hint, "%g to %g   %s", knob->low, knob->high, knob->help);
    dialog_text(&s->dialog, COMMAND_KNOB_SET, knob->label, hint,
                sampling_format(&s->facts.sampling, (enum sampling_knob_id)s->facts.knob, value));
}

static void ask_delete(struct screen *s) {
    char label[160];
    const char *title = s->facts.title, *more = s->ascii ? "..." : "…";
    size_t size = strlen(title), shown = text_fit(title, size, TITLE_ASKED, NULL);
    if (shown < size) shown = text_fit(title, size, TITLE_ASKED - text_width(more, strlen(more)), NULL);
    snprintf(label, sizeof label, "Delete \"%.*s%s\"?", (int)shown, title, shown < size ? more : "");
    dialog_confirm(&s->dialog, COMMAND_DELETE, size ? label : "Delete this chat?");
}

static void interrupt(struct screen *s) {
    if (s->facts.busy) {
        hand_out(s, COMMAND_STOP, -1, NULL);
    } else if (!composer_empty(s->composer)) {
        composer_clear(s->composer);
    } else if (s->facts.stoppable) {
        hand_out(s, COMMAND_MODEL_STOP, -1, NULL);
    } else if (s->facts.loading) { // as with any program that is still starting
        hand_out(s, COMMAND_QUIT, -1, NULL);
    } else {
        char key[VIEW_NUMBER];
        screen_say(s, false, "%s leaves confab", view_key(ui_commands[COMMAND_QUIT].key, key));
    }
}

static void toggle_overlay(struct screen *s, enum overlay_kind kind) {
    overlay_open(&s->overlay, s->overlay.kind == kind ? OVERLAY_NONE : kind);
}

static void open_thinking(struct screen *s) {
    if (!transcript_open_thinking(s->transcript))
        screen_say(s, false, "the model has thought nothing that is in sight");
}

// Commands that change a setting are handed out as well, so that it can be saved.
static void run_command(struct screen *s, enum ui_command_id id) {
    const char *message;
    switch (id) {
    case COMMAND_SEND:
        message = composer_take(s->composer);
        if (message) transcript_bottom(s->transcript), hand_out(s, id, -1, message);
        return;
    case COMMAND_NEWLINE: composer_newline(s->composer); return;
    case COMMAND_HELP: toggle_overlay(s, OVERLAY_HELP); return;
    case COMMAND_PALETTE: toggle_overlay(s, OVERLAY_PALETTE); return;
    case COMMAND_RENAME:
        dialog_text(&s->dialog, id, "Name of this chat", "Enter keeps it, Esc leaves it as it was", s->facts.title);
        return;
    case COMMAND_DELETE: ask_delete(s); return;
    case COMMAND_MODEL: picker_open(&s->picker, ""); break;
    case COMMAND_KNOB_SET: ask_knob(s); return;
    case COMMAND_THINKING: open_thinking(s); return;
    case COMMAND_PAGE_UP: transcript_pages(s->transcript, -1); return;
    case COMMAND_PAGE_DOWN: transcript_pages(s->transcript, 1); return;
    case COMMAND_TOP: transcript_top(s->transcript); return;
    case COMMAND_BOTTOM: transcript_bottom(s->transcript); return;
    case COMMAND_REDRAW: terminal_forget(s->terminal); return;
    case COMMAND_INTERRUPT: interrupt(s); return;
    case COMMAND_THEME: next_theme(s); return;
    case COMMAND_PANES: next_panes(s); break;
    case COMMAND_ASCII: s->ascii = !s->ascii; break;
#define X(id, ...) case COMMAND_TOGGLE_##id: choose_panes(s, s->panes ^ 1u << PANE_##id); break;
        PANES(X)
#undef X
    default: break;
    }
    hand_out(s, id, -1, NULL);
}

// ---- keys ----

static int bound_command(const struct screen *s, const struct key *k) {
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (s->bound[i] && key_equal(&s->keys[i], k)) return i;
    return -1;
}

static void dialog_input(struct screen *s, const struct key *k) {
    dialog_key(&s->dialog, k);
    if (s->dialog.state != DIALOG_ACCEPTED) return;
    snprintf(s->answer, sizeof s->answer, "%s", s->dialog.edit.text);
    hand_out(s, s->dialog.command, -1, s->answer);
    dialog_close(&s->dialog);
}

// Commands that are open to a person also while a list of them covers the screen.
static bool works_over_overlay(int id) {
    return id == COMMAND_HELP || id == COMMAND_PALETTE || id == COMMAND_QUIT || id == COMMAND_SUSPEND ||
           id == COMMAND_REDRAW || id == COMMAND_THEME;
}

static void overlay_input(struct screen *s, const struct key *k) {
    int id = bound_command(s, k);
    if (works_over_overlay(id)) {
        run_command(s, (enum ui_command_id)id);
        return;
    }
    int picked = overlay_key(&s->overlay, k);
    if (picked >= 0) run_command(s, (enum ui_command_id)picked);
}

static void pick(struct screen *s, const struct picker_model *m) {
    if (!m) return;
    if (m->refusal) {
        screen_say(s, true, "%s: %s", m->name, m->refusal);
        return;
    }
    snprintf(s->answer, sizeof s->answer, "%s", m->name);
    s->picker.open = false;
    if (!m->loaded) hand_out(s, COMMAND_MODEL, -1, s->answer);
}

static void picker_input(struct screen *s, const struct key *k) {
    int id = bound_command(s, k);
    if (id == COMMAND_MODEL) s->picker.open = false;
    else if (id == COMMAND_QUIT || id == COMMAND_SUSPEND || id == COMMAND_REDRAW)
        run_command(s, (enum ui_command_id)id);
    else pick(s, picker_key(&s->picker, k));
}

// Terminals that name keys by their code points send sequences for characters too, of which readline knows none.
static bool named_by_code(const struct key *k) {
    return k->raw_size > 2 && k->raw[0] == '\033' && memchr("[O\033", k->raw[1], 3);
}

// The key as readline knows it.
static void readline_key(struct screen *s, const struct key *k) {
    char bytes[8] = "\033";
    size_t n = k->modifiers & KEY_ALT ? 1 : 0;
    if (!named_by_code(k)) {
        composer_bytes(s->composer, k->raw, k->raw_size);
    } else if (k->code == KEY_TAB && k->modifiers & KEY_SHIFT) {
        composer_sequence(s->composer, "\033[Z", 3);
    } else if (k->code == KEY_TEXT) {
        memcpy(bytes + n, k->text, k->size); // one character
        if (!(k->modifiers & KEY_CTRL)) composer_bytes(s->composer, bytes, n + k->size);
    } else {
        bytes[n] = k->code == KEY_TAB ? '\t' : k->code == KEY_BACKSPACE ? '\x7f' : (char)(k->number & 0x1f);
        composer_bytes(s->composer, bytes, n + 1);
    }
}

static void composer_input(struct screen *s, const struct key *k) {
    switch (k->code) {
    case KEY_NONE: return;
    case KEY_PASTE: composer_paste(s->composer, k->text, k->size); return;
    case KEY_ENTER: composer_newline(s->composer); return; // with a modifier: without, it is a command
    case KEY_UP:
        if (k->modifiers || !composer_up(s->composer)) composer_sequence(s->composer, k->raw, k->raw_size);
        return;
    case KEY_DOWN:
        if (k->modifiers || !composer_down(s->composer)) composer_sequence(s->composer, k->raw, k->raw_size);
        return;
    case KEY_CONTROL:
        if (k->number == 'j' && !k->modifiers) composer_newline(s->composer);
        else readline_key(s, k);
        return;
    case KEY_ESCAPE: composer_escape(s->composer); return;
    case KEY_TEXT:
    case KEY_TAB:
    case KEY_BACKSPACE: readline_key(s, k); return;
    default: composer_sequence(s->composer, k->raw, k->raw_size); return;
    }
}

// ---- mouse ----

static bool inside(struct rect r, int x, int y) {
    return x >= r.x && x < r.x + r.width && y >= r.y && y < r.y + r.height;
}

static void click(struct screen *s, const struct key *k) {
    const struct hit *h = frame_find(&s->frame, k->x, k->y);
    if (s->picker.open) {
        if (h && h->kind == HIT_ROW) pick(s, picker_at(&s->picker, h->number));
        else s->picker.open = false;
        return;
    }
    if (s->overlay.kind != OVERLAY_NONE) {
        int command = h && h->kind == HIT_ROW ? overlay_command(&s->overlay, h->number) : -1;
        s->overlay.kind = OVERLAY_NONE;
        if (command >= 0) run_command(s, (enum ui_command_id)command);
        return;
    }
    if (!h) return;
    if (h->kind == HIT_CHAT) hand_out(s, COMMAND_NEXT, h->number, NULL);
    else if (h->kind == HIT_KNOB) hand_out(s, COMMAND_KNOB_NEXT, h->number, NULL);
    else if (h->kind == HIT_THINKING) transcript_click_thinking(s->transcript, h->number);
    else if (h->kind == HIT_VERSION_PREVIOUS) hand_out(s, COMMAND_VERSION_PREVIOUS, h->number, NULL);
    else if (h->kind == HIT_VERSION_NEXT) hand_out(s, COMMAND_VERSION_NEXT, h->number, NULL);
    else if (h->kind == HIT_QUESTION) composer_set(s->composer, s->facts.questions[h->number]);
    else if (h->kind == HIT_COMMAND) run_command(s, (enum ui_command_id)h->number);
}

static bool wheel_beside(struct screen *s, const struct key *k, int step) {
    for (int p = PANE_CHAT + 1; p < PANE_COUNT; p++) {
        if (!panes[p].pane->wheel || !inside(s->layout.panes[p], k->x, k->y)) continue;
        panes[p].pane->wheel(s->kept[p], step);
        return true;
    }
    return false;
}

static void mouse_input(struct screen *s, const struct key *k) {
    int step = k->action == MOUSE_WHEEL_UP ? -1 : 1;
    bool other_button = k->action == MOUSE_PRESS && k->number != 0;
    if (k->action == MOUSE_RELEASE || other_button || s->dialog.state == DIALOG_OPEN) return;
    if (k->action == MOUSE_PRESS) click(s, k);
    else if (s->picker.open) picker_scroll(&s->picker, step);
    else if (s->overlay.kind != OVERLAY_NONE) overlay_scroll(&s->overlay, step * WHEEL_LINES);
    else if (!wheel_beside(s, k, step)) transcript_scroll(s->transcript, step * WHEEL_LINES);
}

// Esc and soon afterwards a key are what Alt and that key are bound to, for terminals and hands without Alt.
static int command_after_escape(struct screen *s, const struct key *k) {
    struct key alt = *k;
    alt.modifiers |= KEY_ALT;
    bool soon = s->escaped && clock_ns() - s->escaped < ESCAPE_NS;
    s->escaped = k->code == KEY_ESCAPE && !composer_takes_escape(s->composer) ? clock_ns() : 0;
    return soon ? bound_command(s, &alt) : -1;
}

static void input(struct screen *s, const struct key *k) {
    if (k->code == KEY_MOUSE) {
        mouse_input(s, k);
    } else if (s->dialog.state == DIALOG_OPEN) {
        dialog_input(s, k);
    } else if (s->picker.open) {
        picker_input(s, k);
    } else if (s->overlay.kind != OVERLAY_NONE) {
        overlay_input(s, k);
    } else if (k->code == KEY_ESCAPE && s->facts.stoppable) {
        run_command(s, COMMAND_MODEL_STOP);
    } else {
        int id = command_after_escape(s, k);
        if (id < 0) id = bound_command(s, k);
        if (id >= 0) run_command(s, (enum ui_command_id)id);
        else composer_input(s, k);
    }
}

bool screen_input(struct screen *s, struct ui_command *out) {
    struct key k;
    while (s->n_queue == 0) {
        if (!terminal_key(s->terminal, &k)) return false;
        input(s, &k);
    }
    *out = s->queue[0];
    memmove(s->queue, s->queue + 1, (size_t)--s->n_queue * sizeof *s->queue);
    return true;
}
