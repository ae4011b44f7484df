// Ask: what a client wants of a model, in the engine's terms, whatever API it came through; and why it cannot be had.
#ifndef CONFAB_SERVER_ASK_H
#define CONFAB_SERVER_ASK_H

#include <jansson.h>

#include "app/server/bytes.h"
#include "engine/engine.h"
#include "engine/grammar.h"
#include "engine/model_file.h"

struct ask_prompt {
    const char *text; // borrowed; NULL: ids
    int32_t *ids;     // owned
    int n_ids;
};

struct ask {
    const char *model;       // borrowed, as all texts; NULL: not said
    const char *destination; // of a copy of it
    struct sampling sampling;
    enum reasoning reasoning;
    int max_tokens, n_answers;
    const char **stops; // owned, the texts borrowed
    int n_stops;
    struct engine_message *messages; // owned, with room for one more; texts borrowed, unless `parts` has them
    int n_messages;
    const char *prompt; // NULL: none, or ids
    const char *system; // before it, or before the messages; NULL: none
    bool raw;           // the prompt is continued, not answered
    int32_t *ids;       // owned
    int n_ids;
    struct ask_prompt *others; // owned: prompts beside that one, each continued on its own
    int n_others;
    int best_of;     // of so many answers those are wanted; 0: not said
    bool echo;       // the prompt is a part of the answer
    bool only_echo;  // and all of it
    bool ignore_end; // tokens that would end the answer do not
    char **parts;    // owned: texts that were put together
    int n_parts;
    bool sets_keep_alive;
    double keep_alive; // seconds that the model stays loaded when it is idle; < 0: until its memory is needed
    int context;       // tokens that the model's should have, if it can; 0: not said
    bool special;      // tokens that are written out in a text are meant
    enum grammar_kind grammar_kind;
    const json_t *grammar_source; // what answers match, borrowed; NULL: any text
    struct grammar *grammar;      // owned; NULL: there is no source, or it is not compiled
    bool stream, with_usage;
    bool logprobs;
    int top_logprobs;
};
static inline int ask_answers(const struct ask *a) { return a->n_answers * (1 + a->n_others); } // to all prompts
// A prompt that is not continued as it is becomes the user's message; what the system says comes first.
void ask_arrange(struct ask *a);
bool ask_compile_grammar(struct ask *a, struct status *st); // from any thread; that of some sources takes long
void ask_free(struct ask *a);

struct refusal {
    int status;       // of HTTP
    char field[96];   // "messages[2].role"; "": none
    const char *code; // "model_not_found"; NULL: none
    char text[512];   // a sentence; with the field's name, where there is one
};
// Returns false.
bool refuse(struct refusal *r, int status, const char *field, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
bool refuse_within(struct refusal *r, const char *name); // a field of `name` was; returns false
// Of a value that stands somewhere in the object. Returns whether it does.
bool refuse_value(struct refusal *r, const json_t *object, const json_t *value, const char *text);

#endif
