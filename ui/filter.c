#include "ui/filter.h"

#include <stddef.h>
#include <string.h>

static bool has_word(const char *text, const char *word, size_t size) {
    for (; *text; text++)
        if (!strncasecmp(text, word, size)) return true;
    return false;
}

bool filter_matches(const char *filter, const char *text) {
    for (;;) {
        filter += strspn(filter, " ");
        size_t size = strcspn(filter, " ");
        if (!size) return true;
        if (!has_word(text, filter, size)) return false;
        filter += size;
    }
}
