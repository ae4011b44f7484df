// The context, as the screen is shown it: every message of the path with the tokens that it takes, and where it stands.
#include <stdlib.h>
#include <string.h>

#include "app/chat/chat_state.h"
#include "app/session/asked.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/metrics.h"

#define FIND_NS NANOSECONDS // between questions

// Asks the engine what it has cached, which has to tokenize the whole prompt for that: only where the path is another,
// or others evicted pages. While an answer is being written its metrics say it.
static void find(struct chat *c, const struct engine_metrics *f) {
    const struct conversation *talk = &c->current->conversation;
    const int last = conversation_last(talk);
    if (last < 0 || session_answer_at(c->current, last)) return;
    const struct chat_found now = {.at = clock_ns(),
                                   .last = chat_message_id(talk, last),
                                   .revision = talk->messages[last].revision,
                                   .evictions = f ? f->evictions : 0};
    const struct chat_found *before = &c->found;
    const bool same = c->current->n_asked && before->last == now.last && before->revision == now.revision &&
                      before->evictions == now.evictions;
    if (before->at && (same || now.at < before->at + FIND_NS)) return;
    if (session_find(c->session, c->current)) c->found = now;
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
                                     .text = asked_system(talk),
                                     .size = strlen(asked_system(talk)),
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

// All that a running answer has read and drawn; otherwise what the engine found.
static void set_cached(const struct chat *c, const struct engine_metrics *f, struct view_context *v) {
    const int last = conversation_last(&c->current->conversation);
    const struct request_metrics *r = chat_request(f, session_answer_at(c->current, last));
    if (r && metric_known(r->n_context) && r->n_context > 0) {
        v->asked = r->n_context;
        v->cached = r->state == REQUEST_DECODING ? r->n_context : r->prefill_done;
        return;
    }
    v->asked = c->current->n_asked;
    v->cached = v->asked ? c->current->n_cached : -1;
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
        c->found.at = 0;
        return;
    }
    find(c, view->metrics);
    const int n = c->n_path, system = asked_system(talk) != NULL;
    struct view_context_row *rows = c->view_context_rows =
        xrealloc(c->view_context_rows, (size_t)(n + 1) * sizeof *c->view_context_rows);
    if (system) rows[0] = system_row(talk);
    for (int i = 0; i < n; i++) rows[system + i] = row_of(c, c->path[i]);
    mark_asked(rows + system, n, talk);
    c->view_context = (struct view_context){.rows = rows, .n_rows = system + n, .rate = c->prefill_rate};
    set_cached(c, view->metrics, &c->view_context);
    lay_out(&c->view_context, rows);
    view->context = &c->view_context;
}
