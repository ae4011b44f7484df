// Clean: makes text from models and files safe to print on a terminal. Newline and tab stay; other control characters
// become visible symbols (U+2400 and up), C1 controls and bidi overrides U+2426, invalid bytes U+FFFD (utf8_mark).
#ifndef CONFAB_APP_CLEAN_H
#define CONFAB_APP_CLEAN_H

#include <stddef.h>
#include <stdio.h>

// Cleans text, which must not end within a character, into out, which needs room for 3 × size bytes. Returns the number
// of bytes written.
size_t clean_text(const char *text, size_t size, char *out);

char *clean_copy(const char *text); // text: NUL-terminated; the caller frees

// Returns a single line, cut at a character to at most `most` bytes: newline and tab become symbols too. The caller
// frees.
char *clean_line(const char *text, size_t most);

// Writes text to a stream, cleaned if the stream is a terminal.
void clean_write(FILE *out, const char *text, size_t size);

#endif
