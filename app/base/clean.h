// Clean: what comes out of a model or a file, made harmless for a terminal. Newline and tab stay; other controls become
// visible marks (U+2400 and so on), C1, bidi overrides and invalid bytes U+FFFD.
#ifndef CONFAB_APP_CLEAN_H
#define CONFAB_APP_CLEAN_H

#include <stddef.h>
#include <stdio.h>

// Writes the cleaned text of whole characters to out, which has room for 3 × size bytes; returns the bytes written.
size_t clean_text(const char *text, size_t size, char *out);

char *clean_copy(const char *text); // of a NUL-terminated text; the caller frees

// One line of at most `most` bytes, cut at a character: newline and tab become marks too. The caller frees.
char *clean_line(const char *text, size_t most);

// Writes text to a stream: cleaned when the stream is a terminal, as it is otherwise.
void clean_write(FILE *out, const char *text, size_t size);

#endif
