// The pane to find a chat in: those whose title or text has the words typed, a line each, with the date of their latest
// message. The controller finds them; the pane has the words and the cursor.
#include "ui/pane_find.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "engine/base/clock.h"
#include "engine/base/match.h"
#include "ui/keys.h"
#include "ui/list.h"
#include "ui/pane.h"
#include "ui/text_field.h"

enum {
    WIDTH = 110,
    MOST_HEIGHT = 40,
    HEAD = 1,
    FOOT = 2,         // rows for the words around a match
    MARK = 2,         // columns
    DATE = 10,        // columns at most
    ROOMY = 76,       // columns of a line from which on it has the words around a match too
    TITLE_ROOMY = 34, // columns
};

struct kept {
    struct text_field filter;
    struct list list;
    enum find_order order;
    uint64_t chosen; // id of the chat with the cursor; 0: the row counts
};

static const char *const orders[] = {
#define X(id, label) [id] = label,
    FIND_ORDERS(X)
#undef X
};

static void opened(void *kept) { *(struct kept *)kept = (struct kept){.list = {.height = 1}}; }

const char *find_words(const void *kept, enum find_order *order) {
    const struct kept *k = kept;
    *order = k->order;
    return k->filter.text;
}

// ---- keys ----

static void go(struct screen *s, const struct kept *k, int row) {
    if (row < 0 || row >= k->list.count) return;
    screen_close_pane(s, PANE_FIND);
    screen_hand_out(s, COMMAND_FIND_CHAT, row, NULL);
}

// What can be done to a chat is done to the one with the cursor.
static bool done_to_chat(int id) { return id == COMMAND_PIN_CHAT || id == COMMAND_ARCHIVE || id == COMMAND_DELETE; }

static bool key(struct screen *s, void *kept, const struct key *k) {
    struct kept *p = kept;
    const int id = screen_bound(s, k);
    if (list_key(&p->list, k)) return p->chosen = 0, true;
    if (k->code == KEY_ENTER) return go(s, p, p->list.chosen), true;
    if (done_to_chat(id)) {
        if (p->list.count) screen_hand_out(s, (enum ui_command_id)id, p->list.chosen, NULL);
        return true;
    }
    const bool tab = k->code == KEY_TAB;
    if (tab) p->order = (enum find_order)((p->order + 1) % FIND_ORDER_COUNT);
    if (!tab && !text_field_key(&p->filter, k)) return false;
    p->list.chosen = p->list.scroll = 0;
    p->chosen = 0;
    return true;
}

static void click(struct screen *s, void *kept, const struct hit *h) { go(s, kept, h->number); }

static void wheel(void *kept, int step) {
    struct kept *p = kept;
    list_move(&p->list, step * VIEW_WHEEL_LINES);
    p->chosen = 0;
}

// ---- drawing ----

// Today's as a time, otherwise the day, of other years with the year.
static const char *date_of(int64_t ms, char out[24]) {
    const time_t then = (time_t)(ms / 1000), now = (time_t)(clock_wall_ns() / NANOSECONDS);
    struct tm at, today;
    out[0] = 0;
    if (ms <= 0 || !localtime_r(&then, &at) || !localtime_r(&now, &today)) return out;
    const bool year = at.tm_year == today.tm_year, day = year && at.tm_yday == today.tm_yday;
    strftime(out, 24, day ? "%H:%M" : year ? "%-d %b" : "%Y-%m-%d", &at);
    return out;
}

// A text in one line, its words that are looked for marked.
static void draw_marked(struct view_frame *f, struct rect line, struct style s, const char *text, const char *words) {
    canvas_cut(f->canvas, line, s, text);
    struct style marked = s;
    marked.attributes |= CELL_BOLD | CELL_UNDERLINE;
    for (size_t length; *(words += strspn(words, " \"")); words += length) {
        length = strcspn(words, " \"");
        const struct match_needle needle = match_needle(words, length);
        const size_t size = strlen(text), room = text_fit(text, size, line.width - 1, NULL);
        size_t start, end;
        for (size_t from = 0; match_find(&needle, text, room, from, &start, &end); from = end)
            canvas_text(f->canvas, line, line.x + text_width(text, start), line.y, marked, text + start, end - start);
    }
}

struct rows {
    const struct kept *kept;
    const struct screen_view *view;
};

static int draw_title(struct view_frame *f, struct rect line, const struct view_chat *chat, struct style title,
                      struct style rest, const char *words) {
    char tags[VIEW_WORDS] = "";
    const char *name = *chat->title ? chat->title : "New chat";
    const int width = text_width(name, strlen(name));
    draw_marked(f, line, title, name, words);
    for (const char *at = chat->tags ? chat->tags : ""; *(at += strspn(at, " ")); at += strcspn(at, " "))
        snprintf(tags + strlen(tags), sizeof tags - strlen(tags), " #%.*s", (int)strcspn(at, " "), at);
    const int used = width < line.width ? width : line.width;
    return used + (*tags ? canvas_cut(f->canvas, rect_after(line, used), rest, tags) : 0);
}

static void draw_row(void *context, struct view_frame *f, struct rect line, int row, bool chosen) {
    const struct rows *r = context;
    const struct view_found *found = &r->view->found[row];
    const struct view_chat *chat = &r->view->chats[found->chat];
    const char *words = r->kept->filter.text;
    struct style title = view_style(chat->archived ? ROLE_DIM : ROLE_TEXT), rest = view_style(ROLE_DIM);
    if (chosen) title = rest = view_chosen(f, line);
    if (chosen && f->canvas->ascii) canvas_text(f->canvas, line, line.x, line.y, rest, ">", 1);
    else if (chat->pinned || found->chat == r->view->current)
        canvas_symbol(f->canvas, line, line.x, line.y, rest, chat->pinned ? "◆" : "●", chat->pinned ? '^' : '*');
    char date[24];
    const int width = (int)strlen(date_of(chat->used, date)), right = line.x + line.width - width;
    canvas_text(f->canvas, line, right, line.y, rest, date, (size_t)width);
    struct rect room = {line.x + MARK, line.y, line.width - MARK - DATE - 1, 1};
    struct rect name = room;
    if (room.width >= ROOMY && found->snippet) name.width = TITLE_ROOMY;
    const int used = draw_title(f, name, chat, title, rest, words);
    if (room.width >= ROOMY && found->snippet) draw_marked(f, rect_after(room, used + 2), rest, found->snippet, words);
    frame_hit(f, line, HIT_ROW, row);
}

// About the chosen one: the words around the match, on as many lines as there are.
static void draw_foot(struct view_frame *f, struct rect area, const struct kept *p) {
    const char *text = p->list.count ? f->view->found[p->list.chosen].snippet : NULL;
    for (int y = 0; text && *text && y < area.height; y++) {
        struct rect line = {area.x, area.y + y, area.width, 1};
        const size_t size = strlen(text), fit = text_fit(text, size, line.width, NULL);
        size_t end = fit;
        while (fit < size && end && text[end] != ' ') end--;
        if (!end || y + 1 == area.height) end = fit;
        char part[4 * VIEW_WORDS];
        snprintf(part, sizeof part, "%.*s", (int)end, text);
        draw_marked(f, line, view_style(ROLE_DIM), y + 1 == area.height ? text : part, p->filter.text);
        text += end;
        text += strspn(text, " ");
    }
}

// The cursor stays on its chat while others come before it; on the first row, until all that fits is known.
static void take_found(struct kept *p, const struct screen_view *v) {
    p->list.count = v->n_found;
    for (int i = 0; i < v->n_found && p->chosen; i++)
        if (v->chats[v->found[i].chat].id == p->chosen) p->list.chosen = i;
    if (p->list.chosen >= v->n_found) p->list.chosen = v->n_found ? v->n_found - 1 : 0;
    const bool stays = v->n_found && (p->list.chosen || !v->finding);
    p->chosen = stays ? v->chats[v->found[p->list.chosen].chat].id : 0;
}

static void draw(struct view_frame *f, struct rect area, void *kept) {
    struct kept *p = kept;
    const struct screen_view *v = f->view;
    char note[64];
    snprintf(note, sizeof note, "%s (Tab), Enter opens", orders[p->order]);
    take_found(p, v);
    const int wanted = (v->n_chats > v->n_found ? v->n_chats : v->n_found) + HEAD + FOOT + 2;
    struct rect box =
        view_over(f, area, (struct view_size){WIDTH, wanted < 8 ? 8 : wanted, MOST_HEIGHT}, PANE_FIND, note);
    struct rect in = view_over_inside(box);
    if (in.height < HEAD + 1) return;
    text_field_draw_filter(&p->filter, f, in, "type words of a title or a text");
    const int foot = in.height >= HEAD + FOOT + 3 && in.width - MARK - DATE - 1 < ROOMY && *p->filter.text ? FOOT : 0;
    const int height = in.height - HEAD - foot;
    struct rows rows = {p, v};
    if (!v->n_found) canvas_print(f->canvas, in, in.x + MARK, in.y + HEAD, view_style(ROLE_DIM), "no matching chat");
    list_draw(&p->list, f, (struct rect){in.x, in.y + HEAD, in.width, height},
              (struct rect){box.x, in.y, box.width, height + 2}, draw_row, &rows);
    if (foot) draw_foot(f, (struct rect){in.x, in.y + in.height - foot, in.width, foot}, p);
}

const struct pane pane_find = {.keeps = sizeof(struct kept),
                               .opened = opened,
                               .as_shown = true,
                               .draw = draw,
                               .key = key,
                               .click = click,
                               .wheel = wheel};
