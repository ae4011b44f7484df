// Texts to token ids and back, as the servers of llama.cpp and vLLM do it. A long text takes long: the worker has it.
#include "app/server/server_state.h"

struct job {
    const struct job_kind *kind;
    struct exchange *exchange;  // NULL: the client is gone
    struct server_model *model; // that it uses; NULL: none yet
    json_t *object;             // what was asked; owned
    struct ask ask;             // read from it
    struct request_params params;
    int32_t *ids; // the result, or one of these
    char *text;
    size_t n;
    struct status status;
};

struct job_kind {
    const struct field *fields;
    const char *needed; // one of them
    const struct reply_form *form;
    void (*handle)(struct server *s, struct exchange *x);
    void (*work)(void *job);
    void (*reply)(const struct job *j);
};

// ---- fields ----

static bool read_tokens(const json_t *value, const char *name, struct ask *a, struct refusal *r) {
    size_t i;
    json_t *id;
    if (!json_is_array(value)) return refuse(r, 400, name, "expected a list of token ids");
    a->ids = xcalloc(json_array_size(value) + 1, sizeof *a->ids);
    json_array_foreach((json_t *)value, i, id) {
        const json_int_t number = json_integer_value(id);
        if (!json_is_integer(id) || number < 0 || number > INT32_MAX)
            return refuse(r, 400, name, "item %zu is not a token id", i);
        a->ids[a->n_ids++] = (int32_t)number;
    }
    return true;
}

static const struct field encode_fields[] = {
    {"model", FIELD_TEXT, .place = offsetof(struct ask, model)},
    {"content", FIELD_TEXT, .place = offsetof(struct ask, prompt)},
    {"prompt", FIELD_TEXT, .place = offsetof(struct ask, prompt)},
    {"parse_special", FIELD_FLAG, .place = offsetof(struct ask, special)},
    {.name = "add_special", .kind = FIELD_REFUSED},
    {.name = "add_special_tokens", .kind = FIELD_REFUSED},
    {.name = "with_pieces", .kind = FIELD_REFUSED},
    {0},
};

static const struct field decode_fields[] = {
    {"model", FIELD_TEXT, .place = offsetof(struct ask, model)},
    {"tokens", FIELD_READ, .read = read_tokens},
    {0},
};

// ---- on the worker ----

static void encode(void *context) {
    struct job *j = context;
    j->ids = model_file_tokenize(j->model->file, j->ask.prompt, strlen(j->ask.prompt), j->ask.special, &j->n);
}

static void decode(void *context) {
    struct job *j = context;
    j->text = model_file_detokenize(j->model->file, j->ask.ids, (size_t)j->ask.n_ids, &j->n, &j->status);
}

static void count(void *context) {
    struct job *j = context;
    struct prompt_tokens prompt = {0};
    if (!engine_prompt(j->model->client, &j->params, &prompt))
        status_fail(&j->status, STATUS_UNSUPPORTED, "the engine does not tell");
    j->n = (size_t)prompt.n;
    free(prompt.tokens);
}

// ---- replies ----

static void reply_ids(const struct job *j) {
    json_t *tokens = json_array();
    for (size_t i = 0; i < j->n; i++) json_array_append_new(tokens, json_integer(j->ids[i]));
    reply_json(j->exchange, 200, json_pack("{s:o, s:I}", "tokens", tokens, "count", (json_int_t)j->n));
}

static void reply_content(const struct job *j) {
    json_t *text = reply_text(j->text, j->n);
    reply_json(j->exchange, 200, json_pack("{s:O, s:o}", "content", text, "prompt", text));
}

static void reply_count(const struct job *j) {
    reply_json(j->exchange, 200, json_pack("{s:I}", "input_tokens", (json_int_t)j->n));
}

static void done(void *context) {
    struct job *j = context;
    struct refusal r;
    if (j->exchange && j->status.code) {
        refuse(&r, 400, j->kind->needed, "%s", j->status.text);
        reply_refusal(j->exchange, j->kind->form, &r);
    } else if (j->exchange) {
        j->kind->reply(j);
    }
    if (j->model) server_model_rest(j->model);
    ask_free(&j->ask);
    json_decref(j->object);
    free(j->ids), free(j->text), free(j);
}

// ---- requests ----

static void abandon(void *job) { ((struct job *)job)->exchange = NULL; }

static void begin(struct server *s, struct exchange *x, const struct job_kind *kind) {
    struct refusal r = {0};
    struct job *j = xcalloc(1, sizeof *j);
    *j = (struct job){.kind = kind, .ask.special = true, .object = route_parse(x, &r)};
    bool good = j->object && fields_read(j->object, kind->fields, true, &j->ask, &r);
    if (good && !j->ask.prompt && !j->ask.ids && !j->ask.n_messages) good = refuse(&r, 400, kind->needed, "is missing");
    struct server_model *m = NULL;
    const enum model_answer model = good ? server_model_find(s, &j->ask, &m, &r) : MODEL_REFUSED;
    if (model != MODEL_READY) {
        if (model == MODEL_LATER) server_model_wait(s, x, kind->handle);
        else reply_refusal(x, kind->form, &r);
        done(j);
        return;
    }
    if (j->ask.n_messages) ask_arrange(&j->ask);
    j->params = route_params(s, &j->ask);
    j->exchange = x;
    j->model = m;
    server_model_use(m);
    x->owner = j, x->gone = abandon;
    worker_do(s->worker, kind->work, done, j);
}

static const struct job_kind encoding = {encode_fields, "content", &openai_chat, tokens_encode, encode, reply_ids};
static const struct job_kind decoding = {decode_fields, "tokens", &openai_chat, tokens_decode, decode, reply_content};
static const struct job_kind counting = {anthropic_fields, "messages", &anthropic_messages,
                                         tokens_count,     count,      reply_count};

void tokens_encode(struct server *s, struct exchange *x) { begin(s, x, &encoding); }
void tokens_decode(struct server *s, struct exchange *x) { begin(s, x, &decoding); }
void tokens_count(struct server *s, struct exchange *x) { begin(s, x, &counting); }
