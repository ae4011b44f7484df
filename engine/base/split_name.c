#include "engine/base/split_name.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"

bool split_name_parse(const char *path, struct split_name *out) {
    static const char form[] = "-00000-of-00000.gguf";
    const size_t size = strlen(path), end = sizeof form - 1;
    if (size < end) return false;
    const char *tail = path + size - end;
    for (size_t i = 0; i < end; i++)
        if (form[i] == '0' ? tail[i] < '0' || tail[i] > '9' : tail[i] != form[i]) return false;
    *out = (struct split_name){(int)(size - end), atoi(tail + 1), atoi(tail + 10)};
    return out->part >= 1 && out->part <= out->count;
}

char *split_name_of(const char *path, const struct split_name *name, int part) {
    return xasprintf("%.*s-%05d-of-%05d.gguf", name->stem, path, part, name->count);
}
