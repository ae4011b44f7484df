// The server's insides: server.c (exchanges and the engine's events), generation.c (what a client is answered), and the
// APIs: a table of fields that they read, and a form in which they reply.
#ifndef CONFAB_SERVER_SERVER_STATE_H
#define CONFAB_SERVER_SERVER_STATE_H

#include <jansson.h>

#include "app/server/ask.h"
#include "app/server/fields.h"
#include "app/server/guard.h"
#include "app/server/http.h"
#include "app/server/server.h"
#include "app/session/loop.h"

#define SERVER_MOST_ANSWERS 512 // that are waited for; further ones are told to come again

struct server_model {
    const char *name;
    struct model_file *file;
    const struct model_info *info;
    struct engine_client *client;
    int64_t loaded; // seconds since 1970
};

struct server {
    struct server_params params;
    struct settings settings; // what requests do not say
    struct loop *loop;
    struct http *http;
    struct guard guard;
    int stop_fd;
    bool stopped;
    struct server_model model;
    uint64_t started, last_conversation; // started: seconds since 1970
    struct generation *generations;
    int n_answers; // of all of them, that have not ended
};

// ---- generation.c: a request to the engine, and what comes of it ----

struct generated {         // an answer
    struct bytes texts[2]; // by channel
    json_t *logprobs;      // a list, owned; NULL: none
    int n_tokens, n_thinking;
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
    int64_t created; // seconds since 1970
    bool stream, with_usage, logprobs, begun;
    int top_logprobs;
    int n_prompt, n_reused; // tokens
    int n_answers, n_open;
    struct generated *answers; // [n_answers]
    struct generation *next;
};

// How an API puts what is generated.
struct reply_form {
    const char *stream_type;
    void (*piece)(struct generation *g, int answer, const struct engine_event *e); // of a stream
    void (*end_answer)(struct generation *g, int answer);
    void (*end)(struct generation *g);
    json_t *(*whole)(const struct generation *g); // reply, once all have ended
    json_t *(*error)(const struct refusal *r);
    void (*write_error)(struct exchange *x, json_t *error); // in a stream that has begun; takes it
};

// Submits what is asked, for this exchange.
void generation_begin(struct server *s, struct exchange *x, const struct reply_form *form, struct server_model *m,
                      const struct request_params *p, const struct ask *a);
void generation_take(struct server *s, const struct engine_event *e);
void generation_abandon(struct generation *g); // nobody waits for it
void generations_free(struct server *s);

// ---- reply.c ----

void reply_json(struct exchange *x, int status, json_t *object); // takes it
void reply_refusal(struct exchange *x, const struct reply_form *form, const struct refusal *r);
void reply_event(struct exchange *x, json_t *object); // of a stream of server-sent events; takes it
json_t *reply_text(const char *text, size_t size);    // invalid UTF-8 is replaced

// ---- the APIs ----

extern const struct reply_form openai_chat;
extern const struct field openai_chat_fields[];
json_t *openai_model(const struct server_model *m);

// ---- routes.c ----

struct route {
    const char *method, *path;
    void (*handle)(struct server *s, struct exchange *x);
};
const struct route *route_find(const struct exchange *x, struct refusal *r); // NULL: refused

#endif
