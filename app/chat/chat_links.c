// Links of messages, opened with the desktop's program for them.
#include <spawn.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>

#include "app/chat/chat_state.h"

// What runs no program by itself.
static bool may_be_opened(const char *address) {
    static const char *const schemes[] = {"https://", "http://", "mailto:"};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (!strncasecmp(address, schemes[i], strlen(schemes[i]))) return true;
    return false;
}

// Apart from this terminal and this program, which do not wait for it. False: there is no xdg-open.
static bool open_apart(const char *address) {
    static char line[] = "command -v xdg-open >/dev/null || exit 127; xdg-open \"$1\" </dev/null >/dev/null 2>&1 &";
    char *arguments[] = {"sh", "-c", line, "sh", (char *)address, NULL};
    posix_spawnattr_t attributes;
    pid_t child;
    int result = -1;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    const bool started = !posix_spawn(&child, "/bin/sh", NULL, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    return started && waitpid(child, &result, 0) == child && WIFEXITED(result) && !WEXITSTATUS(result);
}

void chat_link_open(struct chat *c, const struct ui_command *command) {
    const char *address = command->text ? command->text : "";
    if (!may_be_opened(address)) chat_say(c, true, "not opened: only http, https and mailto links are");
    else if (!open_apart(address)) chat_say(c, true, "not opened: there is no xdg-open (package xdg-utils)");
    else chat_say(c, false, "opening %s", address);
}
