// Names of the files of one model in parts: "NAME-00001-of-00003.gguf".
#ifndef CONFAB_BASE_SPLIT_NAME_H
#define CONFAB_BASE_SPLIT_NAME_H

#include <stdbool.h>

struct split_name {
    int stem;        // bytes in front of "-00001-of-00003.gguf"
    int part, count; // 1 ≤ part ≤ count
};

// False for a name or path of any other form.
bool split_name_parse(const char *path, struct split_name *out);
// The name of another part, beside the one that was parsed. The caller frees.
char *split_name_of(const char *path, const struct split_name *name, int part);

#endif
