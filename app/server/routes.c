// Routes: the paths of the APIs, and how a request finds its way from one of them to the engine.
//
//   read ──► its model found ──► its grammar compiled, on a thread of its own ──► the engine's
//    ▲           └── waiting for it
//    └── again ◄────┘
#include <stdatomic.h>

#include "app/server/server_state.h"
#include "engine/metrics.h"

struct asking {
    struct server *server;
    struct exchange *exchange; // NULL: the client is gone
    atomic_bool unwanted;      // likewise, for the compiler
    const struct reply_form *form;
    void (*again)(struct server *s, struct exchange *x);
    json_t *object;             // owned
    struct server_model *model; // NULL: not known yet
    struct ask ask;             // read from the object
    struct status status;
};

// ---- what is asked ----

json_t *route_parse(const struct exchange *x, struct refusal *r) {
    json_error_t error;
    if (x->body_status == 413) refuse(r, 413, NULL, "the request is too large (maximum %u bytes)", HTTP_BODY_BYTES);
    else if (x->body_status) refuse(r, x->body_status, NULL, "too many large requests are waiting");
    if (x->body_status) return NULL;
    json_t *object = json_loadb(x->body, x->size, JSON_REJECT_DUPLICATES, &error);
    if (!object) refuse(r, 400, NULL, "not JSON: %.200s (line %d, column %d)", error.text, error.line, error.column);
    else if (!json_is_object(object)) refuse(r, 400, NULL, "not a JSON object");
    if (json_is_object(object)) return object;
    json_decref(object);
    return NULL;
}

static bool has_room(const struct server *s, const struct ask *a, struct refusal *r) {
    if (ask_answers(a) > SERVER_MOST_ANSWERS)
        return refuse(r, 400, "n", "too many answers to all prompts (maximum %d)", SERVER_MOST_ANSWERS);
    return s->n_answers + s->n_waiting + s->n_compiling + ask_answers(a) <= SERVER_MOST_ANSWERS ||
           refuse(r, 503, NULL, "too many requests are waiting (maximum %d answers)", SERVER_MOST_ANSWERS);
}

static bool check_prompt(const struct model_info *info, const struct ask_prompt *p, const char *field,
                         struct refusal *r) {
    if (p->text && !*p->text && !info->adds_bos) return refuse(r, 400, field, "is empty");
    for (int i = 0; i < p->n_ids; i++)
        if (p->ids[i] >= info->n_vocab)
            return refuse(r, 400, field, "%d is not a token of the model (0 to %d)", p->ids[i], info->n_vocab - 1);
    return true;
}

static bool check_prompts(const struct model_info *info, const struct ask *a, const char *field, struct refusal *r) {
    bool good = check_prompt(info, &(struct ask_prompt){a->prompt, a->ids, a->n_ids}, field, r);
    for (int i = 0; i < a->n_others && good; i++) good = check_prompt(info, &a->others[i], field, r);
    return good;
}

static bool check(const struct server *s, const struct server_model *m, const struct ask *a,
                  const struct reply_form *form, struct refusal *r) {
    const bool chosen = a->reasoning != REASONING_OFF && a->reasoning != (enum reasoning)s->settings.reasoning;
    if (!a->n_messages && !a->prompt && !a->n_ids) return refuse(r, 400, form->prompt, "is empty, or missing");
    if (!check_prompts(m->info, a, form->prompt, r)) return false;
    if (a->best_of && a->best_of != a->n_answers) return refuse(r, 400, "best_of", "not supported unless it is n");
    if (a->only_echo && !a->echo) return refuse(r, 400, "max_tokens", "may be 0 only with echo");
    if (a->top_logprobs && !a->logprobs) return refuse(r, 400, "top_logprobs", "needs logprobs to be true");
    if (chosen && !reasoning_fits(m->info, a->reasoning))
        return refuse(r, 400, form->effort, "the model does not offer a choice");
    return true;
}

struct request_params route_params(const struct server *s, const struct ask *a) {
    return (struct request_params){.messages = a->n_messages ? a->messages : NULL,
                                   .n_messages = a->n_messages,
                                   .raw = a->raw ? a->prompt : NULL,
                                   .ids = a->n_ids ? a->ids : NULL,
                                   .n_ids = a->n_ids,
                                   .sampling = a->sampling,
                                   .n_answers = a->n_answers,
                                   .reasoning = a->reasoning,
                                   .stops = a->stops,
                                   .n_stops = a->n_stops,
                                   .grammar = a->grammar,
                                   .max_tokens = a->max_tokens,
                                   .ignore_end = a->ignore_end,
                                   .score_prompt = a->echo && a->logprobs,
                                   .time_limit = s->settings.time_limit,
                                   .background = true};
}

// The one that the request will have, if it is known yet.
static struct server_model *model_of(const struct server *s, const json_t *object) {
    const char *name = json_string_value(json_object_get(object, "model"));
    return name ? server_model_known(s, name) : server_model_present(s);
}

static void begin(struct server *s, struct exchange *x, const struct reply_form *form, struct server_model *m,
                  struct ask *a) {
    ask_arrange(a);
    struct request_params *requests = xcalloc(1 + (size_t)a->n_others, sizeof *requests);
    for (int i = 0; i <= a->n_others; i++) {
        const struct ask_prompt *other = i ? &a->others[i - 1] : NULL;
        requests[i] = route_params(s, a);
        if (other) requests[i].raw = other->text, requests[i].ids = other->ids, requests[i].n_ids = other->n_ids;
        requests[i].conversation = s->last_conversation = s->last_conversation % CONVERSATION_MOST + 1;
    }
    if (a->sets_keep_alive) server_model_keep(m, a->keep_alive);
    generation_begin(s, x, form, m, requests, a);
    free(requests);
}

static bool unloads(const struct ask *a) { return a->sets_keep_alive && a->keep_alive == 0; }

// Without a prompt only the model is meant.
static void reply_idle(const struct server *s, struct exchange *x, const struct reply_form *form,
                       struct server_model *m, const struct ask *a) {
    struct refusal r;
    if (unloads(a) && m == s->lent) {
        refuse(&r, 400, "keep_alive", "the chat screen uses the model, too: it stays loaded");
        reply_refusal(x, form, &r);
        return;
    }
    if (a->sets_keep_alive) server_model_keep(m, a->keep_alive);
    reply_json(x, 200, form->idle(m, unloads(a) ? "unload" : "load"));
}

static void asking_free(struct asking *q) {
    ask_free(&q->ask);
    json_decref(q->object);
    free(q);
}

static void answer(struct asking *q) {
    struct refusal r;
    if (check(q->server, q->model, &q->ask, q->form, &r)) begin(q->server, q->exchange, q->form, q->model, &q->ask);
    else reply_refusal(q->exchange, q->form, &r);
}

// ---- grammars ----

static void compile(void *context) {
    struct asking *q = context;
    if (!atomic_load(&q->unwanted)) ask_compile_grammar(&q->ask, &q->status);
}

// One that is lent may have been withdrawn meanwhile.
static void compiled(void *context) {
    struct asking *q = context;
    struct refusal r = {0};
    q->server->n_compiling -= ask_answers(&q->ask);
    q->model->n_compiling--;
    if (q->exchange && q->status.code) {
        refuse_value(&r, q->object, q->ask.grammar_source, q->status.text);
        reply_refusal(q->exchange, q->form, &r);
    } else if (q->exchange) {
        if (q->model->client) answer(q);
        else q->again(q->server, q->exchange);
    }
    server_model_rest(q->model);
    asking_free(q);
}

static void abandon(void *owner) {
    struct asking *q = owner;
    q->exchange = NULL;
    atomic_store(&q->unwanted, true);
}

static void begin_compiling(struct asking *q) {
    q->exchange->owner = q, q->exchange->gone = abandon;
    q->server->n_compiling += ask_answers(&q->ask);
    server_model_use(q->model);
    q->model->n_compiling++;
    worker_do(q->server->compiler, compile, compiled, q);
}

static void generate(struct server *s, struct exchange *x, const struct reply_form *form, const struct field *fields,
                     void (*again)(struct server *s, struct exchange *x)) {
    struct refusal r = {0};
    struct asking *q = xcalloc(1, sizeof *q);
    *q = (struct asking){.server = s, .exchange = x, .form = form, .again = again, .object = route_parse(x, &r)};
    q->model = model_of(s, q->object);
    q->ask = (struct ask){.sampling = q->model && q->model->client ? q->model->sampling : s->settings.sampling,
                          .reasoning = (enum reasoning)s->settings.reasoning,
                          .stream = form->streams,
                          .raw = form->raw,
                          .max_tokens = form->max_tokens ? form->max_tokens : s->settings.max_tokens,
                          .n_answers = 1};
    const bool read =
        q->object && fields_read(q->object, fields, form->strict, &q->ask, &r) && has_room(s, &q->ask, &r);
    const struct ask *a = &q->ask;
    const enum model_answer model = read ? server_model_find(s, a, &q->model, &r) : MODEL_REFUSED;
    const bool idle = form->idle && !a->n_messages && !a->n_ids && (!a->prompt || !*a->prompt);
    const bool loaded = model == MODEL_READY || (idle && q->model && unloads(a)); // enough of it
    if (model == MODEL_READY && !idle && a->grammar_source) {
        begin_compiling(q);
        return;
    }
    if (model == MODEL_LATER && !loaded) server_model_wait(s, x, again);
    else if (model != MODEL_REFUSED && idle) reply_idle(s, x, form, q->model, a);
    else if (model == MODEL_READY) answer(q);
    else reply_refusal(x, form, &r);
    asking_free(q);
}

// ---- the routes ----

static void health(struct server *s, struct exchange *x) {
    (void)s;
    reply_json(x, 200, json_pack("{s:s}", "status", "ok"));
}

static void metrics(struct server *s, struct exchange *x) {
    struct figures_of *of = NULL;
    size_t size;
    int n = 0;
    for (const struct server_model *m = s->models; m; m = m->next) {
        of = xrealloc(of, (size_t)(n + 1) * sizeof *of);
        of[n++] = (struct figures_of){m->name, &m->figures, m->client ? engine_metrics(m->client) : NULL};
    }
    char *text = figures_write(of, n, &size);
    http_reply(x, 200, "text/plain; version=0.0.4; charset=utf-8", text, size);
    free(text), free(of);
}

// As llama.cpp's server tells them, of the present model.
static void props(struct server *s, struct exchange *x) {
    const struct server_model *model = server_model_present(s);
    if (!model || !model->client) {
        struct refusal r;
        refuse(&r, 503, NULL, "the model is not loaded at the moment");
        reply_refusal(x, &openai_chat, &r);
        return;
    }
    json_t *params = json_object();
    for (enum sampling_knob_id k = 0; k < KNOB_COUNT; k++)
        json_object_set_new(params, sampling_knobs[k].key, json_real(sampling_get(&model->sampling, k)));
    reply_json(x, 200,
               json_pack("{s:{s:i, s:o}, s:i, s:s, s:s}", "default_generation_settings", "n_ctx",
                         server_model_context(model), "params", params, "total_slots", SERVER_MOST_ANSWERS,
                         "model_alias", model->name, "chat_template_name", model->info->chat_template));
}

// Models of the list that can run, and others that are here.
static void openai_list(struct server *s, struct exchange *x) {
    if (!server_model_listed(s)) {
        server_model_wait(s, x, openai_list);
        return;
    }
    const struct model_list *list = &s->list;
    json_t *data = json_array();
    for (const struct server_model *m = s->models; m; m = m->next)
        if (server_model_is_here(s, m) && !server_model_entry(s, m->name))
            json_array_append_new(data, openai_model(m->name, m->loaded));
    for (int i = 0; i < list->count; i++)
        if (!list->entries[i].problem)
            json_array_append_new(data, openai_model(list->entries[i].name, list->entries[i].last_used));
    reply_json(x, 200, json_pack("{s:s, s:o}", "object", "list", "data", data));
}

static void openai_retrieve(struct server *s, struct exchange *x) {
    const char *name = x->path + strlen("/v1/models/");
    const struct server_model *m = server_model_known(s, name);
    struct refusal r;
    if (m && server_model_is_here(s, m)) {
        reply_json(x, 200, openai_model(m->name, m->loaded));
    } else if (!server_model_listed(s)) {
        server_model_wait(s, x, openai_retrieve);
    } else if (server_model_entry(s, name)) {
        const struct model_entry *e = server_model_entry(s, name);
        reply_json(x, 200, openai_model(e->name, e->last_used));
    } else {
        server_model_refuse(name, &r);
        reply_refusal(x, &openai_chat, &r);
    }
}

static void openai_ask_chat(struct server *s, struct exchange *x) {
    generate(s, x, &openai_chat, openai_chat_fields, openai_ask_chat);
}

static void openai_ask_completion(struct server *s, struct exchange *x) {
    generate(s, x, &openai_completions, openai_completions_fields, openai_ask_completion);
}

static void openai_ask_response(struct server *s, struct exchange *x) {
    generate(s, x, &openai_responses, openai_responses_fields, openai_ask_response);
}

static void anthropic_ask(struct server *s, struct exchange *x) {
    generate(s, x, &anthropic_messages, anthropic_fields, anthropic_ask);
}

static void ollama_root(struct server *s, struct exchange *x) {
    static const char text[] = "Ollama is running";
    (void)s;
    http_reply(x, 200, "text/plain; charset=utf-8", text, sizeof text - 1);
}

static void ollama_version(struct server *s, struct exchange *x) {
    (void)s;
    reply_json(x, 200, json_pack("{s:s}", "version", OLLAMA_VERSION));
}

static void ollama_tags(struct server *s, struct exchange *x) {
    if (!server_model_listed(s)) {
        server_model_wait(s, x, ollama_tags);
        return;
    }
    const struct model_list *list = &s->list;
    json_t *models = json_array();
    for (const struct server_model *m = s->models; m; m = m->next)
        if (m->client && !server_model_entry(s, m->name)) json_array_append_new(models, ollama_running(m));
    for (int i = 0; i < list->count; i++)
        if (!list->entries[i].problem) json_array_append_new(models, ollama_tag(&list->entries[i]));
    reply_json(x, 200, json_pack("{s:o}", "models", models));
}

static void ollama_ps(struct server *s, struct exchange *x) {
    json_t *models = json_array();
    for (const struct server_model *m = s->models; m; m = m->next)
        if (m->client) json_array_append_new(models, ollama_running(m));
    reply_json(x, 200, json_pack("{s:o}", "models", models));
}

static void ollama_ask_chat(struct server *s, struct exchange *x) {
    generate(s, x, &ollama_chat, ollama_chat_fields, ollama_ask_chat);
}

static void ollama_ask_generate(struct server *s, struct exchange *x) {
    generate(s, x, &ollama_generate, ollama_generate_fields, ollama_ask_generate);
}

static void unsupported(struct server *s, struct exchange *x) {
    struct refusal r;
    (void)s;
    refuse(&r, 400, NULL, "%.200s is not supported", x->path);
    reply_refusal(x, route_form(x->path), &r);
}

// A path that ends with a slash is the beginning of others.
static const struct route routes[] = {
    {"GET", "/health", health},
    {"GET", "/metrics", metrics},
    {"GET", "/props", props},
    {"POST", "/tokenize", tokens_encode},
    {"POST", "/detokenize", tokens_decode},
    {"GET", "/v1/models", openai_list},
    {"GET", "/v1/models/", openai_retrieve},
    {"POST", "/v1/chat/completions", openai_ask_chat},
    {"POST", "/v1/completions", openai_ask_completion},
    {"POST", "/v1/responses", openai_ask_response},
    {"POST", "/v1/embeddings", unsupported},
    {"POST", "/v1/messages", anthropic_ask},
    {"POST", "/v1/messages/count_tokens", tokens_count},
    {"GET", "/", ollama_root},
    {"GET", "/api/version", ollama_version},
    {"GET", "/api/tags", ollama_tags},
    {"GET", "/api/ps", ollama_ps},
    {"POST", "/api/show", ollama_show},
    {"POST", "/api/chat", ollama_ask_chat},
    {"POST", "/api/generate", ollama_ask_generate},
    {"POST", "/api/embed", unsupported},
    {"POST", "/api/embeddings", unsupported},
    {"POST", "/api/pull", unsupported},
    {"POST", "/api/push", unsupported},
    {"POST", "/api/create", unsupported},
    {"POST", "/api/copy", ollama_copy},
    {"DELETE", "/api/delete", ollama_delete},
};

const struct reply_form *route_form(const char *path) {
    if (!strncmp(path, "/api/", 5)) return &ollama_chat;
    return strncmp(path, "/v1/messages", 12) ? &openai_chat : &anthropic_messages;
}

static bool is_at(const struct route *route, const char *path) {
    const size_t size = strlen(route->path);
    if (size > 1 && route->path[size - 1] == '/') return !strncmp(path, route->path, size) && path[size];
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
