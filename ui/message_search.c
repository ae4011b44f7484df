#include "ui/message_search.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"

void message_search_free(struct message_search *s) { free(s->messages); }

void message_search_set(struct message_search *s, const char *text) {
    const struct match_needle needle = match_needle(text, strlen(text));
    const size_t size = (size_t)needle.count * sizeof *needle.letters;
    if (needle.count == s->needle.count && !memcmp(needle.letters, s->needle.letters, size)) return;
    if (!s->needle.count) s->from = -1;
    s->needle = needle;
    s->version++;
    s->begins = needle.count;
    s->message = 0;
    s->step = s->total = s->at = 0;
}

static int count_in(const struct message_search *s, const struct view_message *m) {
    size_t start, end;
    int count = 0;
    for (size_t from = 0; match_find(&s->needle, m->text, m->size, from, &start, &end); from = end) count++;
    return count;
}

// ---- going from match to match ----

// From message i on in this direction, round the ends, one that has matches; −1: none has.
static int message_with(const struct message_search *s, int i, int n, int direction) {
    for (int k = 0; k < n; k++, i += direction) {
        i = (i + n) % n;
        if (s->messages[i].count) return i;
    }
    return -1;
}

static void go(struct message_search *s, int message, int match) {
    s->message = message < 0 ? 0 : s->messages[message].id;
    s->match = match;
    s->moved = message >= 0;
}

static void step(struct message_search *s, int i, int n) {
    const int direction = s->step < 0 ? -1 : 1, next = s->match + direction;
    if (next >= 0 && next < s->messages[i].count) {
        go(s, i, next);
        return;
    }
    const int other = message_with(s, i + direction, n, direction);
    if (other >= 0) go(s, other, direction < 0 ? s->messages[other].count - 1 : 0);
}

static int index_of(const struct message_search *s, int n) {
    for (int i = 0; s->message && i < n; i++)
        if (s->messages[i].id == s->message && s->messages[i].count) return i;
    return -1;
}

void message_search_update(struct message_search *s, const struct screen_view *v, int in_sight) {
    const int n = v->n_messages;
    s->total = s->at = 0;
    if (!s->needle.count || !n) return;
    if (n > s->room) {
        s->messages = xrealloc(s->messages, 2 * (size_t)n * sizeof *s->messages);
        memset(s->messages + s->room, 0, (size_t)(2 * n - s->room) * sizeof *s->messages);
        s->room = 2 * n;
    }
    for (int i = 0; i < n; i++) {
        struct searched *own = &s->messages[i];
        const struct view_message *m = &v->messages[i];
        if (own->id != m->id || own->revision != m->revision || own->version != s->version)
            *own = (struct searched){m->id, m->revision, s->version, count_in(s, m)};
        s->total += own->count;
    }
    if (s->from < 0) s->from = in_sight;
    int at = index_of(s, n);
    if (s->begins || at < 0) {
        const int near = message_with(s, s->from < n ? s->from : n - 1, n, -1);
        go(s, near, near < 0 ? 0 : s->messages[near].count - 1);
    } else if (s->step) {
        step(s, at, n);
    }
    s->begins = false;
    s->step = 0;
    at = index_of(s, n);
    if (at >= 0 && s->match >= s->messages[at].count) s->match = s->messages[at].count - 1;
    for (int i = 0; i < at; i++) s->at += s->messages[i].count;
    if (at >= 0) s->at += s->match + 1;
}

// ---- in the layout ----

static struct match_row {
    const char *text;
    size_t size;
} row_text(const struct lines *l, int row) {
    const size_t first = l->rows[row].first_run;
    const size_t end = row + 1 < (int)l->n_rows ? l->rows[row + 1].first_run : l->n_runs;
    if (first >= end) return (struct match_row){"", 0};
    const size_t from = l->runs[first].start, to = l->runs[end - 1].start + l->runs[end - 1].size;
    return (struct match_row){l->text + from, to - from};
}

static int count_row(const struct message_search *s, const struct lines *l, int row) {
    const struct match_row t = row_text(l, row);
    size_t start, end;
    int count = 0;
    for (size_t from = 0; match_find(&s->needle, t.text, t.size, from, &start, &end); from = end) count++;
    return count;
}

int message_search_row(const struct message_search *s, const struct lines *l) {
    int count = 0, last = 0;
    for (int row = 0; row < (int)l->n_rows; row++) {
        const int here = count_row(s, l, row);
        if (here) last = row;
        count += here;
        if (count > s->match) return row;
    }
    return last;
}

// The part of a match that lies in each run of the row, where that run is drawn.
static void draw_match(const struct lines *l, int row, size_t start, size_t end, struct style style, struct canvas *c,
                       struct rect clip, int x, int y) {
    const size_t last = row + 1 < (int)l->n_rows ? l->rows[row + 1].first_run : l->n_runs;
    for (size_t r = l->rows[row].first_run; r < last; r++) {
        const struct lines_run *run = &l->runs[r];
        const size_t from = start > run->start ? start : run->start, run_end = run->start + run->size;
        const size_t to = end < run_end ? end : run_end;
        if (from >= to) continue;
        const int column = run->column + text_width(l->text + run->start, from - run->start);
        canvas_text(c, clip, x + column, y, style, l->text + from, to - from);
    }
}

void message_search_draw(const struct message_search *s, const struct lines *l, int row, uint64_t message,
                         struct canvas *c, struct rect clip, int x, int y) {
    const struct style found = {ROLE_SELECTED, ROLE_SELECTED_GROUND, 0, 0};
    const struct style current = {ROLE_ACCENT, 0, CELL_REVERSE | CELL_BOLD, 0};
    const struct match_row t = row_text(l, row);
    size_t start, end;
    int number = 0, wanted = -1;
    if (!s->needle.count || !t.size) return;
    if (message == s->message) {
        for (int before = 0; before < row; before++) number += count_row(s, l, before);
        wanted = s->match;
    }
    for (size_t from = 0; match_find(&s->needle, t.text, t.size, from, &start, &end); from = end, number++) {
        const size_t base = (size_t)(t.text - l->text);
        draw_match(l, row, base + start, base + end, number == wanted ? current : found, c, clip, x, y);
    }
}
