#include "tests/unit/shared_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/reader.h"

const char *shared_file(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "../shared/%s", name);
    if (access(path, R_OK) != 0) {
        print_message("%s is not here: skipped\n", path);
        skip();
    }
    return path;
}

char *shared_vocabulary_text(const char *name, const char *suffix) {
    char path[64];
    size_t size;
    struct status st = {0};
    snprintf(path, sizeof path, "vocabs/%s.%s", name, suffix);
    char *text = file_read(shared_file(path), 1 << 24, &size, &st);
    assert_non_null(text);
    return text;
}
