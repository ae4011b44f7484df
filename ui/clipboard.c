#include "ui/clipboard.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/panic.h"

#define TOOL_SECONDS   1.0         // a tool that takes longer is given up
#define TERMINAL_LIMIT (74 * 1024) // bytes; many terminals drop longer texts

static const struct tool {
    const char *display, *argv[4];
} tools[] = {
    {"WAYLAND_DISPLAY", {"wl-copy"}},
    {"DISPLAY", {"xclip", "-selection", "clipboard"}},
    {"DISPLAY", {"xsel", "--clipboard", "--input"}},
    {NULL, {"pbcopy"}},
};

static bool in_path(const char *name) {
    const char *path = getenv("PATH");
    while (path && *path) {
        char file[1024];
        int length = (int)strcspn(path, ":");
        if (snprintf(file, sizeof file, "%.*s/%s", length, path, name) < (int)sizeof file && access(file, X_OK) == 0)
            return true;
        path += length + (path[length] == ':');
    }
    return false;
}

// Starts the tool with one end of a socket as its input, so that a tool that dies early raises no signal here.
static pid_t start(const struct tool *tool, int input) {
    extern char **environ;
    posix_spawn_file_actions_t actions;
    pid_t child = -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    char *argv[4];
    memcpy(argv, tool->argv, sizeof argv);
    if (posix_spawnp(&child, argv[0], &actions, NULL, argv, environ) != 0) child = -1;
    posix_spawn_file_actions_destroy(&actions);
    return child;
}

static bool feed(int fd, const char *text, size_t size, double until) {
    while (size > 0) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        double left = until - clock_seconds();
        if (left <= 0 || poll(&p, 1, (int)(left * 1000) + 1) <= 0) return false;
        ssize_t n = send(fd, text, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n <= 0) return false;
        text += n, size -= (size_t)n;
    }
    return true;
}

static bool succeeded(pid_t child, double until) {
    int result;
    for (;;) {
        pid_t done = waitpid(child, &result, WNOHANG);
        if (done != 0) return done == child && WIFEXITED(result) && WEXITSTATUS(result) == 0;
        if (clock_seconds() >= until) break;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    kill(child, SIGKILL);
    waitpid(child, &result, 0);
    return false;
}

static bool run_tool(const struct tool *tool, const char *text, size_t size) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
    double until = clock_seconds() + TOOL_SECONDS;
    pid_t child = start(tool, ends[1]);
    close(ends[1]);
    bool fed = child > 0 && feed(ends[0], text, size, until);
    close(ends[0]);
    return child > 0 && succeeded(child, until) && fed;
}

static size_t base64(const char *text, size_t size, char *out) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = 0;
    for (size_t i = 0; i < size; i += 3) {
        size_t left = size - i < 3 ? size - i : 3;
        uint32_t bits = 0;
        for (size_t k = 0; k < 3; k++) bits = bits << 8 | (k < left ? (uint8_t)text[i + k] : 0);
        for (size_t k = 0; k < 4; k++) out[n++] = k <= left ? digits[bits >> (18 - 6 * k) & 63] : '=';
    }
    return n;
}

// tmux takes the sequence itself when set-clipboard is on, and passes the wrapped one through when allow-passthrough
// is.
static bool tell_terminal(struct terminal *t, const char *text, size_t size, bool tmux) {
    char *bytes = xmalloc(2 * (size * 4 / 3 + 8) + 64), *coded = xmalloc(size * 4 / 3 + 8);
    size_t length = base64(text, size, coded);
    int n = sprintf(bytes, "\033]52;c;%.*s\a", (int)length, coded);
    if (tmux) n += sprintf(bytes + n, "\033Ptmux;\033\033]52;c;%.*s\a\033\\", (int)length, coded);
    bool written = terminal_write(t, bytes, (size_t)n);
    free(coded);
    free(bytes);
    return written;
}

bool clipboard_copy(struct terminal *t, const char *text, size_t size, char how[128]) {
    if (!size) { // terminals would clear the clipboard
        snprintf(how, 128, "not copied: there is no text");
        return false;
    }
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        const char *display = tools[i].display ? getenv(tools[i].display) : "pbcopy needs none";
        if (!display || !*display || !in_path(tools[i].argv[0])) continue;
        if (!run_tool(&tools[i], text, size)) continue;
        snprintf(how, 128, "copied with %s", tools[i].argv[0]);
        return true;
    }
    bool tmux = getenv("TMUX") != NULL;
    if (size > TERMINAL_LIMIT) {
        snprintf(how, 128, "not copied: %zu bytes are more than terminals take, and there is no clipboard tool", size);
        return false;
    }
    bool written = tell_terminal(t, text, size, tmux);
    snprintf(how, 128,
             !written ? "not copied: the terminal takes no bytes"
             : tmux   ? "sent through tmux to the terminal (OSC 52); either may ignore it"
                      : "sent to the terminal (OSC 52), which may ignore it");
    return written;
}
