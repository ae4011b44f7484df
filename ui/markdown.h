// Markdown: a model's answer laid out for a width, block by block.
//
// The source is cut into chunks at blank lines outside fences that are followed by an unindented line; each chunk goes
// through md4c by itself. Chunks that are complete are final, and so are the complete lines of a code fence that is
// still open: while an answer grows only its last chunk, or the last line of its code, is laid out again. Nothing that
// was written is lost: HTML, link definitions and whatever md4c gives up on are shown as text.
#ifndef CONFAB_UI_MARKDOWN_H
#define CONFAB_UI_MARKDOWN_H

#include "ui/code_colours.h"
#include "ui/flow.h"

// The fence that is open at a place in the source; length 0: none.
struct markdown_fence {
    char character;
    size_t length;
    int indent, quotes; // the columns before it, the quotations it stands in: a line further in does not close it
};

// A chunk that ends in an open fence, as far as it is final. All zero: there is none.
struct markdown_open {
    struct markdown_fence fence;
    size_t head;             // bytes of the chunk up to the end of the line that opens the fence
    size_t done;             // bytes up to the end of the last line of code that is final
    struct lines_mark rows;  // rows before this are theirs
    unsigned code;           // which block of code in the chunk it is, from 1
    struct code_state state; // of its colours, behind `done`
};

// A zeroed struct markdown is ready for use.
struct markdown {
    struct lines lines;        // the layout; rows are what callers read
    struct lines_mark final;   // rows before this belong to complete chunks
    size_t final_size;         // bytes of those chunks
    struct markdown_open open; // the chunk behind them
    char *source;              // the text that all of these were made from, to recognise it
    size_t source_size, source_capacity;
    int width;
    bool ascii;
    unsigned ordered_next; // an ordered list that ended the last final chunk goes on with this number; 0: none
    char ordered_delimiter;
    unsigned long chunks_laid_out, rows_laid_out; // ever; tests check by them that streaming is cheap
};

struct markdown_options {
    int width;
    bool ascii;
    bool streaming; // more will follow: a last line of nothing but markers ("-", "**", "```") waits
};

void markdown_free(struct markdown *m);
// Lays text out. Cheap when it continues the text of the call before at the same width.
void markdown_layout(struct markdown *m, const char *text, size_t size, struct markdown_options o);

// ---- between markdown.c, markdown_prepare.c and markdown_block.c ----

// Steps over one line (without its newline).
void markdown_fence_line(struct markdown_fence *open, const char *line, size_t size);
// Appends text of a chunk to `out` as md4c is to get it, so that it loses nothing of it. *fence: what is open where the
// text begins, then where it ends. formulas: they are made readable, with Unicode.
void markdown_prepare(struct flow *out, const char *text, size_t size, bool formulas, struct markdown_fence *fence);
// Lays one chunk out behind what m->lines has.
void markdown_block(struct markdown *m, const char *text, size_t size);
// The same for a chunk in which `fence` is open at the end, since the line that ends at `head`: goes on behind m->open,
// and leaves there what is final now.
void markdown_open_block(struct markdown *m, const char *text, size_t size, struct markdown_fence fence, size_t head);

#endif
