// The server's insides: server.c (exchanges and the engines' events), server_model.c and server_pool.c (which model is
// meant, and which are loaded), generation.c (what a client is answered), and the APIs: a table of fields that they
// read, and a form in which they reply.
#ifndef CONFAB_SERVER_SERVER_STATE_H
#define CONFAB_SERVER_SERVER_STATE_H

#include <jansson.h>

#include "app/models/model_loader.h"
#include "app/models/models_lookup.h"
#include "app/server/ask.h"
#include "app/server/fields.h"
#include "app/server/figures.h"
#include "app/server/guard.h"
#include "app/server/http.h"
#include "app/server/server.h"
#include "app/session/loop.h"
#include "engine/base/worker.h"

#define SERVER_MOST_ANSWERS 512 // that are waited for; further ones are told to come again

// A model that clients know by its name, loaded or not.
struct server_model {
    char *name;
    char *path;                   // NULL: the built-in one
    struct engine_client *client; // NULL: it is not loaded, and has no info or file
    const struct model_info *info;
    const struct model_file *file;
    struct model_memory memory; // that it takes
    struct loaded_model own;    // what all that belongs to; zero: it is lent, or not loaded
    struct sampling sampling;   // of requests that do not say
    struct figures figures;
    int64_t loaded;        // seconds since 1970
    int n_uses;            // answers, and jobs of the worker and the compiler
    int n_compiling;       // of these, jobs of the compiler, which touch neither engine nor file
    uint64_t used;         // clock_ns when the latest of them began or ended
    uint64_t keep;         // ns that it stays loaded after that; KEEP_FOREVER: until room is needed
    bool leaving;          // no more uses begin: it is unloaded when they have ended
    int context;           // tokens of a conversation for which room was wanted when it was loaded; 0: not said
    struct status failure; // why it could not be loaded, until those who waited for it know
    bool gone;             // since its file is, and no list has it: it is forgotten when they know
    struct server_model *next;
};
#define KEEP_FOREVER UINT64_MAX

struct wanted {                 // by a request
    struct server_model *model; // NULL: the list of models
    int context;                // of at least so many tokens, if the model can; 0: any
};

struct coming {                 // a model that is to be loaded
    struct server_model *model; // NULL: none is
    int context;                // tokens of a conversation that there has to be room for; 0: as usual
    bool measuring, measured;
    bool modest;                       // there is no room for such a context: it gets along with less
    struct model_memory least, memory; // that it takes: with one conversation; with as many as there is room for
    struct model_loader *loader;       // NULL: not loading yet
    struct status lost;                // why its file cannot be opened, which is gone: the machine is searched for it
};

struct server {
    struct server_params params;
    struct settings settings; // what requests do not say
    struct loop *loop;
    struct http *http;
    struct guard guard;
    struct worker *worker;   // for what takes long and is not the engine's
    struct worker *compiler; // of grammars, so that what the worker has does not wait for them
    int engines_fd;          // epoll of the clients of models that are loaded
    int stop_fd;
    bool stopped;
    uint64_t started, last_conversation; // started: seconds since 1970
    struct generation *generations;
    int n_answers;   // of all of them, that have not ended
    int n_compiling; // of requests whose grammars are compiled

    // server_model.c
    int models_fd;                // eventfd of search and loader
    struct models_lookup *lookup; // NULL: not searching
    struct model_list list;
    uint64_t looked; // clock_ns when the latest search for the models began, or ended; 0: never
    struct waiting *waiting;
    int n_waiting;        // of them, whose clients are there
    struct wanted wanted; // by the latest that was told to wait

    // server_pool.c
    struct server_model *models;
    struct server_model *named; // by the settings; NULL: none is
    struct server_model *lent;  // NULL: none is
    struct coming coming;
    int n_closing;      // that are being unloaded
    uint64_t most_free; // bytes of memory
};

// ---- server_model.c: which model is meant, and who waits for it ----

bool server_model_open(struct server *s, struct status *st);
void server_model_close(struct server *s);
void server_model_hear(struct server *s); // of search and loader that there is something to look at
void server_model_turn(struct server *s);
uint64_t server_model_due(const struct server *s); // clock_ns; 0: never

enum model_answer { MODEL_READY, MODEL_LATER, MODEL_REFUSED };
// The one whose name is in what is asked; without one, the present one. LATER: server_model_wait brings the exchange
// back. *out is set if the model is known.
enum model_answer server_model_find(struct server *s, const struct ask *a, struct server_model **out,
                                    struct refusal *r);
void server_model_wait(struct server *s, struct exchange *x, void (*handle)(struct server *s, struct exchange *x));
bool server_model_is_awaited(const struct server *s, const struct server_model *m);

bool server_model_listed(struct server *s); // false: the machine is being searched, and server_model_wait waits for it
void server_model_look_again(
    struct server *s); // files have changed: it is searched, and server_model_wait waits for it
const struct model_entry *server_model_entry(const struct server *s, const char *name); // NULL: not in the list
void server_model_refuse(const char *name, struct refusal *r);                          // an unknown one

struct server_model *server_model_add(struct server *s, const char *name, const char *path);
void server_model_remove(struct server *s, struct server_model *m);                // one that nobody uses or waits for
struct server_model *server_model_known(const struct server *s, const char *name); // NULL: nobody has asked for it
bool server_model_is_used(const struct server *s, const struct server_model *m); // or waited for, or meant without name
bool server_model_is_here(const struct server *s, const struct server_model *m); // even if no list has it
void server_model_set_path(struct server_model *m, const char *path);            // copied
struct server_model *server_model_present(const struct server *s); // where a request names none; NULL: there is none

void server_model_begin(struct server *s, struct server_model *m); // it has just been loaded, or lent
void server_model_end(struct server *s, struct server_model *m);   // its client is about to be closed
void server_model_keep(struct server_model *m, double seconds);    // when it is idle; < 0: until its memory is needed
int server_model_context(const struct server_model *m);            // tokens of a conversation, of one that is loaded
// A use of one that is loaded, during which it stays so.
void server_model_use(struct server_model *m);
void server_model_rest(struct server_model *m);

// A model of somebody else's engine: the present one, which is never unloaded here; one of its name that was loaded is,
// and its answers end with an error. Name and path are copied; engine, info and file are borrowed until it is
// withdrawn. memory: that the engine takes; NULL: unknown. False: the engine gives no client.
bool server_model_lend(struct server *s, struct engine *engine, const char *name, const char *path,
                       const struct model_info *info, const struct model_file *file, const struct model_memory *memory,
                       struct status *st);
// Its answers end with an error; afterwards nothing here uses its engine or file. Nothing happens if none is lent.
void server_model_withdraw(struct server *s);

// ---- server_pool.c: which models are loaded ----

void server_pool_load(struct server *s, const struct wanted *w); // begins to; nothing else may be coming
void server_pool_unload(struct server *s, struct server_model *m);
void server_pool_turn(struct server *s);
uint64_t server_pool_due(const struct server *s); // clock_ns; 0: never
// Of memory, that models hold which nobody uses; and unloads these at once.
uint64_t server_pool_idle_bytes(const struct server *s);
void server_pool_give_back(struct server *s);
void server_pool_close(struct server *s);

// ---- generation.c: a request to the engine, and what comes of it ----

struct generated {         // an answer
    struct bytes texts[2]; // by channel
    json_t *logprobs;      // a list, owned, behind an echo's; NULL: none
    int n_tokens, n_thinking;
    uint64_t last; // clock_ns of its latest token; 0: none yet
    int offset;    // in characters, of the text that follows
    int n_parts;   // of its reply that have begun: thinking, text; the last one is of `channel`
    enum channel channel;
    bool any;   // of it was streamed
    bool ended; // for `reason`
    enum finish_reason reason;
    const char *stop; // which of the generation's ended it; NULL: none of them
};

struct generated_prompt {
    uint64_t request;
    int n_tokens, n_reused;
    struct bytes echo; // its text; empty: not wanted
};

struct generation {
    struct server *server;
    struct exchange *exchange; // NULL: nobody waits for it any more
    const struct reply_form *form;
    struct server_model *model;
    uint64_t number; // of the server's
    enum request_state state;
    int64_t created;                         // seconds since 1970
    uint64_t asked, submitted, first, ended; // clock_ns; asked: before its model was loaded; first: text; 0: not yet
    uint64_t heard;                          // likewise, when the client last heard something, or asked
    bool stream, with_usage, logprobs, scored, only_echo, begun; // scored: the prompts are
    int top_logprobs;
    int n_events; // of a stream that numbers them
    char **stops; // owned
    int n_stops;
    struct generated_prompt *prompts; // [n_prompts], a request to the engine each
    int n_prompts, n_each;            // n_each: answers to each
    int n_prompt, n_reused;           // tokens, of all
    int n_answers, n_open;
    struct generated *answers; // [n_answers], of the first prompt first
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
    json_t *(*idle)(const struct server_model *m, const char *reason); // the reply to a request without a prompt; NULL:
                                                                       // refused
    void (*piece)(struct generation *g, int answer, const struct engine_event *e); // of a stream
    void (*ping)(struct generation *g); // to a stream in which nothing has come for a while
    void (*end_answer)(struct generation *g, int answer);
    void (*end)(struct generation *g);
    json_t *(*whole)(const struct generation *g); // reply, once all have ended
    json_t *(*error)(const struct refusal *r);
    void (*write)(struct exchange *x, json_t *object); // to a stream; takes it
};

// Submits what is asked, for this exchange: a request for each prompt.
void generation_begin(struct server *s, struct exchange *x, const struct reply_form *form, struct server_model *m,
                      const struct request_params *requests, const struct ask *a);
int generation_prompt(const struct generation *g, uint64_t request); // of the engine's; −1: it is none of g's
void generation_take(struct server *s, const struct server_model *m, const struct engine_event *e);
// Clients that wait long for a prompt to be read hear from time to time that somebody is there.
uint64_t generations_due(const struct server *s); // clock_ns; 0: nobody waits
void generations_ping(struct server *s);
// Those of a model, or of all if it is NULL, and tells their clients.
void generations_stop(struct server *s, const struct server_model *m, const char *why);
struct generation *generation_of(const struct server *s, const struct exchange *x); // NULL: it has none
void generation_cancel(struct generation *g, const char *why);                      // and tells its client

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

// ---- ollama.c, ollama_models.c, ollama_files.c ----

#define OLLAMA_VERSION "0.6.4" // whose API this is

void ollama_time(int64_t ns, char out[40]); // since 1970
extern const struct reply_form ollama_chat, ollama_generate;
extern const struct field ollama_chat_fields[], ollama_generate_fields[];
extern const struct field ollama_name_fields[]; // of what asks for a model by its name alone
json_t *ollama_tag(const struct model_entry *e);
json_t *ollama_running(const struct server_model *m);
void ollama_show(struct server *s, struct exchange *x);
void ollama_delete(struct server *s, struct exchange *x);
void ollama_copy(struct server *s, struct exchange *x);

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
