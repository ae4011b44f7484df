#include "ui/draft.h"

#include <stdlib.h>
#include <string.h>

void draft_free(struct draft *d) {
    free(d->text);
    free(d->folds);
    *d = (struct draft){0};
}

static bool same(const char *a, const char *b) { return a && b ? !strcmp(a, b) : a == b; }

bool draft_equal(const struct draft *a, const struct draft *b) {
    return a->point == b->point && same(a->text, b->text) && same(a->folds, b->folds);
}
