// Requests of other programs: a line each, and about the chosen one all that is known. Nothing of what they ask is
// shown.
#include "ui/pane_clients.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/keys.h"
#include "ui/list.h"
#include "ui/pane.h"

enum {
    WIDTH = 110,
    MOST_HEIGHT = 40,
    HEAD = 1,
    FOOT = 3,
    MARK = 2,     // columns
    STATE = 8,    // likewise, at the right: "writes"
    TOKENS = 14,  // "1,204 tokens"
    ROOMY = 40,   // of a row, from which on there is the path too,
    ROOMIER = 80, // and the model and the tokens
    ADDRESS = 300
};

struct kept {
    struct list list;
    uint64_t chosen; // id of the request with the cursor; 0: the row counts
    char address[ADDRESS];
};

// ---- what the list of chats shows too ----

int clients_count(const struct screen_view *v) { return v->serving ? v->serving->n_clients + v->serving->n_more : 0; }

void clients_draw_mark(struct view_frame *f, struct rect line, struct style style) {
    canvas_symbol(f->canvas, line, line.x, line.y, style, "⇄", '@');
}

struct style clients_style(const struct view_client *c) {
    struct style style = view_style(c->state == REQUEST_DECODING     ? ROLE_GOOD
                                    : c->state == REQUEST_PREFILLING ? ROLE_PREFILL
                                                                     : ROLE_WARN);
    if (style.role == ROLE_PREFILL) style.shade = THEME_STEPS; // the near end is for graphs: too dim for text
    return style;
}

const char *clients_progress(const struct view_client *c, char out[VIEW_NUMBER]) {
    const char *state = c->state == REQUEST_DECODING ? "writes" : c->state == REQUEST_PREFILLING ? "reads" : "waits";
    strcpy(out, state);
    if (c->state == REQUEST_PREFILLING && c->prefill_total > 0)
        snprintf(out, VIEW_NUMBER, "%d%%", (int)(100LL * c->prefill_done / c->prefill_total));
    if (c->state == REQUEST_DECODING && c->tokens_per_second > 0)
        snprintf(out, VIEW_NUMBER, c->tokens_per_second < 9.95f ? "%.1f/s" : "%.0f/s", (double)c->tokens_per_second);
    return out;
}

// ---- keys ----

static void opened(void *kept) { *(struct kept *)kept = (struct kept){0}; }

void clients_open(struct screen *s, int row) {
    struct kept *k = screen_open_pane(s, PANE_CLIENTS);
    k->list.chosen = row;
}

static void cancel(struct screen *s, const struct kept *k) {
    char id[VIEW_NUMBER];
    if (!k->chosen) return;
    snprintf(id, sizeof id, "%llu", (unsigned long long)k->chosen);
    screen_hand_out(s, COMMAND_CLIENTS, -1, id);
}

static void copy_address(struct screen *s, const struct kept *k) {
    char how[128];
    if (!*k->address) return;
    const bool copied = screen_copy(s, k->address, strlen(k->address), how);
    screen_say(s, !copied, "%s", how);
}

static bool key(struct screen *s, void *kept, const struct key *k) {
    struct kept *p = kept;
    if (list_key(&p->list, k)) p->chosen = 0;
    else if (k->code == KEY_DELETE) cancel(s, p);
    else if (k->code == KEY_ENTER) copy_address(s, p);
    else return false;
    return true;
}

static void click(struct screen *s, void *kept, const struct hit *h) {
    struct kept *k = kept;
    (void)s;
    k->list.chosen = h->number;
    k->chosen = 0;
}

static void wheel(void *kept, int step) {
    struct kept *k = kept;
    list_move(&k->list, step * VIEW_WHEEL_LINES);
    k->chosen = 0;
}

// ---- drawing ----

static const char *tokens_text(const struct view_client *c, char out[2 * VIEW_NUMBER]) {
    char number[VIEW_NUMBER];
    snprintf(out, 2 * VIEW_NUMBER, "%s token%s", view_number(c->tokens, number), c->tokens == 1 ? "" : "s");
    return out;
}

static void draw_row(void *context, struct view_frame *f, struct rect line, int row, bool chosen) {
    const struct view_client *c = &f->view->serving->clients[row];
    struct style text = view_style(ROLE_TEXT), rest = view_style(ROLE_DIM), mark = clients_style(c);
    char state[VIEW_NUMBER], tokens[2 * VIEW_NUMBER];
    (void)context;
    if (chosen) text = rest = mark = view_chosen(f, line); // states' colours suit the ground only
    if (chosen && f->canvas->ascii) canvas_text(f->canvas, line, line.x, line.y, mark, ">", 1);
    else clients_draw_mark(f, line, mark);
    clients_progress(c, state);
    int end = line.x + line.width;
    canvas_text(f->canvas, line, end - (int)strlen(state), line.y, mark, state, strlen(state));
    end -= STATE;
    if (line.width >= ROOMIER && c->tokens) {
        const int width = (int)strlen(tokens_text(c, tokens));
        canvas_text(f->canvas, line, end - width, line.y, rest, tokens, (size_t)width);
    }
    if (line.width >= ROOMIER) end -= TOKENS;
    const int columns = line.width >= ROOMIER ? 3 : line.width >= ROOMY ? 2 : 1, x = line.x + MARK;
    const int width = (end - x) / columns;
    const char *const texts[] = {c->name, c->path, c->model};
    for (int i = 0; i < columns; i++)
        canvas_cut(f->canvas, (struct rect){x + i * width, line.y, width - 1, 1}, i ? rest : text, texts[i]);
    frame_hit(f, line, HIT_ROW, row);
}

// "writes 38.0 tok/s, 120 tokens, first after 210 ms", "reads 120 of 512 tokens"
static void draw_figures(struct view_frame *f, struct rect line, const struct view_client *c) {
    char state[VIEW_NUMBER], rate[VIEW_NUMBER], tokens[2 * VIEW_NUMBER], first[VIEW_NUMBER], text[6 * VIEW_NUMBER];
    clients_progress(&(struct view_client){.state = c->state}, state);
    int n = snprintf(text, sizeof text, "%s", state);
    if (c->state == REQUEST_PREFILLING && c->prefill_total > 0)
        n += snprintf(text + n, sizeof text - (size_t)n, " %s of %s tokens", view_number(c->prefill_done, rate),
                      view_number(c->prefill_total, tokens));
    if (c->state == REQUEST_DECODING && c->tokens_per_second > 0)
        n += snprintf(text + n, sizeof text - (size_t)n, " %s tok/s", view_rate((double)c->tokens_per_second, rate));
    if (c->tokens) n += snprintf(text + n, sizeof text - (size_t)n, ", %s", tokens_text(c, tokens));
    if (c->first_token > 0)
        snprintf(text + n, sizeof text - (size_t)n, ", first after %s", view_seconds(c->first_token, first));
    canvas_cut(f->canvas, line, clients_style(c), text);
}

static void draw_foot(struct view_frame *f, struct rect foot, const struct view_client *c) {
    const struct rect line = {foot.x, foot.y, foot.width, 1};
    const int used = canvas_cut(f->canvas, line, view_bold(ROLE_STRONG), c->name);
    canvas_cut(f->canvas, rect_after(line, used + 2), view_style(ROLE_DIM), c->path);
    canvas_cut(f->canvas, (struct rect){foot.x, foot.y + 1, foot.width, 1}, view_style(ROLE_DIM),
               *c->model ? c->model : "no model yet");
    draw_figures(f, (struct rect){foot.x, foot.y + 2, foot.width, 1}, c);
}

static void draw_head(struct view_frame *f, struct rect line, const struct kept *k) {
    const char *key = keys_name(COMMAND_SERVE);
    if (!f->view->serving) {
        canvas_print(f->canvas, line, line.x, line.y, view_style(ROLE_DIM), "not serving: %s begins",
                     *key ? key : "the command serve");
        return;
    }
    const int used = canvas_cut(f->canvas, line, view_style(ROLE_LINK), k->address);
    const struct rect rest = rect_after(line, used + 2);
    static const char hint[] = "Enter copies it";
    if (rest.width >= (int)strlen(hint))
        canvas_text(f->canvas, rest, rest.x, rest.y, view_style(ROLE_DIM), hint, strlen(hint));
}

// The cursor stays on its request while others come and go.
static void take_clients(struct kept *k, const struct view_serving *s) {
    k->list.count = s ? s->n_clients : 0;
    *k->address = 0;
    if (s) snprintf(k->address, sizeof k->address, "http://%s/v1", s->address);
    for (int i = 0; i < k->list.count && k->chosen; i++)
        if (s->clients[i].id == k->chosen) k->list.chosen = i;
    if (k->list.chosen >= k->list.count) k->list.chosen = k->list.count ? k->list.count - 1 : 0;
    k->chosen = k->list.count ? s->clients[k->list.chosen].id : 0;
}

static void draw(struct view_frame *f, struct rect area, void *kept) {
    struct kept *k = kept;
    const struct view_serving *s = f->view->serving;
    take_clients(k, s);
    const int wanted = k->list.count ? k->list.count + HEAD + FOOT + 4 : HEAD + 4;
    struct rect box = view_over(f, area, (struct view_size){WIDTH, wanted, MOST_HEIGHT}, PANE_CLIENTS,
                                k->list.count ? "Delete cancels, Esc closes" : "Esc closes");
    struct rect in = view_over_inside(box);
    if (in.height < HEAD + 1) return;
    draw_head(f, (struct rect){in.x, in.y, in.width, 1}, k);
    const int foot = k->list.count && in.height >= HEAD + FOOT + 2 ? FOOT : 0;
    const int gap = in.height - HEAD - foot > k->list.count; // a blank line below the head, where there is room
    const struct rect rows = {in.x, in.y + HEAD + gap, in.width, in.height - HEAD - gap - foot};
    if (s && !k->list.count)
        canvas_print(f->canvas, rows, rows.x, rows.y, view_style(ROLE_DIM), "no request is being answered");
    list_draw(&k->list, f, rows, (struct rect){box.x, rows.y - 1, box.width, rows.height + 2}, draw_row, NULL);
    if (s && s->n_more && rows.height > k->list.count)
        canvas_print(f->canvas, rows, rows.x + MARK, rows.y + k->list.count, view_style(ROLE_DIM), "and %d more",
                     s->n_more);
    if (foot) draw_foot(f, (struct rect){in.x, in.y + in.height - foot, in.width, foot}, &s->clients[k->list.chosen]);
}

const struct pane pane_clients = {
    .keeps = sizeof(struct kept), .opened = opened, .draw = draw, .key = key, .click = click, .wheel = wheel};
