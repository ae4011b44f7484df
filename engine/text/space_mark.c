#include "engine/text/space_mark.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"

// Writes at most SPACE_MARK_SIZE × size bytes; returns the number.
static size_t put_marks(const char *text, size_t size, char *out) {
    size_t n = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] != ' ') out[n++] = text[i];
        else memcpy(out + n, SPACE_MARK, SPACE_MARK_SIZE), n += SPACE_MARK_SIZE;
    }
    return n;
}

static size_t word_size(const char *text, size_t size) {
    size_t at = 0;
    while (space_mark_begins(text + at, size - at)) at += SPACE_MARK_SIZE;
    const char *end = memmem(text + at, size - at, SPACE_MARK, SPACE_MARK_SIZE);
    return end ? (size_t)(end - text) : size;
}

void space_mark_encode(const struct tokenizer *t, struct pair_merger *m, const char *text, size_t size, bool by_words,
                       tokenizer_encoder *encode, struct token_list *out) {
    char *marked = xmalloc(size * SPACE_MARK_SIZE);
    size_t total = put_marks(text, size, marked);
    for (size_t at = 0, n; at < total; at += n) {
        n = by_words ? word_size(marked + at, total - at) : total - at;
        encode(t, m, marked + at, n, out);
    }
    free(marked);
}

bool space_mark_parts_words(const struct vocabulary *v) {
    for (int32_t id = 0; id < v->count; id++)
        if (!vocabulary_is_special(v, id) && word_size(v->texts[id].data, v->texts[id].size) < v->texts[id].size)
            return false;
    return true;
}
