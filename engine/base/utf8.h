// UTF-8: strict decoding of untrusted bytes, and joining of characters split across tokens.
#ifndef CONFAB_BASE_UTF8_H
#define CONFAB_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_REPLACEMENT 0xFFFDu

// Decodes a code point at text[0..size), size ≥ 1. Returns the bytes consumed (≥ 1). For invalid, overlong or surrogate
// sequences, consumes the maximal invalid prefix and sets *code to UTF8_REPLACEMENT.
size_t utf8_decode(const char *text, size_t size, uint32_t *code);
// Writes 1–4 bytes and returns their number. Code points out of range become U+FFFD.
size_t utf8_encode(uint32_t code, char out[4]);
// Code points that must never be shown because they control a terminal or mislead the reader: controls, line
// separators, bidirectional marks, annotations, noncharacters.
bool utf8_is_hidden(uint32_t code);
// The visible mark for a hidden code point: control pictures (U+2400 …) for C0 and DEL, U+FFFD for noncharacters,
// U+2426 for the others. 0: not hidden.
uint32_t utf8_mark(uint32_t code);
// The number of bytes (0–3) at the end of text[0..size) that are an incomplete but so far valid character.
size_t utf8_incomplete(const char *text, size_t size);

// Holds back the incomplete end of a byte stream; the output is valid UTF-8.
struct utf8_stream {
    char held[4];
    size_t n_held;
};
// Writes the cleaned text of held + bytes to out, which has room for 3 × (size + 4) bytes; returns its length.
size_t utf8_stream_push(struct utf8_stream *s, const char *bytes, size_t size, char *out);
// At the end of the stream: writes held bytes as U+FFFD (at most 12 bytes).
size_t utf8_stream_finish(struct utf8_stream *s, char *out);

#endif
