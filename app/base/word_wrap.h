// Word wrap: text that streams to a terminal, broken between words.
//
// Every character is written at once. A word that outgrows its line is taken back and begun anew on the next one. Lines
// of code between fences are left to the terminal, and so is everything where it is not known how wide that is.
#ifndef CONFAB_APP_WORD_WRAP_H
#define CONFAB_APP_WORD_WRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct word_wrap {
    int columns;    // of the terminal; 0: nothing is broken
    int column;     // of the cursor
    char word[256]; // what the last line ends in, if a break may come before it
    size_t size;
    int width;      // columns of the word
    bool opens;     // the word ends in an opening bracket
    char code;      // between fences: what these are made of; 0: outside
    bool text;      // the line holds more than blanks and a fence
    char mark;      // what the line begins with, ` or ~
    int marks;      // so many of these
};

int word_wrap_columns(FILE *out); // of the terminal that out is; 0: it is none, or cannot take words back
// text: cleaned, whole characters.
void word_wrap_write(struct word_wrap *w, FILE *out, const char *text, size_t size);

#endif
