// Channels: how the answers of a model mark what is thinking and what is said.
//
// One scheme a file, recognised from its vocabulary and its template when it is opened:
//   brackets   <think> … </think> and its like around the thinking; control tokens, or text where the vocabulary has no
//              such control tokens
//   harmony    messages with a header: <|start|>assistant<|channel|>analysis<|message|> … <|end|>, always tokens
#ifndef CONFAB_ENGINE_CHANNEL_H
#define CONFAB_ENGINE_CHANNEL_H

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
    const struct channel_brackets *brackets; // the texts
    const struct channel_brackets *wrap;     // what may stand around the text after the thinking; NULL: nothing
    int32_t open, close;                     // the control tokens of this text, −1 where there is none
    int32_t harmony[HARMONY_MARK_COUNT];     // −1 where there is none
};

bool channel_has_harmony(const struct tokenizer *t); // the tokens that harmony cannot do without
struct channel_scheme channel_recognise(const struct tokenizer *t, enum chat_template_kind kind,
                                        struct span template_text);
const char *channel_name(const struct channel_scheme *c); // "harmony", "<think>", ""
// Whether a prompt ends with an opened bracket, so that the answer begins inside.
bool channel_opened(const struct channel_scheme *c, const struct prompt *p);

#endif
