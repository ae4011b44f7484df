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
        if (s->messages[i].id == s->message) return i;
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
    if (s->begins || at < 0 || (!s->messages[at].count && !s->step)) {
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

size_t message_search_place(const struct message_search *s, const struct lines *l) {
    size_t start, end, last = 0;
    int count = 0;
    for (size_t from = 0; count <= s->match && match_find(&s->needle, l->text, l->size, from, &start, &end); from = end)
        last = start, count++;
    return last;
}

int message_search_before(const struct message_search *s, const struct lines *l, size_t before) {
    size_t start, end;
    int count = 0;
    for (size_t from = 0; match_find(&s->needle, l->text, l->size, from, &start, &end) && start < before; from = end)
        count++;
    return count;
}

// A letter begins there.
static size_t letter_before(const struct lines *l, size_t at) {
    while (at > 0 && at < l->size && ((unsigned char)l->text[at] & 0xc0) == 0x80) at--;
    return at;
}

// A match may have begun in the row before, and may end in the next one.
void message_search_draw(const struct message_search *s, const struct lines *l, int row, uint64_t message,
                         struct canvas *c, struct rect clip, int x, int y) {
    const struct style found = {ROLE_SELECTED, ROLE_SELECTED_GROUND, 0, 0};
    const struct style chosen = {ROLE_ACCENT, 0, CELL_REVERSE | CELL_BOLD, 0};
    size_t from, to, start, end;
    if (!s->needle.count || !lines_shown(l, row, &from, &to)) return;
    const size_t most = 4 * (size_t)s->needle.count, limit = l->size - to > most ? to + most : l->size;
    for (size_t at = letter_before(l, from > most ? from - most : 0);
         match_find(&s->needle, l->text, limit, at, &start, &end) && start < to; at = end) {
        const bool current = message == s->message && start == s->place;
        lines_draw_range(l, row, start, end, current ? chosen : found, c, clip, x, y);
    }
}
