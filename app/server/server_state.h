// The server's insides: server.c (exchanges and the engine's events), generation.c (what a client is answered), and the
// APIs: a table of fields that they read, and a form in which they reply.
#ifndef CONFAB_SERVER_SERVER_STATE_H
#define CONFAB_SERVER_SERVER_STATE_H

#include <jansson.h>

#include "app/server/ask.h"
#include "app/server/fields.h"
#include "app/server/figures.h"
#include "app/server/guard.h"
#include "app/server/http.h"
#include "app/server/server.h"
#include "app/session/loop.h"
#include "engine/base/worker.h"

#define SERVER_MOST_ANSWERS 512 // that are waited for; further ones are told to come again

struct server_model {
    char *name;
    char *path; // NULL: the built-in one
    const struct model_file *file;
    const struct model_info *info;
    struct engine_client *client; // NULL: it is not loaded
    int64_t loaded;               // seconds since 1970
};

struct server {
    struct server_params params;
    struct settings settings; // what requests do not say
    struct loop *loop;
    struct http *http;
    struct guard guard;
    struct worker *worker; // for what takes long and is not the engine's
    struct figures figures;
    int stop_fd;
    bool stopped;
    uint64_t started, last_conversation; // started: seconds since 1970
    struct generation *generations;
    int n_answers; // of all of them, that have not ended

    struct server_model model; // the present one
    char *chosen;              // the one that is loaded in its place; NULL: none
    char *failed;              // one that could not be, until those who wait for it know; NULL: none
    struct status failure;
    bool switching, retries; // somebody waits for another model; those who wait may try again
    uint64_t looked;         // clock_ns when the models were last looked for; 0: never
    struct waiting *waiting;
    int n_waiting;
};

// ---- server_model.c ----

bool server_model_open(struct server *s, struct status *st);
void server_model_close(struct server *s);
void server_model_turn(struct server *s);

enum model_answer { MODEL_READY, MODEL_LATER, MODEL_REFUSED };
// name: as a client has it; NULL: the present one. LATER: server_model_wait brings the exchange back.
enum model_answer server_model_find(struct server *s, const char *name, struct refusal *r);
void server_model_wait(struct server *s, struct exchange *x, void (*handle)(struct server *s, struct exchange *x));
void server_model_free_waiting(struct server *s);

bool server_model_listed(struct server *s); // false: models are being looked for
bool server_model_is_current(const struct server *s, const char *name);
const struct model_entry *server_model_entry(const struct server *s, const char *name); // NULL: not in the list
void server_model_refuse(const char *name, struct refusal *r);                          // an unknown one

// ---- generation.c: a request to the engine, and what comes of it ----

struct generated {         // an answer
    struct bytes texts[2]; // by channel
    json_t *logprobs;      // a list, owned; NULL: none
    int n_tokens, n_thinking;
    uint64_t last; // clock_ns of its latest token; 0: none yet
    int offset;    // in characters, of the text that follows
    int n_parts;   // of its reply that have begun: thinking, text; the last one is of `channel`
    enum channel channel;
    bool any;   // of it was streamed
    bool ended; // for `reason`
    enum finish_reason reason;
};

struct generation {
    struct server *server;
    struct exchange *exchange; // NULL: nobody waits for it any more
    const struct reply_form *form;
    struct server_model *model;
    uint64_t request;
    int64_t created;                  // seconds since 1970
    uint64_t submitted, first, ended; // clock_ns; first: text; 0: not yet
    uint64_t heard;                   // likewise, when the client last heard something, or asked
    bool stream, with_usage, logprobs, begun;
    int top_logprobs;
    int n_events;           // of a stream that numbers them
    char *echo;             // owned; NULL: none
    int n_prompt, n_reused; // tokens
    int n_answers, n_open;
    struct generated *answers; // [n_answers]
    struct generation *next;
};

// How an API puts what is generated.
struct reply_form {
    const char *prompt; // the field that has it
    const char *effort; // the field that has the reasoning
    bool strict;        // unknown fields are refused
    bool streams, raw;  // if the request does not say
    bool keeps;         // the texts of streams, too
    int max_tokens;     // likewise; 0: as the settings have it
    const char *stream_type;
    json_t *(*idle)(const struct server_model *m); // the reply to a request without a prompt; NULL: refused
    void (*piece)(struct generation *g, int answer, const struct engine_event *e); // of a stream
    void (*ping)(struct generation *g); // to a stream in which nothing has come for a while
    void (*end_answer)(struct generation *g, int answer);
    void (*end)(struct generation *g);
    json_t *(*whole)(const struct generation *g); // reply, once all have ended
    json_t *(*error)(const struct refusal *r);
    void (*write)(struct exchange *x, json_t *object); // to a stream; takes it
};

// Submits what is asked, for this exchange.
void generation_begin(struct server *s, struct exchange *x, const struct reply_form *form, struct server_model *m,
                      const struct request_params *p, const struct ask *a);
void generation_take(struct server *s, const struct engine_event *e);
// Clients that wait long for a prompt to be read hear from time to time that somebody is there.
uint64_t generations_due(const struct server *s); // clock_ns; 0: nobody waits
void generations_ping(struct server *s);
void generations_stop(struct server *s, const char *why); // and tells their clients

// ---- reply.c ----

void reply_json(struct exchange *x, int status, json_t *object); // takes it
void reply_refusal(struct exchange *x, const struct reply_form *form, const struct refusal *r);
void reply_event(struct exchange *x, json_t *object); // of a stream of server-sent events; takes it
void reply_comment(struct generation *g);             // likewise, of no meaning
void reply_line(struct exchange *x, json_t *object);  // of a stream of JSON lines; takes it
json_t *reply_text(const char *text, size_t size);    // invalid UTF-8 is replaced

// ---- tokens.c: texts to token ids and back, on the worker ----

void tokens_encode(struct server *s, struct exchange *x);
void tokens_decode(struct server *s, struct exchange *x);
void tokens_count(struct server *s, struct exchange *x); // of messages, as Anthropic's API does

// ---- openai.c: what its APIs have in common ----

// Of OpenAI's object `kind` with an id that begins with `prefix`; takes the choices.
json_t *openai_object(const struct generation *g, const char *prefix, const char *kind, json_t *choices);
json_t *openai_usage(const struct generation *g);
const char *openai_reason(const struct generated *answer);
json_t *openai_error(const struct refusal *r);
void openai_write_end(struct generation *g, json_t *last); // takes the chunk with the usage
field_reader openai_stream_options, openai_response_format;
json_t *openai_model(const char *name, int64_t created);

extern const struct reply_form openai_chat, openai_completions, openai_responses;
extern const struct field openai_fields[];         // of all OpenAI's APIs
extern const struct field openai_choice_fields[];  // of those that answer with choices, those of all included
extern const struct field openai_account_fields[]; // of chats and responses: what concerns a service, and tools
extern const struct field openai_chat_fields[], openai_completions_fields[], openai_responses_fields[];

// ---- anthropic.c ----

extern const struct reply_form anthropic_messages;
extern const struct field anthropic_fields[];

// ---- ollama.c, ollama_models.c ----

#define OLLAMA_VERSION "0.6.4" // whose API this is

void ollama_time(int64_t ns, char out[40]); // since 1970
extern const struct reply_form ollama_chat, ollama_generate;
extern const struct field ollama_chat_fields[], ollama_generate_fields[];
json_t *ollama_tag(const struct model_entry *e);
json_t *ollama_running(const struct server_model *m);
void ollama_show(struct server *s, struct exchange *x);

// ---- routes.c ----

json_t *route_parse(const struct exchange *x, struct refusal *r); // the object of its body; NULL: refused

struct request_params route_params(const struct server *s, const struct ask *a); // without a conversation

struct route {
    const char *method, *path;
    void (*handle)(struct server *s, struct exchange *x);
};
const struct route *route_find(const struct exchange *x, struct refusal *r); // NULL: refused
const struct reply_form *route_form(const char *path);                       // of errors, unknown paths included

#endif
