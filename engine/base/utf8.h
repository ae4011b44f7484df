// UTF-8: strict decoding of hostile bytes, and joining of characters that were split across tokens.
#ifndef CONFAB_BASE_UTF8_H
#define CONFAB_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_REPLACEMENT 0xFFFDu

// Decodes one code point at text[0..size), size ≥ 1. Returns the bytes consumed (≥ 1); *code is UTF8_REPLACEMENT for
// invalid, overlong or surrogate sequences (of which the maximal invalid prefix is consumed).
size_t utf8_decode(const char *text, size_t size, uint32_t *code);
// Writes 1–4 bytes, returns the count. Code points out of range become U+FFFD.
size_t utf8_encode(uint32_t code, char out[4]);
// Code points that act on a terminal or mislead the eye instead of being seen, so that they are never shown as they are:
// controls, line separators, marks of direction, annotation, noncharacters.
bool utf8_is_hidden(uint32_t code);
// The visible mark that stands for a hidden one: of C0 and DEL their control pictures (U+2400 …), of noncharacters U+FFFD,
// of the others U+2426. 0: it may be shown as it is.
uint32_t utf8_mark(uint32_t code);
// How many bytes at the end of text[0..size) are an incomplete but so far valid character (0–3).
size_t utf8_incomplete(const char *text, size_t size);

// Holds back the incomplete end of a byte stream; everything that leaves is valid UTF-8.
struct utf8_stream {
    char held[4];
    size_t n_held;
};
// Appends the complete, cleaned text of (held + bytes) to out, which has room for 3 × (size + 4) bytes; returns the count.
size_t utf8_stream_push(struct utf8_stream *s, const char *bytes, size_t size, char *out);
// At the end of the stream: what was held, as U+FFFD. Room for 12 bytes.
size_t utf8_stream_finish(struct utf8_stream *s, char *out);

#endif
