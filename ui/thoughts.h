// Thoughts: what a model thought before an answer, laid out plainly, line by line: Markdown means nothing there.
//
// Lines that are complete are final: while a model thinks only its last line is laid out again.
#ifndef CONFAB_UI_THOUGHTS_H
#define CONFAB_UI_THOUGHTS_H

#include "ui/lines.h"

// A zeroed struct thoughts is ready for use.
struct thoughts {
    struct lines lines;      // the layout, without the white space at the end
    struct lines_mark final; // rows before this belong to complete lines
    size_t done;             // bytes of the text in those
    size_t size;             // of the text that was laid out
    int width;
};

void thoughts_free(struct thoughts *t);
void thoughts_forget(struct thoughts *t); // the next text is another one
// Lays text out; it continues the text of the call before. `flow` is scratch.
void thoughts_layout(struct thoughts *t, struct flow *flow, const char *text, size_t size, int width);

#define THOUGHTS_LABEL 96
// "thinking… 214 tokens, 3.1 s", or when it is over "thought for 3.1 s, 214 tokens".
const char *thoughts_label(bool streaming, bool ascii, int tokens, double seconds, char out[THOUGHTS_LABEL]);

#endif
