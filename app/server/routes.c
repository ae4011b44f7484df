// Routes: the paths of the APIs, and how a request finds its way from one of them to the engine.
#include "app/server/server_state.h"

// ---- what is told ----

static void tell_health(struct server *s, struct exchange *x) {
    (void)s;
    reply_json(x, 200, json_pack("{s:s}", "status", "ok"));
}

static void tell_models(struct server *s, struct exchange *x) {
    reply_json(x, 200, json_pack("{s:s, s:[o]}", "object", "list", "data", openai_model(&s->model)));
}

static struct server_model *find_model(struct server *s, const char *name, struct refusal *r) {
    if (!name || !strcmp(name, s->model.name)) return &s->model;
    refuse(r, 404, "model", "no model '%.200s' (GET /v1/models lists them)", name);
    r->code = "model_not_found";
    return NULL;
}

static void tell_model(struct server *s, struct exchange *x) {
    struct refusal r;
    const struct server_model *m = find_model(s, x->path + strlen("/v1/models/"), &r);
    if (m) reply_json(x, 200, openai_model(m));
    else reply_refusal(x, &openai_chat, &r);
}

// ---- what is asked ----

static json_t *parse(const struct exchange *x, struct refusal *r) {
    json_error_t error;
    if (x->size > HTTP_BODY_BYTES) {
        refuse(r, 413, NULL, "the request is too large (maximum %u bytes)", HTTP_BODY_BYTES);
        return NULL;
    }
    json_t *object = json_loadb(x->body, x->size, JSON_REJECT_DUPLICATES, &error);
    if (!object) refuse(r, 400, NULL, "not JSON: %.200s (line %d, column %d)", error.text, error.line, error.column);
    else if (!json_is_object(object)) refuse(r, 400, NULL, "not a JSON object");
    if (json_is_object(object)) return object;
    json_decref(object);
    return NULL;
}

static bool check(const struct server *s, const struct ask *a, const struct server_model *m, struct refusal *r) {
    if (!a->n_messages) return refuse(r, 400, "messages", "at least one message is needed");
    if (a->top_logprobs && !a->logprobs) return refuse(r, 400, "top_logprobs", "needs logprobs to be true");
    const bool chosen = a->reasoning != REASONING_OFF && a->reasoning != (enum reasoning)s->settings.reasoning;
    if (chosen && !reasoning_fits(m->info, a->reasoning))
        return refuse(r, 400, "reasoning_effort", "the model does not offer a choice");
    return s->n_answers + a->n_answers <= SERVER_MOST_ANSWERS ||
           refuse(r, 503, NULL, "too many requests are waiting (maximum %d answers)", SERVER_MOST_ANSWERS);
}

static struct request_params params_of(struct server *s, const struct ask *a) {
    s->last_conversation = s->last_conversation % CONVERSATION_MOST + 1;
    return (struct request_params){.conversation = s->last_conversation,
                                   .messages = a->messages,
                                   .n_messages = a->n_messages,
                                   .sampling = a->sampling,
                                   .n_answers = a->n_answers,
                                   .reasoning = a->reasoning,
                                   .stops = a->stops,
                                   .n_stops = a->n_stops,
                                   .max_tokens = a->max_tokens,
                                   .time_limit = s->settings.time_limit};
}

static void generate(struct server *s, struct exchange *x, const struct reply_form *form, const struct field *fields) {
    struct refusal r = {0};
    struct ask a = {.sampling = s->settings.sampling,
                    .reasoning = (enum reasoning)s->settings.reasoning,
                    .max_tokens = s->settings.max_tokens,
                    .n_answers = 1};
    json_t *object = parse(x, &r);
    struct server_model *m = object && fields_read(object, fields, true, &a, &r) ? find_model(s, a.model, &r) : NULL;
    if (m && check(s, &a, m, &r)) {
        const struct request_params params = params_of(s, &a);
        generation_begin(s, x, form, m, &params, &a);
    } else {
        reply_refusal(x, form, &r);
    }
    ask_free(&a);
    json_decref(object);
}

static void openai_complete_chat(struct server *s, struct exchange *x) {
    generate(s, x, &openai_chat, openai_chat_fields);
}

// ---- the table ----

// A path that ends with a slash is the beginning of others.
static const struct route routes[] = {
    {"GET", "/health", tell_health},
    {"GET", "/v1/models", tell_models},
    {"GET", "/v1/models/", tell_model},
    {"POST", "/v1/chat/completions", openai_complete_chat},
};

static bool is_at(const struct route *route, const char *path) {
    const size_t size = strlen(route->path);
    if (route->path[size - 1] == '/') return !strncmp(path, route->path, size) && path[size];
    return !strcmp(path, route->path);
}

const struct route *route_find(const struct exchange *x, struct refusal *r) {
    const char *method = strcmp(x->method, "HEAD") ? x->method : "GET", *other = NULL;
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        if (!is_at(&routes[i], x->path)) continue;
        if (!strcmp(routes[i].method, method)) return &routes[i];
        other = routes[i].method;
    }
    if (other) refuse(r, 405, NULL, "%.200s: expected %s, got %.20s", x->path, other, x->method);
    else refuse(r, 404, NULL, "%.200s: no such path", x->path);
    return NULL;
}
