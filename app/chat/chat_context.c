// The context, as the screen is shown it: every message of the path with the tokens that it takes, and where it stands.
#include <stdlib.h>
#include <string.h>

#include "app/chat/chat_state.h"
#include "app/session/asked.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"

#define FIND_NS NANOSECONDS // how long what the engine has cached is believed

// The engine is asked again and again while the pane is open: others evict pages.
static void find(struct chat *c) {
    const uint64_t now = clock_ns();
    if (c->found_at && now < c->found_at + FIND_NS) return;
    c->found_at = now;
    session_find(c->session, c->current);
}

static struct view_context_row row_of(const struct chat *c, int index) {
    const struct conversation *talk = &c->current->conversation;
    const struct message *m = &talk->messages[index];
    const bool user = m->role == MESSAGE_USER;
    const char *other = chat_other_model(c, m);
    struct view_context_row r = {
        .id = chat_message_id(talk, index),
        .author = user    ? "You"
                  : other ? other
                          : c->model_short,
        .role = user ? VIEW_USER : VIEW_MODEL,
        .text = m->text,
        .size = m->size,
        .use = chat_use_name(m->use),
        .whole = asked_tokens(talk, index, USE_WHOLE, &r.guessed),
        .folded = asked_tokens(talk, index, USE_FOLDED, &r.guessed),
    };
    r.tokens = asked_tokens(talk, index, m->use, &r.guessed);
    return r;
}

static struct view_context_row system_row(const struct conversation *talk) {
    const int tokens = asked_system_tokens(talk);
    return (struct view_context_row){.author = "system",
                                     .role = VIEW_NOTICE,
                                     .text = talk->settings.system,
                                     .size = strlen(talk->settings.system),
                                     .asked = true,
                                     .guessed = true,
                                     .tokens = tokens,
                                     .whole = tokens,
                                     .folded = tokens};
}

// Those that are asked with are in order among all of the path.
static void mark_asked(struct view_context_row *rows, int n, const struct conversation *talk) {
    int *asked = xcalloc((size_t)talk->count + 1, sizeof *asked);
    const int n_asked = asked_path(talk, conversation_last(talk), asked);
    for (int i = 0, k = 0; i < n && k < n_asked; i++)
        if (rows[i].id == chat_message_id(talk, asked[k])) rows[i].asked = true, k++;
    free(asked);
}

static void lay_out(struct view_context *v, struct view_context_row *rows) {
    for (int i = 0; i < v->n_rows; i++) {
        if (!rows[i].asked) rows[i].tokens = 0;
        rows[i].first = v->tokens;
        v->tokens += rows[i].tokens;
    }
    for (int i = 0; i < v->n_rows; i++) rows[i].after = v->tokens - rows[i].first - rows[i].tokens;
}

void chat_context_show(struct chat *c, struct screen_view *view) {
    const struct conversation *talk = &c->current->conversation;
    if (!screen_has_open(c->screen, PANE_CONTEXT)) {
        c->found_at = 0;
        return;
    }
    find(c);
    int *path = xcalloc((size_t)talk->count + 1, sizeof *path);
    const int n = conversation_path(talk, path), system = talk->settings.system != NULL;
    struct view_context_row *rows = c->view_context_rows =
        xrealloc(c->view_context_rows, (size_t)(n + 1) * sizeof *c->view_context_rows);
    if (system) rows[0] = system_row(talk);
    for (int i = 0; i < n; i++) rows[system + i] = row_of(c, path[i]);
    free(path);
    mark_asked(rows + system, n, talk);
    c->view_context = (struct view_context){.rows = rows,
                                            .n_rows = system + n,
                                            .asked = c->current->n_asked,
                                            .cached = c->current->n_asked ? c->current->n_cached : -1,
                                            .rate = c->prefill_rate};
    lay_out(&c->view_context, rows);
    view->context = &c->view_context;
}
