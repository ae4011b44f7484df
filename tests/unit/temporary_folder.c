#include "tests/unit/temporary_folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/base/panic.h"

static char folder[] = "/tmp/confab-test-XXXXXX";

const char *temporary_folder_make(void) { return mkdtemp(folder); }

const char *temporary_folder_make_home(void) {
    const char *home = temporary_folder_make();
    if (!home || setenv("XDG_CONFIG_HOME", home, 1) || setenv("XDG_DATA_HOME", home, 1) ||
        setenv("XDG_STATE_HOME", home, 1))
        return NULL;
    return home;
}

int temporary_folder_teardown(void **state) {
    (void)state;
    return temporary_folder_remove(folder);
}

void temporary_folder_write(const char *folder_path, const char *name, const char *text) {
    char *path = xasprintf("%s/%s", folder_path, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
    free(path);
}

int temporary_folder_remove(const char *path) {
    char *command = xasprintf("rm -rf '%s'", path);
    int result = system(command);
    free(command);
    return result;
}
