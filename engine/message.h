// Messages of a chat, and the channels of an answer.
#ifndef CONFAB_ENGINE_MESSAGE_H
#define CONFAB_ENGINE_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

struct engine_message {
    const char *role; // "system", "user", "assistant"
    const char *text;
    const char *thinking; // reasoning of an answer, for templates that use it; NULL: none
};

// Channels of an answer: its text, and the model's thinking before it.
enum channel { CHANNEL_ANSWER, CHANNEL_THINKING };

// A token of an answer, with what the model thought of it.
struct message_token {
    int32_t id;
    uint32_t end;      // of its text in that of its channel, where the text of the one before ends
    uint32_t record;   // where its owner has the alternatives
    float probability; // NaN: unknown, as it was given
    float entropy;     // likewise, in bits
    uint8_t channel, n_alternatives;
    bool accepted; // a draft had guessed it
};

// How much a model thinks, if its template has a choice: "auto" leaves it to the template, "off" and "on" switch it,
// the others also set the effort. In the order of enum reasoning.
#define REASONING_CHOICES "auto|off|on|low|medium|high"
enum reasoning {
    REASONING_AUTO,
    REASONING_OFF,
    REASONING_ON,
    REASONING_LOW,
    REASONING_MEDIUM,
    REASONING_HIGH,
    REASONING_COUNT
};

#endif
