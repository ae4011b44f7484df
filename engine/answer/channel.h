// Channels: how a model marks thinking in its answers.
//
// The scheme is recognised from the vocabulary and the template when the file is opened:
//   brackets   <think> … </think> or similar around the thinking; control tokens, or text if there are no such tokens
//   harmony    messages with a header: <|start|>assistant<|channel|>analysis<|message|> … <|end|>, always tokens
#ifndef CONFAB_ANSWER_CHANNEL_H
#define CONFAB_ANSWER_CHANNEL_H

#include "engine/message.h"
#include "engine/text/chat_template.h"

enum channel_kind { CHANNELS_NONE, CHANNELS_BRACKETS, CHANNELS_HARMONY };

// X(enumerator, text)
#define HARMONY_MARKS(X)                                                                                               \
    X(HARMONY_START, "<|start|>")                                                                                      \
    X(HARMONY_CHANNEL, "<|channel|>")                                                                                  \
    X(HARMONY_CONSTRAIN, "<|constrain|>")                                                                              \
    X(HARMONY_MESSAGE, "<|message|>")                                                                                  \
    X(HARMONY_END, "<|end|>")                                                                                          \
    X(HARMONY_RETURN, "<|return|>")                                                                                    \
    X(HARMONY_CALL, "<|call|>")
enum harmony_mark {
#define X(id, text) id,
    HARMONY_MARKS(X)
#undef X
        HARMONY_MARK_COUNT
};

struct channel_brackets {
    const char *open, *close;
};

struct channel_scheme {
    enum channel_kind kind;
    const struct channel_brackets *brackets; // texts
    const struct channel_brackets *wrap;     // optional brackets around the text after the thinking; may be NULL
    int32_t open, close;                     // control tokens of the brackets; −1 if none
    int32_t harmony[HARMONY_MARK_COUNT];     // −1 if none
};

bool channel_has_harmony(const struct tokenizer *t); // has all tokens required for harmony
struct channel_scheme channel_recognise(const struct tokenizer *t, enum chat_template_kind kind,
                                        struct span template_text);
const char *channel_name(const struct channel_scheme *c); // "harmony", "<think>", ""
// Whether a prompt ends with an open bracket, so that the answer starts inside.
bool channel_opened(const struct channel_scheme *c, const struct prompt *p);

#endif
