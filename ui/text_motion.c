#include "ui/text_motion.h"

#include <ctype.h>
#include <string.h>
#include <utf8proc.h>

#include "engine/base/utf8.h"
#include "ui/canvas.h"

// ---- letters and lines ----

size_t text_motion_line(const char *text, size_t at) {
    while (at > 0 && text[at - 1] != '\n') at--;
    return at;
}

size_t text_motion_line_end(const char *text, size_t size, size_t at) {
    const char *newline = at < size ? memchr(text + at, '\n', size - at) : NULL;
    return newline ? (size_t)(newline - text) : size;
}

size_t text_motion_next(const char *text, size_t size, size_t at) {
    int width;
    return at < size ? at + text_cluster(text + at, size - at, &width) : size;
}

// The letter before, a newline too; at > 0.
static size_t previous(const char *text, size_t at) {
    size_t before = text_motion_line(text, at);
    if (before == at) return at - 1;
    for (size_t next; (next = text_motion_next(text, at, before)) < at;) before = next;
    return before;
}

static bool is_newline(const char *text, size_t size, size_t at) { return at < size && text[at] == '\n'; }

static bool is_empty_line(const char *text, size_t size, size_t at) {
    return is_newline(text, size, at) && (!at || text[at - 1] == '\n');
}

static size_t right(const char *text, size_t size, size_t at) {
    at = text_motion_next(text, size, at);
    if (is_newline(text, size, at) && !is_empty_line(text, size, at)) at++;
    return at < size ? at : TEXT_BEYOND;
}

static size_t left(const char *text, size_t size, size_t at) {
    if (at == 0) return TEXT_BEYOND;
    at = previous(text, at);
    if (!is_newline(text, size, at) || is_empty_line(text, size, at)) return at;
    return at > 0 ? previous(text, at) : TEXT_BEYOND;
}

static size_t line_first(const char *text, size_t size, size_t at) {
    const size_t begin = text_motion_line(text, at), end = text_motion_line_end(text, size, at);
    at = begin;
    while (at < end && strchr(" \t", text[at])) at++;
    return at < end ? at : begin;
}

static size_t line_end(const char *text, size_t size, size_t at) {
    const size_t begin = text_motion_line(text, at), end = text_motion_line_end(text, size, at);
    return end > begin ? previous(text, end) : begin;
}

// ---- words ----

enum class { BLANK, SIGN, WORD, HAN, HIRAGANA, KATAKANA, PICTURE };

// Where no blanks stand between words, a change of script is as good as one.
static enum class class_at(const char *text, size_t size, size_t at) {
    uint32_t code; int width; const size_t bytes = utf8_decode(text + at, size - at, &code);
    if (code < 0x80) return isspace((int)code) ? BLANK
    : isalnum((int)code) || code == '_'        ? WORD
                                               : SIGN;
    if (code >= 0x3041 && code <= 0x309f) return HIRAGANA;
    if (code >= 0x30a1 && code <= 0x30ff) return KATAKANA;
    const char *category = utf8proc_category_string((utf8proc_int32_t)code);
    text_cluster(text + at, bytes, &width);
    if (*category == 'Z') return BLANK;
    if (!strchr("LMN", *category)) return width == 2 && *category == 'S' ? PICTURE : SIGN;
    return width == 2 && (code < 0xac00 || code > 0xd7a3) ? HAN : WORD; // Hangul has blanks
}

size_t text_motion_word_end(const char *text, size_t size, size_t at) {
    const enum class own = class_at(text, size, at);
    for (size_t next; (next = text_motion_next(text, size, at)) < size && class_at(text, size, next) == own;) at = next;
    return at;
}

size_t text_motion_word(const char *text, size_t size, size_t at) {
    const enum class own = class_at(text, size, at);
    for (size_t before; at > 0 && class_at(text, size, before = previous(text, at)) == own;) at = before;
    return at;
}

static size_t skip_blanks(const char *text, size_t size, size_t at) {
    while (at < size && class_at(text, size, at) == BLANK) at = text_motion_next(text, size, at);
    return at;
}

static size_t word(const char *text, size_t size, size_t at) {
    if (at < size && class_at(text, size, at) != BLANK)
        at = text_motion_next(text, size, text_motion_word_end(text, size, at));
    at = skip_blanks(text, size, at);
    return at < size ? at : TEXT_BEYOND;
}

static size_t word_end(const char *text, size_t size, size_t at) {
    at = skip_blanks(text, size, text_motion_next(text, size, at));
    return at < size ? text_motion_word_end(text, size, at) : TEXT_BEYOND;
}

static size_t word_back(const char *text, size_t size, size_t at) {
    do {
        if (at == 0) return TEXT_BEYOND;
        at = previous(text, at);
    } while (class_at(text, size, at) == BLANK);
    return text_motion_word(text, size, at);
}

// ---- blocks ----

// A line begins there that is not empty, behind one that is, or first of all.
static bool begins_block(const char *text, size_t size, size_t at) {
    const bool line = at == 0 || text[at - 1] == '\n', first = at < 2 || text[at - 2] == '\n';
    return line && first && !is_newline(text, size, at);
}

static size_t block(const char *text, size_t size, size_t at) {
    for (at = text_motion_line_end(text, size, at) + 1; at < size; at = text_motion_line_end(text, size, at) + 1)
        if (begins_block(text, size, at)) return at;
    return TEXT_BEYOND;
}

static size_t block_back(const char *text, size_t size, size_t at) {
    while (at > 0) {
        const size_t begin = text_motion_line(text, at);
        at = begin < at ? begin : text_motion_line(text, at - 1);
        if (at < size && begins_block(text, size, at)) return at;
    }
    return TEXT_BEYOND;
}

size_t text_motion(const char *text, size_t size, size_t at, enum text_step step) {
    switch (step) {
    case TEXT_LEFT: return left(text, size, at);
    case TEXT_WORD_BACK: return word_back(text, size, at);
    case TEXT_BLOCK_BACK: return block_back(text, size, at);
    case TEXT_RIGHT: return right(text, size, at);
    case TEXT_WORD: return word(text, size, at);
    case TEXT_WORD_END: return word_end(text, size, at);
    case TEXT_BLOCK: return block(text, size, at);
    case TEXT_LINE_BEGIN: return text_motion_line(text, at);
    case TEXT_LINE_FIRST: return line_first(text, size, at);
    case TEXT_LINE_END: return line_end(text, size, at);
    default: return at;
    }
}
