// `confab log`: prints the last lines of the log.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "app/base/clean.h"
#include "app/commands/command.h"
#include "engine/base/log.h"
#include "engine/base/panic.h"
#include "engine/base/paths.h"

enum { LINES = 40, MAX_LINES = 100000 };

// A ring of the last lines that were added.
struct tail {
    char **lines; // [most]
    size_t most, count;
    enum log_level level; // of lines that are added: this one and more serious ones
};

// Those that are no entries, but say that some are missing, are wanted with all others.
static bool is_wanted(const struct tail *t, const char *line) {
    const enum log_level level = log_line_level(line);
    return t->level == LOG_LEVEL_DEBUG || (level != LOG_LEVEL_OFF && level <= t->level);
}

// False: the file cannot be read.
static bool tail_add_file(struct tail *t, const char *path) {
    FILE *f = fopen(path, "r");
    if (!f) return false;
    char *line = NULL;
    size_t room = 0;
    for (ssize_t n; (n = getline(&line, &room, f)) > 0;) {
        if (line[n - 1] == '\n') line[n - 1] = '\0';
        if (!is_wanted(t, line)) continue;
        char **place = &t->lines[t->count++ % t->most];
        free(*place);
        *place = clean_copy(line);
    }
    free(line);
    fclose(f);
    return true;
}

static void tail_print(struct tail *t) {
    size_t first = t->count > t->most ? t->count - t->most : 0;
    for (size_t i = first; i < t->count; i++) puts(t->lines[i % t->most]);
    for (size_t i = 0; i < t->most; i++) free(t->lines[i]);
    free(t->lines);
}

int command_log(const struct settings *s, int n_arguments, char **arguments) {
    struct status st = {0};
    char *end = "", *path = path_state("log");
    long lines = n_arguments ? strtol(arguments[0], &end, 10) : LINES;
    if (lines < 1 || lines > MAX_LINES || *end) {
        status_fail(&st, STATUS_USAGE, "LINES: expected a number from 1 to %d, got '%s'", MAX_LINES, arguments[0]);
    } else if (!path) {
        status_fail(&st, STATUS_IO, "no log: neither XDG_STATE_HOME nor HOME is set");
    } else {
        struct tail t = {.lines = xcalloc((size_t)lines, sizeof *t.lines),
                         .most = (size_t)lines,
                         .level = (enum log_level)(LOG_LEVEL_ERROR + s->shown_level)};
        bool found = false;
        for (int age = LOG_FILES_OLD; age >= 0; age--) {
            char *name = age ? xasprintf("%s.%d", path, age) : xstrdup(path);
            found = tail_add_file(&t, name) || found;
            free(name);
        }
        if (!found) status_fail(&st, STATUS_IO, "%s: %s", path, strerror(errno));
        tail_print(&t);
    }
    free(path);
    return st.code == STATUS_OK ? EXIT_DONE : command_fail(&st);
}
