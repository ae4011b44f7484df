// Markdown: a model's answer laid out for a width, block by block.
//
// The source is cut into chunks at blank lines outside fences that are followed by an unindented line, and before a
// line when a chunk becomes long; each chunk goes through md4c by itself, with the definitions of the whole message
// (references.h). Chunks that are complete are final, and so are the complete lines of a code fence that is still open:
// while an answer grows only its last chunk, or the last line of its code, is laid out again. A definition that comes
// later has the text laid out again from where it is first mentioned. Footnotes stand behind the last chunk. Nothing
// that was written is lost: HTML, definitions that nothing refers to and whatever md4c gives up on are shown as text.
#ifndef CONFAB_UI_MARKDOWN_H
#define CONFAB_UI_MARKDOWN_H

#include "ui/code_colours.h"
#include "ui/lines.h"
#include "ui/references.h"

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

// Where a chunk begins.
struct markdown_start {
    size_t at;              // in the source
    struct lines_mark rows; // rows before this belong to the chunks before it
    unsigned ordered_next;  // an ordered list that ended the chunk before goes on with this number; 0: none
    char ordered_delimiter;
    bool joined;  // it goes on with what ended the chunk before
    size_t table; // the head of a table that goes on in it; MARKDOWN_NO_TABLE: none does
};
#define MARKDOWN_NO_TABLE SIZE_MAX

// A zeroed struct markdown is ready for use.
struct markdown {
    struct lines lines;            // the layout; rows are what callers read
    struct markdown_start *starts; // of the complete chunks, in their order, and of the one behind them
    size_t n_starts, starts_capacity;
    struct markdown_open open; // the chunk behind them
    char *source;              // the text that all of these were made from, to recognise it
    size_t source_size, source_capacity;
    struct references references;
    int width;
    bool ascii;
    unsigned ordered_next; // as in a start, of what is laid out
    char ordered_delimiter;
    unsigned long chunks_laid_out, rows_laid_out, bytes_parsed; // ever; tests check by them that streaming is cheap
};

struct markdown_options {
    int width;
    bool ascii;
    bool streaming; // more will follow: a last line that may be the beginning of a marker ("-", "**", "[1]:") waits
    size_t until;   // only so many bytes are laid out, and no footnotes; 0: all
};

void markdown_free(struct markdown *m);
// Lays text out. Cheap when it continues the text of the call before at the same width.
void markdown_layout(struct markdown *m, const char *text, size_t size, struct markdown_options o);

// ---- between markdown.c, markdown_prepare.c and markdown_chunk.c ----

// Steps over one line (without its newline).
void markdown_fence_line(struct markdown_fence *open, const char *line, size_t size);
bool markdown_blank(const char *line, size_t size);
// Whether a table begins at `at`, the beginning of a line.
bool markdown_heads_table(const char *text, size_t size, size_t at);
// Appends text[from..to) of a chunk to `out` as md4c is to get it, so that it loses nothing of it. *fence: what is open
// where it begins, then where it ends. table: as in a start. formulas: they are made readable, with Unicode.
struct markdown_prepare {
    const struct references *references; // of the text
    size_t from, to, table;
    bool formulas;
};
void markdown_prepare(struct flow *out, const struct markdown_prepare *p, struct markdown_fence *fence);
// Lays the chunk out that begins at `start`, behind what m->lines has.
void markdown_chunk(struct markdown *m, const struct markdown_start *start, size_t end);
// The same for a chunk in which `fence` is open at the end, since the line that ends at `head` of it: goes on behind
// m->open, and leaves there what is final now.
void markdown_open_chunk(struct markdown *m, const struct markdown_start *start, size_t end,
                         struct markdown_fence fence, size_t head);
void markdown_notes(struct markdown *m); // the footnotes that are referred to, behind all

#endif
