// Text line: files of one line for each thing, such as `key = value`. A text takes one line: in it a newline is written
// \n, a backslash \\.
#ifndef CONFAB_BASE_TEXT_LINE_H
#define CONFAB_BASE_TEXT_LINE_H

#include "engine/base/reader.h"

// One line: `  key = value  `. There are no comments after values: a text may contain '#'.
struct text_line {
    bool blank;             // empty or a comment
    bool assignment;        // has a '='; otherwise all of it is the key
    struct span key, value; // borrowed, without the blanks around them
};
struct text_line text_line_split(struct span line);

// The caller frees what these return.
char *text_line_escape(const char *text);
char *text_line_unescape(struct span line); // a backslash before anything else stands for itself

#endif
