// Chat formats: render messages in the format a model was trained on, without running its template.
//
// The formats are a table; a format is recognised by marks in the text of `tokenizer.chat_template`.
#ifndef CONFAB_TEXT_CHAT_TEMPLATE_H
#define CONFAB_TEXT_CHAT_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/text/tokenizer.h"

enum chat_template_kind {
    CHAT_TEMPLATE_NONE, // no known template: "User: …\nAssistant:"
    CHAT_TEMPLATE_HARMONY, CHAT_TEMPLATE_PHI4, CHAT_TEMPLATE_CHATML, CHAT_TEMPLATE_LLAMA2, CHAT_TEMPLATE_MISTRAL7,
    CHAT_TEMPLATE_MISTRAL, CHAT_TEMPLATE_LLAMA3, CHAT_TEMPLATE_GEMMA, CHAT_TEMPLATE_COMMAND_R, CHAT_TEMPLATE_DEEPSEEK,
    CHAT_TEMPLATE_GRANITE, CHAT_TEMPLATE_PHI3, CHAT_TEMPLATE_ZEPHYR, CHAT_TEMPLATE_COUNT
};

struct chat_message {
    const char *role; // "system", "user" or "assistant"
    const char *text; // UTF-8
};

enum chat_template_kind chat_template_recognise(struct span template_text); // {NULL, 0}: no template
const char *chat_template_name(enum chat_template_kind kind);

// A rendered prompt is a list of pieces: template marks (special = true, parsed for special tokens) and message text
// (special = false: <|im_end|> typed by the user stays text).
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
    bool open_answer;   // add the start of the assistant's turn
    const char *date;   // "2026-01-02"
    const char *effort; // "low", "medium" or "high"; NULL: medium
};
// Renders the messages, without BOS. Formats without a system role put the system text into the first user turn. The
// caller frees the result with prompt_free.
struct prompt chat_template_render(enum chat_template_kind kind, const struct chat_message *messages, size_t count,
                                   struct chat_template_options o);
bool chat_template_effort(enum chat_template_kind kind); // whether the format includes the effort
void prompt_free(struct prompt *p);
void prompt_add(struct prompt *p, const char *text, size_t size, bool special); // copies; ignores empty pieces
// Appends the ids of the whole prompt, tokenized as one text in which only special pieces contain special tokens.
void prompt_encode(const struct prompt *p, const struct tokenizer *t, struct token_list *out);
// A text that ends an answer in this format even if it is not a token; NULL if none.
const char *chat_template_stop(enum chat_template_kind kind);

#endif
