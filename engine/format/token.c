#include "engine/format/token.h"

int token_byte(struct span text) {
    static const char digits[] = "0123456789ABCDEF";
    if (text.size != 6 || memcmp(text.data, "<0x", 3) || text.data[5] != '>') return -1;
    const char *high = memchr(digits, text.data[3], 16), *low = memchr(digits, text.data[4], 16);
    return high && low ? (int)(high - digits) * 16 + (int)(low - digits) : -1;
}

bool space_mark_occurs(struct span text) { return memmem(text.data, text.size, SPACE_MARK, SPACE_MARK_SIZE); }

struct span space_mark_decode(struct span text, char **room) {
    if (!space_mark_occurs(text)) return text;
    char *start = *room;
    for (size_t i = 0; i < text.size;) {
        bool mark = space_mark_begins(text.data + i, text.size - i);
        *(*room)++ = mark ? ' ' : text.data[i];
        i += mark ? SPACE_MARK_SIZE : 1;
    }
    return (struct span){start, (size_t)(*room - start)};
}
