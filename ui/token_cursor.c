#include "ui/token_cursor.h"

#define UNSURE_BELOW 0.5f // probability of a token that the cursor jumps to

void token_cursor_set(struct token_cursor *c, int token) {
    c->token = token;
    c->alternative = -1;
    c->seek = 0;
    c->moved = true;
}

void token_cursor_step(struct token_cursor *c, int step) {
    const int to = token_cursor_token(c) + step;
    token_cursor_set(c, to > 0 ? to : 0);
}

void token_cursor_unsure(struct token_cursor *c, int step) {
    const int seek = c->seek + step;
    token_cursor_set(c, token_cursor_token(c));
    c->seek = seek;
}

void token_cursor_choose(struct token_cursor *c, int alternative) {
    const int last = (c->moved ? SAMPLING_TOP : c->n) - 1;
    if (alternative > last) alternative = last;
    c->alternative = alternative > 0 ? alternative : 0;
}

// Keys may come faster than draws.
int token_cursor_token(const struct token_cursor *c) { return c->token == TOKEN_LAST ? c->count - 1 : c->token; }

static bool is_unsure(const struct message_token *token) { return token->probability < UNSURE_BELOW; }

// Where there is none in this direction the cursor stays.
static int unsure_from(const struct view_message *m, int at, int step) {
    int next = at + step;
    while (next >= 0 && next < m->n_drawn && !is_unsure(&m->drawn[next])) next += step;
    return next >= 0 && next < m->n_drawn ? next : at;
}

bool token_cursor_find(struct token_cursor *c, const struct screen_view *v, uint64_t *message, int *token) {
    const struct view_message *m = NULL;
    for (int i = 0; c->message && i < v->n_messages; i++)
        if (v->messages[i].id == c->message && v->messages[i].n_drawn) m = &v->messages[i];
    if (!m) return false;
    const int before = c->at, last = m->n_drawn - 1, most = last + !m->streaming;
    c->count = m->n_drawn;
    c->at = c->token == TOKEN_LAST ? last : c->token < most ? c->token : most;
    if (c->seek || c->token != TOKEN_LAST) c->token = c->at;
    for (int step = c->seek > 0 ? 1 : -1; c->seek; c->seek -= step) c->token = c->at = unsure_from(m, c->at, step);
    if (c->at != before) c->alternative = -1, c->moved = true;
    *message = m->id;
    *token = c->at;
    return true;
}

// At first the likeliest one that was not drawn.
int token_cursor_show(struct token_cursor *c, const struct view_token *token) {
    c->n = token->n;
    if (c->alternative < 0) c->alternative = token->n > 1 && token->alternatives[0].id == token->figures.id;
    if (c->alternative >= c->n) c->alternative = c->n ? c->n - 1 : 0;
    return c->alternative;
}
