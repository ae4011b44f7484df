// Splitter: splits the text of an answer into channels and ends it at a stop text.
//
// Text and mark tokens go in; text of one channel at a time comes out. Text that may be the start of a mark or a stop
// is held back until that is decided. Only marks, harmony headers and white space around marks are dropped; everything
// else is text of the answer. Independent of tokenizers and events; allocates nothing after opening.
#ifndef CONFAB_ANSWER_SPLITTER_H
#define CONFAB_ANSWER_SPLITTER_H

#include "engine/answer/channel.h"

enum { SPLITTER_SLICE = 400 }; // maximum bytes per call

struct splitter_params {
    const struct channel_scheme *scheme; // borrowed
    bool inside;                         // the prompt has opened the thinking
    const char *end;                     // ends the answer in any channel; may be NULL
    const char *const *stops;            // end it in the answer channel only; copied
    int n_stops;
    void *context;
    void (*text)(void *context, enum channel channel, const char *text, size_t size); // whole characters
};

struct splitter;
struct splitter *splitter_open(const struct splitter_params *p);
void splitter_close(struct splitter *s);

// Whether a token is a mark of the scheme; its text is then not part of the answer.
bool splitter_is_mark(const struct splitter *s, int32_t token);
// True if a stop text was found, as in splitter_text: in text held back as a possible header.
bool splitter_mark(struct splitter *s, int32_t token);
// Takes valid UTF-8, whole characters. True if a stop text was found; text after it is dropped.
bool splitter_text(struct splitter *s, const char *text, size_t size);
int splitter_stop(const struct splitter *s); // which of `stops` was found, from 1; 0: none of them
// At the end: emits the text held back.
void splitter_finish(struct splitter *s);
size_t splitter_blanks(const char *text, size_t size);   // of white space that it begins with, as is dropped at marks
enum channel splitter_channel(const struct splitter *s); // of the next text
// Whether text that comes next is the answer's, as far as it is known: not thinking, nor a header.
bool splitter_is_answer(const struct splitter *s);
bool splitter_needs_header(const struct splitter *s); // one has to begin, before there is an answer
struct span splitter_held(const struct splitter *s);  // text that may become a mark; until more is taken

#endif
