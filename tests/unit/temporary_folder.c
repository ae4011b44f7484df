#include "tests/unit/temporary_folder.h"

#include <stdlib.h>

#include "engine/base/panic.h"

static char folder[] = "/tmp/confab-test-XXXXXX";

const char *temporary_folder_make(void) { return mkdtemp(folder); }

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
