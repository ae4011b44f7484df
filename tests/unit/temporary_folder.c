#include "tests/unit/temporary_folder.h"

#include <stdlib.h>

#include "engine/base/panic.h"

int temporary_folder_remove(const char *path) {
    char *command = xasprintf("rm -rf '%s'", path);
    int result = system(command);
    free(command);
    return result;
}
