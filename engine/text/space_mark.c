#include "engine/text/space_mark.h"

#include <string.h>

size_t space_mark_encode(const char *text, size_t size, char *out) {
    size_t n = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] != ' ') out[n++] = text[i];
        else memcpy(out + n, SPACE_MARK, SPACE_MARK_SIZE), n += SPACE_MARK_SIZE;
    }
    return n;
}

size_t space_mark_word(const char *text, size_t size) {
    size_t at = 0;
    while (space_mark_begins(text + at, size - at)) at += SPACE_MARK_SIZE;
    const char *end = memmem(text + at, size - at, SPACE_MARK, SPACE_MARK_SIZE);
    return end ? (size_t)(end - text) : size;
}

bool space_mark_parts_words(const struct vocabulary *v) {
    for (int32_t id = 0; id < v->count; id++)
        if (!vocabulary_is_special(v, id) && space_mark_word(v->texts[id].data, v->texts[id].size) < v->texts[id].size)
            return false;
    return true;
}
