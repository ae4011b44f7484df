#include "app/commands/ids.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/base/reader.h"

#define IDS_LIMIT (1u << 30)
#define IDS_SPACE " \t\r\n"

static bool id_parse(const char *word, size_t size, int32_t *out) {
    int64_t value = 0;
    for (size_t i = 0; i < size; i++) {
        if (word[i] < '0' || word[i] > '9') return false;
        value = value * 10 + (word[i] - '0');
        if (value > INT32_MAX) return false;
    }
    *out = (int32_t)value;
    return true;
}

int32_t *ids_read(const char *path, size_t *count, struct status *st) {
    size_t size, n = 0;
    char *text = file_read(path, IDS_LIMIT, &size, st);
    if (!text) return NULL;
    int32_t *ids = xmalloc((size / 2 + 1) * sizeof *ids); // an id and a separator take at least two bytes
    const char *at = text, *end = text + size;
    for (at += strspn(at, IDS_SPACE); at < end; at += strspn(at, IDS_SPACE)) {
        size_t word = strcspn(at, IDS_SPACE);
        if (!word || !id_parse(at, word, &ids[n])) {
            status_fail(st, STATUS_FORMAT, "%s: '%.*s' is not a token id", path, (int)(word < 40 ? word : 40), at);
            free(ids);
            ids = NULL;
            break;
        }
        n++;
        at += word;
    }
    free(text);
    *count = n;
    return ids;
}
