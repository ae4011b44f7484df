// Text from elsewhere in the message: a file, or what a command prints. Both may take long, so a worker of their own
// reads them; the text comes into the composer, where it is seen, counted and taken out again like a long paste.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/base/units.h"
#include "app/chat/chat_state.h"
#include "app/session/asked.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/base/paths.h"
#include "engine/base/reader.h"
#include "engine/base/utf8.h"

#define TEXT_LIMIT     (1 << 20) // bytes
#define COMMAND_NS     (30 * NANOSECONDS)
#define LOOK_MS        100 // between two looks whether it is to end
#define LANGUAGE_BYTES 12

struct chat_attach {
    struct worker *worker;
    atomic_bool ends; // commands that still run are stopped
};

struct reading {
    struct chat *chat;
    struct session_chat *into; // its draft
    bool is_command;
    char *what;                // the path or the command
    char *text;                // what it came to; NULL: status says why not
    size_t size;
    struct status status;
};

// ---- files ----

static bool is_text(const char *bytes, size_t size) {
    for (size_t at = 0; at < size;) {
        uint32_t code;
        const size_t step = utf8_decode(bytes + at, size - at, &code);
        if (!code || (code == UTF8_REPLACEMENT && step < 3)) return false;
        at += step;
    }
    return true;
}

static void read_file(struct reading *r) {
    char *path = path_expand(r->what);
    r->text = file_read_regular(path, TEXT_LIMIT, &r->size, &r->status);
    free(path);
}

// ---- commands ----

// In a session of its own, so that nothing it runs can reach the terminal; what it says of errors belongs to it.
static pid_t start(const char *line, int output) {
    char *arguments[] = {"sh", "-c", (char *)line, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    pid_t child = -1;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    if (posix_spawn(&child, "/bin/sh", &files, &attributes, arguments, environ)) child = -1;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return child;
}

// Until it has closed its output or is given up.
static bool read_output(struct reading *r, int fd) {
    const uint64_t until = clock_ns() + COMMAND_NS;
    const atomic_bool *ends = &r->chat->attach->ends;
    r->text = xmalloc(TEXT_LIMIT + 1);
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        const int ready = poll(&p, 1, LOOK_MS);
        if (atomic_load(ends)) return status_fail(&r->status, STATUS_CANCELLED, "%s: stopped", r->what);
        if (clock_ns() >= until) return status_fail(&r->status, STATUS_IO, "%s: takes too long", r->what);
        if (ready <= 0) continue;
        const ssize_t n = read(fd, r->text + r->size, TEXT_LIMIT + 1 - r->size);
        if (n <= 0) return true;
        r->size += (size_t)n;
        if (r->size > TEXT_LIMIT) return status_fail(&r->status, STATUS_LIMIT, "%s: prints too much", r->what);
    }
}

static void run_command(struct reading *r) {
    int ends[2], code;
    if (pipe2(ends, O_CLOEXEC)) {
        status_fail(&r->status, STATUS_IO, "%s: no pipe can be made", r->what);
        return;
    }
    const pid_t child = start(r->what, ends[1]);
    close(ends[1]);
    if (child < 0) status_fail(&r->status, STATUS_IO, "%s: cannot be started", r->what);
    else read_output(r, ends[0]);
    close(ends[0]);
    if (child < 0) return;
    kill(-child, SIGKILL); // what has closed its output and runs on
    waitpid(child, &code, 0);
}

// ---- into the message ----

static void read_work(void *job) {
    struct reading *r = job;
    if (r->is_command) run_command(r);
    else read_file(r);
    if (r->status.code) return;
    if (!is_text(r->text, r->size)) status_fail(&r->status, STATUS_FORMAT, "%s: not a text", r->what);
    else if (!r->size)
        status_fail(&r->status, STATUS_FORMAT, "%s: %s", r->what, r->is_command ? "prints nothing" : "is empty");
}

// One more than the longest row of them in the text.
static int fence_size(const char *text, size_t size) {
    int longest = 2, now = 0;
    for (size_t i = 0; i < size; i++) {
        now = text[i] == '`' ? now + 1 : 0;
        if (now > longest) longest = now;
    }
    return longest + 1;
}

// "py" of "a/b.py": what models know the language by.
static const char *language(const char *name) {
    const char *dot = strrchr(name, '.');
    const bool plain = dot && dot != name && strlen(dot + 1) <= LANGUAGE_BYTES && !strpbrk(dot, " `~/");
    return plain ? dot + 1 : "";
}

static char *block(const struct reading *r) {
    const char *slash = strrchr(r->what, '/'), *name = slash && !r->is_command ? slash + 1 : r->what;
    const int size = fence_size(r->text, r->size);
    char *fence = xcalloc((size_t)size + 1, 1);
    memset(fence, '`', (size_t)size);
    const bool open = r->text[r->size - 1] != '\n';
    char *all = xasprintf("%s%s:\n%s%s\n%.*s%s%s\n", r->is_command ? "$ " : "", name, fence,
                          r->is_command ? "" : language(name), (int)r->size, r->text, open ? "\n" : "", fence);
    free(fence);
    return all;
}

static void read_done(void *job) {
    struct reading *r = job;
    struct chat *c = r->chat;
    c->stale = true;
    if (r->status.code) {
        chat_say(c, true, "%s", r->status.text);
    } else if (c->composing != r->into) {
        chat_say(c, true, "%s: not attached, its chat is not on the screen", r->what);
    } else {
        char *text = block(r), size[24];
        screen_insert(c->screen, text);
        chat_draft_typed(c);
        chat_say(c, false, "%s: %s, about %d tokens", r->what, units_bytes((double)r->size, size),
                 asked_guess(strlen(text)));
        free(text);
    }
    free(r->what), free(r->text);
    free(r);
}

static void begin(struct chat *c, const struct ui_command *command, bool is_command) {
    const char *what = command->text ? command->text : "";
    size_t size = strlen(what);
    while (size && what[size - 1] == ' ') size--;
    if (!size || !c->attach) return;
    struct reading *r = xcalloc(1, sizeof *r);
    *r = (struct reading){.chat = c, .into = c->composing, .is_command = is_command, .what = xstrndup(what, size)};
    worker_do(c->attach->worker, read_work, read_done, r);
}

void chat_attach(struct chat *c, const struct ui_command *command) { begin(c, command, false); }

void chat_insert(struct chat *c, const struct ui_command *command) { begin(c, command, true); }

// ---- the worker ----

struct worker *chat_attach_open(struct chat *c) {
    struct status st = {0};
    struct worker *worker = worker_open(&st);
    if (!worker) return NULL;
    c->attach = xcalloc(1, sizeof *c->attach);
    c->attach->worker = worker;
    return worker;
}

void chat_attach_close(struct chat *c) {
    if (!c->attach) return;
    atomic_store(&c->attach->ends, true);
    worker_close(c->attach->worker);
    free(c->attach);
    c->attach = NULL;
}

struct worker *chat_attach_worker(const struct chat *c) { return c->attach ? c->attach->worker : NULL; }
