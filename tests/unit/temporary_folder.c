#include "tests/unit/temporary_folder.h"

#include <stdlib.h>

#include "engine/base/panic.h"

static char folder[] = "/tmp/confab-test-XXXXXX";

const char *temporary_folder_make(void) { return mkdtemp(folder); }

const char *temporary_folder_make_home(void) {
    const char *home = temporary_folder_make();
    if (!home || setenv("XDG_CONFIG_HOME", home, 1) || setenv("XDG_DATA_HOME", home, 1)) return NULL;
    return home;
}

int temporary_folder_teardown(void **state) {
    (void)state;
    return temporary_folder_remove(folder);
}

int temporary_folder_remove(const char *path) {
    char *command = xasprintf("rm -rf '%s'", path);
    int result = system(command);
    free(command);
    return result;
}
