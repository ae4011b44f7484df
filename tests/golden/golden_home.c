#include "tests/golden/golden_home.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/base/panic.h"

void golden_home_clear_environment(void) {
    static const char *const unset[] = {"NO_COLOR",        "TMUX",    "STY",           "DISPLAY",
                                        "WAYLAND_DISPLAY", "SSH_TTY", "SSH_CONNECTION"};
    static const char *const set[][2] = {{"TERM", "xterm-256color"},
                                         {"COLORTERM", "truecolor"},
                                         {"LC_ALL", "C.UTF-8"},
                                         {"HOME", "/nonexistent"},
                                         {"INPUTRC", "/dev/null"},
                                         {"PATH", "/nonexistent"},
                                         {"XDG_CONFIG_HOME", "/nonexistent"},
                                         {"XDG_DATA_HOME", "/nonexistent"},
                                         {"TZ", "UTC"}};
    for (size_t i = 0; i < sizeof unset / sizeof *unset; i++) unsetenv(unset[i]);
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) setenv(set[i][0], set[i][1], 1);
}

char *golden_home_open(void) {
    char *home = xstrdup("/tmp/confab-golden-XXXXXX");
    if (!mkdtemp(home)) panic("no temporary folder");
    setenv("HOME", home, 1);
    unsetenv("XDG_DATA_HOME");
    unsetenv("XDG_CONFIG_HOME");
    return home;
}

static int remove_one(const char *path, const struct stat *file, int kind, struct FTW *place) {
    (void)file, (void)kind, (void)place;
    return remove(path);
}

void golden_home_close(char *home) {
    if (home) nftw(home, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(home);
}
