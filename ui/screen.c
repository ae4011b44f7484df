#include "ui/screen.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "ui/clipboard.h"
#include "ui/screen_state.h"

#define NOTICE_SECONDS        5 // that it is shown in full
#define NOTICE_BAD_SECONDS    12
#define NOTICE_FADING_SECONDS 1
#define PAD_WIDTH             24 // panes at least so wide have a blank column at either side

#define FIGURES_WIDE 46 // of the rule, so that two figures fit beside what else it says

// ---- life ----

static void bind_keys(struct screen *s) {
    for (int i = 0; i < COMMAND_COUNT; i++) s->bound[i] = key_parse(ui_commands[i].key, &s->keys[i]);
}

struct screen *screen_open(const struct screen_options *o, struct status *st) {
    struct terminal_options terminal = {.input_fd = o->input_fd, .output_fd = o->output_fd, .colours = o->colours};
    struct terminal *t = terminal_open(&terminal, st);
    if (!t) return NULL;
    struct screen *s = xcalloc(1, sizeof *s);
    s->terminal = t;
    s->ascii = o->ascii || !terminal_unicode(t);
    s->panes = o->panes & PANES_BESIDE;
    s->panes_chosen = o->panes;
    for (int p = PANE_CHAT + 1; p < PANE_COUNT; p++)
        if (panes[p].pane->keeps) s->kept[p] = xcalloc(1, panes[p].pane->keeps);
    s->composer = composer_open(o->history_path);
    s->transcript = transcript_open();
    bind_keys(s);
    canvas_open(&s->canvas, 0, 0);
    theme_load(&s->theme, o->theme ? o->theme : THEME_DEFAULT, o->theme_problem);
    return s;
}

void screen_close(struct screen *s) {
    if (!s) return;
    terminal_close(s->terminal);
    canvas_close(&s->canvas);
    composer_close(s->composer);
    transcript_close(s->transcript);
    picker_close(&s->picker);
    for (int p = 0; p < PANE_COUNT; p++) free(s->kept[p]);
    free(s);
}

bool screen_ended(const struct screen *s) { return terminal_ended(s->terminal); }

int screen_output_fd(const struct screen *s) { return terminal_output_fd(s->terminal); }

void screen_resized(struct screen *s) { terminal_forget(s->terminal); }

void screen_suspend(struct screen *s) { terminal_suspend(s->terminal); }

void screen_choose_model(struct screen *s, const char *filter) { picker_open(&s->picker, filter); }

void screen_set_composer(struct screen *s, const char *text) { composer_set(s->composer, text); }

void screen_draft(const struct screen *s, struct draft *out) { composer_draft(s->composer, out); }

void screen_set_draft(struct screen *s, const struct draft *d) { composer_set_draft(s->composer, d); }

const char *screen_theme(const struct screen *s) { return s->theme.name; }
uint32_t screen_panes(const struct screen *s) { return s->panes; }

uint32_t screen_panes_with_room(const struct screen *s) {
    struct layout l = layout_make(s->canvas.width, s->canvas.height, s->panes, 1);
    uint32_t shown = 0;
    for (int p = PANE_CHAT + 1; p < PANE_COUNT; p++) shown |= (uint32_t)(l.panes[p].width > 0) << p;
    return shown;
}

bool screen_ascii(const struct screen *s) { return s->ascii; }

bool screen_copy(struct screen *s, const char *text, size_t size, char how[128]) {
    return clipboard_copy(s->terminal, text, size, how);
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
    if (notice_phase(s, &notice) != s->notice.drawn) return 0;
    if (s->facts.animated && bar_step() != s->bar_step) return 0;
    sooner(&timeout, notice);
    if (s->facts.animated) sooner(&timeout, BAR_STEP_MS - (int)(clock_ns() / 1000000 % BAR_STEP_MS));
    return timeout;
}

// ---- drawing ----

static struct rect padded(struct rect r) {
    if (r.width >= PAD_WIDTH) r.x++, r.width -= 2;
    return r;
}

static void keep_facts(struct screen *s, const struct screen_view *v) {
    const struct view_chat *chat = v->current >= 0 && v->current < v->n_chats ? &v->chats[v->current] : NULL;
    s->facts = (struct screen_facts){.n_chats = v->n_chats,
                                     .current = v->current,
                                     .knob = v->knob,
                                     .loading = v->loading,
                                     .stoppable = v->loading && v->loading->stoppable,
                                     .animated = v->loading && v->loading->done < 0,
                                     .questions = v->questions};
    if (v->sampling) s->facts.sampling = *v->sampling;
    if (!chat) return;
    s->facts.chat = chat->id;
    s->facts.busy = chat->busy;
    snprintf(s->facts.title, sizeof s->facts.title, "%s", chat->title ? chat->title : "");
}

static bool bordered(const struct layout *l) { return l->transcript.x > l->panes[PANE_CHAT].x; }

// Returns the columns used, 0 when the text is blank or too long.
static int draw_at_right(struct screen *s, struct rect rule, const char *text) {
    int width = text_width(text, strlen(text));
    if (width <= 2 || width > rule.width / 2) return 0;
    canvas_text(&s->canvas, rule, rule.x + rule.width - width - 1, rule.y, view_style(ROLE_DIM), text, strlen(text));
    return width + 2;
}

// Figures in words on the rule where their panes are not on the screen; in a narrow one the speed counts more than the
// pages. Returns the columns used at the right.
static int draw_figures_in_words(struct screen *s, struct rect rule) {
    const struct engine_figures *g = s->frame.view->figures;
    char rate[VIEW_NUMBER], speed[2 * VIEW_NUMBER] = "", pages[VIEW_NUMBER] = "", text[6 * VIEW_NUMBER];
    if (!g) return 0;
    if (!s->layout.panes[PANE_THROUGHPUT].width && g->decode_now > 0)
        snprintf(speed, sizeof speed, "%s tok/s", view_rate((double)g->decode_now, rate));
    if (!s->layout.panes[PANE_KV].width && g->n_pages > 0)
        snprintf(pages, sizeof pages, "kv %d%%", (int)(100LL * g->pages_used / g->n_pages));
    if (speed[0] && pages[0] && rule.width >= FIGURES_WIDE)
        snprintf(text, sizeof text, " %s%s%s ", speed, s->ascii ? ", " : " · ", pages);
    else snprintf(text, sizeof text, " %s ", speed[0] ? speed : pages);
    return draw_at_right(s, rule, text);
}

static void draw_rule(struct screen *s, enum transcript_below below) {
    struct rect rule = s->layout.rule, box = s->layout.panes[PANE_CHAT];
    struct style line = view_style(ROLE_BORDER);
    if (rule.height <= 0) return;
    for (int x = rule.x; x < rule.x + rule.width; x++) canvas_symbol(&s->canvas, rule, x, rule.y, line, "─", '-');
    if (s->frame.view->loading) {
        view_loading(&s->frame, (struct rect){rule.x + 1, rule.y, rule.width - 2, 1}, s->bar_step);
        if (!bordered(&s->layout)) return;
    }
    if (bordered(&s->layout)) {
        canvas_symbol(&s->canvas, box, box.x, rule.y, line, "├", '+');
        canvas_symbol(&s->canvas, box, box.x + box.width - 1, rule.y, line, "┤", '+');
    } else {
        view_gauge(&s->frame, (struct rect){rule.x + 1, rule.y, rule.width - 2, 1});
        return;
    }
    if (s->frame.view->loading) return;
    int right = draw_figures_in_words(s, rule);
    if (below == TRANSCRIPT_AT_END) return;
    const char *text = below == TRANSCRIPT_NEW_BELOW ? " new text below " : " more below ";
    int width = (int)strlen(text) + 2, x = rule.x + 1;
    if (width + right > rule.width) return;
    struct style style = below == TRANSCRIPT_NEW_BELOW ? view_bold(ROLE_ACCENT) : view_style(ROLE_ACCENT);
    canvas_symbol(&s->canvas, rule, x + 1, rule.y, style, "↓", 'v');
    canvas_text(&s->canvas, rule, x + 2, rule.y, style, text, strlen(text));
    canvas_text(&s->canvas, rule, x, rule.y, style, " ", 1);
    frame_hit(&s->frame, (struct rect){x, rule.y, width, 1}, HIT_COMMAND, COMMAND_BOTTOM);
}

static void draw_gauge_in_border(struct screen *s) {
    struct rect box = s->layout.panes[PANE_CHAT];
    view_gauge(&s->frame, (struct rect){box.x + 2, box.y + box.height - 1, box.width - 4, 1});
}

static void draw_chat(struct screen *s, const struct screen_view *v, int *x, int *y) {
    const char *title = s->facts.title[0] ? s->facts.title : "New chat";
    if (bordered(&s->layout)) {
        canvas_box(&s->canvas, s->layout.panes[PANE_CHAT], 0, title, v->model_name, ROLE_BORDER);
        draw_gauge_in_border(s);
    }
    draw_rule(s, transcript_draw(s->transcript, &s->frame, padded(s->layout.transcript)));
    struct rect composer = padded(s->layout.composer);
    if (s->dialog.state == DIALOG_OPEN) dialog_draw(&s->dialog, &s->canvas, composer, x, y);
    else composer_draw(s->composer, &s->canvas, composer, x, y);
}

static void draw_panes_beside(struct screen *s) {
    for (int p = PANE_CHAT + 1; p < PANE_COUNT; p++)
        if (s->layout.panes[p].width) panes[p].pane->draw(&s->frame, s->layout.panes[p], s->kept[p]);
}

// On a terminal without colours, or with a theme that gives the pages of all chats the same one.
static bool without_colours(const struct screen *s) {
    struct theme_colour a = s->theme.colours[ROLE_KV_CURRENT], b = s->theme.colours[ROLE_KV_OWNED];
    bool same = a.own == b.own && a.red == b.red && a.green == b.green && a.blue == b.blue;
    return same || terminal_colours(s->terminal) == 1;
}

static void make_layout(struct screen *s, int width, int height) {
    if (!s->panes_chosen) s->panes = layout_default_panes(width, height);
    s->layout = layout_make(width, height, s->panes, 1);
    int lines = s->dialog.state == DIALOG_OPEN ? 2 : composer_lines(s->composer, padded(s->layout.composer).width);
    if (lines > 1) s->layout = layout_make(width, height, s->panes, lines);
}

void screen_draw(struct screen *s, const struct screen_view *v) {
    int width, height, x = -1, y = -1;
    terminal_size(s->terminal, &width, &height);
    if (width != s->canvas.width || height != s->canvas.height) canvas_resize(&s->canvas, width, height);
    else canvas_clear(&s->canvas);
    s->canvas.ascii = s->ascii;
    s->frame.canvas = &s->canvas;
    s->frame.view = v;
    s->frame.n_hits = 0;
    s->frame.without_colours = without_colours(s);
    s->bar_step = bar_step();
    keep_facts(s, v);
    take_status(s, v);
    make_layout(s, width, height);
    draw_panes_beside(s);
    draw_chat(s, v, &x, &y);
    view_sampling(&s->frame, s->layout.sampling, current_status(s));
    overlay_draw(&s->overlay, &s->frame, &x, &y);
    picker_draw(&s->picker, &s->frame, &x, &y);
    s->frame.view = NULL; // borrowed for this call only
    terminal_draw(s->terminal, &s->canvas, &s->theme, x, y);
}
