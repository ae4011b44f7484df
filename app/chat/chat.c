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
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/metrics.h"

#define FRAME_NS      (NANOSECONDS / 30) // drawing takes its time from the threads that compute
#define KEY_FRAME_NS  (NANOSECONDS / 60) // keys are answered sooner
#define TICK_NS       (NANOSECONDS / 4)
#define AFTERGLOW_NS  (2 * NANOSECONDS) // the graphs go on for a while after the last event, down to zero
#define SAVE_AGAIN_NS (2 * NANOSECONDS) // after a save that failed

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

// ---- conversations ----

struct chat_entry *chat_insert(struct chat *c, struct conversation *conversation) {
    if (c->n_entries == c->capacity) {
        c->capacity = c->capacity ? 2 * c->capacity : 16;
        c->entries = xrealloc(c->entries, (size_t)c->capacity * sizeof *c->entries);
    }
    memmove(c->entries + 1, c->entries, (size_t)c->n_entries++ * sizeof *c->entries);
    struct chat_entry *e = c->entries[0] = xcalloc(1, sizeof *e);
    e->conversation = *conversation;
    e->conversation.id = c->next_id++;
    e->state = REQUEST_FINISHED;
    return e;
}

static void chat_found(void *context, struct conversation *found) { chat_insert(context, found); }

// At the start more than one thing may be wrong: none hides another.
static void __attribute__((format(printf, 2, 3))) chat_complain(struct chat *c, const char *format, ...) {
    char text[sizeof c->status];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    size_t used = strlen(c->status);
    snprintf(c->status + used, sizeof c->status - used, "%s%s", used ? "; " : "", text);
    c->status_bad = true;
}

static void chat_open_store(struct chat *c) {
    struct status st = {0};
    if (!c->p.store_path) return;
    c->store = store_open(c->p.store_path, &st);
    if (!c->store || !store_list(c->store, &c->p.settings->sampling, chat_found, c, &st))
        chat_complain(c, "conversations are not saved: %s", st.text);
}

bool chat_load_messages(struct chat *c, struct chat_entry *e) {
    struct status st = {0};
    if (!e->conversation.unread_rows) return true;
    if (store_read(c->store, &e->conversation, &st)) return true;
    chat_say(c, true, "this chat cannot be read: %s", st.text);
    return false;
}

void chat_say(struct chat *c, bool bad, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(c->status, sizeof c->status, format, args);
    va_end(args);
    c->status_bad = bad;
    c->stale = true;
}

// ---- saving ----

bool chat_unsaved(const struct chat *c) { return c->p.store_path && (!c->store || c->store_broken); }

void chat_save_later(struct chat_entry *e, uint64_t delay_ns) {
    uint64_t at = clock_ns() + delay_ns;
    if (!e->save_at || at < e->save_at) e->save_at = at;
}

static bool chat_save(struct chat *c, struct chat_entry *e, struct status *st) {
    bool worth = c->store && (e->conversation.row || e->conversation.count || e->conversation.named);
    chat_count(c, e);
    if (worth && !store_save(c->store, &e->conversation, st)) return false;
    e->save_at = 0;
    return chat_draft_save(c, e, st);
}

// The draft alone is written alone: what another confab has made of the chat stays.
static bool chat_save_entry(struct chat *c, struct chat_entry *e, bool whole, struct status *st) {
    return whole ? chat_save(c, e, st) : chat_draft_save(c, e, st);
}

static void chat_save_due(struct chat *c, uint64_t now) {
    for (int i = 0; i < c->n_entries; i++) {
        struct chat_entry *e = c->entries[i];
        struct status st = {0};
        bool whole = e->save_at && now >= e->save_at, draft = e->draft_at && now >= e->draft_at;
        if (!whole && !draft) continue;
        if (draft && e == c->composing) chat_draft_take(c);
        if (draft) e->draft_at = 0;
        if (!chat_save_entry(c, e, whole, &st)) {
            *(whole ? &e->save_at : &e->draft_at) = now + SAVE_AGAIN_NS;
            chat_say(c, true, "not saved, kept in memory and tried again: %s", st.text);
            c->store_broken = true;
        } else if (c->store_broken) {
            chat_say(c, false, "saved again");
            c->store_broken = false;
        }
    }
}

static bool any_message(const struct chat *c) {
    for (int i = 0; i < c->n_entries; i++)
        if (c->entries[i]->conversation.count) return true;
    return false;
}

bool chat_save_all(struct chat *c) {
    struct status st = {0};
    bool late = c->p.store_path && !c->store && any_message(c); // it could not be opened at the start
    bool saved = !late || (c->store = store_open(c->p.store_path, &st));
    chat_draft_take(c);
    for (int i = 0; saved && i < c->n_entries; i++)
        saved = chat_save_entry(c, c->entries[i], late || c->entries[i]->save_at, &st);
    if (!saved) chat_say(c, true, "not saved, leaving again loses it: %s", st.text);
    return saved;
}

// ---- opening and closing ----

struct chat *chat_open(const struct chat_params *p, struct status *st) {
    struct screen_options options = p->screen;
    options.theme = p->settings->theme;
    options.ascii = p->settings->ascii;
    options.panes = p->settings->panes;
    struct status theme = {0};
    options.theme_problem = &theme;
    struct screen *screen = screen_open(&options, st);
    if (!screen) return NULL;
    struct chat *c = xcalloc(1, sizeof *c);
    c->p = *p;
    c->screen = screen;
    c->next_id = 1;
    if (p->notice) chat_complain(c, "%s", p->notice);
    if (theme.code) chat_complain(c, "%s", theme.text);
    chat_open_store(c);
    chat_limits_open(c);
    chat_new(c);
    chat_draft_open(c, c->composing); // what was last begun and not sent
    screen_set_draft(screen, &c->composing->draft);
    chat_model_open(c);
    resize_watch();
    end_watch();
    c->stale = true;
    return c;
}

static void chat_free(struct chat *c) {
    for (int i = 0; i < c->n_entries; i++) {
        conversation_close(&c->entries[i]->conversation);
        draft_free(&c->entries[i]->draft);
        free(c->entries[i]);
    }
    free(c->entries);
    free(c->view_chats);
    free(c->view_messages);
    free(c->path);
    free(c->versions);
    free(c);
}

bool chat_close(struct chat *c, struct status *st) {
    bool saved = true;
    chat_draft_take(c);
    for (int i = 0; i < c->n_entries; i++) {
        struct chat_entry *e = c->entries[i];
        chat_abandon(c, e, "stopped");
        if (!chat_save_entry(c, e, e->save_at, st)) saved = status_prefix(st, "not saved");
    }
    chat_model_close(c);
    chat_limits_close(c);
    end_unwatch();
    resize_unwatch();
    screen_close(c->screen);
    if (c->store) store_close(c->store);
    chat_free(c);
    return saved;
}

// ---- the loop ----

// No oftener than the graphs: figures that change with every token cannot be read.
static void chat_take_time(struct chat *c, const struct engine_figures *f) {
    memcpy(c->time.stages, f->stages, sizeof c->time.stages);
    c->time.decode = f->decode;
    c->time.prefill = f->prefill;
    c->time.busy = f->running || f->queue;
    struct stage_work all = {f->decode.seconds + f->prefill.seconds, f->decode.bytes + f->prefill.bytes,
                             f->decode.operations + f->prefill.operations};
    chat_limits_check(c, &all);
}

static void chat_sample(struct chat *c, uint64_t now) {
    if (!c->tick || now < c->tick || !c->engine) return;
    const struct engine_figures *f = engine_figures(c->engine);
    if (c->n_samples == CHAT_HISTORY) {
        size_t rest = (CHAT_HISTORY - 1) * sizeof *c->decode;
        memmove(c->decode, c->decode + 1, rest);
        memmove(c->prefill, c->prefill + 1, rest);
        memmove(c->latency, c->latency + 1, rest);
        c->n_samples--;
    }
    c->decode[c->n_samples] = f->decode_now;
    c->prefill[c->n_samples] = f->prefill_now;
    c->latency[c->n_samples++] = f->running ? f->next_token.p50 : 0;
    chat_take_time(c, f);
    bool moves = f->running || f->queue || now < c->moved + AFTERGLOW_NS;
    c->tick = moves ? now + TICK_NS : 0;
    c->stale = true;
}

void chat_draw(struct chat *c) {
    chat_show(c);
    c->drawn = clock_ns();
    c->stale = c->typed = false;
}

static uint64_t next_frame(const struct chat *c) { return c->drawn + (c->typed ? KEY_FRAME_NS : FRAME_NS); }

static int until(uint64_t deadline, uint64_t now) { // in ms, rounded up, so that it has come when poll returns
    return deadline <= now ? 0 : (int)((deadline - now + 999999) / 1000000);
}

static void sooner(int *timeout, int other) {
    if (other >= 0 && (*timeout < 0 || other < *timeout)) *timeout = other;
}

// Between frames nothing that the engine says can be shown: it is left in the queue, so that tokens wake nobody.
static bool chat_rests(const struct chat *c, uint64_t now) { return c->engine && c->tick && now < next_frame(c); }

static int chat_timeout(const struct chat *c, int timeout, uint64_t now) {
    sooner(&timeout, screen_timeout(c->screen));
    if (c->stale || chat_rests(c, now)) sooner(&timeout, until(next_frame(c), now));
    if (c->tick && c->engine) sooner(&timeout, until(c->tick, now));
    uint64_t limits = chat_limits_due(c);
    if (limits) sooner(&timeout, until(limits, now));
    for (int i = 0; i < c->n_entries; i++) {
        if (c->entries[i]->save_at) sooner(&timeout, until(c->entries[i]->save_at, now));
        if (c->entries[i]->draft_at) sooner(&timeout, until(c->entries[i]->draft_at, now));
    }
    return timeout;
}

static void chat_events(struct chat *c) {
    struct engine_event event;
    while (c->engine && engine_poll(c->engine, &event)) {
        chat_event(c, &event);
        c->stale = true;
        c->moved = clock_ns();
        if (!c->tick) c->tick = c->moved;
    }
}

static void chat_input(struct chat *c) {
    struct ui_command command;
    while (!c->ending && screen_input(c->screen, &command)) chat_command(c, &command);
    chat_draft_typed(c);
    c->stale = c->typed = true; // keys that edit or scroll hand out no command
}

bool chat_step(struct chat *c, int timeout_ms) {
    uint64_t now = clock_ns();
    struct pollfd fds[] = {
        {.fd = c->p.screen.input_fd, .events = POLLIN},
        {.fd = c->engine && !chat_rests(c, now) ? engine_event_fd(c->engine) : -1, .events = POLLIN},
        {.fd = resize_fd, .events = POLLIN},
        {.fd = model_host_fd(c->p.host), .events = POLLIN},
        {.fd = chat_limits_fd(c), .events = POLLIN},
        {.fd = c->stale ? -1 : screen_output_fd(c->screen), .events = POLLOUT},
    };
    if (poll(fds, sizeof fds / sizeof *fds, chat_timeout(c, timeout_ms, now)) < 0 && errno != EINTR)
        panic("poll: %s", strerror(errno));
    if (resize_seen()) {
        screen_resized(c->screen);
        c->stale = true;
    }
    if (fds[5].revents) c->stale = true;
    chat_events(c);
    chat_model_events(c);
    if (fds[0].revents || screen_timeout(c->screen) == 0) chat_input(c);
    now = clock_ns();
    chat_limits_turn(c, now);
    chat_sample(c, now);
    chat_save_due(c, now);
    if (c->stale && now >= next_frame(c)) chat_draw(c);
    return !c->ending && !ended_by && !screen_ended(c->screen);
}
