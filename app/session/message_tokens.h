// Message tokens: the tokens of an answer, with what the model thought of each and of its likeliest alternatives.
//
// Kept beside the text of a message: each token's share of it is known, but text that belongs to no token may follow
// the last one. Alternatives lie packed in `bytes`, in the form in which the store has them too:
//
//   blob     version │ count (varint) │ bytes of text of each (varint, its lowest bit: thinking) │ records
//   record   id (varint) │ n_alternatives │ probability u16 │ entropy u16 │ alternatives
//   each     id (varint) │ probability u16 │ size of its text u8 │ text
//
// A probability p is −2048 log2 p, an entropy 2048 times its bits, both 65535 at most. Bit 7 of n_alternatives: they
// are unknown, and have no bytes; bit 6: a draft had guessed the token.
#ifndef CONFAB_APP_MESSAGE_TOKENS_H
#define CONFAB_APP_MESSAGE_TOKENS_H

#include "engine/base/reader.h"
#include "engine/engine.h"

// A zeroed struct is empty and ready for use.
struct message_tokens {
    struct message_token *tokens; // [count]
    int count, capacity;
    uint8_t *bytes; // the records, one behind the other
    size_t size, room;
    size_t text[2]; // bytes of text so far, by channel
};

void message_tokens_free(struct message_tokens *t);
struct message_tokens message_tokens_copy(const struct message_tokens *t);

// Adds the token of an event (of one with token −1 only more text of the last one), whose text ends at this place of
// its channel's.
void message_tokens_add(struct message_tokens *t, const struct engine_event *e, size_t end);
// Adds a token that is given, with the figures that `from` has of its token `at`, be it that one or an alternative.
void message_tokens_add_known(struct message_tokens *t, const struct engine_event *e, size_t end,
                              const struct message_tokens *from, int at);
// Of token `at`, most likely first; returns how many.
int message_tokens_alternatives(const struct message_tokens *t, int at, struct token_alternative out[SAMPLING_TOP]);

uint8_t *message_tokens_write(const struct message_tokens *t, size_t *size); // the caller frees
// Reads hostile bytes, of a message whose channels have so much text. False leaves *out empty.
bool message_tokens_read(struct message_tokens *out, const void *blob, size_t size, const size_t text[2],
                         struct status *st);

#endif
