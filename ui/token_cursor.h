// Token cursor: on a token of an answer, and on one of that token's alternatives; or, where the answer is not being
// written, behind its last token. Keys move it, also when they come faster than draws; where it comes to is found in
// the messages that are drawn next.
#ifndef CONFAB_UI_TOKEN_CURSOR_H
#define CONFAB_UI_TOKEN_CURSOR_H

#include "ui/panes.h"

#define TOKEN_LAST INT32_MAX // and those that follow

// A zeroed struct is on no token.
struct token_cursor {
    uint64_t message;  // 0: there is none
    int count;         // of its tokens
    int token;         // or TOKEN_LAST; count: the end
    int at, n;         // where that is, and of how many alternatives
    int alternative;   // −1: not chosen yet
    int seek;          // steps to an unsure token that are still to be made
    int width, height; // of the pane at the last draw
    bool moved;        // it is to come into sight at the next draw
};

void token_cursor_set(struct token_cursor *c, int token);
void token_cursor_step(struct token_cursor *c, int step);
void token_cursor_unsure(struct token_cursor *c, int step); // to the next one before or after it
void token_cursor_choose(struct token_cursor *c, int alternative);
int token_cursor_token(const struct token_cursor *c); // that it is on
// Where it is in the messages that are drawn next; false: nowhere.
bool token_cursor_find(struct token_cursor *c, const struct screen_view *v, uint64_t *message, int *token);
int token_cursor_show(struct token_cursor *c, const struct view_token *token); // returns the alternative chosen

#endif
