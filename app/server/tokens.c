// Texts to token ids and back, as the servers of llama.cpp and vLLM do it. A long text takes long: the worker has it.
#include "app/server/server_state.h"

struct job {
    struct exchange *exchange; // NULL: the client is gone
    const struct model_file *file;
    json_t *object; // what was asked; owned
    struct ask ask; // read from it
    int32_t *ids;   // the result, or one of these
    char *text;
    size_t n;
    struct status status;
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

// ---- the job ----

static void encode(void *context) {
    struct job *j = context;
    j->ids = model_file_tokenize(j->file, j->ask.prompt, strlen(j->ask.prompt), j->ask.special, &j->n);
}

static void decode(void *context) {
    struct job *j = context;
    j->text = model_file_detokenize(j->file, j->ask.ids, (size_t)j->ask.n_ids, &j->n, &j->status);
}

static json_t *encoded_json(const struct job *j) {
    json_t *tokens = json_array();
    for (size_t i = 0; i < j->n; i++) json_array_append_new(tokens, json_integer(j->ids[i]));
    return json_pack("{s:o, s:I}", "tokens", tokens, "count", (json_int_t)j->n);
}

static void reply(const struct job *j) {
    struct refusal r;
    if (j->ids) {
        reply_json(j->exchange, 200, encoded_json(j));
    } else if (j->text) {
        json_t *text = reply_text(j->text, j->n);
        reply_json(j->exchange, 200, json_pack("{s:O, s:o}", "content", text, "prompt", text));
    } else {
        refuse(&r, 400, "tokens", "%s", j->status.text);
        reply_refusal(j->exchange, &openai_chat, &r);
    }
}

static void done(void *context) {
    struct job *j = context;
    if (j->exchange) reply(j);
    ask_free(&j->ask);
    json_decref(j->object);
    free(j->ids), free(j->text), free(j);
}

static void abandon(void *job) { ((struct job *)job)->exchange = NULL; }

static void begin(struct server *s, struct exchange *x, const struct field *fields, const char *needed,
                  void (*work)(void *job), void (*again)(struct server *s, struct exchange *x)) {
    struct refusal r = {0};
    struct job *j = xcalloc(1, sizeof *j);
    *j = (struct job){.file = s->model.file, .ask.special = true, .object = route_parse(x, &r)};
    bool good = j->object && fields_read(j->object, fields, true, &j->ask, &r);
    if (good && !j->ask.prompt && !j->ask.ids) good = refuse(&r, 400, needed, "is missing");
    const enum model_answer model = good ? server_model_find(s, j->ask.model, &r) : MODEL_REFUSED;
    if (model != MODEL_READY) {
        if (model == MODEL_LATER) server_model_wait(s, x, again);
        else reply_refusal(x, &openai_chat, &r);
        done(j);
        return;
    }
    j->exchange = x;
    x->owner = j, x->gone = abandon;
    worker_do(s->worker, work, done, j);
}

void tokens_encode(struct server *s, struct exchange *x) {
    begin(s, x, encode_fields, "content", encode, tokens_encode);
}
void tokens_decode(struct server *s, struct exchange *x) {
    begin(s, x, decode_fields, "tokens", decode, tokens_decode);
}
