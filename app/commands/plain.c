#include "app/commands/plain.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/base/clean.h"
#include "app/models/model.h"
#include "app/session/session.h"
#include "engine/base/panic.h"
#include "engine/base/paths.h"

enum { MOST_LINE = 1 << 20 };

struct plain {
    struct session *session;
    struct session_chat *chat; // that is talked in
    const struct model_info *model;
    char *input; // read, but not a whole line yet
    size_t size;
    int written;           // the message that is being written out; −1: none
    size_t text, thinking; // bytes of it that are
    int n_waiting;         // lines that were sent while an answer ran
    bool listed;           // the chats there are
    bool leaves, ended;    // after this turn; after what is being answered
};

static volatile sig_atomic_t interrupted;

static void interrupt(int signal) {
    (void)signal;
    interrupted = 1;
}

static void prompt(const struct plain *p) {
    if (!session_busy(p->chat) && !p->n_waiting && !p->ended) fputs("> ", stdout);
    fflush(stdout);
}

// What models and chats have in it steers no terminal.
static void __attribute__((format(printf, 1, 2))) say(const char *format, ...) {
    va_list args;
    char *text;
    va_start(args, format);
    const int size = vasprintf(&text, format, args);
    va_end(args);
    if (size < 0) panic("out of memory");
    clean_write(stdout, text, (size_t)size);
    free(text);
}

// ---- what the session tells ----

static void write_more(const char *text, size_t size, size_t *written) {
    if (size > *written) clean_write(stdout, text + *written, size - *written);
    *written = size;
}

static void write_answer(struct plain *p) {
    const struct conversation *talk = &p->chat->conversation;
    const int last = conversation_last(talk);
    if (last < 0 || talk->messages[last].role != MESSAGE_MODEL) return;
    const struct message *m = &talk->messages[last];
    if (p->written != last) p->written = last, p->text = p->thinking = 0;
    if (m->thinking_size && !p->thinking) puts("thinking:");
    write_more(m->thinking, m->thinking_size, &p->thinking);
    if (m->size && !p->text) say("%s%s: ", m->thinking_size ? "\n" : "", p->model->name);
    write_more(m->text, m->size, &p->text);
    fflush(stdout);
}

static void end_answer(struct plain *p) {
    write_answer(p);
    const struct conversation *talk = &p->chat->conversation;
    if (p->written < 0) return;
    const struct message *m = &talk->messages[p->written];
    puts("");
    if (m->notice) say("(%s)\n", m->notice);
    if (m->note) say("(%s)\n", m->note);
    p->written = -1;
    prompt(p);
}

// What waited is shown again, now that it is its turn.
static void tell_asked(struct plain *p) {
    const struct conversation *talk = &p->chat->conversation;
    const int last = conversation_last(talk), asked = last < 0 ? -1 : talk->messages[last].parent;
    if (!p->n_waiting || asked < 0) return;
    p->n_waiting--;
    say("> %s\n", talk->messages[asked].text);
}

static void on_session(void *context, const struct session_event *e) {
    struct plain *p = context;
    const bool here = p->session && e->chat == p->chat;
    switch (e->kind) {
    case SESSION_LISTED:
        p->listed = true;
        if (e->text) say("(%s)\n", e->text);
        break;
    case SESSION_ASKED:
        if (here) tell_asked(p);
        break;
    case SESSION_CHANGED:
        if (here && session_busy(p->chat)) write_answer(p);
        break;
    case SESSION_ENDED:
        if (here) end_answer(p);
        break;
    case SESSION_READ:
        if (here && !e->text) say("%s, %d messages\n", p->chat->conversation.title, p->chat->conversation.count);
        if (here) prompt(p);
        break;
    default:
        if (e->text) say("(%s)\n", e->text);
    }
}

// ---- what is typed ----

static void tell_chats(struct plain *p, const char *argument) {
    (void)argument;
    for (int i = 0; i < session_listed(p->session); i++) {
        const struct session_chat *chat = session_chat(p->session, i);
        const char *title = chat->conversation.title;
        say("%d %s%s\n", i + 1, *title ? title : "New chat", chat == p->chat ? " (here)" : "");
    }
}

// What was written of another chat's answer does not count here.
static void go_to(struct plain *p, struct session_chat *chat) {
    p->chat = chat;
    p->written = -1;
    p->n_waiting = 0;
}

static void open_chat(struct plain *p, const char *argument) {
    const long n = strtol(argument, NULL, 10);
    if (n < 1 || n > session_listed(p->session)) {
        puts("(no such chat; /chats lists them)");
        return;
    }
    go_to(p, session_chat(p->session, (int)n - 1));
    if (p->chat->conversation.unread_rows) session_read(p->session, p->chat);
    else say("%s, %d messages\n", p->chat->conversation.title, p->chat->conversation.count);
}

static void new_chat(struct plain *p, const char *argument) {
    (void)argument;
    go_to(p, session_new(p->session));
    puts("new chat");
}

// The last message of the person, on the path, is answered once more.
static void answer_again(struct plain *p, const char *argument) {
    (void)argument;
    const struct conversation *talk = &p->chat->conversation;
    const int last = conversation_last(talk), asked = last < 0 ? -1 : talk->messages[last].parent;
    if (asked < 0) puts("(nothing was asked yet)");
    else session_ask(p->session, p->chat, asked, 1, NULL);
}

static void leave(struct plain *p, const char *argument) {
    (void)argument;
    p->leaves = true;
}

static void help(struct plain *p, const char *argument);

static const struct plain_command {
    const char *name, *help;
    void (*does)(struct plain *p, const char *argument);
} commands[] = {
    {"help", "this list", help},
    {"new", "begin a new chat", new_chat},
    {"chats", "list the chats", tell_chats},
    {"open", "go to chat N of that list", open_chat},
    {"again", "answer once more", answer_again},
    {"quit", "leave; Ctrl+C stops an answer first", leave},
};

static void help(struct plain *p, const char *argument) {
    (void)p, (void)argument;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        say("/%s: %s\n", commands[i].name, commands[i].help);
    puts("/SETTING VALUE: of this chat, such as /temp 0.4\n//: sends a slash");
}

static void set(struct plain *p, const char *key, const char *value) {
    struct status st = {0};
    const int id = setting_find(key);
    if (id < 0 || !setting_of_conversation(id)) {
        say("(unknown command '/%s'; /help lists them)\n", key);
        return;
    }
    if (!session_change_setting(p->session, p->chat, id, value, p->model, &st)) {
        say("(%s)\n", st.text);
        return;
    }
    char *now = setting_format(&p->chat->conversation.settings, id);
    say("%s is %s\n", setting_table[id].key, now);
    free(now);
}

static void command(struct plain *p, char *line) {
    char *argument = line + strcspn(line, " \t");
    if (*argument) *argument++ = 0;
    argument += strspn(argument, " \t");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (!strcmp(line, commands[i].name)) {
            commands[i].does(p, argument);
            return;
        }
    set(p, line, argument);
}

static void take_line(struct plain *p, char *line) {
    if (line[0] == '/' && line[1] != '/') command(p, line + 1);
    else if (line[strspn(line, " \t\r")]) {
        if (session_busy(p->chat)) p->n_waiting++, puts("(sent when this answer ends)");
        session_send(p->session, p->chat, line + (line[0] == '/'));
    }
    prompt(p);
}

// What is typed waits until the chats, and the messages of the one here, are read.
static int input_fd(void *context) {
    const struct plain *p = context;
    return p->ended || !p->listed || p->chat->reading ? -1 : STDIN_FILENO;
}

static void input_turn(void *context, bool ready) {
    struct plain *p = context;
    if (!ready || input_fd(p) < 0) return;
    p->input = xrealloc(p->input, p->size + BUFSIZ + 1);
    const ssize_t n = read(STDIN_FILENO, p->input + p->size, BUFSIZ);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
    p->ended = n <= 0;
    p->size += n > 0 ? (size_t)n : 0;
    if (p->ended && p->size) p->input[p->size++] = '\n';
}

static void take_lines(struct plain *p) {
    for (char *newline;
         !p->leaves && p->listed && !p->chat->reading && p->size && (newline = memchr(p->input, '\n', p->size));) {
        char *line = xstrndup(p->input, (size_t)(newline - p->input));
        p->size -= (size_t)(newline + 1 - p->input);
        memmove(p->input, newline + 1, p->size);
        take_line(p, line);
        free(line);
    }
    if (p->size > MOST_LINE) p->size = 0, puts("(the line is too long)");
}

// Ctrl+C stops the answer; where there is none it leaves.
static void take_interrupt(struct plain *p) {
    interrupted = 0;
    if (session_busy(p->chat)) session_stop(p->session, p->chat);
    else p->leaves = true;
}

// An answer that failed or was stopped holds up what waits: it is sent all the same, or else given back.
static void go_on(struct plain *p) {
    if (!p->n_waiting || session_busy(p->chat)) return;
    if (p->chat->state != REQUEST_CANCELLED && session_send_waiting(p->session, p->chat)) return;
    while (p->chat->conversation.waiting.count) {
        char *text = session_take_waiting(p->chat, 0);
        say("(not sent: %s)\n", text);
        free(text);
    }
    p->n_waiting = 0;
    prompt(p);
}

// ---- the chat ----

static bool is_done(const struct plain *p) {
    return p->ended && !p->size && !p->n_waiting && !p->chat->reading && !session_busy(p->chat);
}

bool plain_wanted(const struct settings *s) {
    const char *terminal = getenv("TERM");
    return s->plain || (terminal && !strcmp(terminal, "dumb") && isatty(STDIN_FILENO));
}

static bool talk(struct loaded_model *m, struct settings *s, struct status *st) {
    char *store = path_data("confab.db"), *saved = local_engine_saved_folder();
    struct plain p = {.model = m->info, .written = -1, .listed = !store};
    struct loop *loop = loop_open();
    loop_add(loop, &(struct loop_source){input_fd, POLLIN, NULL, input_turn, &p});
    struct session *session = session_open(
        &(struct session_params){
            .loop = loop, .settings = s, .store_path = store, .kv_folder = saved, .tell = on_session, .context = &p},
        st);
    if (session) {
        p.session = session, p.chat = session_chat(session, 0);
        session_set_client(session, m->client, m->info->name);
        session_set_titles(session, s->model ? m->info : NULL);
        say("confab with %s; /help lists the commands\n", m->info->name);
        prompt(&p);
        while (!p.leaves) {
            loop_turn(loop, -1);
            take_lines(&p);
            if (interrupted) take_interrupt(&p);
            go_on(&p);
            p.leaves |= is_done(&p);
        }
        puts("");
    }
    const bool done = session && session_close(session, st);
    free(p.input), free(saved), free(store);
    loop_close(loop);
    return done;
}

bool plain_run(const struct settings *given, struct status *st) {
    struct settings s = settings_copy(given);
    struct loaded_model m;
    struct sigaction action = {.sa_handler = interrupt}, before;
    char *lost;
    const bool started = model_start_or_built_in(&m, &s, &lost, st);
    if (lost) say("(%s)\n", lost);
    free(lost);
    if (started) settings_follow_model(&s, m.info);
    sigaction(SIGINT, &action, &before); // while the model loads it ends the program
    const bool done = started && talk(&m, &s, st);
    if (started) model_unload(&m);
    sigaction(SIGINT, &before, NULL);
    settings_free(&s);
    return done;
}
