#include "ui/token_layout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "ui/view.h"

#define ENTROPY_MOST 6.0f // bits from which on a choice is as open as can be told apart
#define UNSURE       0.5f // from here on, without colours, a token is underlined
#define LOST         0.9f // and from here on bold too

void token_layout_free(struct token_layout *l) {
    lines_free(&l->lines);
    free(l->spots);
    free(l->ends);
    *l = (struct token_layout){0};
}

// ---- styles ----

// From 0, sure, to 1.
static float doubt(const struct message_token *token, enum token_colouring colouring) {
    const float doubt = colouring == TOKENS_BY_ENTROPY ? token->entropy / ENTROPY_MOST : 1 - token->probability;
    return fminf(fmaxf(doubt, 0), 1);
}

static struct style accepted_style(bool without_colours, struct style base) {
    if (without_colours) base.attributes |= CELL_UNDERLINE;
    else base.role = ROLE_ACCENT;
    return base;
}

struct style token_layout_style(const struct message_token *token, enum token_colouring colouring, bool without_colours,
                                struct style base) {
    if (colouring == TOKENS_BY_DRAFT) return token->accepted ? accepted_style(without_colours, base) : base;
    if (colouring == TOKENS_PLAIN || isnan(token->probability)) return base;
    const float value = doubt(token, colouring);
    if (without_colours) {
        if (value >= UNSURE) base.attributes |= CELL_UNDERLINE;
        if (value >= LOST) base.attributes |= CELL_BOLD;
        return base;
    }
    return (struct style){.role = ROLE_TOKEN, .shade = (uint8_t)(1 + value * (THEME_STEPS - 1))};
}

// ---- text ----

struct making {
    struct token_layout *l;
    struct flow *flow;
    const struct view_message *m;
    const struct token_layout_options *o;
    size_t text[2]; // laid out so far, by channel
    size_t end;     // of all of it in the flow
};

static const char *channel_text(const struct view_message *m, int channel) {
    return channel == CHANNEL_THINKING ? m->thinking : m->text;
}

static struct style channel_style(int channel) {
    return view_style(channel == CHANNEL_THINKING ? ROLE_THINKING : ROLE_TEXT);
}

// What cannot be seen has a sign where it is marked.
static void add_marked(struct making *k, struct style style, const char *text, size_t size) {
    const bool ascii = k->o->ascii, only_breaks = strspn(text, "\n") >= size;
    style.attributes |= CELL_REVERSE;
    if (!size) flow_add_text(k->flow, style, ascii ? "|" : "▯");
    else if (only_breaks) flow_add_text(k->flow, style, ascii ? "$" : "↵");
    flow_add(k->flow, style, text, size);
}

static void add_token(struct making *k, int index) {
    const struct message_token *token = &k->m->drawn[index];
    const int channel = token->channel;
    const size_t from = k->text[channel], end = token->end > from ? token->end : from;
    const char *text = channel_text(k->m, channel) ? channel_text(k->m, channel) + from : "";
    const struct style style =
        token_layout_style(token, k->o->colouring, k->o->without_colours, channel_style(channel));
    if (index == k->o->marked) add_marked(k, style, text, end - from);
    else flow_add(k->flow, style, text, end - from);
    k->text[channel] = end;
    k->l->ends[index] = (uint32_t)k->flow->size;
}

// The answer begins a line below the thinking.
static void add_all(struct making *k) {
    int channel = k->m->n_drawn ? k->m->drawn[0].channel : CHANNEL_ANSWER;
    for (int i = 0; i < k->m->n_drawn; i++) {
        const int next = k->m->drawn[i].channel;
        if (next != channel && k->flow->size) flow_add_text(k->flow, channel_style(channel), "\n\n");
        channel = next;
        add_token(k, i);
    }
    const size_t size = k->m->size, from = k->text[CHANNEL_ANSWER]; // of no token
    if (size > from) flow_add(k->flow, channel_style(CHANNEL_ANSWER), k->m->text + from, size - from);
    k->end = k->flow->size;
    if (k->o->marked == k->m->n_drawn) add_marked(k, channel_style(CHANNEL_ANSWER), "", 0);
}

// ---- rows ----

static void add_spot(struct token_layout *l, struct token_spot spot) {
    if (l->n_spots == l->spots_room) {
        l->spots_room = l->spots_room ? 2 * l->spots_room : 256;
        l->spots = xrealloc(l->spots, (size_t)l->spots_room * sizeof *l->spots);
    }
    l->spots[l->n_spots++] = spot;
}

// The tokens of a row that shows flow->text[at, end); *token: the first that may be in it.
static void add_spots(struct making *k, size_t at, size_t end, int *token) {
    struct token_layout *l = k->l;
    const int row = (int)l->lines.n_rows - 1;
    int column = 0;
    for (; *token < k->m->n_drawn; ++*token) {
        const size_t stop = l->ends[*token] < end ? l->ends[*token] : end;
        const int width = stop > at ? text_width(k->flow->text + at, stop - at) : 0;
        if (width) add_spot(l, (struct token_spot){row, column, width, *token});
        if (width && *token == k->o->marked && l->marked_row < 0) l->marked_row = row;
        column += width;
        at = stop > at ? stop : at;
        if (l->ends[*token] > end) return;
    }
}

// The last row shows flow->text[at, …).
static void add_end(struct making *k, size_t at) {
    struct token_layout *l = k->l;
    const int row = (int)l->lines.n_rows - 1, column = k->end > at ? text_width(k->flow->text + at, k->end - at) : 0;
    if (row < 0) return;
    add_spot(l, (struct token_spot){row, column, 1, k->m->n_drawn});
    if (k->o->marked == k->m->n_drawn) l->marked_row = row;
}

void token_layout_make(struct token_layout *l, struct flow *flow, const struct view_message *m,
                       const struct token_layout_options *o) {
    struct making k = {.l = l, .flow = flow, .m = m, .o = o};
    if (m->n_drawn > l->ends_room) {
        l->ends_room = 2 * m->n_drawn;
        l->ends = xrealloc(l->ends, (size_t)l->ends_room * sizeof *l->ends);
    }
    lines_cut(&l->lines, (struct lines_mark){0});
    flow_clear(flow);
    l->n_spots = 0;
    l->marked_row = -1;
    add_all(&k);
    int token = 0;
    size_t row = 0;
    for (size_t at = 0, end; at < flow->size;) {
        const size_t next = flow_break(flow->text, flow->size, at, o->width, &end);
        row = at;
        lines_row(&l->lines);
        lines_flow(&l->lines, 0, flow, at, end);
        lines_end(&l->lines, flow, end, next, flow->size);
        add_spots(&k, at, end, &token);
        at = next;
    }
    add_end(&k, row);
}

int token_layout_at(const struct token_layout *l, int row, int column) {
    for (int i = 0; i < l->n_spots; i++) {
        const struct token_spot *spot = &l->spots[i];
        if (spot->row == row && column >= spot->column && column < spot->column + spot->width) return spot->token;
    }
    return -1;
}
