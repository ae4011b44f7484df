// Text motion: where the keys of a text cursor lead in one text, as in vi: from letter to letter (a letter is a
// grapheme cluster), over words, lines and blocks, which empty lines separate. What leads out of the text, and what is
// about rows and messages, is the transcript's (transcript_text.c).
#ifndef CONFAB_UI_TEXT_MOTION_H
#define CONFAB_UI_TEXT_MOTION_H

#include <stddef.h>
#include <stdint.h>

enum text_step {
    TEXT_LEFT, // in a text
    TEXT_WORD_BACK,
    TEXT_BLOCK_BACK,
    TEXT_RIGHT,
    TEXT_WORD,
    TEXT_WORD_END,
    TEXT_BLOCK,
    TEXT_LINE_BEGIN,
    TEXT_LINE_FIRST, // of its letters
    TEXT_LINE_END,
    TEXT_UP, // by rows
    TEXT_DOWN,
    TEXT_HALF_UP,
    TEXT_HALF_DOWN,
    TEXT_PAGE_UP,
    TEXT_PAGE_DOWN,
    TEXT_TOP,
    TEXT_BOTTOM,
    TEXT_MATCH_ABOVE,
    TEXT_MATCH_BELOW,
    TEXT_BEGIN, // where the cursor is when it comes
    TEXT_ANCHOR,
    TEXT_OTHER_END,
    TEXT_COPY,
    TEXT_COPY_LINES,
};

#define TEXT_BEYOND SIZE_MAX

// TEXT_LEFT to TEXT_LINE_END; `at` may be the end of the text. TEXT_BEYOND: it leads out of it.
size_t text_motion(const char *text, size_t size, size_t at, enum text_step step);
size_t text_motion_line(const char *text, size_t at);                  // where its line begins
size_t text_motion_line_end(const char *text, size_t size, size_t at); // of its newline, or the end of the text
size_t text_motion_word(const char *text, size_t size, size_t at);     // where the word begins that it is in
size_t text_motion_word_end(const char *text, size_t size, size_t at); // of its last letter
size_t text_motion_next(const char *text, size_t size, size_t at);     // behind the letter

#endif
