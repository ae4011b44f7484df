// Splitter: the text of one answer cut into its channels, and ended at a stop text.
//
// Text goes in as it comes, tokens that are marks beside it; what leaves belongs to one channel. A text that may be the
// beginning of a mark or of a stop is held back until it is known to be one or not. Nothing is lost but marks, harmony's
// headers and the white space around marks: what is not recognised is text of the answer. Knows no tokenizer and no
// events; nothing is allocated after the opening.
#ifndef CONFAB_ENGINE_SPLITTER_H
#define CONFAB_ENGINE_SPLITTER_H

#include "engine/answer/channel.h"

enum { SPLITTER_SLICE = 400 }; // bytes that may be given at once

struct splitter_params {
    const struct channel_scheme *scheme; // borrowed
    bool inside;                         // the prompt has opened the thinking already
    const char *end;                     // a text that ends the answer in whichever channel; NULL: none
    const char *const *stops;            // and texts that end it in the channel of the answer; copied
    int n_stops;
    void *context;
    void (*text)(void *context, enum channel channel, const char *text, size_t size); // whole characters, as text was
};

struct splitter;
struct splitter *splitter_open(const struct splitter_params *p);
void splitter_close(struct splitter *s);

// Whether a token is a mark of the scheme; its text is none of the answer then.
bool splitter_is_mark(const struct splitter *s, int32_t token);
// Like splitter_text true when a stop text has come: of text that could have been a header until the mark came.
bool splitter_mark(struct splitter *s, int32_t token);
// Clean UTF-8, whole characters. True when a stop text has come: what follows it is dropped, and nothing is held.
bool splitter_text(struct splitter *s, const char *text, size_t size);
// At the end: hands out what was held back.
void splitter_finish(struct splitter *s);
enum channel splitter_channel(const struct splitter *s); // that the next text belongs to

#endif
