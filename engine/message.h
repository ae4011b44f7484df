// Messages: what a chat is made of, and the parts of an answer.
#ifndef CONFAB_ENGINE_MESSAGE_H
#define CONFAB_ENGINE_MESSAGE_H

struct engine_message {
    const char *role; // "system", "user", "assistant"
    const char *text;
    const char *thinking; // of an answer, for templates that want it back; NULL: none
};

// Parts of an answer: its text, and what a model thinks before it.
enum channel { CHANNEL_ANSWER, CHANNEL_THINKING };

// How much a model is to think, where its template lets one choose: "auto" leaves it to the template; "off" and "on"
// choose whether, the others whether and how much. In the order of enum reasoning.
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
