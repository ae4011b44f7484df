// Token layout: an answer laid out token by token, as it was drawn: thinking and text in their order, plainly, since
// Markdown's marks are tokens too. Each can be coloured by how sure the model was, and one is marked.
#ifndef CONFAB_UI_TOKEN_LAYOUT_H
#define CONFAB_UI_TOKEN_LAYOUT_H

#include "ui/lines.h"
#include "ui/panes.h"

// X(enumerator, what the screen says): by what tokens are coloured
#define TOKEN_COLOURINGS(X)                                                                                            \
    X(TOKENS_PLAIN, "answers are not coloured")                                                                        \
    X(TOKENS_BY_PROBABILITY, "answers are coloured by the probability of their tokens")                                \
    X(TOKENS_BY_ENTROPY, "answers are coloured by entropy: how open each choice was")                                  \
    X(TOKENS_BY_DRAFT, "answers are coloured where drafts were accepted")
enum token_colouring {
#define X(id, text) id,
    TOKEN_COLOURINGS(X)
#undef X
        TOKEN_COLOURING_COUNT
};

struct token_spot { // a piece of a token in a row, or the end behind them all
    int row, column, width, token;
};

// A zeroed struct is ready for use.
struct token_layout {
    struct lines lines;
    struct token_spot *spots; // by row
    int n_spots, spots_room;
    int marked_row; // of the marked token, or end; −1: there is none
    uint32_t *ends; // [n_drawn]: where each token ends in the flow
    int ends_room;
};

struct token_layout_options {
    int width;
    bool ascii;
    bool without_colours; // sureness is told by attributes
    enum token_colouring colouring;
    int marked; // a token, n_drawn: the end; −1: none
};

void token_layout_free(struct token_layout *l);
// `flow` is scratch.
void token_layout_make(struct token_layout *l, struct flow *flow, const struct view_message *m,
                       const struct token_layout_options *o);
int token_layout_at(const struct token_layout *l, int row, int column); // the token there, or the end; −1: none
// A token's style where it is coloured in a way; `base` where its figures are unknown.
struct style token_layout_style(const struct message_token *token, enum token_colouring colouring, bool without_colours,
                                struct style base);

#endif
