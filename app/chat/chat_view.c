// What the screen is shown: plain data made afresh for every frame, in arrays that are kept.
#include <string.h>

#include "app/chat/chat_state.h"
#include "app/guide/guide.h"
#include "app/session/asked.h"
#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "engine/base/machine_memory.h"
#include "engine/base/panic.h"
#include "engine/base/process_memory.h"
#include "engine/distribution.h"
#include "engine/metrics.h"

#define DISTRIBUTION_NS (NANOSECONDS / 8)

const struct request_metrics *chat_request(const struct engine_metrics *f, const struct session_answer *a) {
    for (int i = 0; f && a && a->request && i < f->n_requests; i++)
        if (f->requests[i].request == a->request && f->requests[i].answer == a->index) return &f->requests[i];
    return NULL;
}

// Of all answers of a chat; 0: not known.
static float rate_of(const struct session_chat *chat, const struct engine_metrics *f) {
    float rate = 0;
    for (int i = 0; i < chat->n_answers; i++) {
        const struct request_metrics *r = chat_request(f, &chat->answers[i]);
        if (r && metric_known(r->tokens_per_second)) rate += r->tokens_per_second;
    }
    return rate;
}

// While one of several is being written, the others may wait.
static enum request_state state_of(const struct session_chat *chat) {
    for (int i = 0; i < chat->n_answers; i++)
        if (chat->answers[i].state == REQUEST_DECODING) return REQUEST_DECODING;
    return chat->state;
}

static void show_chats(struct chat *c, const struct engine_metrics *f) {
    int count = session_count(c->session);
    if (count > c->chats_room) {
        c->chats_room = 2 * count;
        c->view_chats = xrealloc(c->view_chats, (size_t)c->chats_room * sizeof *c->view_chats);
    }
    for (int i = 0; i < count; i++) {
        const struct session_chat *chat = session_chat(c->session, i);
        const struct conversation *talk = &chat->conversation;
        const struct session_answer *a = chat->n_answers ? &chat->answers[chat->n_answers - 1] : NULL;
        const struct request_metrics *r = chat_request(f, a);
        c->view_chats[i] = (struct view_chat){
            .id = talk->id,
            .title = *talk->title    ? talk->title
                     : talk->private ? "Private chat"
                                     : "New chat",
            .state = state_of(chat),
            .busy = session_busy(chat),
            .parked = a && !a->request,
            .prefill_done = r ? r->prefill_done : 0,
            .prefill_total = r ? r->prefill_total : 0,
            .tokens_per_second = rate_of(chat, f),
            .unread = chat->unread,
            .private = talk->private,
            .pinned = talk->pinned,
            .archived = talk->archived,
            .used = talk->used,
            .tags = talk->tags,
        };
    }
}

uint64_t chat_message_id(const struct conversation *talk, int message) {
    return talk->id << 32 | (uint64_t)message << 2;
}

static struct view_message notice_view(uint64_t id, uint32_t revision, const char *text, bool failed) {
    return (struct view_message){.id = id,
                                 .revision = revision,
                                 .role = VIEW_NOTICE,
                                 .text = text,
                                 .size = strlen(text),
                                 .version = 1,
                                 .failed = failed};
}

// A notice of the engine, the message, and of a failed answer what went wrong.
int chat_show_message(const struct chat *c, const struct engine_metrics *f, int index, struct view_message *out) {
    const struct conversation *talk = &c->current->conversation;
    const struct message *m = &talk->messages[index];
    bool failed = m->state == MESSAGE_FAILED;
    const struct session_answer *making = session_answer_at(c->current, index);
    bool waiting = m->state == MESSAGE_STREAMING && making;
    bool broken = m->state == MESSAGE_STREAMING && !waiting; // confab ended while it was written
    struct view_message view = {
        .id = chat_message_id(talk, index),
        .revision = m->revision,
        .role = m->role == MESSAGE_USER ? VIEW_USER : VIEW_MODEL,
        .text = m->text,
        .size = m->size,
        .drawn = m->drawn.count ? m->drawn.tokens : NULL,
        .n_drawn = m->drawn.count,
        .thinking = m->thinking,
        .thinking_size = m->thinking_size,
        .thinking_tokens = m->thinking_tokens,
        .thinking_seconds = m->thinking_seconds,
        .streaming = waiting,
        .note = failed   ? NULL
                : broken ? "interrupted"
                         : m->note,
    };
    if (making) {
        const struct request_metrics *r = chat_request(f, making);
        view.state = making->state;
        view.parked = !making->request;
        view.prefill_done = r ? r->prefill_done : 0;
        view.prefill_total = r ? r->prefill_total : 0;
    }
    view.name = m->name;
    view.use = chat_use_name(m->use);
    view.edited = c->current->editing && c->current->edited == index;
    const struct model_loading *coming = waiting && !making->request ? model_host_loading(c->p.host) : NULL;
    if (coming && strcmp(coming->title, c->model_name)) view.author = coming->title;
    view.version = c->versions[index];
    view.n_versions = c->versions[talk->count + m->parent + 1];
    int n = 0;
    if (m->notice) out[n++] = notice_view(view.id | 2, m->revision, m->notice, false);
    if (!failed || m->size || m->thinking_size) out[n++] = view;
    if (failed) out[n++] = notice_view(view.id | 1, m->revision, m->note ? m->note : "", true);
    if (asked_failed(talk, index) && talk->messages[index].chosen >= 0)
        out[n++] = notice_view(view.id | 3, m->revision, "what comes next was asked without this message", false);
    return n;
}

const char *chat_other_model(const struct chat *c, const struct message *m) {
    return m->model && strcmp(m->model, c->model_name) ? m->model : NULL;
}

// Of a view's id: its message in the conversation, −1 of a notice.
static int message_of(uint64_t id) { return id & 3 ? -1 : (int)((uint32_t)id >> 2); }

int chat_message(const struct chat *c, uint64_t id) {
    const struct conversation *talk = &c->current->conversation;
    int message = id >> 32 == talk->id ? message_of(id) : -1;
    return message >= 0 && message < talk->count && !talk->messages[message].pruned ? message : -1;
}

// Which model wrote the answers: those of another than the one there is now are headed by its whole name, and where one
// follows the other that is said too.
static void show_authors(const struct chat *c, const struct conversation *talk, struct view_message *views, int n) {
    const char *before = NULL;
    for (int i = 0; i < n; i++) {
        int index = message_of(views[i].id);
        const struct message *m = index >= 0 ? &talk->messages[index] : NULL;
        if (!m || !m->model) continue;
        const char *other = chat_other_model(c, m);
        if (other) views[i].author = other;
        else if (before && strcmp(before, m->model)) views[i].model = m->model;
        before = m->model;
    }
}

// The ids are those of no message; they have none of their own, for each of them may be the next.
static int show_waiting(const struct conversation *talk, struct view_message *out) {
    const uint64_t first = talk->id << 32 | 1u << 31;
    for (int i = 0; i < talk->waiting.count; i++)
        out[i] = (struct view_message){.id = first | (uint64_t)i << 2,
                                       .revision = talk->line_revision,
                                       .role = VIEW_USER,
                                       .text = talk->waiting.texts[i],
                                       .size = strlen(talk->waiting.texts[i]),
                                       .version = 1,
                                       .waiting = i + 1};
    return talk->waiting.count;
}

static int show_messages(struct chat *c, const struct engine_metrics *f, const struct conversation *talk) {
    if (talk->count + talk->waiting.count > c->messages_room) {
        c->messages_room = talk->capacity + talk->waiting.count;
        c->view_messages = xrealloc(c->view_messages, MOST_VIEWS * (size_t)c->messages_room * sizeof *c->view_messages);
        c->path = xrealloc(c->path, (size_t)c->messages_room * sizeof *c->path);
        c->versions = xrealloc(c->versions, (2 * (size_t)c->messages_room + 1) * sizeof *c->versions);
    }
    if (talk->count) conversation_versions(talk, c->versions, c->versions + talk->count);
    int n = 0;
    c->n_path = conversation_path(talk, c->path);
    for (int i = 0; i < c->n_path; i++) n += chat_show_message(c, f, c->path[i], c->view_messages + n);
    show_authors(c, talk, c->view_messages, n);
    return n + show_waiting(talk, c->view_messages + n);
}

// Messages of the path are folded or left out: tokens were counted with more or less of them.
static bool is_cut(const struct chat *c, const struct conversation *talk) {
    for (int i = 0; i < c->n_path; i++)
        if (talk->messages[c->path[i]].use == USE_FOLDED || talk->messages[c->path[i]].use == USE_DROPPED) return true;
    return false;
}

// Tokens in the conversation: those of the running request, otherwise as the latest answer counted them. Of what no
// answer counted, as after an end in the middle of one, their number is guessed; so it is when another model counted.
static void show_context(const struct chat *c, const struct engine_metrics *f, struct screen_view *view) {
    const struct session_chat *chat = c->current;
    const struct conversation *talk = &chat->conversation;
    const struct session_answer *a = session_answer_at(chat, conversation_last(talk));
    const uint64_t request = a ? a->request : 0;
    const struct request_metrics *r = chat_request(f, a);
    const int running = r && metric_known(r->n_context) ? r->n_context : 0;
    size_t uncounted = 0;
    int m = conversation_last(talk);
    for (; m >= 0; m = talk->messages[m].parent) {
        if (asked_failed(talk, m) && talk->messages[m].parent >= 0) m = talk->messages[m].parent; // nor its question
        else if (talk->messages[m].tokens && talk->messages[m].role == MESSAGE_MODEL) break;
        else uncounted += talk->messages[m].size;
    }
    if (request) uncounted = 0; // the engine is about to say
    const bool other = m >= 0 && chat_other_model(c, &talk->messages[m]);
    int counted = m >= 0 ? talk->messages[m].tokens : 0;
    bool guessed = uncounted;
    if (running) view->context_used = running;
    else if (is_cut(c, talk)) view->context_used = asked_total(talk, conversation_last(talk), &guessed);
    else view->context_used = counted + asked_guess(uncounted);
    view->context_guessed = !running && (guessed || other);
}

static int64_t known(uint64_t bytes) { return bytes ? (int64_t)bytes : -1; }

// The system is asked once a second, and only where it is to be seen.
static void show_memory(const struct chat *c, const struct engine_metrics *f, struct screen_view *view) {
    static struct view_memory memory;
    static uint64_t asked;
    const struct model_memory *taken = model_host_memory(c->p.host);
    if (!(screen_panes(c->screen) >> PANE_MEMORY & 1)) return;
    if (!asked || clock_ns() - asked >= NANOSECONDS) {
        asked = clock_ns();
        memory.resident = known(process_memory_resident());
        memory.free = known(machine_memory_free());
    }
    memory.repacked = taken ? (int64_t)taken->weights : -1;
    memory.mapped = taken ? (int64_t)taken->in_place : -1;
    memory.buffers = taken ? (int64_t)taken->buffers : -1;
    memory.kv = f && f->kv_bytes > 0 ? f->kv_bytes : -1;
    view->memory = &memory;
}

// Entries are copied when there are new ones, and only where they are to be seen.
static void show_log(const struct chat *c, struct screen_view *view) {
    static struct log_entry entries[LOG_RING];
    static uint64_t seen;
    static size_t count;
    if (!(screen_panes(c->screen) >> PANE_LOG & 1) && !screen_has_open(c->screen, PANE_LOG_ENTRIES)) return;
    uint64_t now = log_count();
    if (now != seen) count = log_read(0, entries, LOG_RING);
    seen = now;
    view->log = entries;
    view->n_log = (int)count;
}

static void look_at_page(struct chat *c) {
    const int page = screen_page(c->screen);
    if (!c->client || page == c->page) return;
    c->page = page;
    engine_look_at_page(c->client, page);
}

bool chat_awaits_page(const struct chat *c) {
    const int page = screen_page(c->screen);
    return c->client && page >= 0 && engine_metrics(c->client)->page.page != page;
}

// The answer on the screen is watched all the time, so that there is something to see when a person looks. A knob that
// is turned is seen at once; tokens come faster than anybody reads, and a large vocabulary takes a millisecond.
static void show_distribution(struct chat *c, struct screen_view *view) {
    static struct distribution distribution;
    static struct sampling sampling;
    static uint64_t asked;
    static bool known;
    const struct session_chat *chat = c->current;
    const struct session_answer *a = session_answer_at(chat, conversation_last(&chat->conversation));
    if (!c->client) return;
    if (a && a->request && (a->request != c->watched || a->index != c->watched_answer)) {
        engine_watch(c->client, a->request, a->index);
        c->watched = a->request, c->watched_answer = a->index;
    }
    if (!screen_has_open(c->screen, PANE_KNOBS)) return;
    const uint64_t now = clock_ns();
    if (now - asked >= DISTRIBUTION_NS || memcmp(&sampling, view->sampling, sizeof sampling)) {
        known = engine_distribution(c->client, view->sampling, &distribution);
        sampling = *view->sampling;
        asked = now;
    }
    if (known && distribution.conversation == chat->conversation.id && distribution.n > 0)
        view->distribution = &distribution;
}

static const char *editing(const struct session_chat *chat) {
    if (!chat->editing) return NULL;
    return chat->conversation.messages[chat->edited].role == MESSAGE_USER ? "your message" : "the answer";
}

void chat_show(struct chat *c) {
    const struct session_chat *chat = c->current;
    look_at_page(c);
    const struct engine_metrics *f = c->client ? engine_metrics(c->client) : NULL;
    show_chats(c, f);
    int n_messages = show_messages(c, f, &chat->conversation);
    struct screen_view view = {
        .chats = c->view_chats,
        .n_chats = session_count(c->session),
        .n_listed = session_listed(c->session),
        .current = session_index(c->session, chat),
        .messages = c->view_messages,
        .n_messages = n_messages,
        .model_name = c->model_name,
        .model_short = c->model_short,
        .context_size = f && f->context > 0 ? f->context : model_host_info(c->p.host)->n_context,
        .metrics = f,
        .decode = {c->decode, c->n_samples},
        .prefill = {c->prefill, c->n_samples},
        .latency = {c->latency, c->n_samples},
        .moments = c->moments,
        .samples = c->samples,
        .timeline = &c->timeline,
        .totals = chat_totals(c, f),
        .time = f ? &c->time : NULL,
        .sampling = chat_sampling(c),
        .fan_out = c->p.settings->fan_out,
        .collapse = c->p.settings->collapse,
        .writing = asked_guess(screen_message_size(c->screen)),
        .knob = c->knob,
        .questions = guide_questions,
        .n_questions = c->p.settings->model || chat->reading ? 0 : GUIDE_QUESTIONS,
        .editing = editing(chat),
        .unsaved = session_unsaved(c->session),
        .status = *c->status ? c->status : NULL,
        .status_bad = c->status_bad,
    };
    show_context(c, f, &view);
    show_memory(c, f, &view);
    show_log(c, &view);
    chat_find_show(c, &view);
    chat_tree_show(c, &view);
    chat_context_show(c, &view);
    show_distribution(c, &view);
    chat_compare_show(c, f, &view);
    chat_token_show(c, &view);
    chat_model_show(c, &view);
    chat_settings_show(c, &view);
    chat_serve_show(c, &view);
    chat_prompt_show(c, &view);
    chat_limits_show(c, f, &c->time);
    screen_draw(c->screen, &view);
}
