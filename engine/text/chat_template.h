// Chat templates: from a list of messages to the text a model was trained on.
//
// The template kinds are one table; the kind is recognised by marks in the text of `tokenizer.chat_template`.
#ifndef CONFAB_TEXT_CHAT_TEMPLATE_H
#define CONFAB_TEXT_CHAT_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/text/tokenizer.h"

enum chat_template_kind {
    CHAT_TEMPLATE_NONE, // no template in the file: the messages are joined plainly ("User: …\nAssistant:")
    CHAT_TEMPLATE_HARMONY, CHAT_TEMPLATE_PHI4, CHAT_TEMPLATE_CHATML, CHAT_TEMPLATE_LLAMA2, CHAT_TEMPLATE_MISTRAL7,
    CHAT_TEMPLATE_MISTRAL, CHAT_TEMPLATE_LLAMA3, CHAT_TEMPLATE_GEMMA, CHAT_TEMPLATE_COMMAND_R, CHAT_TEMPLATE_DEEPSEEK,
    CHAT_TEMPLATE_GRANITE, CHAT_TEMPLATE_PHI3, CHAT_TEMPLATE_ZEPHYR, CHAT_TEMPLATE_COUNT
};

struct chat_message {
    const char *role; // "system", "user" or "assistant"
    const char *text; // UTF-8
};

enum chat_template_kind chat_template_recognise(struct span template_text); // {NULL, 0}: none in the file
const char *chat_template_name(enum chat_template_kind kind);

// A rendered prompt is pieces: template marks (special = true: parsed for special tokens) and message text
// (special = false: a user who types <|im_end|> gets the characters, not the token).
struct prompt_piece {
    char *text;
    size_t size;
    bool special;
};
struct prompt {
    struct prompt_piece *pieces;
    size_t count;
};
struct chat_template_options {
    bool open_answer;   // also the opening of the assistant's turn
    const char *date;   // "2026-01-02" and
    const char *effort; // "low", "medium" or "high", for the kinds that tell them; NULL: medium
};
// Renders the messages. BOS is not included (the tokenizer's business). A kind without a system role folds the system text
// into the first user turn. prompt_free frees.
struct prompt chat_template_render(enum chat_template_kind kind, const struct chat_message *messages, size_t count,
                                   struct chat_template_options o);
bool chat_template_effort(enum chat_template_kind kind); // whether the kind tells the effort
void prompt_free(struct prompt *p);
void prompt_add(struct prompt *p, const char *text, size_t size, bool special); // a piece, copied; none when it is empty
// Appends the ids of the whole prompt: as if it were one text in which only the special pieces hold special tokens.
void prompt_encode(const struct prompt *p, const struct tokenizer *t, struct token_list *out);
// A text at which generation ends for this kind even where the vocabulary has no such token; NULL when none.
const char *chat_template_stop(enum chat_template_kind kind);

#endif
