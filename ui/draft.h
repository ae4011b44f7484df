// Draft: a message that is not sent yet, as it is put aside and kept.
#ifndef CONFAB_UI_DRAFT_H
#define CONFAB_UI_DRAFT_H

#include <stdbool.h>
#include <stddef.h>

struct draft {
    char *text;   // owned; NULL: nothing is written
    char *folds;  // owned: the pastes in it that are drawn folded, "OFFSET+BYTES OFFSET+BYTES"; NULL: none
    size_t point; // the cursor's offset in the text
};

void draft_free(struct draft *d); // it is empty afterwards
bool draft_equal(const struct draft *a, const struct draft *b);

#endif
