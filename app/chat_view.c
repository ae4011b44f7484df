// What the screen is shown: plain data made afresh for every frame, in arrays that are kept.
#include <string.h>

#include "app/chat_state.h"
#include "app/guide.h"
#include "engine/base/panic.h"

static const struct request_figures *request_in(const struct engine_figures *f, uint64_t request) {
    for (int i = 0; f && request && i < f->n_requests; i++)
        if (f->requests[i].request == request) return &f->requests[i];
    return NULL;
}

static void show_chats(struct chat *c, const struct engine_figures *f) {
    if (c->n_entries > c->chats_room) {
        c->chats_room = c->capacity;
        c->view_chats = xrealloc(c->view_chats, (size_t)c->chats_room * sizeof *c->view_chats);
    }
    for (int i = 0; i < c->n_entries; i++) {
        const struct chat_entry *e = c->entries[i];
        const struct request_figures *r = request_in(f, e->request);
        c->view_chats[i] = (struct view_chat){
            .id = e->conversation.id,
            .title = *e->conversation.title ? e->conversation.title : "New chat",
            .state = e->state,
            .busy = chat_busy(e),
            .parked = e->parked,
            .prefill_done = r ? r->prefill_done : 0,
            .prefill_total = r ? r->prefill_total : 0,
            .tokens_per_second = r ? r->tokens_per_second : 0,
            .unread = e->unread,
        };
    }
}

// A failed answer shows what came of it, then what went wrong as a notice.
static int show_message(const struct chat *c, const struct conversation *talk, int index, struct view_message *out) {
    const struct message *m = &talk->messages[index];
    bool failed = m->state == MESSAGE_FAILED;
    bool waiting = m->state == MESSAGE_STREAMING && chat_busy(chat_current(c)) && chat_current(c)->answer == index;
    bool broken = m->state == MESSAGE_STREAMING && !waiting; // confab ended while it was written
    struct view_message view = {
        .id = talk->id << 32 | (uint64_t)index << 1,
        .revision = m->revision,
        .role = m->role == MESSAGE_USER ? VIEW_USER : VIEW_MODEL,
        .text = m->text,
        .size = m->size,
        .streaming = waiting,
        .note = failed   ? NULL
                : broken ? "interrupted"
                         : m->note,
    };
    view.version = c->versions[index];
    view.n_versions = c->versions[talk->count + m->parent + 1];
    int n = 0;
    if (!failed || m->size) out[n++] = view;
    if (failed) {
        view.id |= 1;
        view.role = VIEW_NOTICE;
        view.text = m->note ? m->note : "";
        for (view.size = 0; view.text[view.size];) view.size++;
        out[n++] = view;
    }
    return n;
}

// Which model wrote the answers: those of another than the one there is now are headed by its whole name, and where one follows
// the other that is said too.
static void show_authors(const struct chat *c, const struct conversation *talk, const int *path, int length,
                         struct view_message *views) {
    const char *before = NULL;
    for (int i = 0; i < length; i++) {
        const struct message *m = &talk->messages[path[i]];
        while (views->id >> 1 != (talk->id << 32 | (uint64_t)path[i] << 1) >> 1) views++;
        if (!m->model) continue;
        bool present = !strcmp(m->model, c->model_name);
        if (!present) views->author = m->model;
        else if (before && strcmp(before, m->model)) views->model = m->model;
        before = m->model;
    }
}

static int show_messages(struct chat *c, const struct conversation *talk) {
    if (talk->count > c->messages_room) {
        c->messages_room = talk->capacity;
        c->view_messages = xrealloc(c->view_messages, 2 * (size_t)c->messages_room * sizeof *c->view_messages);
        c->path = xrealloc(c->path, (size_t)c->messages_room * sizeof *c->path);
        c->versions = xrealloc(c->versions, (2 * (size_t)c->messages_room + 1) * sizeof *c->versions);
    }
    if (talk->count) conversation_versions(talk, c->versions, c->versions + talk->count);
    int length = conversation_path(talk, c->path), n = 0;
    for (int i = 0; i < length; i++) n += show_message(c, talk, c->path[i], c->view_messages + n);
    show_authors(c, talk, c->path, length, c->view_messages);
    return n;
}

// Tokens in the conversation: as counted at the end of the latest answer, then of the running request.
static int context_used(const struct chat *c, const struct engine_figures *f) {
    const struct chat_entry *e = chat_current(c);
    const struct request_figures *r = request_in(f, e->request);
    const struct conversation *talk = &e->conversation;
    int m = conversation_last(talk);
    while (m >= 0 && !talk->messages[m].tokens) m = talk->messages[m].parent;
    int counted = m >= 0 ? talk->messages[m].tokens : 0;
    return r && r->n_context > counted ? r->n_context : counted; // a request that reads has not less to read
}

void chat_show(struct chat *c) {
    const struct chat_entry *e = chat_current(c);
    const struct engine_figures *f = c->engine ? engine_figures(c->engine) : NULL;
    show_chats(c, f);
    int n_messages = show_messages(c, &e->conversation);
    struct screen_view view = {
        .chats = c->view_chats,
        .n_chats = c->n_entries,
        .current = c->current,
        .messages = c->view_messages,
        .n_messages = n_messages,
        .model_name = c->model_name,
        .model_short = c->model_short,
        .context_used = context_used(c, f),
        .context_size = f && f->context ? f->context : model_host_info(c->p.host)->n_context,
        .figures = f,
        .decode = {c->decode, c->n_samples},
        .prefill = {c->prefill, c->n_samples},
        .latency = {c->latency, c->n_samples},
        .sampling = &e->conversation.sampling,
        .knob = c->knob,
        .questions = guide_questions,
        .n_questions = c->p.settings->model ? 0 : GUIDE_QUESTIONS,
        .unsaved = c->p.store_path && (!c->store || c->store_broken),
        .status = *c->status ? c->status : NULL,
        .status_bad = c->status_bad,
    };
    chat_model_show(c, &view);
    screen_draw(c->screen, &view);
}
