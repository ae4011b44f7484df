// Asked: what of a conversation the model is asked with: the messages of a path, each as much as its use says
// (conversation.h), and how many tokens they take.
//
// Templates want user and model to take turns. Questions that follow each other are asked as one, and an answer whose
// question is left out gets a "[...]" in its place. In a chat without a template all texts are one, as they are.
#ifndef CONFAB_APP_ASKED_H
#define CONFAB_APP_ASKED_H

#include "app/session/conversation.h"
#include "engine/message.h"

// Texts are borrowed from the conversation but for those that were made.
struct asked {
    struct engine_message *messages;
    char *raw; // in place of messages, in a chat without a template
    char **made;
    int count, n_made;
};

// The messages from the first one to `last`, after the system prompt.
struct asked asked_open(const struct conversation *talk, int last);
// And behind them a message of the person's that is not in the conversation yet; last −1: it is the first one.
struct asked asked_open_with(const struct conversation *talk, int last, const char *text);
void asked_close(struct asked *p);

// Those of the path to `last` that asked_open takes up, first message first, into out [count]; returns how many.
int asked_path(const struct conversation *talk, int last, int *out);
int asked_messages(const struct conversation *talk, int last); // how many alone
const char *asked_system(const struct conversation *talk);     // the system prompt before them; NULL: none

// The answer failed with nothing generated: it is left out, and its question.
bool asked_failed(const struct conversation *talk, int message);

int asked_guess(size_t bytes); // tokens of so much text, about
// Tokens that a message takes, or would if it were used so, and the system prompt; *guessed where nobody has counted
// them.
int asked_tokens(const struct conversation *talk, int message, enum message_use use, bool *guessed);
int asked_system_tokens(const struct conversation *talk);
// Of all that is asked with up to `last`.
int asked_total(const struct conversation *talk, int last, bool *guessed);
// The engine has counted: so many tokens of prompt for this answer, so many of the answer itself. What nobody has
// counted before is shared out.
void asked_count(struct conversation *talk, int answer, int n_prompt, int n_answer);

// What leaving out the oldest messages comes to.
struct asked_room {
    int n_messages, tokens; // left out by this; tokens are a guess
    int left;               // tokens that the rest takes
    bool enough;            // to answer `last`; otherwise nothing is to be changed
};
// Which messages of a prompt of n_prompt tokens, known from the engine or 0, are to go so that `goal` are left: the
// oldest, with their answers; never the last one, nor pinned ones. `apply` marks them as dropped if that is enough.
struct asked_room asked_make_room(struct conversation *talk, int last, int n_prompt, int goal, int context, bool apply);

#endif
