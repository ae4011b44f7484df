// Tree: where each message of a conversation stands in its graph, and what its branches take of the KV cache.
//
//   ● question       lane 0: the path, or in a branch beside it the messages that are chosen there
//   ├─○ answer 1     lane 1: another version, with what comes after it; drawn above the chosen one
//   │ ○ reply
//   ● answer 2
//
// Pages are reckoned from the messages' tokens: a branch shares the whole pages before the place where it goes off and
// owns those behind. Where the size of a page is not known they are tokens.
#ifndef CONFAB_UI_TREE_H
#define CONFAB_UI_TREE_H

#include "ui/panes.h"

struct tree_row {
    uint64_t id;     // of the message
    int node;        // its index
    int lane;        // number of branches that it lies beside
    bool begins;     // its branch, which goes off from the lane at its left
    int own, shared; // pages of the branch from here on, and before it
};

// A zeroed struct tree is ready for use.
struct tree {
    struct tree_row *rows; // from above, owned
    int n_rows, room;
    int branches;             // ends of the conversation
    int64_t pages, unshared;  // of all branches together, and as they were if nothing was shared
    int *after, *next, *ends; // scratch, owned: of each message the last one after it, and the version before it
};

void tree_free(struct tree *t);
void tree_layout(struct tree *t, const struct view_node *nodes, int n, int page_tokens); // ≤ 0: not known

#endif
