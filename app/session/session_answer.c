// Requests of a session: what is asked for, and again where the context is full.
#include <stdlib.h>
#include <string.h>

#include "app/session/asked.h"
#include "app/session/session_state.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/metrics.h"

bool session_busy(const struct session_chat *chat) { return chat->n_answers; }

const struct session_answer *session_answer_at(const struct session_chat *chat, int message) {
    for (int i = 0; i < chat->n_answers; i++)
        if (chat->answers[i].message == message) return &chat->answers[i];
    return NULL;
}

// ---- asking ----

// An answer in the making has room for that many tokens at least, unless nothing is left out for it any more.
#define ROOM_MOST  1024
#define ROOM_SHARE 8 // of the context

static int context_of(const struct session *s) {
    const int context = engine_metrics(s->client)->context;
    return metric_known(context) ? context : 0;
}

static bool may_make_room(const struct session *s, const struct session_answer *a) {
    return a->makes_room || s->p.settings->overflow != OVERFLOW_STOP;
}

static int room_for(const struct session *s, const struct session_answer *a, const struct settings *own) {
    int room = context_of(s) / ROOM_SHARE;
    if (room > ROOM_MOST) room = ROOM_MOST;
    if (own->max_tokens > 0 && own->max_tokens < room) room = own->max_tokens;
    return may_make_room(s, a) && !a->crowded ? room : 0;
}

struct request_params session_request_params(const struct settings *s) {
    return (struct request_params){.sampling = s->sampling,
                                   .reasoning = (enum reasoning)s->reasoning,
                                   .template_file = settings_template_file(s),
                                   .stops = (const char *const *)s->stops.texts,
                                   .n_stops = s->stops.count,
                                   .max_tokens = s->max_tokens,
                                   .time_limit = s->time_limit};
}

struct request_params session_request_with(const struct session *s, const struct conversation *talk,
                                           const struct asked *asked) {
    struct request_params params = session_request_params(&talk->settings);
    params.conversation = talk->id;
    params.disk_owner = session_disk_owner(s, talk);
    params.raw = asked->raw;
    params.messages = asked->messages;
    params.n_messages = asked->count;
    return params;
}

void session_start_free(struct session_start *start) {
    if (!start) return;
    message_tokens_free(&start->tokens);
    free(start->text);
    free(start->model);
    free(start->words);
    free(start);
}

// Another model reads the text of the tokens as it would any other. The caller frees what is returned.
static int32_t *begin_with(const struct session_start *start, const char *model, struct request_params *p) {
    p->begun_text = start->text;
    if (strcmp(start->model, model)) {
        p->begun_text = start->words;
        return NULL;
    }
    int32_t *ids = xmalloc((size_t)(start->n + 1) * sizeof *ids);
    for (int i = 0; i < start->n; i++) ids[p->n_begun++] = start->tokens.tokens[i].id;
    if (start->forced >= 0) ids[p->n_begun++] = start->forced;
    p->begun = ids;
    return ids;
}

// One request for an answer that waits and those after it that are to come with it.
static void request(struct session *s, struct session_chat *chat, int first) {
    struct conversation *talk = &chat->conversation;
    struct session_answer *answers = chat->answers + first;
    int n = 1;
    const int parent = talk->messages[answers->message].parent;
    for (answers->index = 0; first + n < chat->n_answers; n++) { // those between may have been stopped
        struct session_answer *a = &answers[n];
        if (!a->index || a->request || answers->start || talk->messages[a->message].parent != parent) break;
        a->index = n;
    }
    session_title_stop(s, false);
    session_tell(s, &(struct session_event){.kind = SESSION_ASKED, .chat = chat});
    struct asked asked = asked_open(talk, parent);
    struct request_params params = session_request_with(s, talk, &asked);
    params.n_answers = n;
    params.room = room_for(s, answers, &talk->settings);
    if (params.max_tokens) params.max_tokens += answers->n_before;
    int32_t *ids = NULL;
    if (answers->start) ids = begin_with(answers->start, s->model, &params);
    struct sampling *samplings = xmalloc((size_t)n * sizeof *samplings);
    for (int i = 0; i < n; i++) {
        samplings[i] = *talk->messages[answers[i].message].sampling;
        if (answers[i].own_sampling) params.samplings = samplings;
    }
    uint64_t id = engine_submit(s->client, &params);
    free(ids), free(samplings);
    for (int i = 0; i < n; i++) {
        answers[i].request = id;
        answers[i].n_asked = asked_messages(talk, parent);
        conversation_set_model(talk, answers[i].message, s->model);
    }
    asked_close(&asked);
    if (s->ahead.conversation == talk->id) session_ahead_stop(s); // the prompt takes over what it has computed
}

static struct session_answer *add_answer(struct session_chat *chat, int parent, int index) {
    struct conversation *talk = &chat->conversation;
    if (chat->n_answers == chat->capacity) {
        chat->capacity = chat->capacity ? 2 * chat->capacity : 2;
        chat->answers = xrealloc(chat->answers, (size_t)chat->capacity * sizeof *chat->answers);
    }
    int message = conversation_add(talk, parent, MESSAGE_MODEL, "", 0);
    talk->messages[message].state = MESSAGE_STREAMING;
    conversation_set_sampling(talk, message, &talk->settings.sampling);
    struct session_answer *a = &chat->answers[chat->n_answers++];
    *a = (struct session_answer){.index = index, .message = message, .state = REQUEST_PENDING, .submitted = clock_ns()};
    return a;
}

// What was added from `first` on.
static void ask(struct session *s, struct session_chat *chat, int first) {
    conversation_choose(&chat->conversation, chat->answers[first].message);
    chat->state = REQUEST_PENDING;
    if (s->client && !s->held) request(s, chat, first);
    session_save_later(chat, 0);
}

void session_ask(struct session *s, struct session_chat *chat, int parent, int n, const struct sampling *samplings) {
    const int first = chat->n_answers;
    for (int i = 0; i < n; i++) {
        struct session_answer *a = add_answer(chat, parent, i);
        a->own_sampling = samplings;
        if (samplings) conversation_set_sampling(&chat->conversation, a->message, &samplings[i]);
    }
    ask(s, chat, first);
}

// The words of an answer up to one of its tokens, and of what follows that.
static char *words_before(const struct message *m, int token, int32_t forced, const char *text) {
    struct token_alternative alternatives[SAMPLING_TOP];
    const char *piece = "";
    size_t size = 0;
    for (int i = 0; i < token; i++)
        if (m->drawn.tokens[i].channel == CHANNEL_ANSWER) size = m->drawn.tokens[i].end;
    const int n = forced >= 0 ? message_tokens_alternatives(&m->drawn, token, alternatives) : 0;
    for (int i = 0; i < n; i++)
        if (alternatives[i].id == forced) piece = alternatives[i].text;
    return xasprintf("%.*s%s%s", (int)size, m->text, piece, text ? text : "");
}

void session_fork(struct session *s, struct session_chat *chat, int message, int token, int32_t forced,
                  const char *text) {
    const struct message *m = &chat->conversation.messages[message];
    struct session_start *start = xcalloc(1, sizeof *start);
    *start = (struct session_start){.tokens = message_tokens_copy(&m->drawn),
                                    .n = token,
                                    .forced = forced,
                                    .text = text ? xstrdup(text) : NULL,
                                    .model = xstrdup(m->model ? m->model : ""),
                                    .words = words_before(m, token, forced, text)};
    const int first = chat->n_answers, all = m->drawn.count;
    struct session_answer *a = add_answer(chat, m->parent, 0); // m may have moved
    a->start = start;
    a->n_before = token == all ? all : 0;
    ask(s, chat, first);
}

void session_request_waiting(struct session *s) {
    for (int i = s->count - 1; i >= 0; i--)
        for (int k = 0; k < s->chats[i]->n_answers; k++)
            if (!s->chats[i]->answers[k].request) request(s, s->chats[i], k);
}

int session_write(struct session *s, struct session_chat *chat, const char *text, size_t size) {
    struct conversation *talk = &chat->conversation;
    if (!talk->count && !chat->own_settings) conversation_set_settings(talk, s->p.settings);
    session_save_later(chat, 0);
    return conversation_add(talk, conversation_last(talk), MESSAGE_USER, text, size);
}

bool session_send_waiting(struct session *s, struct session_chat *chat) {
    struct conversation *talk = &chat->conversation;
    if (!talk->waiting.count || talk->unread_rows || session_answer_at(chat, conversation_last(talk))) return false;
    chat->steers = false;
    char *text = session_take_waiting(chat, 0);
    session_ask(s, chat, session_write(s, chat, text, strlen(text)), 1, NULL);
    free(text);
    return true;
}

void session_send(struct session *s, struct session_chat *chat, const char *text) {
    struct conversation *talk = &chat->conversation;
    conversation_wait(talk, talk->waiting.count, text);
    session_save_later(chat, 0);
    chat->sends = talk->unread_rows; // behind messages that are not there yet
    if (chat->sends) session_read(s, chat);
    else session_send_waiting(s, chat);
}

char *session_take_waiting(struct session_chat *chat, int place) {
    session_save_later(chat, 0);
    return conversation_wait_no_more(&chat->conversation, place);
}

void session_steer(struct session *s, struct session_chat *chat, const char *text) {
    struct conversation *talk = &chat->conversation;
    if (text) conversation_wait(talk, 0, text);
    session_save_later(chat, 0);
    chat->steers = talk->waiting.count;
    session_stop_answer(s, chat, conversation_last(talk));
    session_send_waiting(s, chat); // where the engine did not have it yet
}

// ---- a full context ----

bool session_make_room(struct session *s, struct session_chat *chat) {
    const struct conversation *talk = &chat->conversation;
    int last = conversation_last(talk);
    if (last >= 0 && talk->messages[last].role == MESSAGE_MODEL) last = talk->messages[last].parent;
    if (last < 0 || session_answer_at(chat, conversation_last(talk))) return false;
    const int first = chat->n_answers;
    add_answer(chat, last, 0)->makes_room = true;
    ask(s, chat, first);
    return true;
}

void session_use(struct session_chat *chat, int message, enum message_use use) {
    conversation_use(&chat->conversation, message, use);
    session_save_later(chat, 0);
}

static void say_dropped(struct session_chat *chat, const struct session_answer *a) {
    char *text =
        xasprintf("the context is full: %d older message%s (about %d tokens) %s left out from here on", a->n_dropped,
                  a->n_dropped == 1 ? "" : "s", a->dropped_tokens, a->n_dropped == 1 ? "is" : "are");
    conversation_notice(&chat->conversation, a->message, text);
    free(text);
}

// Half of the context at once: all that comes behind what is left out has to be read again.
bool session_drop_oldest(struct session *s, struct session_chat *chat, int first, int n_prompt) {
    struct session_answer *a = &chat->answers[first];
    struct conversation *talk = &chat->conversation;
    int context = context_of(s);
    if (!context) context = n_prompt;
    const struct asked_room room =
        asked_make_room(talk, talk->messages[a->message].parent, n_prompt, context / 2, context, true);
    const bool fits = !room.enough && n_prompt < context && !a->crowded;
    if (!room.enough && !fits) return false;
    const uint64_t request_id = a->request;
    for (int i = first; i < chat->n_answers && chat->answers[i].request == request_id; i++) {
        a = &chat->answers[i];
        a->request = 0;
        a->state = REQUEST_PENDING;
        a->refused = false;
        a->crowded = fits;
        a->n_dropped += room.n_messages * room.enough;
        a->dropped_tokens += room.tokens * room.enough;
        if (a->n_dropped) say_dropped(chat, a);
    }
    chat->state = REQUEST_PENDING;
    if (!s->held) request(s, chat, first);
    session_save_later(chat, 0);
    return true;
}

// Tokens that were left out for another answer to the same message, as it said; 0: there is none.
static int left_out_beside(const struct session_chat *chat, const struct session_answer *a) {
    const struct message *messages = chat->conversation.messages;
    for (int i = 0; i < chat->n_answers; i++) {
        const struct session_answer *other = &chat->answers[i];
        if (messages[other->message].parent == messages[a->message].parent && other->n_dropped > a->n_dropped)
            return other->dropped_tokens - a->dropped_tokens;
    }
    return 0;
}

bool session_go_on(struct session *s, struct session_chat *chat, struct session_answer *a,
                   const struct engine_event *event) {
    struct conversation *talk = &chat->conversation;
    const struct message *m = &talk->messages[a->message];
    const int context = context_of(s), at = (int)(a - chat->answers), own = event->n_generated;
    const int most = context - context / ROOM_SHARE - own;
    if (event->state != REQUEST_FINISHED || event->reason != FINISH_CONTEXT || s->held || a->stopped) return false;
    if ((!a->makes_room && s->p.settings->overflow != OVERFLOW_DROP) || m->drawn.count != own) return false;
    const bool fewer = asked_messages(talk, m->parent) < a->n_asked; // for another answer to the same message
    const struct asked_room room =
        asked_make_room(talk, m->parent, fewer ? 0 : event->n_prompt, context / 2 - own, most, true);
    if (!room.enough && !(fewer && room.left < most)) return false;
    session_start_free(a->start);
    a->start = xmalloc(sizeof *a->start);
    *a->start = (struct session_start){.tokens = message_tokens_copy(&m->drawn),
                                       .n = own,
                                       .forced = -1,
                                       .model = xstrdup(m->model ? m->model : ""),
                                       .words = xstrdup(m->text)};
    a->replays = true;
    const int beside = fewer ? left_out_beside(chat, a) : 0;
    a->n_dropped += fewer ? a->n_asked - asked_messages(talk, m->parent) : room.n_messages;
    if (beside) a->dropped_tokens += beside + room.tokens;
    else if (event->n_prompt > room.left) a->dropped_tokens += event->n_prompt - room.left;
    a->n_given -= own; // drawn before
    a->left = event->at;
    a->state = chat->state = REQUEST_PENDING;
    say_dropped(chat, a);
    request(s, chat, at);
    session_save_later(chat, 0);
    return true;
}
