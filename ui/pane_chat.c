// The conversation: its title and model in the border, the transcript, and below it the rule over the message, which
// says what there is no pane for: more text below, the context, what is being loaded.
#include <stdio.h>
#include <string.h>

#include "ui/keys.h"
#include "ui/pane.h"
#include "ui/pane_chats.h"
#include "ui/screen_state.h"
#include "ui/transcript.h"

#define GAUGE_COLUMNS 10
#define WRITING_SHOWN 100 // tokens of the message being written that are worth a word
#define METRICS_WIDE  46 // of the rule, so that two metrics fit beside what else it says
#define COMPACT_LEAST 24 // of it, so that it says the context's share,
#define COMPACT_WIDE  56 // or all in words
#define NAME_LEAST    6  // of the model's name

static int worth_showing(const struct screen_view *v) { return v->writing >= WRITING_SHOWN ? v->writing : 0; }

static double context_share(const struct screen_view *v) {
    return ((double)v->context_used + worth_showing(v)) / v->context_size;
}

static enum theme_role context_role(double share) {
    return share >= 0.95 ? ROLE_BAD : share >= 0.8 ? ROLE_WARN : ROLE_TEXT;
}

// "1,204 / 8,192 tokens ▓▓▓░░░░░░░", shortened until it fits; "~1,204" of a guess, "1,204 + ~310" before a long
// message.
static void draw_gauge(struct view_frame *f, struct rect line) {
    const struct screen_view *v = f->view;
    if (v->context_size <= 0) return;
    char used[VIEW_NUMBER], size[VIEW_NUMBER], text[4 * VIEW_NUMBER];
    const double share = context_share(v);
    const enum theme_role role = context_role(share);
    const char *about = v->context_guessed ? "~" : "";
    char more[VIEW_NUMBER] = "", writing[VIEW_NUMBER];
    if (worth_showing(v))
        snprintf(more, sizeof more, " + ~%s", view_number(v->writing, writing));
    int width = snprintf(text, sizeof text, "%s%s%s / %s tokens", about, view_number(v->context_used, used), more,
                         view_number(v->context_size, size));
    if (width > line.width) width = snprintf(text, sizeof text, "%s%s%s/%s", about, used, more, size);
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
static void draw_loading(struct view_frame *f, struct rect line) {
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
    if (l->done < 0) draw_unknown(c, line, x, width, f->bar_step);
    else canvas_gauge(c, line, x, line.y, width, (double)l->done, ROLE_GAUGE);
    x += width > 0 ? width : 0;
    x += canvas_text(c, line, x, line.y, view_style(ROLE_STRONG), share, strlen(share));
    canvas_text(c, line, x, line.y, view_style(ROLE_DIM), hint, strlen(hint));
}

// A text on the rule that is a command; nothing where there is no room. Returns whether there was.
static bool draw_command(struct view_frame *f, struct rect rule, struct style style, const char *text,
                         enum ui_command_id id) {
    int width = text_width(text, strlen(text));
    if (width > rule.width) return false;
    canvas_text(f->canvas, rule, rule.x, rule.y, style, text, strlen(text));
    frame_hit(f, (struct rect){rule.x, rule.y, width, 1}, HIT_COMMAND, (int)id);
    return true;
}

// " editing your message: Enter keeps it as a new version, Esc stops ", shortened until it fits.
static void draw_editing(struct view_frame *f, struct rect rule) {
    char text[160];
    const char *what = f->view->editing, *key = f->escape_is_typed ? keys_name(COMMAND_INTERRUPT) : "Esc";
    struct style style = view_bold(ROLE_ACCENT);
    snprintf(text, sizeof text, " editing %s: Enter keeps it as a new version, %s stops ", what, key);
    if (draw_command(f, rule, style, text, COMMAND_EDIT_STOP)) return;
    snprintf(text, sizeof text, " editing %s, %s stops ", what, key);
    if (!draw_command(f, rule, style, text, COMMAND_EDIT_STOP))
        draw_command(f, rule, style, " editing ", COMMAND_EDIT_STOP);
}

// An answer of this chat is being written that is not on the path.
static bool answers_elsewhere(const struct screen_view *v) {
    const struct view_chat *chat = view_chat(v);
    bool busy = chat && chat->busy;
    for (int i = 0; i < v->n_messages && busy; i++) busy = !v->messages[i].streaming;
    return busy;
}

static bool bordered(const struct layout *l) { return l->transcript.x > l->panes[PANE_CHAT].x; }

// Returns the columns used, 0 when the text is blank or too long.
static int draw_at_right(struct view_frame *f, struct rect rule, const char *text) {
    int width = text_width(text, strlen(text));
    if (width <= 2 || width > rule.width / 2) return 0;
    canvas_text(f->canvas, rule, rule.x + rule.width - width - 1, rule.y, view_style(ROLE_DIM), text, strlen(text));
    return width + 2;
}

// Metrics in words on the rule where their panes are not on the screen; in a narrow one the speed counts more than the
// pages. Returns the columns used at the right.
static int draw_metrics_in_words(struct view_frame *f, struct rect rule) {
    const struct engine_metrics *g = f->view->metrics;
    char rate[VIEW_NUMBER], speed[2 * VIEW_NUMBER] = "", pages[VIEW_NUMBER] = "", text[6 * VIEW_NUMBER];
    if (!g) return 0;
    if (!f->layout->panes[PANE_THROUGHPUT].width && g->decode_now > 0)
        snprintf(speed, sizeof speed, "%s tok/s", view_rate((double)g->decode_now, rate));
    if (!f->layout->panes[PANE_KV].width && g->n_pages > 0 && metric_known(g->pages_used))
        snprintf(pages, sizeof pages, "kv %d%%", (int)(100LL * g->pages_used / g->n_pages));
    if (speed[0] && pages[0] && rule.width >= METRICS_WIDE)
        snprintf(text, sizeof text, " %s%s%s ", speed, f->canvas->ascii ? ", " : " · ", pages);
    else snprintf(text, sizeof text, " %s ", speed[0] ? speed : pages);
    return draw_at_right(f, rule, text);
}

// "↓ new text below", as far as there is room; returns the columns used.
static int draw_below(struct view_frame *f, struct rect rule, enum transcript_below below, int room) {
    static const char *const texts[][2] = {[TRANSCRIPT_MORE_BELOW] = {" more below ", " more "},
                                           [TRANSCRIPT_NEW_BELOW] = {" new text below ", " new "}};
    const bool fresh = below == TRANSCRIPT_NEW_BELOW;
    const char *text = texts[below][(int)strlen(texts[below][0]) + 2 > room];
    const int width = (int)strlen(text) + 2, x = rule.x + 1;
    if (width > room) return 0;
    const struct style style = fresh ? view_bold(ROLE_ACCENT) : view_style(ROLE_ACCENT);
    canvas_text(f->canvas, rule, x, rule.y, style, " ", 1);
    canvas_symbol(f->canvas, rule, x + 1, rule.y, style, "↓", 'v');
    canvas_text(f->canvas, rule, x + 2, rule.y, style, text, strlen(text));
    frame_hit(f, (struct rect){x, rule.y, width, 1}, HIT_COMMAND, COMMAND_BOTTOM);
    return width;
}

// "writes 12.0 tok/s", of the chat on the screen; without the first word where room is short.
static const char *state_text(const struct screen_view *v, bool wide, char out[3 * VIEW_NUMBER]) {
    const struct view_chat *chat = view_chat(v);
    char rate[VIEW_NUMBER];
    double speed = chat->tokens_per_second > 0 ? (double)chat->tokens_per_second : 0;
    if (speed <= 0 && v->metrics) speed = (double)v->metrics->decode_now;
    if (!chat->busy) return chat->state == REQUEST_FAILED ? "failed" : "ready";
    if (chat->state == REQUEST_PENDING) return "waits";
    if (chat->state == REQUEST_PREFILLING && chat->prefill_total <= 0) return "reads";
    if (chat->state == REQUEST_PREFILLING)
        snprintf(out, 3 * VIEW_NUMBER, "reads %d%%", (int)(100LL * chat->prefill_done / chat->prefill_total));
    else if (speed > 0) snprintf(out, 3 * VIEW_NUMBER, "%s%s tok/s", wide ? "writes " : "", view_rate(speed, rate));
    else return "writes";
    return out;
}

// " context 3% ", ending before column `end`; returns where it begins.
static int draw_share(struct view_frame *f, struct rect rule, int end) {
    const struct screen_view *v = f->view;
    char text[2 * VIEW_NUMBER];
    if (v->context_size <= 0 || rule.width < COMPACT_LEAST) return end;
    const double share = context_share(v);
    const int percent = share > 0 && share < 0.01 ? 1 : (int)(100 * share);
    const int width = snprintf(text, sizeof text, " context %s%d%% ", v->context_guessed ? "~" : "", percent);
    canvas_text(f->canvas, rule, end - width, rule.y, view_style(context_role(share)), text, (size_t)width);
    frame_hit(f, (struct rect){end - width, rule.y, width, 1}, HIT_COMMAND, COMMAND_CONTEXT);
    return end - width;
}

// " ● 12.0 tok/s ", likewise, unless it would begin before `start`.
static int draw_state(struct view_frame *f, struct rect rule, int start, int end) {
    const struct view_chat *chat = view_chat(f->view);
    char text[3 * VIEW_NUMBER];
    if (!chat) return end;
    const char *state = state_text(f->view, rule.width >= COMPACT_WIDE, text);
    const int width = (int)strlen(state) + 4;
    if (end - width < start) return end;
    const struct rect place = {end - width, rule.y, width, 1};
    canvas_fill(f->canvas, place, view_style(ROLE_TEXT), ' ');
    chats_draw_mark(f, rect_after(place, 1), chat, chats_mark_style(chat));
    canvas_text(f->canvas, place, place.x + 3, place.y, view_style(ROLE_TEXT), state, strlen(state));
    return place.x;
}

static void draw_model(struct view_frame *f, struct rect place) {
    const struct screen_view *v = f->view;
    const int room = place.width - 2;
    if (!v->model_name || room < NAME_LEAST) return;
    const bool whole = !v->model_short || text_width(v->model_name, strlen(v->model_name)) <= room;
    char text[VIEW_WORDS];
    snprintf(text, sizeof text, " %s", whole ? v->model_name : v->model_short);
    const int used = canvas_cut(f->canvas, (struct rect){place.x, place.y, room + 1, 1}, view_style(ROLE_DIM), text);
    canvas_text(f->canvas, place, place.x + used, place.y, view_style(ROLE_DIM), " ", 1);
    frame_hit(f, (struct rect){place.x, place.y, used + 1, 1}, HIT_COMMAND, COMMAND_MODEL);
}

// What borders and panes say elsewhere: "guide Q8_0 ──── ● 12.0 tok/s  context 3%". The model goes first where room is
// short, or where there is more to say.
static void draw_compact(struct view_frame *f, struct rect rule, enum transcript_below below) {
    int start = rule.x + 1, end = draw_share(f, rule, rule.x + rule.width - 1);
    if (below != TRANSCRIPT_AT_END) start += draw_below(f, rule, below, end - start);
    end = draw_state(f, rule, start, end);
    const struct rect place = {start, rule.y, end - start, 1};
    if (answers_elsewhere(f->view))
        draw_command(f, place, view_style(ROLE_ACCENT), " another branch ", COMMAND_TREE);
    else if (below == TRANSCRIPT_AT_END) draw_model(f, place);
}

static void draw_rule(struct view_frame *f, enum transcript_below below) {
    struct rect rule = f->layout->rule, box = f->layout->panes[PANE_CHAT];
    struct style line = view_style(ROLE_BORDER);
    if (rule.height <= 0) return;
    for (int x = rule.x; x < rule.x + rule.width; x++) canvas_symbol(f->canvas, rule, x, rule.y, line, "─", '-');
    if (f->view->loading) {
        draw_loading(f, (struct rect){rule.x + 1, rule.y, rule.width - 2, 1});
        if (!bordered(f->layout)) return;
    }
    if (bordered(f->layout)) {
        canvas_symbol(f->canvas, box, box.x, rule.y, line, "├", '+');
        canvas_symbol(f->canvas, box, box.x + box.width - 1, rule.y, line, "┤", '+');
    } else if (!f->view->editing) {
        draw_compact(f, rule, below);
        return;
    }
    if (f->view->loading) return;
    if (f->view->editing) {
        draw_editing(f, (struct rect){rule.x + 1, rule.y, rule.width - 2, 1});
        return;
    }
    int right = draw_metrics_in_words(f, rule);
    if (below == TRANSCRIPT_AT_END) {
        if (answers_elsewhere(f->view))
            draw_command(f, (struct rect){rule.x + 1, rule.y, rule.width - right - 1, 1}, view_style(ROLE_ACCENT),
                         " another branch answers ", COMMAND_TREE);
        return;
    }
    draw_below(f, rule, below, rule.width - right);
}

static void draw(struct view_frame *f, struct rect box, void *kept) {
    const struct screen_view *v = f->view;
    const struct view_chat *chat = view_chat(v);
    const char *title = chat && chat->title && chat->title[0] ? chat->title : "New chat";
    if (bordered(f->layout)) {
        char model[VIEW_WORDS];
        snprintf(model, sizeof model, v->template ? "%s, %s" : "%s", v->model_name, v->template);
        view_box(f, box, PANE_CHAT, 0, title, model);
        draw_gauge(f, (struct rect){box.x + 2, box.y + box.height - 1, box.width - 4, 1});
    }
    bool compared = v->n_columns; // its place is theirs
    const struct rect area = f->layout->bare ? f->layout->transcript : view_padded(f->layout->transcript);
    draw_rule(f, compared || !area.height ? TRANSCRIPT_AT_END : transcript_draw(kept, f, area));
}

static void click(struct screen *s, void *kept, const struct hit *h) {
    struct transcript *t = kept;
    if (h->kind == HIT_MESSAGE && transcript_message(t, h->number)) {
        screen_open_pane(s, PANE_SELECT);
        transcript_select(t, transcript_message(t, h->number));
    } else if (h->kind == HIT_TEXT) {
        if (transcript_mouse_press(t, h->area.x + h->x, h->area.y + h->y, s->presses.count))
            screen_open_pane(s, PANE_TEXT);
    } else if (h->kind == HIT_WAITING) {
        screen_hand_out(s, COMMAND_TAKE_BACK, h->number, NULL);
    } else if (h->kind == HIT_TOKEN) {
        transcript_token_click(t, h->number, h->x);
    } else if (h->kind == HIT_THINKING) {
        transcript_click_thinking(kept, h->number);
    } else if (h->kind == HIT_COLLAPSE) {
        transcript_click_collapse(kept, h->number);
    } else if (h->kind == HIT_QUESTION) {
        composer_set(s->composer, s->facts.questions[h->number]);
    } else if (h->kind == HIT_VERSION_PREVIOUS || h->kind == HIT_VERSION_NEXT) {
        bool next = h->kind == HIT_VERSION_NEXT;
        screen_hand_out_message(s, next ? COMMAND_VERSION_NEXT : COMMAND_VERSION_PREVIOUS,
                                transcript_message(t, h->number), NULL);
    }
}

static void wheel(void *kept, int step) { transcript_scroll(kept, step * VIEW_WHEEL_LINES); }

const struct pane pane_chat = {.draw = draw, .click = click, .wheel = wheel};
