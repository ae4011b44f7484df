// Conversation: a tree of messages and the path through it that is shown.
//
//   user ─► model          regenerating an answer adds a sibling, editing a message does too: siblings are the
//       └─► model ─► user  versions of a message ("‹2/3›"), of which one is chosen. The path goes from the
//                          first message along the chosen ones. Nothing is ever overwritten.
//
// A message can be pruned, with all that come after it: they keep their places in memory, so that they can be
// restored, but are no versions any more, and the store deletes them.
//
// Plain data, one owner (the session); the store writes what is dirty.
#ifndef CONFAB_APP_CONVERSATION_H
#define CONFAB_APP_CONVERSATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/base/settings.h"
#include "app/session/message_tokens.h"

// X(enumerator, name in the store): the roles of messages, named as chat templates name them
#define MESSAGE_ROLES(X) X(MESSAGE_USER, "user") X(MESSAGE_MODEL, "assistant")
enum message_role {
#define X(id, name) id,
    MESSAGE_ROLES(X)
#undef X
};

// X(enumerator, name in the store)
#define MESSAGE_STATES(X)                                                                                              \
    X(MESSAGE_COMPLETE, "complete")                                                                                    \
    X(MESSAGE_STREAMING, "streaming")                                                                                  \
    X(MESSAGE_STOPPED, "stopped")                                                                                      \
    X(MESSAGE_FAILED, "failed")
enum message_state {
#define X(id, name) id,
    MESSAGE_STATES(X)
#undef X
};

// X(enumerator, name in the store): how much of a message the model is asked with. Dropped ones stay in the chat and
// can be restored; pinned ones are not left out when the context is full; of folded ones it sees the beginning.
#define MESSAGE_USES(X)                                                                                                \
    X(USE_WHOLE, "whole")                                                                                              \
    X(USE_PINNED, "pinned")                                                                                            \
    X(USE_FOLDED, "folded")                                                                                            \
    X(USE_DROPPED, "dropped")
enum message_use {
#define X(id, name) id,
    MESSAGE_USES(X)
#undef X
};

struct message {
    int64_t row;       // in the store; 0: not there yet
    bool dirty;        // differs from the store
    uint32_t revision; // grows when text or note changes
    int parent;        // index of the message before, −1 for a first one
    int chosen;        // index of the chosen message after, −1 when there is none
    enum message_role role;
    enum message_state state;
    char *text; // UTF-8 without NUL, NUL-terminated
    size_t size, capacity;
    char *thinking; // of an answer, what was thought before it; NULL: nothing
    size_t thinking_size, thinking_capacity;
    int thinking_tokens;
    double thinking_seconds;
    char *notice;   // what the engine had to say about the request; NULL: nothing
    char *note;     // "38.2 tok/s, 120 tokens"; of a failed answer what went wrong; NULL: none
    char *name;     // that a person gave the branch that begins here; NULL: none
    char *edit;     // its new text as far as it is written; NULL: it is not being edited
    char *model;    // that wrote it, e.g. "TinyLlama 1.1B Q4_0"; NULL: not known, or a person did
    int tokens;     // in the conversation up to and with this message; 0: not known
    int own_tokens; // of this message; 0: not known
    enum message_use use;
    struct sampling *sampling;   // that an answer was drawn under; NULL: not known
    struct message_tokens drawn; // of an answer: its tokens; none: they are not known
    // Milliseconds since 1970; 0: unknown. Only shown and exported: clocks may be set back, so nothing is ordered by
    // them.
    int64_t created, begun, ended; // begun, ended: first token and end of an answer
    int pruned;                    // by which pruning of the conversation, from 1 on; 0: it is there
    bool was_chosen;               // before that
    bool marked;                   // by a person, to be kept where other versions go
};

struct conversation {
    uint64_t id;              // in this process, never 0
    int64_t row;              // in the store; 0: not there yet
    bool dirty;               // title, settings or chosen path differ from the store
    bool unread_rows;         // its messages still lie in the store only
    bool named;               // title was given by the person
    bool private;             // the store gets nothing of it, nor does any other file that is not asked for
    bool pinned, archived;    // by the person: first in lists, and in none of them unless asked for
    bool gone;                // of a copy: another confab has deleted it from the store
    bool torn;                // likewise: messages of it
    char *title;              // "" until there is something to call it by
    char *tags;               // words of the person's own, separated by spaces; "": none
    struct settings settings; // sampling and what is OF_CONVERSATION; the rest is unused
    int64_t created, used;    // milliseconds since 1970: made, and its latest message; 0: unknown
    struct message *messages; // in order of their making
    int count, capacity;
    int first;    // index of the chosen first message, −1 when there is none
    int prunings; // made and not taken back
    struct text_list waiting; // messages to be sent after the answer before them, the next one first
    uint32_t line_revision;   // grows when that changes
};

void conversation_open(struct conversation *c, uint64_t id, const struct settings *s); // copies the settings it owns
void conversation_close(struct conversation *c);
void conversation_forget_messages(struct conversation *c); // as if none had been read

// Adds a message after `parent` (−1: a first one) and chooses it. Returns its index.
int conversation_add(struct conversation *c, int parent, enum message_role role, const char *text, size_t size);
// More text at the end of a message. NUL bytes become U+FFFD.
void conversation_append(struct conversation *c, int message, const char *text, size_t size);
// The same of what was thought, which took `seconds` in all.
void conversation_think(struct conversation *c, int message, const char *text, size_t size, double seconds);
void conversation_clear(struct conversation *c, int message);                  // neither text nor thinking, nor tokens
void conversation_note(struct conversation *c, int message, const char *note); // copied; NULL: none
void conversation_notice(struct conversation *c, int message, const char *notice);   // likewise
void conversation_name(struct conversation *c, int message, const char *name);       // its first line; "": none
void conversation_set_edit(struct conversation *c, int message, const char *edit);   // copied; NULL: none
void conversation_set_model(struct conversation *c, int message, const char *model); // copied
void conversation_use(struct conversation *c, int message, enum message_use use);
void conversation_count(struct conversation *c, int message, int own_tokens);
void conversation_set_sampling(struct conversation *c, int message, const struct sampling *sampling); // copied
// One that waits, at this place of the line; and out of it, which the caller frees.
void conversation_wait(struct conversation *c, int place, const char *text);
char *conversation_wait_no_more(struct conversation *c, int place);
void conversation_set_settings(struct conversation *c, const struct settings *s);                     // likewise
void conversation_rename(struct conversation *c, const char *title); // "": the first words again
bool conversation_has_first_title(const struct conversation *c); // that its first message gave it
void conversation_set_title(struct conversation *c, const char *title); // as if that had given it this one
void conversation_tag(struct conversation *c, const char *tags); // words, with or without '#'

int conversation_last(const struct conversation *c); // the end of the path, −1 when empty
// The path, first message first, into out [count]; returns its length.
int conversation_path(const struct conversation *c, int *out);
// The 1-based number of a message among its versions; *total of them.
int conversation_version(const struct conversation *c, int message, int *total);
// The same of all messages in one pass: numbers [count], totals [count + 1]; that of message
// m is totals[its parent + 1].
void conversation_versions(const struct conversation *c, int *numbers, int *totals);
// Chooses the version `step` further (clamped) of a message; false when that is the same one.
bool conversation_switch(struct conversation *c, int message, int step);
// Makes the path lead to this message.
void conversation_choose(struct conversation *c, int message);

// Takes a message away, with all that come after it; the path goes on at the version before or after it, if there is
// one. Returns how many there were.
int conversation_prune(struct conversation *c, int message);
// The same of all versions of a message but those that are marked, or where none is but this one; a marked one is
// marked no more then.
int conversation_keep(struct conversation *c, int message);
int conversation_marked(const struct conversation *c, int message); // versions of it that are
// Takes the latest pruning back; what was chosen is chosen again. Returns the message that was pruned; −1: none was.
int conversation_restore(struct conversation *c);

// Copies what differs from the store, to be written while *c goes on changing: rows, parents and path of all messages,
// texts of dirty ones only. Nothing in *c is dirty afterwards.
void conversation_take_changes(struct conversation *c, struct conversation *copy);
// Takes over the rows of a copy that was written; otherwise marks what it holds as dirty again.
void conversation_put_back(struct conversation *c, const struct conversation *copy, bool written);

const char *message_role_name(enum message_role role);
const char *message_state_name(enum message_state state);
const char *message_use_name(enum message_use use);
// Of an unknown name the first of them.
enum message_role message_role_named(const char *name);
enum message_state message_state_named(const char *name);
enum message_use message_use_named(const char *name);

#endif
