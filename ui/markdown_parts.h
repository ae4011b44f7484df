// What one chunk of Markdown is while it is laid out, shared by markdown_chunk.c (chunks through md4c),
// markdown_block.c (its blocks) and markdown_span.c (what is in them). Nobody else includes this.
#ifndef CONFAB_UI_MARKDOWN_PARTS_H
#define CONFAB_UI_MARKDOWN_PARTS_H

#include <md4c.h>

#include "ui/markdown.h"
#include "ui/markdown_table.h"

#define MAX_CONTAINERS 32 // deeper ones add no more indentation

struct container {
    bool item;           // of a list; else a quotation
    bool fresh;          // no row has shown its marker yet
    bool tight, ordered; // of its list
    char marker[24];
    int columns;
};

struct list {
    bool ordered, tight;
    unsigned next; // number
    char delimiter;
    int depth;
};

struct code {
    char fence; // 0: indented
    size_t n_lines;
    struct lines_mark before_last, end; // rows before its last line, and behind it
    struct code_state last, behind;     // the same of its colours
};

struct block {
    struct markdown *markdown;
    struct container containers[MAX_CONTAINERS];
    struct list lists[MAX_CONTAINERS];
    int n_containers, n_lists; // counted beyond the maximum, kept up to it
    struct flow flow;
    struct style base; // of the leaf block's text
    int strong, emphasis, strike, code, link, image;
    size_t link_start;
    enum { MARK_NONE, MARK_BEGINS, MARK_HIDES, MARK_SHOWS } mark; // of a footnote, and whether its text is its name
    size_t chunk;                                                 // where it begins in the source
    bool gap;                                                     // a blank row is due before the next block
    unsigned heading;
    struct flow label; // of a fence: the language and what else stands there
    const struct code_language *language;
    struct markdown_table table;
    bool gave_up; // the chunk cannot be shown as what it is
    unsigned n_codes;
    struct code last_code;
};

static const struct style markdown_dim = {.role = ROLE_DIM, .ground = ROLE_GROUND};

// ---- markdown_block.c ----

int markdown_block_enter(MD_BLOCKTYPE type, void *detail, void *user);
int markdown_block_leave(MD_BLOCKTYPE type, void *detail, void *user);
void markdown_block_wrap(struct block *b); // the text that was collected
void markdown_block_rule(struct block *b, int columns);

// ---- markdown_span.c ----

int markdown_span_enter(MD_SPANTYPE type, void *detail, void *user);
int markdown_span_leave(MD_SPANTYPE type, void *detail, void *user);
int markdown_span_text(MD_TEXTTYPE type, const MD_CHAR *text, MD_SIZE size, void *user);

#endif
