// File names of split models: "NAME-00001-of-00003.gguf".
#ifndef CONFAB_BASE_SPLIT_NAME_H
#define CONFAB_BASE_SPLIT_NAME_H

#include <stdbool.h>

struct split_name {
    int stem;        // bytes before "-00001-of-00003.gguf"
    int part, count; // 1 ≤ part ≤ count
};

// False if the path does not have this form.
bool split_name_parse(const char *path, struct split_name *out);
// The path of another part. The caller frees.
char *split_name_of(const char *path, const struct split_name *name, int part);

#endif
