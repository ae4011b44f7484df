// What is written, or a long setting, edited in the person's own editor, to which the terminal is lent meanwhile.
// Answers go on.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/chat/chat_state.h"
#include "engine/base/panic.h"
#include "engine/base/reader.h"

#define TEXT_LIMIT (16 << 20) // bytes
#define NOT_FOUND  127        // the shell's exit status

struct chat_editor {
    char *command, *path; // path: of the text
    char *text;           // as it was
    char *key;            // of the setting that it is of; NULL: it is the message
    int number;           // as of COMMAND_SETTINGS
    pid_t pid;
    int fd; // of the process
};

static const char *editor_command(void) {
    const char *names[] = {getenv("VISUAL"), getenv("EDITOR")};
    for (int i = 0; i < 2; i++)
        if (names[i] && *names[i]) return names[i];
    return "vi";
}

// A file for this person alone, named so that editors know what is in it.
static bool write_text(struct chat_editor *e) {
    const char *folder = getenv("TMPDIR");
    e->path = xasprintf("%s/confab-XXXXXX.md", folder && *folder ? folder : "/tmp");
    const int fd = mkostemps(e->path, 3, O_CLOEXEC);
    if (fd < 0) return false;
    const bool written = dprintf(fd, "%s\n", e->text) >= 0;
    return !close(fd) && written;
}

// The command may have arguments of its own, so a shell reads it.
static bool start(struct chat_editor *e, const struct screen_options *terminal) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t own;
    char *line = xasprintf("%s \"$1\"", e->command), *arguments[] = {"sh", "-c", line, "sh", e->path, NULL};
    posix_spawn_file_actions_init(&files);
    if (terminal->input_fd >= 0) posix_spawn_file_actions_adddup2(&files, terminal->input_fd, STDIN_FILENO);
    if (terminal->output_fd >= 0) posix_spawn_file_actions_adddup2(&files, terminal->output_fd, STDOUT_FILENO);
    posix_spawnattr_init(&attributes);
    sigemptyset(&own);
    sigaddset(&own, SIGINT), sigaddset(&own, SIGQUIT);
    posix_spawnattr_setsigdefault(&attributes, &own);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    const bool started = !posix_spawn(&e->pid, "/bin/sh", &files, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    free(line);
    if (started) e->fd = pidfd_open(e->pid, 0);
    return started;
}

static void forget(struct chat *c) {
    struct chat_editor *e = c->editor;
    c->editor = NULL;
    if (e->fd >= 0) close(e->fd);
    free(e->command), free(e->path), free(e->text), free(e->key);
    free(e);
}

static char *written(const struct chat *c) {
    struct draft draft;
    screen_draft(c->screen, &draft);
    char *text = xstrdup(draft.text ? draft.text : "");
    draft_free(&draft);
    return text;
}

void chat_editor_open(struct chat *c, const struct ui_command *command) {
    const char *key = command->text;
    if (!key && chat_message(c, command->message) >= 0) {
        chat_edit(c, command);
        if (!c->current->editing) return; // it has said why
    }
    c->editor = xcalloc(1, sizeof *c->editor);
    *c->editor = (struct chat_editor){.command = xstrdup(editor_command()),
                                      .text = key ? chat_settings_text(c, key, command->number) : written(c),
                                      .key = key ? xstrdup(key) : NULL,
                                      .number = command->number,
                                      .fd = -1};
    if (!write_text(c->editor)) {
        chat_say(c, true, "%s: cannot be written", c->editor->path);
        forget(c);
        return;
    }
    screen_lend(c->screen);
    if (!start(c->editor, &c->p.screen)) {
        screen_reclaim(c->screen);
        chat_say(c, true, "%s: cannot be started", c->editor->command);
        unlink(c->editor->path);
        forget(c);
    } else if (c->editor->fd < 0) {
        chat_editor_turn(c); // a system without descriptors of processes: everything waits for it
    }
}

static void set(struct chat *c, const struct chat_editor *e, const char *text) {
    char *whole = xasprintf("%s %s", e->key, text);
    chat_settings_set(c, &(struct ui_command){.id = COMMAND_SETTINGS, .number = e->number, .text = whole});
    free(whole);
}

// What is in the file, without a newline at the end, which is the editor's. NULL: it cannot be read.
static char *read_text(const struct chat_editor *e, struct status *st) {
    size_t size;
    char *text = file_read(e->path, TEXT_LIMIT, &size, st);
    if (text) text[size && text[size - 1] == '\n' ? size - 1 : size] = 0;
    return text;
}

static void take_text(struct chat *c, const char *text) {
    struct chat_editor *e = c->editor;
    if (strcmp(text, e->text)) {
        if (e->key) set(c, e, text);
        else screen_rewrite(c->screen, text);
    }
    chat_draft_typed(c);
}

// Nothing is taken. What was saved meanwhile stays in its file.
static void leave_text(struct chat *c, const char *text, const char *why) {
    const struct chat_editor *e = c->editor;
    const bool kept = text ? strcmp(text, e->text) : !access(e->path, F_OK);
    chat_say(c, true, "%s; the message stays as it was%s%s", why, kept ? ", what was saved is in " : "",
             kept ? e->path : "");
    if (!kept) unlink(e->path);
}

void chat_editor_turn(struct chat *c) {
    struct chat_editor *e = c->editor;
    int status = 0;
    while (waitpid(e->pid, &status, 0) < 0 && errno == EINTR) continue;
    screen_reclaim(c->screen);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    struct status st = {0};
    char *text = read_text(e, &st);
    if (code == NOT_FOUND) {
        chat_say(c, true, "%s: not found (set EDITOR to your editor)", e->command);
        unlink(e->path);
    } else if (code) {
        char *why = xasprintf("%s: exit status %d", e->command, code);
        leave_text(c, text, why);
        free(why);
    } else if (!text) {
        leave_text(c, text, st.text);
    } else {
        take_text(c, text);
        unlink(e->path);
    }
    free(text);
    forget(c);
    c->stale = true;
}

int chat_editor_fd(const struct chat *c) { return c->editor ? c->editor->fd : -1; }

void chat_editor_close(struct chat *c) {
    if (c->editor) forget(c); // the file stays: it may hold what is not lost yet
}
