#include "engine/text/space_mark.h"

#include <string.h>

static bool is_mark(const char *text, size_t size) {
    return size >= SPACE_MARK_SIZE && !memcmp(text, SPACE_MARK, SPACE_MARK_SIZE);
}

size_t space_mark_encode(const char *text, size_t size, char *out) {
    size_t n = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] != ' ') out[n++] = text[i];
        else memcpy(out + n, SPACE_MARK, SPACE_MARK_SIZE), n += SPACE_MARK_SIZE;
    }
    return n;
}

struct span space_mark_decode(struct span text, char **room) {
    if (!memmem(text.data, text.size, SPACE_MARK, SPACE_MARK_SIZE)) return text;
    char *start = *room;
    for (size_t i = 0; i < text.size;) {
        bool mark = is_mark(text.data + i, text.size - i);
        *(*room)++ = mark ? ' ' : text.data[i];
        i += mark ? SPACE_MARK_SIZE : 1;
    }
    return (struct span){start, (size_t)(*room - start)};
}

size_t space_mark_word(const char *text, size_t size) {
    size_t at = 0;
    while (is_mark(text + at, size - at)) at += SPACE_MARK_SIZE;
    const char *end = memmem(text + at, size - at, SPACE_MARK, SPACE_MARK_SIZE);
    return end ? (size_t)(end - text) : size;
}

bool space_mark_parts_words(const struct vocabulary *v) {
    for (int32_t id = 0; id < v->count; id++)
        if (!vocabulary_is_special(v, id) && space_mark_word(v->texts[id].data, v->texts[id].size) < v->texts[id].size)
            return false;
    return true;
}
