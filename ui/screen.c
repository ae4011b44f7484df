#include "ui/screen.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "ui/clipboard.h"
#include "ui/keys.h"
#include "ui/pane_dialog.h"
#include "ui/pane_find.h"
#include "ui/pane_kv_map.h"
#include "ui/pane_models.h"
#include "ui/pane_prompt.h"
#include "ui/screen_state.h"

#define NOTICE_SECONDS        5 // that it is shown in full
#define NOTICE_BAD_SECONDS    12
#define NOTICE_FADING_SECONDS 1

// ---- life ----

static void bind_keys(struct screen *s) {
    for (int i = 0; i < COMMAND_COUNT; i++) s->bound[i] = key_parse(keys_name((enum ui_command_id)i), &s->keys[i]);
}

struct screen *screen_open(const struct screen_options *o, struct status *st) {
    struct terminal_options terminal = {.input_fd = o->input_fd, .output_fd = o->output_fd, .colours = o->colours};
    struct terminal *t = terminal_open(&terminal, st);
    if (!t) return NULL;
    struct screen *s = xcalloc(1, sizeof *s);
    s->terminal = t;
    s->ascii = o->ascii || !terminal_unicode(t);
    screen_set_panes(s, &o->panes);
    s->titles = o->title;
    for (int p = 0; p < PANE_COUNT; p++)
        if (pane_actions[p]->keeps) s->kept[p] = xcalloc(1, pane_actions[p]->keeps);
    s->kept[PANE_COMPOSER] = s->composer = composer_open(o->history_path, o->worker);
    s->transcript = transcript_open();
    s->kept[PANE_CHAT] = s->kept[PANE_SELECT] = s->kept[PANE_TEXT] = s->kept[PANE_TOKENS] = s->transcript;
    s->kept[PANE_READ] = s->transcript;
    s->kept[PANE_LOG_ENTRIES] = s->kept[PANE_LOG];
    s->stack[s->n_stack++] = PANE_COMPOSER;
    completion_open(&s->completion, o->reader);
    bind_keys(s);
    canvas_open(&s->canvas, 0, 0);
    theme_load(&s->theme, o->theme ? o->theme : THEME_DEFAULT, o->theme_problem);
    return s;
}

void screen_close(struct screen *s) {
    if (!s) return;
    terminal_close(s->terminal);
    canvas_close(&s->canvas);
    completion_close(&s->completion);
    window_close(&s->window);
    composer_close(s->composer);
    transcript_close(s->transcript);
    for (int p = 0; p < PANE_COUNT; p++) {
        if (pane_actions[p]->closed) pane_actions[p]->closed(s->kept[p]);
        if (pane_actions[p]->keeps) free(s->kept[p]);
    }
    free(s);
}

bool screen_ended(const struct screen *s) { return terminal_ended(s->terminal); }

int screen_output_fd(const struct screen *s) { return terminal_output_fd(s->terminal); }

void screen_resized(struct screen *s) { terminal_forget(s->terminal); }

void screen_suspend(struct screen *s) { terminal_suspend(s->terminal); }

void screen_lend(struct screen *s) { terminal_lend(s->terminal); }

void screen_reclaim(struct screen *s) { terminal_reclaim(s->terminal); }

void screen_ask(struct screen *s, enum ui_command_id id, const char *label, const char *hint, const char *initial) {
    dialog_ask(s, id, label, hint, initial);
}

void screen_confirm(struct screen *s, enum ui_command_id id, const char *question) { dialog_confirm(s, id, question); }
void screen_compare(struct screen *s) { screen_open_pane(s, PANE_COMPARE); }

const char *screen_take_message(struct screen *s) {
    const char *message = composer_take(s->composer);
    if (message) transcript_bottom(s->transcript);
    return message;
}

void screen_set_composer(struct screen *s, const char *text) { composer_set(s->composer, text); }

size_t screen_message_size(const struct screen *s) { return composer_size(s->composer); }

void screen_quote(struct screen *s, const char *text, size_t size) { composer_quote(s->composer, text, size); }

void screen_insert(struct screen *s, const char *text) { composer_paste(s->composer, text, strlen(text)); }

void screen_rewrite(struct screen *s, const char *text) { composer_rewrite(s->composer, text); }

void screen_draft(const struct screen *s, struct draft *out) { composer_draft(s->composer, out); }

void screen_set_draft(struct screen *s, const struct draft *d) { composer_set_draft(s->composer, d); }

const char *screen_theme(const struct screen *s) { return s->theme.name; }

bool screen_set_theme(struct screen *s, const char *name, struct status *st) {
    struct theme theme;
    struct status own = {0};
    if (!theme_load(&theme, name, &own)) {
        if (st) *st = own;
        return false;
    }
    s->theme = theme;
    terminal_forget(s->terminal);
    return true;
}

void screen_set_ascii(struct screen *s, bool ascii) { s->ascii = ascii || !terminal_unicode(s->terminal); }

int screen_page(const struct screen *s) {
    return screen_has_open(s, PANE_KV_MAP) ? kv_map_chosen(s->kept[PANE_KV_MAP]) : -1;
}

const char *screen_finding(const struct screen *s, enum find_order *order) {
    return screen_has_open(s, PANE_FIND) ? find_words(s->kept[PANE_FIND], order) : NULL;
}

void screen_show_message(struct screen *s, uint64_t chat, uint64_t message) {
    s->facts.chat = chat; // it is no other chat's selection
    screen_open_pane(s, PANE_SELECT);
    transcript_select(s->transcript, message);
}

bool screen_ascii(const struct screen *s) { return s->ascii; }

bool screen_copy(struct screen *s, const char *text, size_t size, char how[128]) {
    return clipboard_copy(s->terminal, text, size, how);
}

// ---- the terminal's window ----

void screen_notify(struct screen *s, int kind, const char *title) {
    window_notify(s->terminal, (enum window_notice)kind, title);
}

void screen_set_title(struct screen *s, bool title) { s->titles = title; }

// ---- the panes that are open ----

bool screen_has_open(const struct screen *s, enum pane_id pane) {
    for (int i = 0; i < s->n_stack; i++)
        if (s->stack[i] == pane) return true;
    return false;
}

void screen_close_pane(struct screen *s, enum pane_id pane) {
    int n = 0;
    for (int i = 0; i < s->n_stack; i++)
        if (s->stack[i] != pane) s->stack[n++] = s->stack[i];
    s->n_stack = n;
}

void *screen_open_pane(struct screen *s, enum pane_id pane) {
    screen_close_pane(s, pane);
    if (pane == PANE_COMPARE) screen_close_pane(s, PANE_SELECT); // both say which message keys are about
    if (pane == PANE_SELECT || pane == PANE_TEXT) screen_close_pane(s, PANE_COMPARE);
    if (pane == PANE_TEXT) screen_close_pane(s, PANE_TOKENS); // two cursors
    if (pane == PANE_TOKENS) screen_close_pane(s, PANE_TEXT);
    s->stack[s->n_stack++] = pane;
    if (pane_actions[pane]->passes_on && pane != PANE_FOCUS && s->focus != PANE_CHAT) s->zoomed = false;
    if (pane_actions[pane]->opened) pane_actions[pane]->opened(s->kept[pane]);
    return s->kept[pane];
}

// ---- the line about what just happened ----

static void set_notice(struct screen *s, bool bad, const char *text) {
    snprintf(s->notice.text, sizeof s->notice.text, "%s", text);
    s->notice.bad = bad;
    s->notice.from_view = false;
    s->notice.since = clock_ns();
}

void screen_say(struct screen *s, bool bad, const char *format, ...) {
    char text[SCREEN_NOTICE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    set_notice(s, bad, text);
}

static void take_status(struct screen *s, const struct screen_view *v) {
    const char *status = v->status ? v->status : "";
    if (!status[0] && s->notice.from_view) s->notice.since = 0; // something else was done meanwhile
    char text[SCREEN_NOTICE];
    snprintf(text, sizeof text, "%s", status);
    if (strcmp(text, s->notice.seen) == 0) return;
    memcpy(s->notice.seen, text, sizeof text);
    if (!text[0]) return;
    set_notice(s, v->status_bad, text);
    s->notice.from_view = true;
}

// *left: milliseconds until the next phase; −1: there is none.
static enum notice_phase notice_phase(const struct screen *s, int *left) {
    uint64_t full = (s->notice.bad ? NOTICE_BAD_SECONDS : NOTICE_SECONDS) * 1000;
    uint64_t gone = full + NOTICE_FADING_SECONDS * 1000, age = (clock_ns() - s->notice.since) / 1000000;
    *left = -1;
    if (!s->notice.since || age >= gone) return NOTICE_GONE;
    *left = (int)(age < full ? full - age : gone - age);
    return age < full ? NOTICE_FULL : NOTICE_FADING;
}

static struct view_status current_status(struct screen *s) {
    int left;
    s->notice.drawn = notice_phase(s, &left);
    if (s->notice.drawn == NOTICE_GONE) return (struct view_status){0};
    return (struct view_status){
        .text = s->notice.text, .bad = s->notice.bad, .fading = s->notice.drawn == NOTICE_FADING};
}

static uint64_t bar_step(void) { return clock_ns() / 1000000 / BAR_STEP_MS; }

static void sooner(int *timeout, int other) {
    if (other >= 0 && (*timeout < 0 || other < *timeout)) *timeout = other;
}

int screen_timeout(const struct screen *s) {
    int notice, timeout = terminal_timeout(s->terminal);
    if (terminal_lent(s->terminal)) return -1;
    if (s->waits && !s->ahead) return 0;
    if (s->stale || notice_phase(s, &notice) != s->notice.drawn || path_list_news(s->completion.paths)) return 0;
    if (s->facts.animated && bar_step() != s->frame.bar_step) return 0;
    sooner(&timeout, notice);
    if (s->facts.animated) sooner(&timeout, BAR_STEP_MS - (int)(clock_ns() / 1000000 % BAR_STEP_MS));
    return timeout;
}

// ---- drawing ----

static void keep_facts(struct screen *s, const struct screen_view *v) {
    const struct view_chat *chat = view_chat(v);
    const uint64_t before = s->facts.chat;
    s->facts = (struct screen_facts){.n_chats = v->n_chats,
                                     .current = v->current,
                                     .knob = v->knob,
                                     .fan_out = v->fan_out,
                                     .waiting = v->n_messages ? v->messages[v->n_messages - 1].waiting : 0,
                                     .compared = v->n_columns ? v->columns[v->column].id : 0,
                                     .loading = v->loading,
                                     .stoppable = v->loading && v->loading->stoppable,
                                     .animated = v->loading && v->loading->done < 0,
                                     .editing = v->editing,
                                     .questions = v->questions};
    if (v->sampling) s->facts.sampling = *v->sampling;
    s->completion.settings = v->settings, s->completion.n_settings = v->n_settings;
    s->completion.editing = v->editing;
    if (!v->n_columns) screen_close_pane(s, PANE_COMPARE);
    if (!chat) return;
    s->facts.chat = chat->id;
    s->facts.busy = chat->busy;
    composer_keep_history(s->composer, !chat->private);
    if (chat->id != before) screen_close_pane(s, PANE_SELECT), screen_close_pane(s, PANE_TEXT); // of what was shown
    snprintf(s->facts.title, sizeof s->facts.title, "%s", chat->title ? chat->title : "");
    snprintf(s->facts.tags, sizeof s->facts.tags, "%s", chat->tags ? chat->tags : "");
}

static void draw_pane(struct screen *s, enum pane_id pane, struct rect area) {
    s->frame.pane = pane;
    pane_actions[pane]->draw(&s->frame, area, s->kept[pane]);
}

// On a terminal without colours, or with a theme that gives the pages of all chats the same one.
static bool without_colours(const struct screen *s) {
    struct theme_colour a = s->theme.colours[ROLE_KV_CURRENT], b = s->theme.colours[ROLE_KV_OWNED];
    bool same = a.own == b.own && a.red == b.red && a.green == b.green && a.blue == b.blue;
    return same || terminal_colours(s->terminal) == 1;
}

static void begin_frame(struct screen *s, const struct screen_view *v) {
    s->canvas.ascii = s->ascii;
    s->frame = (struct view_frame){.canvas = &s->canvas,
                                   .view = v,
                                   .without_colours = without_colours(s),
                                   .layout = &s->layout,
                                   .focus = screen_has_open(s, PANE_FOCUS) ? s->focus : PANE_COUNT,
                                   .status = current_status(s),
                                   .escape_is_typed = composer_takes_escape(s->composer),
                                   .bar_step = bar_step(),
                                   .cursor_x = -1,
                                   .cursor_y = -1};
}

bool screen_token(struct screen *s, const struct screen_view *v, uint64_t *message, int *token) {
    struct token_cursor *cursor = transcript_token_cursor(s->transcript);
    return screen_has_open(s, PANE_TOKENS) && token_cursor_find(cursor, v, message, token);
}

// What the transcript's text cursor copied in this frame. A quotation goes where the keys were shown.
static void take_text(struct screen *s) {
    char how[128];
    size_t size;
    bool quote;
    char *text = transcript_text_copied(s->transcript, &size, &quote);
    if (text && quote) {
        screen_quote(s, text, size);
        screen_close_pane(s, PANE_TEXT);
        screen_close_pane(s, PANE_SELECT);
        s->stale = true;
    } else if (text) {
        const bool copied = screen_copy(s, text, size, how);
        screen_say(s, !copied, "%s", how);
        s->frame.status = current_status(s);
    }
    free(text);
}

void screen_draw(struct screen *s, const struct screen_view *v) {
    int width, height;
    if (terminal_lent(s->terminal)) return;
    terminal_size(s->terminal, &width, &height);
    if (width != s->canvas.width || height != s->canvas.height) canvas_resize(&s->canvas, width, height);
    else canvas_clear(&s->canvas);
    s->stale = s->ahead = false;
    keep_facts(s, v);
    completion_update(&s->completion, s->composer);
    take_status(s, v);
    if (!screen_has_open(s, PANE_SELECT)) transcript_select(s->transcript, 0);
    if (!screen_has_open(s, PANE_TOKENS)) transcript_tokens_end(s->transcript);
    if (!screen_has_open(s, PANE_TEXT)) transcript_text_end(s->transcript);
    if (!screen_has_open(s, PANE_SEARCH) && !screen_has_open(s, PANE_TEXT)) transcript_search(s->transcript, "");
    screen_layout(s, width, height);
    if (screen_has_open(s, PANE_PROMPT)) prompt_make_room(&s->layout, v->prompt);
    begin_frame(s, v);
    for (int p = PANES_FIRST; p < PANES_END; p++)
        if (s->layout.panes[p].width) draw_pane(s, (enum pane_id)p, s->layout.panes[p]);
    struct rect message = view_padded(s->layout.composer);
    draw_pane(s, PANE_CHAT, s->layout.panes[PANE_CHAT]);
    take_text(s);
    if (!s->layout.bare) {
        draw_pane(s, PANE_SAMPLING, s->layout.sampling);
        draw_pane(s, PANE_COMPOSER, message);
    }
    if (s->n_stack == 1) completion_draw(&s->completion, &s->frame);
    for (int i = 1; i < s->n_stack; i++)
        draw_pane(s, s->stack[i], pane_actions[s->stack[i]]->rows ? message : (struct rect){0, 0, width, height});
    s->frame.view = NULL; // borrowed for this call only
    terminal_draw(s->terminal, &s->canvas, &s->theme, s->frame.cursor_x, s->frame.cursor_y);
    terminal_mouse(s->terminal, !s->layout.bare);
    if (s->titles) window_set_title(&s->window, s->terminal, s->facts.title);
}
