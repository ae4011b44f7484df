#include "engine/base/paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/panic.h"

static char *path_in(const char *variable, const char *fallback, const char *name) {
    const char *folder = getenv(variable), *home = getenv("HOME");
    if (folder && folder[0] == '/') return xasprintf("%s/confab/%s", folder, name); // XDG: ignore relative paths
    if (home && home[0] == '/') return xasprintf("%s/%s/confab/%s", home, fallback, name);
    return NULL;
}

char *path_config(const char *name) { return path_in("XDG_CONFIG_HOME", ".config", name); }

char *path_data(const char *name) { return path_in("XDG_DATA_HOME", ".local/share", name); }

char *path_cache(const char *name) { return path_in("XDG_CACHE_HOME", ".cache", name); }

char *path_state(const char *name) { return path_in("XDG_STATE_HOME", ".local/state", name); }

char *path_expand(const char *typed) {
    const char *home = getenv("HOME");
    return home && !strncmp(typed, "~/", 2) ? xasprintf("%s%s", home, typed + 1) : xstrdup(typed);
}

char *path_absolute(const char *path) {
    char *here = *path == '/' ? NULL : getcwd(NULL, 0);
    char *whole = here ? xasprintf("%s/%s", strcmp(here, "/") ? here : "", path) : xstrdup(path);
    free(here);
    return whole;
}

bool path_make_parents(const char *path, struct status *st) {
    char *folder = xstrdup(path);
    bool made = true;
    for (char *slash = strchr(folder + 1, '/'); slash && made; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(folder, 0700) && errno != EEXIST)
            made = status_fail(st, STATUS_IO, "%s: cannot create the folder: %s", folder, strerror(errno));
        *slash = '/';
    }
    free(folder);
    return made;
}
