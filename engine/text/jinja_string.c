// Jinja strings: searching, slicing and building; every byte keeps its origin.
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/text/jinja_value.h"

struct jinja_string jinja_literal(const char *text) {
    return (struct jinja_string){text, NULL, strlen(text)};
}

bool jinja_string_equal(struct jinja_string a, struct jinja_string b) {
    return a.size == b.size && (!a.size || !memcmp(a.data, b.data, a.size));
}

bool jinja_string_is(struct jinja_string s, const char *text) { return jinja_string_equal(s, jinja_literal(text)); }

struct jinja_string jinja_substring(struct jinja_string s, size_t begin, size_t end) {
    if (begin >= end) return jinja_literal("");
    return (struct jinja_string){s.data + begin, s.taint ? s.taint + begin : NULL, end - begin};
}

size_t jinja_length(struct jinja *j, struct jinja_string s) {
    size_t count = 0;
    uint32_t code;
    jinja_scan(j, s.size);
    for (size_t at = 0; at < s.size; count++) at += utf8_decode(s.data + at, s.size - at, &code);
    return count;
}

size_t jinja_offset(struct jinja *j, struct jinja_string s, size_t index) {
    size_t at = 0;
    uint32_t code;
    for (; at < s.size && index; index--) at += utf8_decode(s.data + at, s.size - at, &code);
    jinja_scan(j, at);
    return at;
}

size_t jinja_find(struct jinja *j, struct jinja_string s, struct jinja_string part, size_t from) {
    if (from > s.size || part.size > s.size - from) return SIZE_MAX;
    if (!part.size) return from;
    const char *found = memmem(s.data + from, s.size - from, part.data, part.size);
    jinja_scan(j, (found ? (size_t)(found - s.data) : s.size) - from + part.size);
    return found ? (size_t)(found - s.data) : SIZE_MAX;
}

size_t jinja_find_last(struct jinja *j, struct jinja_string s, struct jinja_string part) {
    if (part.size > s.size) return SIZE_MAX;
    if (!part.size) return s.size;
    size_t found = SIZE_MAX;
    for (size_t at = s.size - part.size + 1; at-- > 0 && found == SIZE_MAX;) {
        if (s.data[at] != part.data[0]) continue;
        jinja_spend(j, 1 + part.size / 16);
        if (!memcmp(s.data + at, part.data, part.size)) found = at;
    }
    jinja_scan(j, s.size - (found == SIZE_MAX ? 0 : found));
    return found;
}

bool jinja_is_space(uint32_t c) {
    return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

static bool is_stripped(struct jinja *j, struct jinja_string character, const struct jinja_string *set) {
    uint32_t code;
    if (set) return jinja_find(j, *set, character, 0) != SIZE_MAX;
    utf8_decode(character.data, character.size, &code);
    return jinja_is_space(code);
}

// The start of the character before byte `end`.
static size_t previous(struct jinja_string s, size_t end) {
    size_t begin = end - 1;
    uint32_t code;
    while (begin > 0 && end - begin < 4 && ((uint8_t)s.data[begin] & 0xc0) == 0x80) begin--;
    return utf8_decode(s.data + begin, end - begin, &code) == end - begin ? begin : end - 1;
}

struct jinja_string jinja_strip(struct jinja *j, struct jinja_string s, const struct jinja_string *set, bool left,
                                bool right) {
    size_t begin = 0, end = s.size;
    while (left && begin < end) {
        uint32_t code;
        size_t next = begin + utf8_decode(s.data + begin, end - begin, &code);
        if (!is_stripped(j, jinja_substring(s, begin, next), set)) break;
        begin = next;
    }
    while (right && end > begin) {
        size_t last = previous(s, end);
        if (last < begin || !is_stripped(j, jinja_substring(s, last, end), set)) break;
        end = last;
    }
    jinja_scan(j, s.size - (end - begin));
    return jinja_substring(s, begin, end);
}

// ---- building ----

static void reserve(struct jinja *j, struct jinja_builder *b, size_t more) {
    if (more > JINJA_STRING_LIMIT || b->size > JINJA_STRING_LIMIT - more)
        jinja_fail(j, STATUS_LIMIT, "string is too large (maximum %d MB)", JINJA_STRING_LIMIT >> 20);
    if (b->capacity - b->size >= more) return;
    size_t capacity = 2 * b->capacity > b->size + more ? 2 * b->capacity : b->size + more;
    char *data = jinja_alloc(j, capacity, 1), *taint = b->taint ? jinja_alloc(j, capacity, 1) : NULL;
    if (b->size) memcpy(data, b->data, b->size);
    if (b->size && taint) memcpy(taint, b->taint, b->size);
    *b = (struct jinja_builder){data, taint, b->size, capacity};
}

void jinja_append(struct jinja *j, struct jinja_builder *b, struct jinja_string s) {
    if (!s.size) return;
    reserve(j, b, s.size);
    jinja_scan(j, s.size);
    memcpy(b->data + b->size, s.data, s.size);
    if (s.taint && !b->taint) b->taint = jinja_alloc(j, b->capacity, 1);
    if (s.taint) memcpy(b->taint + b->size, s.taint, s.size);
    b->size += s.size;
}

void jinja_append_text(struct jinja *j, struct jinja_builder *b, const char *text) {
    jinja_append(j, b, jinja_literal(text));
}

void jinja_append_code(struct jinja *j, struct jinja_builder *b, uint32_t code, bool tainted) {
    static const char all_tainted[4] = {1, 1, 1, 1};
    char bytes[4];
    size_t size = utf8_encode(code, bytes);
    jinja_spend(j, 1);
    jinja_append(j, b, (struct jinja_string){bytes, tainted ? all_tainted : NULL, size});
}

struct jinja_string jinja_built(const struct jinja_builder *b) {
    return (struct jinja_string){b->size ? b->data : "", b->taint, b->size};
}
