#include "tests/golden/random_checks.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/session/session_state.h"
#include "app/session/store.h"
#include "engine/base/panic.h"
#include "ui/screen_state.h"
#include "ui/slash.h"

struct kept_chat { // as it was
    const struct session_chat *chat;
    int written; // messages of the person's
    bool waits;  // one of them at least is not sent yet
};

struct stored { // a chat with messages, or what is expected of one
    int64_t row;
    uint64_t digest;
    bool found;
};

struct random_checks {
    const char *store_path;
    bool failed;
    int sent;
    struct kept_chat *kept;
    int n_kept;
    char *sends;    // what is to be sent by this key; NULL: nothing
    char *draft;    // what was in the composer
    bool edits;     // that is the new text of a message
    bool elsewhere; // it is a line that a search, a completion or a command has to do with
    const struct session_chat *current;
    int n_messages;                  // of that
    struct stored *stored, *expects; // by the store as it was read last; by the chat that is being closed
    int n_stored, n_expects;
};

struct random_checks *random_checks_open(const char *store_path) {
    struct random_checks *k = xcalloc(1, sizeof *k);
    k->store_path = store_path;
    return k;
}

static void forget(struct random_checks *k) {
    free(k->kept), free(k->sends), free(k->draft);
    k->kept = NULL, k->sends = k->draft = NULL;
    k->n_kept = 0;
}

void random_checks_close(struct random_checks *k) {
    forget(k);
    free(k->stored), free(k->expects);
    free(k);
}

int random_checks_sent(const struct random_checks *k) { return k->sent; }

static void hold(struct random_checks *k, bool holds, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void hold(struct random_checks *k, bool holds, const char *format, ...) {
    va_list args;
    if (holds) return;
    va_start(args, format);
    fputs("does not hold: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    k->failed = true;
}

// ---- what is written ----

static int written_in(const struct session_chat *chat) {
    int n = chat->conversation.waiting.count;
    for (int i = 0; i < chat->conversation.count; i++) n += chat->conversation.messages[i].role == MESSAGE_USER;
    return n;
}

void random_checks_before(struct random_checks *k, const struct chat *c, const char *bytes, size_t size) {
    const struct screen *s = c->screen;
    struct draft draft;
    size_t point;
    forget(k);
    k->n_kept = session_count(c->session);
    k->kept = xcalloc((size_t)k->n_kept + 1, sizeof *k->kept);
    for (int i = 0; i < k->n_kept; i++) {
        const struct session_chat *chat = session_chat(c->session, i);
        k->kept[i] = (struct kept_chat){chat, written_in(chat), chat->conversation.waiting.count > 0};
    }
    screen_draft(s, &draft);
    k->draft = draft.text;
    free(draft.folds);
    k->current = c->current;
    k->n_messages = c->current->conversation.count;
    k->edits = c->edits;
    const bool enter = size == 1 && *bytes == '\r';
    const bool plain = s->n_stack == 1 && !s->completion.list.count;
    const bool searches = composer_searching(s->composer); // it holds a line of the history
    k->elsewhere = searches || (enter && (!plain || slash_size(composer_line(s->composer, &point))));
    if (!k->draft || !enter || !plain || k->elsewhere || k->edits) return;
    const bool doubled = !strncmp(k->draft, "//", 2) && isalpha((unsigned char)k->draft[2]);
    k->sends = chat_typed(k->draft + doubled);
    if (!*k->sends) free(k->sends), k->sends = NULL;
}

static bool is_there(const struct random_checks *k, const struct session_chat *chat, const char *text) {
    const struct conversation *talk = &chat->conversation;
    const size_t size = strlen(text); // half a character may have come before Enter
    for (int i = 0; i < talk->waiting.count; i++)
        if (!strncmp(talk->waiting.texts[i], text, size)) return true;
    for (int i = k->n_messages; i < talk->count; i++)
        if (talk->messages[i].role == MESSAGE_USER && !strncmp(talk->messages[i].text, text, size)) return true;
    return false;
}

static bool can_come_back(const struct session *s, const struct session_chat *chat) {
    for (int i = 0; i < s->n_deleted; i++)
        if (s->deleted[i] == chat) return true;
    return false;
}

// A message leaves the line only into the chat or the composer, and a chat's messages only with it.
static void check_messages(struct random_checks *k, const struct chat *c) {
    const struct composer *written = c->screen->composer;
    for (int i = 0; i < k->n_kept; i++) {
        const struct kept_chat *was = &k->kept[i];
        if (session_index(c->session, was->chat) < 0) {
            hold(k, !was->written || can_come_back(c->session, was->chat), "a chat of %d messages is gone",
                 was->written);
            continue;
        }
        const int now = written_in(was->chat);
        const bool taken_back =
            now == was->written - 1 && was->waits && was->chat == k->current && !composer_empty(written);
        hold(k, now >= was->written || taken_back, "of %d messages of a chat %d are left", was->written, now);
    }
}

static void check_sent(struct random_checks *k, const struct chat *c) {
    if (!k->sends || session_index(c->session, k->current) < 0) return;
    if (c->current == k->current && !composer_empty(c->screen->composer)) return; // it was not to be sent, and is there
    k->sent++;
    hold(k, is_there(k, k->current, k->sends), "'%.60s' was sent and is not in the chat", k->sends);
}

static void check_draft(struct random_checks *k, const struct chat *c) {
    if (!k->draft || k->elsewhere || k->sends || c->current == k->current) return;
    if (session_index(c->session, k->current) < 0 && !can_come_back(c->session, k->current)) {
        hold(k, false, "'%.60s' was written and its chat is gone", k->draft);
        return;
    }
    if (k->edits && !k->current->editing) return; // an Esc before it has stopped that
    const struct draft *now = k->edits ? &k->current->edit : &k->current->draft;
    // Half a character may have come before this key, which has ended it.
    const bool same = now->text && !strncmp(now->text, k->draft, strlen(k->draft));
    hold(k, same || (now->text && strstr(now->text, "\xef\xbf\xbd")), "'%.60s' was written, the draft is '%.60s'",
         k->draft, now->text ? now->text : "");
}

static void check_tree(struct random_checks *k, const struct chat *c) {
    const struct conversation *talk = &c->current->conversation;
    int at = talk->first, before = -1, steps = 0;
    for (; at >= 0 && at < talk->count && steps++ <= talk->count; before = at, at = talk->messages[at].chosen) {
        hold(k, talk->messages[at].parent == before, "message %d does not follow %d", at, before);
        hold(k, !talk->messages[at].pruned, "the path leads through message %d, which was removed", at);
    }
    hold(k, at == -1, "the path leads to message %d of %d", at, talk->count);
    for (int i = 0; i < c->current->n_answers; i++) {
        const int message = c->current->answers[i].message;
        hold(k, message >= 0 && message < talk->count && talk->messages[message].state == MESSAGE_STREAMING,
             "the answer at message %d does not stream", message);
    }
    hold(k, session_index(c->session, c->current) >= 0, "the chat on the screen is not one of the session's");
    hold(k, !c->composing || session_index(c->session, c->composing) >= 0, "the draft is that of a chat that is gone");
}

// ---- the screen ----

static bool inside(struct rect r, int width, int height) {
    return r.width <= 0 || r.height <= 0 ||
           (r.x >= 0 && r.y >= 0 && r.x + r.width <= width && r.y + r.height <= height);
}

static bool overlap(struct rect a, struct rect b) {
    return a.width > 0 && b.width > 0 && a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height &&
           b.y < a.y + a.height;
}

static void check_layout(struct random_checks *k, const struct screen *s) {
    const int width = s->canvas.width, height = s->canvas.height;
    for (int p = 0; p < PANES_END; p++) {
        const struct rect pane = s->layout.panes[p];
        hold(k, inside(pane, width, height), "the pane %d lies outside of %dx%d", p, width, height);
        for (int other = 0; other < p; other++)
            hold(k, !overlap(pane, s->layout.panes[other]), "the panes %d and %d overlap", p, other);
    }
    for (int i = 0; i < s->frame.n_hits; i++) {
        const struct hit *h = &s->frame.hits[i];
        hold(k, inside(h->area, width, height), "pane %d has a place to click (%d) at %d,%d of %dx%d outside of %dx%d",
             h->pane, h->kind, h->area.x, h->area.y, h->area.width, h->area.height, width, height);
    }
}

// The pane on top of the stack has the keys, and the message's lies below all.
static void check_focus(struct random_checks *k, const struct screen *s) {
    const struct rect line = s->layout.composer;
    const int x = s->frame.cursor_x, y = s->frame.cursor_y;
    hold(k, s->n_stack > 0 && s->stack[0] == PANE_COMPOSER, "the message's pane is not at the bottom");
    for (int i = 1; i < s->n_stack; i++) {
        hold(k, s->stack[i] > PANE_SAMPLING && s->stack[i] < PANE_COUNT, "pane %d lies over the others", s->stack[i]);
        for (int other = 0; other < i; other++)
            hold(k, s->stack[i] != s->stack[other], "the pane %s is open twice", panes[s->stack[i]].name);
    }
    if (x >= 0)
        hold(k, x < s->canvas.width && y >= 0 && y < s->canvas.height, "the cursor is at %d,%d of %dx%d, below pane %d",
             x, y, s->canvas.width, s->canvas.height, screen_top(s));
    if (screen_top(s) != PANE_COMPOSER) return;
    hold(k, !s->layout.bare && line.width > 0 && line.height > 0, "the message has the keys and no room");
    hold(k, x < 0 || rect_holds(line, x, y), "the cursor is at %d,%d and the message is not", x, y);
}

static void check_cursor(struct random_checks *k, const struct screen *s, const struct golden_display *d) {
    VTermPos at;
    vterm_state_get_cursorpos(vterm_obtain_state(d->vterm), &at);
    const bool shown = s->frame.cursor_x >= 0;
    hold(k, d->cursor_visible == shown, "the cursor is %s", shown ? "hidden" : "shown");
    hold(k, !shown || (at.col == s->frame.cursor_x && at.row == s->frame.cursor_y),
         "the cursor is at %d,%d instead of %d,%d", at.col, at.row, s->frame.cursor_x, s->frame.cursor_y);
}

// Terminals do not agree on how wide some characters are: rows in which each takes a cell are looked at.
static bool is_plain(const struct cell *row, int width) {
    for (int x = 0; x < width; x++) {
        const uint32_t code = row[x].codes[0];
        const bool drawing = code >= 0x2500 && code < 0x2900;
        if (row[x].codes[1] || row[x].width != 1 || (code >= 0x250 && !drawing)) return false;
    }
    return true;
}

// What was drawn change by change is what was to be drawn.
static void check_cells(struct random_checks *k, const struct screen *s, const struct golden_display *d) {
    for (int y = 0; y < s->canvas.height; y++) {
        const struct cell *row = s->canvas.cells + (size_t)y * (size_t)s->canvas.width;
        if (!is_plain(row, s->canvas.width)) continue;
        for (int x = 0; x < s->canvas.width; x++) {
            VTermScreenCell cell = {0};
            vterm_screen_get_cell(d->screen, (VTermPos){.row = y, .col = x}, &cell);
            const uint32_t code = cell.chars[0] ? cell.chars[0] : ' ', want = row[x].codes[0] ? row[x].codes[0] : ' ';
            if (code == want) continue;
            hold(k, false, "at %d,%d the terminal shows U+%04X instead of U+%04X", x, y, (unsigned)code,
                 (unsigned)want);
            return;
        }
    }
}

bool random_checks_after(struct random_checks *k, const struct chat *c, const struct golden_display *d, bool closely) {
    const struct screen *s = c->screen;
    check_messages(k, c);
    check_sent(k, c);
    check_draft(k, c);
    check_tree(k, c);
    hold(k, s->canvas.width == d->width && s->canvas.height == d->height, "%dx%d was drawn for %dx%d", s->canvas.width,
         s->canvas.height, d->width, d->height);
    check_layout(k, s);
    check_focus(k, s);
    check_cursor(k, s, d);
    if (closely && !k->failed) check_cells(k, s, d);
    return !k->failed;
}

// ---- the store ----

static uint64_t mix(uint64_t digest, const char *text) {
    do digest = (digest ^ (uint8_t)*text) * 0x100000001b3; // FNV-1a, with the NUL
    while (*text++);
    return digest;
}

static int count_there(const struct conversation *talk) {
    int n = talk->waiting.count;
    for (int i = 0; i < talk->count; i++) n += !talk->messages[i].pruned;
    return n;
}

// Of all that was said, in any order, for what is restored is stored last; of what waits, and what is written.
static uint64_t digest_of(const struct conversation *talk, const char *draft) {
    const uint64_t none = 0xcbf29ce484222325;
    uint64_t digest = none;
    for (int i = 0; i < talk->count; i++) {
        const struct message *m = &talk->messages[i];
        if (!m->pruned) digest += mix(mix(none, message_role_name(m->role)), m->text);
    }
    for (int i = 0; i < talk->waiting.count; i++) digest = mix(digest, talk->waiting.texts[i]);
    return mix(mix(digest, talk->title), draft ? draft : "");
}

static struct stored *add(struct stored **list, int *n) {
    *list = xrealloc(*list, (size_t)(*n + 1) * sizeof **list);
    (*list)[*n] = (struct stored){0};
    return &(*list)[(*n)++];
}

// As the store had it before; NULL: there was none, or without messages.
static const struct stored *stored_at(const struct random_checks *k, int64_t row) {
    for (int i = 0; i < k->n_stored; i++)
        if (k->stored[i].row == row) return &k->stored[i];
    return NULL;
}

void random_checks_closing(struct random_checks *k, const struct chat *c) {
    struct draft composed;
    k->n_expects = 0;
    screen_draft(c->screen, &composed);
    for (int i = 0; i < session_count(c->session); i++) {
        const struct session_chat *chat = session_chat(c->session, i);
        const struct conversation *talk = &chat->conversation;
        const char *draft = chat == c->composing && !c->edits ? composed.text : chat->draft.text;
        const struct stored *before = talk->unread_rows ? stored_at(k, talk->row) : NULL;
        if (talk->private || (talk->unread_rows ? !before : !count_there(talk))) continue;
        *add(&k->expects, &k->n_expects) =
            (struct stored){.row = talk->row, .digest = before ? before->digest : digest_of(talk, draft)};
    }
    draft_free(&composed);
}

struct reading {
    struct random_checks *checks;
    struct conversation *found;
    int count;
};

static void keep(void *context, struct conversation *found) {
    struct reading *r = context;
    r->found = xrealloc(r->found, (size_t)(r->count + 1) * sizeof *r->found);
    r->found[r->count++] = *found;
}

static void read_one(struct random_checks *k, struct store *store, struct conversation *talk) {
    struct status st = {0};
    struct draft draft = {0};
    hold(k, store_read(store, talk, &st) && store_read_draft(store, talk->row, &draft, &st), "%s", st.text);
    if (count_there(talk))
        *add(&k->stored, &k->n_stored) = (struct stored){.row = talk->row, .digest = digest_of(talk, draft.text)};
    draft_free(&draft);
    conversation_close(talk);
}

static void compare(struct random_checks *k) {
    for (int i = 0; i < k->n_expects; i++) {
        bool found = false;
        for (int r = 0; r < k->n_stored && !found; r++) {
            struct stored *s = &k->stored[r];
            if (s->found || s->digest != k->expects[i].digest) continue;
            found = s->found = true;
        }
        hold(k, found, "the store does not have what is in chat %d of %d (row %lld)", i + 1, k->n_expects,
             (long long)k->expects[i].row);
    }
    hold(k, k->n_stored == k->n_expects, "the store has %d chats with messages, %d are expected", k->n_stored,
         k->n_expects);
}

bool random_checks_closed(struct random_checks *k) {
    struct status st = {0};
    struct settings initial = settings_default();
    struct reading r = {.checks = k};
    struct store *store = store_open(k->store_path, &st);
    k->n_stored = 0;
    hold(k, store && store_list(store, &initial, keep, &r, &st), "%s", st.text);
    for (int i = 0; i < r.count; i++) read_one(k, store, &r.found[i]);
    if (store) store_close(store);
    free(r.found);
    compare(k);
    return !k->failed;
}
