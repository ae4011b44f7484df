#include "app/chat/chat.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "app/chat/chat_state.h"
#include "app/session/asked.h"
#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "engine/base/panic.h"
#include "engine/metrics.h"
#include "ui/keys.h"

#define FRAME_NS     (NANOSECONDS / 30) // drawing takes its time from the threads that compute
#define KEY_FRAME_NS (NANOSECONDS / 60) // keys are answered sooner
#define TICK_NS      (NANOSECONDS / 4)
#define AFTERGLOW_NS (2 * NANOSECONDS) // the graphs go on for a while after the last event, down to zero

// ---- the terminal's size ----

static int resize_fd = -1; // eventfd, readable after SIGWINCH
static struct sigaction resize_before;

static void resize_signal(int signal) {
    (void)signal;
    int error = errno;
    uint64_t one = 1;
    ssize_t ignored = write(resize_fd, &one, sizeof one);
    (void)ignored;
    errno = error;
}

static void resize_watch(void) {
    resize_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (resize_fd < 0) panic("eventfd: %s", strerror(errno));
    struct sigaction action = {.sa_handler = resize_signal, .sa_flags = SA_RESTART};
    sigaction(SIGWINCH, &action, &resize_before);
}

static bool resize_seen(void) {
    uint64_t times;
    return read(resize_fd, &times, sizeof times) == sizeof times;
}

static void resize_unwatch(void) {
    sigaction(SIGWINCH, &resize_before, NULL);
    close(resize_fd);
    resize_fd = -1;
}

// ---- signals that end it ----

static const int end_signals[] = {SIGTERM, SIGHUP, SIGINT};
enum { END_SIGNALS = sizeof end_signals / sizeof *end_signals };
static struct sigaction end_before[END_SIGNALS];
static volatile sig_atomic_t ended_by;

// What is unsaved is saved first; a second signal does not wait for that.
static void end_signal(int signal) {
    for (int i = 0; i < END_SIGNALS; i++)
        if (end_signals[i] == signal) sigaction(signal, &end_before[i], NULL);
    ended_by = signal;
    resize_signal(signal); // wakes the loop
}

static void end_watch(void) {
    struct sigaction action = {.sa_handler = end_signal, .sa_flags = SA_RESTART};
    ended_by = 0;
    for (int i = 0; i < END_SIGNALS; i++) {
        sigaction(end_signals[i], NULL, &end_before[i]);
        if (end_before[i].sa_handler != SIG_IGN) sigaction(end_signals[i], &action, NULL);
    }
}

static void end_unwatch(void) {
    for (int i = 0; i < END_SIGNALS; i++) sigaction(end_signals[i], &end_before[i], NULL);
}

int chat_signal(void) { return ended_by; }

// ---- what is said ----

// At the start more than one thing may be wrong: none hides another.
static void __attribute__((format(printf, 2, 3))) chat_complain(struct chat *c, const char *format, ...) {
    char text[sizeof c->status];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    size_t used = strlen(c->status);
    snprintf(c->status + used, sizeof c->status - used, "%s%s", used ? "; " : "", text);
    log_warning("chat", "%s", text);
    c->status_bad = true;
}

void chat_say(struct chat *c, bool bad, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(c->status, sizeof c->status, format, args);
    va_end(args);
    if (*c->status) log_write(bad ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "chat", "%s", c->status);
    c->status_bad = bad;
    c->stale = true;
}

bool chat_save_all(struct chat *c) {
    struct status st = {0};
    chat_draft_take(c);
    bool saved = session_save(c->session, &st);
    if (!saved) chat_say(c, true, "not saved, leaving again loses it: %s", st.text);
    return saved;
}

// ---- what happens in the session ----

static void engine_moved(struct chat *c) {
    c->moved = clock_ns();
    if (!c->tick) c->tick = c->moved;
}

// Elsewhere the note says it.
static void say_full(struct chat *c, int context, bool failed) {
    static const char *const next[] = {[OVERFLOW_DROP] = "the next message drops the oldest",
                                       [OVERFLOW_ASK] = "you will be asked what to drop",
                                       [OVERFLOW_STOP] = "begin a new chat"};
    const int overflow = c->p.settings->overflow;
    const bool larger = context < model_host_info(c->p.host)->n_context;
    chat_say(c, failed || overflow == OVERFLOW_STOP, "context full (%d tokens): %s%s", context,
             failed && overflow != OVERFLOW_STOP ? "this message is too long" : next[overflow],
             larger && (failed || overflow == OVERFLOW_STOP) ? ", or start confab with a larger --context" : "");
}

static bool ask_for_room(struct chat *c, int context) {
    struct conversation *talk = &c->current->conversation;
    const int failed = conversation_last(talk);
    char question[160];
    if (failed < 0 || c->p.settings->overflow != OVERFLOW_ASK) return false;
    const struct message *m = &talk->messages[failed];
    const struct asked_room room = asked_make_room(talk, m->parent, m->tokens, context / 2, context, false);
    if (room.n_messages == 1)
        snprintf(question, sizeof question, "Drop the oldest message (about %d tokens)?", room.tokens);
    else
        snprintf(question, sizeof question, "Drop the %d oldest messages (about %d tokens)?", room.n_messages,
                 room.tokens);
    if (room.enough) screen_confirm(c->screen, COMMAND_MAKE_ROOM, question);
    return room.enough;
}

static void answer_ended(struct chat *c, const struct session_event *event) {
    int context = engine_metrics(c->client)->context;
    if (!metric_known(context)) context = model_host_info(c->p.host)->n_context;
    const bool failed = event->chat->state == REQUEST_FAILED;
    c->totals.failures += failed;
    c->settled_at = clock_ns(); // what was written meanwhile is read ahead
    const bool held = event->chat->conversation.waiting.count && event->chat->state != REQUEST_FINISHED;
    if (event->chat != c->current) {
        const char *title = event->chat->conversation.title;
        event->chat->unread = true;
        screen_notify(c->screen, c->p.settings->notify, *title ? title : "New chat");
    } else if (held && !event->chat->steers) {
        chat_say(c, failed, "what you wrote waits: Enter sends it, Up takes it back");
    } else if (event->reason == FINISH_CONTEXT && !(failed && ask_for_room(c, context))) {
        say_full(c, context, failed);
    }
}

static void chat_read(struct chat *c, const struct session_event *event) {
    struct session_chat *chat = event->chat;
    if (event->text) chat_say(c, true, "%s", event->text);
    chat_find_read(c, chat);
    if (chat != c->composing) return;
    chat_draft_read(c);
}

static void chat_deleted(struct chat *c, struct session_chat *chat) {
    const char *title = chat->conversation.title;
    const char *key = keys_name(COMMAND_UNDELETE);
    chat_find_deleted(c, chat);
    chat_say(c, false, "deleted %s%s%s%s", *title ? title : "the chat", *key ? " (" : "", key,
             *key ? " brings it back)" : "");
    if (c->composing == chat) chat_draft_take(c), c->composing = NULL; // to come back with it
    if (c->comparing == chat) c->comparing = NULL;
    if (c->current != chat) return;
    const int count = session_listed(c->session), index = session_index(c->session, chat);
    const int next = index + 1 < count ? index + 1 : index - 1;
    if (next < 0 || index >= count) chat_new(c);
    else chat_select(c, session_chat(c->session, next));
}

static void on_session(void *context, const struct session_event *event) {
    struct chat *c = context;
    switch (event->kind) {
    case SESSION_LISTED:
        if (event->text) chat_complain(c, "%s", event->text);
        if (c->composing) chat_draft_read(c);
        break;
    case SESSION_READ: chat_read(c, event); break;
    case SESSION_ASKED:
        chat_limits_yield(c);
        engine_moved(c);
        break;
    case SESSION_CHANGED: engine_moved(c); break;
    case SESSION_TITLED: break; // it is to be seen
    case SESSION_ENDED: answer_ended(c, event); break;
    case SESSION_DELETED: chat_deleted(c, event->chat); break;
    case SESSION_SAVED: chat_say(c, false, "saved again"); break;
    case SESSION_FOUND:
        if (event->text) chat_say(c, true, "%s", event->text);
        chat_find_matched(c);
        break;
    case SESSION_WRITTEN:
    case SESSION_IMPORTED: chat_say(c, event->failed, "%s", event->text); break;
    case SESSION_KEPT:
    case SESSION_UNSAVED: chat_say(c, true, "%s", event->text); break;
    }
    if (event->kind != SESSION_CHANGED) chat_find_changed(c);
    c->stale = true;
}

// ---- the loop ----

// No oftener than the graphs: metrics that change with every token cannot be read.
static void chat_take_time(struct chat *c, const struct engine_metrics *f) {
    memcpy(c->time.stages, f->stages, sizeof c->time.stages);
    c->time.decode = f->decode;
    c->time.prefill = f->prefill;
    c->time.busy = f->running > 0 || f->queue > 0;
    struct stage_work all = {f->decode.seconds + f->prefill.seconds, f->decode.bytes + f->prefill.bytes,
                             f->decode.operations + f->prefill.operations};
    chat_limits_check(c, &all);
}

static void set_moment(struct chat *c, int sample, const struct latency_moment *m) {
    c->moments[sample].token = *m;
    if (c->latency[sample] < m->seconds) c->latency[sample] = m->seconds;
}

// Into the newest sample what is new; what the engine knows by now of earlier ones, too.
static void take_moments(struct chat *c, const struct engine_metrics *f) {
    const int newest = c->n_samples - 1;
    int64_t latest = c->moment;
    for (int i = 0; i < METRICS_MOMENTS; i++) {
        const struct latency_moment *m = &f->moments[i];
        if (!m->number) continue;
        if (m->number > latest) latest = m->number;
        if (m->number > c->moment && m->seconds > c->moments[newest].token.seconds) set_moment(c, newest, m);
        for (int k = newest; k >= 0 && k > newest - 2 * METRICS_MOMENTS; k--)
            if (c->moments[k].token.number == m->number) set_moment(c, k, m);
    }
    c->moment = latest;
}

static void chat_sample(struct chat *c, uint64_t now) {
    const struct engine_metrics *f = engine_metrics(c->client);
    if (c->n_samples == CHAT_HISTORY) {
        size_t rest = (CHAT_HISTORY - 1) * sizeof *c->decode;
        memmove(c->decode, c->decode + 1, rest);
        memmove(c->prefill, c->prefill + 1, rest);
        memmove(c->latency, c->latency + 1, rest);
        memmove(c->moments, c->moments + 1, (CHAT_HISTORY - 1) * sizeof *c->moments);
        c->n_samples--;
    }
    c->decode[c->n_samples] = f->decode_now;
    c->prefill[c->n_samples] = f->prefill_now;
    if (f->prefill_now > 0) c->prefill_rate = f->prefill_now;
    c->moments[c->n_samples] = (struct view_moment){.loading = model_host_loading(c->p.host),
                                                     .at = (double)now / NANOSECONDS};
    c->latency[c->n_samples++] = f->running > 0 ? f->next_token.p50 : 0;
    c->samples++;
    take_moments(c, f);
    chat_timeline_add(c, f, now);
    chat_take_time(c, f);
    bool moves = f->running > 0 || f->queue > 0 || now < c->moved + AFTERGLOW_NS;
    moves |= screen_has_open(c->screen, PANE_GRAPHS);
    c->tick = moves ? now + TICK_NS : 0;
    c->stale = true;
}

void chat_draw(struct chat *c) {
    chat_show(c);
    c->drawn = clock_ns();
    c->stale = chat_awaits_page(c);
    c->typed = false;
}

static uint64_t next_frame(const struct chat *c) { return c->drawn + (c->typed ? KEY_FRAME_NS : FRAME_NS); }

// Between frames nothing that the engine says can be shown: it is left in the queue, so that tokens wake nobody.
static void rest(struct chat *c) { session_rest(c->session, c->client && c->tick ? next_frame(c) : 0); }

static int resize_wait(void *context) { return (void)context, resize_fd; }

static void resize_turn(void *context, bool ready) {
    struct chat *c = context;
    (void)ready; // the signal may have come since
    if (!resize_seen()) return;
    screen_resized(c->screen);
    c->stale = true;
}

static int output_wait(void *context) {
    const struct chat *c = context;
    return c->stale ? -1 : screen_output_fd(c->screen);
}

static void output_turn(void *context, bool ready) { ((struct chat *)context)->stale |= ready; }

static int input_wait(void *context) {
    const struct chat *c = context;
    return c->editor ? -1 : c->p.screen.input_fd;
}

static uint64_t input_due(void *context) {
    int timeout = screen_timeout(((struct chat *)context)->screen);
    return timeout < 0 ? 0 : timeout ? clock_ns() + (uint64_t)timeout * 1000000 : 1;
}

static void input_turn(void *context, bool ready) {
    struct chat *c = context;
    struct ui_command command;
    if (!ready && screen_timeout(c->screen) != 0) return;
    while (!c->ending && screen_input(c->screen, &command)) chat_command(c, &command);
    chat_draft_typed(c);
    if (!c->tick && screen_has_open(c->screen, PANE_GRAPHS)) c->tick = clock_ns(); // time goes on there
    c->stale = c->typed = true; // keys that edit or scroll hand out no command
}

static int host_wait(void *context) { return model_host_fd(((struct chat *)context)->p.host); }

static void host_turn(void *context, bool ready) {
    (void)ready;
    chat_model_events(context);
}

static int serve_wait(void *context) { return chat_serve_fd(context); }

static void serve_turn(void *context, bool ready) {
    if (!ready || !chat_serve_turn(context)) return;
    chat_limits_yield(context);
    engine_moved(context);
}

static int editor_wait(void *context) { return chat_editor_fd(context); }

static void editor_turn(void *context, bool ready) {
    if (ready) chat_editor_turn(context);
}

static int attach_wait(void *context) {
    struct worker *reader = chat_attach_worker(context);
    return reader ? worker_fd(reader) : -1;
}

static void attach_turn(void *context, bool ready) {
    if (ready) worker_collect(chat_attach_worker(context));
}

static int limits_wait(void *context) { return chat_limits_fd(context); }
static uint64_t limits_due(void *context) { return chat_limits_due(context); }

static void limits_turn(void *context, bool ready) {
    (void)ready;
    chat_limits_turn(context, clock_ns());
}

static uint64_t sample_due(void *context) {
    const struct chat *c = context;
    return c->client ? c->tick : 0;
}

static void sample_turn(void *context, bool ready) {
    struct chat *c = context;
    (void)ready;
    uint64_t now = clock_ns();
    if (c->tick && now >= c->tick && c->client) chat_sample(c, now);
}

static uint64_t draft_due(void *context) { return chat_draft_due(context); }

static void draft_turn(void *context, bool ready) {
    (void)ready;
    chat_draft_turn(context, clock_ns());
}

static uint64_t frame_due(void *context) {
    const struct chat *c = context;
    bool rests = c->client && c->tick && clock_ns() < next_frame(c);
    return c->stale || rests ? next_frame(c) : 0;
}

static void frame_turn(void *context, bool ready) {
    struct chat *c = context;
    (void)ready;
    if (c->stale && clock_ns() >= next_frame(c)) chat_draw(c);
}

void chat_wait(struct chat *c) {
    worker_wait(session_worker(c->session), -1);
    if (c->attach) worker_wait(chat_attach_worker(c), -1);
    model_host_wait(c->p.host);
}

bool chat_step(struct chat *c, int timeout_ms) {
    rest(c);
    loop_turn(c->loop, timeout_ms);
    return !c->ending && !ended_by && !screen_ended(c->screen);
}

// ---- opening and closing ----

// What a person does comes first, and drawing last: it shows what came of the turn.
static bool open_session(struct chat *c, struct status *st) {
    const struct loop_source before[] = {{resize_wait, POLLIN, NULL, resize_turn, c},
                                         {output_wait, POLLOUT, NULL, output_turn, c},
                                         {host_wait, POLLIN, NULL, host_turn, c},
                                         {serve_wait, POLLIN, NULL, serve_turn, c},
                                         {input_wait, POLLIN, input_due, input_turn, c},
                                         {editor_wait, POLLIN, NULL, editor_turn, c},
                                         {attach_wait, POLLIN, NULL, attach_turn, c},
                                         {NULL, 0, draft_due, draft_turn, c}};
    const struct loop_source after[] = {{limits_wait, POLLIN, limits_due, limits_turn, c},
                                        {NULL, 0, sample_due, sample_turn, c},
                                        {NULL, 0, frame_due, frame_turn, c}};
    c->loop = loop_open();
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) loop_add(c->loop, &before[i]);
    c->session = session_open(&(struct session_params){.loop = c->loop,
                                                       .settings = c->p.settings,
                                                       .store_path = c->p.store_path,
                                                       .kv_folder = c->p.kv_folder,
                                                       .tell = on_session,
                                                       .context = c},
                              st);
    for (size_t i = 0; i < sizeof after / sizeof *after; i++) loop_add(c->loop, &after[i]);
    return c->session;
}

static void chat_free(struct chat *c) {
    chat_save_close(c);
    loop_close(c->loop);
    free(c->view_chats);
    free(c->view_messages);
    free(c->view_nodes);
    free(c->view_context_rows);
    free(c->view_columns);
    free(c->column_messages);
    free(c->path);
    free(c->versions);
    chat_find_close(c);
    free(c);
}

struct chat *chat_open(const struct chat_params *p, struct status *st) {
    struct status theme = {0};
    struct screen_options options = p->screen;
    options.theme = p->settings->theme;
    options.ascii = p->settings->ascii;
    options.title = p->settings->title;
    options.panes = chat_pane_choice(p->settings);
    options.theme_problem = &theme;
    struct status keys = {0};
    keys_bind((const char *const *)p->settings->keys.texts, p->settings->keys.count, &keys);
    struct chat *c = xcalloc(1, sizeof *c);
    c->p = *p;
    chat_find_open(c);
    if (!open_session(c, st)) return chat_free(c), NULL;
    options.worker = session_worker(c->session);
    options.reader = chat_attach_open(c);
    c->screen = screen_open(&options, st);
    if (!c->screen) {
        chat_attach_close(c);
        session_close(c->session, NULL);
        return chat_free(c), NULL;
    }
    if (p->notice) chat_complain(c, "%s", p->notice);
    if (theme.code) chat_complain(c, "%s", theme.text);
    if (keys.code) chat_complain(c, "%s", keys.text);
    chat_limits_open(c);
    chat_select(c, session_chat(c->session, 0));
    chat_serve_open(c);
    chat_model_open(c);
    resize_watch();
    end_watch();
    c->stale = true;
    return c;
}

// The terminal is the person's again while the disk is waited for.
bool chat_close(struct chat *c, struct status *st) {
    chat_serve_stop(c);
    chat_draft_take(c);
    chat_editor_close(c);
    chat_attach_close(c);
    chat_settings_close(c);
    chat_prompt_close(c);
    chat_model_close(c);
    chat_limits_close(c);
    end_unwatch();
    resize_unwatch();
    screen_close(c->screen);
    c->screen = NULL; // what the worker still does finds none to ask on
    chat_serve_close(c);
    bool saved = session_close(c->session, st);
    chat_free(c);
    return saved;
}
