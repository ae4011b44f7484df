// Pastes: long texts of which each is one character in the line that the composer has: a code point of the private use
// area stands for it, and is drawn as a label. All are kept, for undo and yank may bring any of them back.
#ifndef CONFAB_UI_PASTES_H
#define CONFAB_UI_PASTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/draft.h"

#define PASTE_MARK  4  // bytes
#define PASTE_NAME  32 // bytes
#define PASTE_LABEL (PASTE_NAME + 48)

struct paste {
    char *text;
    size_t size;
    int lines;
    char name[PASTE_NAME]; // of the file or command that it is of; "": pasted
};

// A zeroed struct has none.
struct pastes {
    struct paste *list;
    int count;
};

void pastes_free(struct pastes *p);
const struct paste *pastes_find(const struct pastes *p, uint32_t code); // NULL: it stands for none

// A copy without NULs and carriage returns, valid UTF-8, that holds none of the code points that stand for pastes.
char *pastes_clean(const char *text, size_t size);
bool pastes_is_long(const char *text); // so that it is to be folded
// Writes the code point that stands for this text to `mark`; returns its size. 0: there are too many.
size_t pastes_fold(struct pastes *p, const char *text, size_t size, char mark[PASTE_MARK]);
void pastes_label(const struct paste *p, char out[PASTE_LABEL]); // "[pasted 120 lines]"

// What a line says with all pastes in their places: its bytes, it, and as a draft with the cursor at `point` of the
// line. The caller frees.
size_t pastes_unfolded_size(const struct pastes *p, const char *line);
char *pastes_unfold(const struct pastes *p, const char *line);
void pastes_draft(const struct pastes *p, const char *line, size_t point, struct draft *out);
// The line for a draft, and where the cursor is in it. The caller frees.
char *pastes_line(struct pastes *p, const struct draft *d, size_t *point);
// Finds the pastes of a line, in their order, in the text of a draft that has no folds yet.
void pastes_find_folds(const struct pastes *p, const char *line, struct draft *d);

#endif
