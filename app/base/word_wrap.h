// Word wrap: breaks text between words while it streams to a terminal.
//
// Every character is written at once. A word that does not fit is erased and written again on the next line. Code
// blocks are left to the terminal, and so is everything if its width is unknown.
#ifndef CONFAB_APP_WORD_WRAP_H
#define CONFAB_APP_WORD_WRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct word_wrap {
    int columns;    // of the terminal; 0: do not break lines
    int column;     // of the cursor
    char word[256]; // the word at the end of the line, if the line may break before it
    size_t size;
    int width;      // columns of the word
    bool opens;     // the word ends in opening punctuation
    char code;      // in a code block: the character of its fences; 0: outside
    bool text;      // the line holds more than spaces and a fence
    char mark;      // the character that the line begins with, ` or ~
    int marks;      // how many of them
};

int word_wrap_columns(FILE *out); // 0: not a terminal, or one that cannot erase
// text: cleaned, not ending within a character.
void word_wrap_write(struct word_wrap *w, FILE *out, const char *text, size_t size);

#endif
