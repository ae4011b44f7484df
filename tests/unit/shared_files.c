#include "tests/unit/shared_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

const char *shared_file(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "../shared/%s", name);
    if (access(path, R_OK) != 0) {
        print_message("%s is not here: skipped\n", path);
        skip();
    }
    return path;
}
