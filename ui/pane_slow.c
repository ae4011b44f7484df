// Why was that slow: the slowest token of each quarter of a second as a graph, and what the one with the cursor waited
// for.
#include "ui/pane_slow.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/clock.h"
#include "ui/clamp.h"
#include "ui/pane.h"
#include "ui/pane_graphs.h"

enum {
    WIDTH = 132,
    HEIGHT = 20,
    LINES = 5,     // of the explanation, at least
    SWITCHES = 20, // of threads in a quarter of a second, from which on they explain something
};
#define SLOW        1.5f  // times as long as usual: a spike
#define WORTH_SHARE 0.05f // of a token's time, from which on a part of it is told

struct kept {
    uint64_t cursor;        // number of the sample; 0: not chosen yet
    double asked, span;     // clock_seconds() in the middle of so many that it is to be chosen by; 0: by none
    double at;              // that of the sample with the cursor, as it was last drawn; 0: not known
    uint64_t first, last;   // that there are
    uint64_t before, after; // the nearest spikes; 0: none
    uint64_t left;          // the sample in the first column, as it was last drawn
};

static void opened(void *kept) { *(struct kept *)kept = (struct kept){0}; }

void slow_open(struct screen *s, uint64_t sample) {
    struct kept *k = screen_open_pane(s, PANE_SLOW);
    k->cursor = sample;
}

void slow_open_at(struct screen *s, double middle, double span) {
    struct kept *k = screen_open_pane(s, PANE_SLOW);
    k->asked = middle, k->span = span;
}

// ---- keys ----

static void go(struct kept *k, uint64_t sample) {
    k->cursor = sample < k->first ? k->first : sample > k->last ? k->last : sample;
}

static void move(struct kept *k, int step) {
    const uint64_t back = (uint64_t)(step < 0 ? -step : 0);
    go(k, step > 0 ? k->cursor + (uint64_t)step : k->cursor > back ? k->cursor - back : 1);
}

static int column_of(const struct kept *k, uint64_t sample) { return (int)(sample - k->left); }

static bool key(struct screen *s, void *kept, const struct key *k) {
    struct kept *p = kept;
    if (screen_bound(s, k) == COMMAND_GRAPHS) {
        screen_close_pane(s, PANE_SLOW);
        graphs_open(s, p->at);
        return true;
    }
    if (k->modifiers & ~KEY_SHIFT) return false;
    switch (k->code) {
    case KEY_LEFT: move(p, -1); return true;
    case KEY_RIGHT: move(p, 1); return true;
    case KEY_PAGE_UP: move(p, -40); return true;
    case KEY_PAGE_DOWN: move(p, 40); return true;
    case KEY_HOME: go(p, p->first); return true;
    case KEY_END: go(p, p->last); return true;
    case KEY_UP:
        if (p->before) go(p, p->before);
        return true;
    case KEY_DOWN:
        if (p->after) go(p, p->after);
        return true;
    default: return false;
    }
}

static void click(struct screen *s, void *kept, const struct hit *h) {
    struct kept *k = kept;
    (void)s;
    if (h->kind == HIT_ROW) move(k, h->x - column_of(k, k->cursor));
}

static void wheel(void *kept, int step) { move(kept, step); }

// ---- what there is ----

static const struct view_moment *moment_of(const struct screen_view *v, uint64_t sample) {
    const uint64_t behind = v->samples - sample;
    if (!v->moments || !sample || sample > v->samples || behind >= (uint64_t)v->latency.count) return NULL;
    return &v->moments[v->latency.count - 1 - (int)behind];
}

static float seconds_at(const struct screen_view *v, uint64_t sample) {
    const struct view_moment *m = moment_of(v, sample);
    return m ? m->token.seconds : 0;
}

static bool is_spike(const struct screen_view *v, uint64_t sample) {
    const struct view_moment *m = moment_of(v, sample);
    return m && m->token.usual > 0 && m->token.seconds > SLOW * m->token.usual &&
           m->token.seconds >= seconds_at(v, sample - 1) && m->token.seconds > seconds_at(v, sample + 1);
}

static uint64_t find_spike(const struct screen_view *v, const struct kept *k, int step) {
    for (uint64_t at = k->cursor + (uint64_t)step; at >= k->first && at <= k->last && at; at += (uint64_t)step)
        if (is_spike(v, at)) return at;
    return 0;
}

static double time_of(const struct screen_view *v, uint64_t sample) {
    const struct view_moment *m = moment_of(v, sample);
    return m ? m->at : 0;
}

// The slowest one of the span, or the nearest one to it.
static uint64_t find_asked(const struct screen_view *v, const struct kept *k) {
    uint64_t nearest = k->last, slowest = 0;
    for (uint64_t at = k->first; at <= k->last; at++) {
        const double apart = fabs(time_of(v, at) - k->asked);
        if (apart < fabs(time_of(v, nearest) - k->asked)) nearest = at;
        if (apart <= k->span / 2 && seconds_at(v, at) > seconds_at(v, slowest)) slowest = at;
    }
    return slowest ? slowest : nearest;
}

static void find_places(struct kept *k, const struct screen_view *v, int columns) {
    const uint64_t count = (uint64_t)v->latency.count, shown = (uint64_t)columns < count ? (uint64_t)columns : count;
    k->last = v->samples;
    k->first = v->samples - count + 1;
    if (k->asked > 0) k->cursor = find_asked(v, k);
    k->asked = 0;
    if (!k->cursor) { // the slowest in sight
        k->cursor = k->last;
        for (uint64_t at = k->last + 1 - shown; at <= k->last; at++)
            if (seconds_at(v, at) > seconds_at(v, k->cursor)) k->cursor = at;
    }
    go(k, k->cursor);
    k->at = time_of(v, k->cursor);
    k->before = find_spike(v, k, -1);
    k->after = find_spike(v, k, 1);
    k->left = k->last + 1 - (uint64_t)columns; // it may be before the first
    if (k->cursor + (uint64_t)columns <= k->last) k->left = k->cursor;
}

// ---- the explanation ----

struct lines {
    struct view_frame *frame;
    struct rect left; // the lines that are free
    int n;            // causes so far
};

// Bytes of a text that fit into a line, up to a blank where there is one.
static size_t line_end(const char *text, int columns) {
    const size_t size = strlen(text), fits = text_fit(text, size, columns, NULL);
    size_t end = fits;
    while (fits < size && end > 0 && text[end] != ' ') end--;
    return end ? end : fits ? fits : 1;
}

static void __attribute__((format(printf, 3, 4))) tell(struct lines *l, struct style style, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (const char *rest = text; *rest && l->left.height > 0; l->left.y++, l->left.height--) {
        size_t size = line_end(rest, l->left.width);
        canvas_text(l->frame->canvas, l->left, l->left.x, l->left.y, style, rest, size);
        rest += size + strspn(rest + size, " ");
    }
}

static void __attribute__((format(printf, 2, 3))) cause(struct lines *l, const char *format, ...) {
    char text[480];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    tell(l, view_style(ROLE_TEXT), "%s %s", l->frame->canvas->ascii ? "*" : "•", text);
    l->n++;
}

static const char *title_of(const struct screen_view *v, uint64_t conversation) {
    for (int i = 0; i < v->n_chats; i++)
        if (v->chats[i].id == conversation) return v->chats[i].title;
    return conversation > CONVERSATION_MOST ? "another client" : "a chat that is gone";
}

static void tell_requests(struct lines *l, const struct screen_view *v, const struct latency_moment *m) {
    char rows[VIEW_NUMBER], others[48] = "";
    if (m->preempted) cause(l, "it was pre-empted and waited for pages: the KV cache was full");
    if (m->n_readers > 1)
        snprintf(others, sizeof others, m->n_readers > 2 ? " and %d others" : " and another", m->n_readers - 1);
    if (m->prompt_rows > 0)
        cause(l, "%s prompt rows in the same step, of %s%s", view_number(m->prompt_rows, rows), title_of(v, m->reader),
              others);
    if (m->preemptions > 0)
        cause(l,
              m->preemptions > 1 ? "%d answers were pre-empted for it: the KV cache was full"
                                 : "%d answer was pre-empted for it: the KV cache was full",
              m->preemptions);
}

static void tell_engine(struct lines *l, const struct view_moment *v) {
    const struct latency_moment *m = &v->token;
    char seconds[VIEW_NUMBER], tokens[VIEW_NUMBER];
    if (v->loading) cause(l, "a model was being loaded");
    if (m->repacking > WORTH_SHARE * m->seconds)
        cause(l, "weights were repacked before the step: %s", view_seconds((double)m->repacking, seconds));
    else if (m->repacks) cause(l, "weights that were not yet repacked were repacked in the step");
    if (m->saving > WORTH_SHARE * m->seconds)
        cause(l, "pages were saved to the disk before the step: %s", view_seconds((double)m->saving, seconds));
    if (m->woken_tokens > 0) cause(l, "%s tokens were read from the disk", view_number(m->woken_tokens, tokens));
}

static void tell_machine(struct lines *l, const struct latency_moment *m) {
    char number[VIEW_NUMBER];
    if (m->steal >= 0.005f)
        cause(l, "the machine's host gave %.0f%% of its processors' time to others", 100 * (double)m->steal);
    if (m->faults > 0) cause(l, "%s page faults had to read the disk", view_number(m->faults, number));
    if (m->switches >= SWITCHES)
        cause(l, "threads were interrupted %s times for other programs", view_number(m->switches, number));
}

static const char *ago_of(const struct latency_moment *m, char out[VIEW_NUMBER]) {
    const double seconds = clock_seconds() - (double)(m->number + 1) * METRICS_MOMENT_SECONDS;
    if (seconds < 1) return "just now";
    snprintf(out, VIEW_NUMBER, seconds < 100 ? "%.0f s ago" : "%.0f min ago", seconds < 100 ? seconds : seconds / 60);
    return out;
}

static void explain(struct lines *l, const struct screen_view *v, const struct view_moment *at) {
    const struct latency_moment *m = at ? &at->token : NULL;
    char seconds[VIEW_NUMBER], usual[VIEW_NUMBER], ago[VIEW_NUMBER];
    if (!m || !(m->seconds > 0)) {
        tell(l, view_style(ROLE_DIM), "no token followed another in this quarter of a second");
        return;
    }
    const bool slow = m->seconds > SLOW * m->usual;
    tell(l, view_bold(slow ? ROLE_WARN : ROLE_STRONG), "%s for a token of %s, %s; usually %s",
         view_seconds((double)m->seconds, seconds), title_of(v, m->conversation), ago_of(m, ago),
         view_seconds((double)m->usual, usual));
    tell_requests(l, v, m);
    tell_engine(l, at);
    if (slow) tell_machine(l, m);
    if (slow && !l->n) cause(l, "nothing that confab sees: the step itself took longer");
    else if (!slow && !l->n) cause(l, "no slower than usual");
    char rows[VIEW_NUMBER], faults[VIEW_NUMBER], switches[VIEW_NUMBER];
    tell(l, view_style(ROLE_DIM), "%s row%s, steal %.0f%%, disk faults %s, interruptions %s",
         view_number(m->rows, rows), m->rows == 1 ? "" : "s", 100 * (double)m->steal, view_number(m->faults, faults),
         view_number(m->switches, switches));
}

// ---- drawing ----

// The scale, above the graph; the cursor's mark, below it.
static void draw_graph(struct view_frame *f, struct rect r, const struct kept *k) {
    const struct screen_view *v = f->view;
    const int column = column_of(k, k->cursor), hidden = column_of(k, k->last + 1) - r.width;
    const int count = v->latency.count - (hidden > 0 ? hidden : 0);
    char top[VIEW_NUMBER];
    float most = 0;
    for (int i = clamp(count - r.width, 0, count); i < count; i++)
        if (v->latency.values[i] > most) most = v->latency.values[i];
    canvas_graph(f->canvas, r, ROLE_LATENCY, v->latency.values, count, most, false);
    frame_hit(f, r, HIT_ROW, 0);
    if (most > 0) canvas_print(f->canvas, r, r.x, r.y, view_style(ROLE_DIM), "%s", view_seconds((double)most, top));
    struct rect below = {r.x, r.y + r.height, r.width, 1};
    canvas_symbol(f->canvas, below, r.x + column, below.y, view_bold(ROLE_ACCENT), "▲", '^');
    f->cursor_x = r.x + column, f->cursor_y = below.y;
}

static void draw(struct view_frame *f, struct rect area, void *kept) {
    struct kept *k = kept;
    const struct screen_view *v = f->view;
    const char *note = area.width >= 60 ? "Up and Down go to spikes, Esc closes" : "Esc closes";
    struct rect box = view_over(f, area, (struct view_size){WIDTH, HEIGHT, HEIGHT}, PANE_SLOW, note);
    struct rect r = view_over_inside(box);
    if (!v->metrics || !v->latency.count) {
        canvas_cut(f->canvas, (struct rect){r.x, r.y, r.width, 1}, view_style(ROLE_DIM), "no token has come yet");
        return;
    }
    find_places(k, v, r.width);
    const int graph = clamp(r.height / 2, 1, r.height - LINES - 1);
    draw_graph(f, (struct rect){r.x, r.y, r.width, graph}, k);
    struct lines lines = {f, {r.x, r.y + graph + 1, r.width, r.height - graph - 1}, 0};
    explain(&lines, v, moment_of(v, k->cursor));
}

const struct pane pane_slow = {
    .keeps = sizeof(struct kept), .opened = opened, .draw = draw, .key = key, .click = click, .wheel = wheel};
