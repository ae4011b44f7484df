// Message blocks: what a message consists of as a person takes it out: paragraphs, code, tables, lists, quotations. Cut
// from the Markdown source line by line; code within a list or a quotation is a block of its own.
#ifndef CONFAB_UI_MESSAGE_BLOCKS_H
#define CONFAB_UI_MESSAGE_BLOCKS_H

#include "ui/markdown.h"

enum block_kind { BLOCK_TEXT, BLOCK_CODE, BLOCK_TABLE, BLOCK_LIST, BLOCK_QUOTE };

struct message_block {
    enum block_kind kind;
    size_t start, end;           // in the source, without the newline at its end
    struct markdown_fence fence; // of code, and the lines between its fences:
    size_t code_start, code_end;
};

// The first block that begins at `from` or behind it, where no fence is open; false: there is none.
bool message_block_next(const char *text, size_t size, size_t from, struct message_block *out);
bool message_block_find(const char *text, size_t size, int number, struct message_block *out); // from 1 on
// As it is copied: code without its fences and margin, a table with a tab between cells, all else as it was written.
// The caller frees.
char *message_block_text(const char *text, const struct message_block *b, size_t *size);
// A name for a file of code: the one that a comment in its first line names, otherwise by its language.
void message_block_file_name(const char *text, const struct message_block *b, char out[64]);

#endif
