// OpenAI's completions of plain text: what they are asked with, and how they are put.
#include "app/server/server_state.h"
#include "engine/base/utf8.h"

// ---- fields ----

static bool read_ids(const json_t *list, const char *name, struct ask_prompt *out, struct refusal *r) {
    size_t i;
    json_t *id;
    out->ids = xcalloc(json_array_size(list) + 1, sizeof *out->ids);
    json_array_foreach((json_t *)list, i, id) {
        if (!json_is_integer(id)) return refuse(r, 400, name, "expected a string, or a list of token ids");
        const json_int_t value = json_integer_value(id);
        if (value < 0 || value > INT32_MAX) return refuse(r, 400, name, "%lld is not a token", (long long)value);
        out->ids[out->n_ids++] = (int32_t)value;
    }
    return true;
}

// A text, or a list of token ids.
static bool read_one(const json_t *value, const char *name, struct ask_prompt *out, struct refusal *r) {
    if (json_is_array(value) && json_array_size(value)) return read_ids(value, name, out, r);
    out->text = json_string_value(value);
    return out->text || refuse(r, 400, name, "expected a string, or a list of token ids");
}

// One, or a list of several.
static bool read_prompt(const json_t *value, const char *name, struct ask *a, struct refusal *r) {
    const bool several = json_is_array(value) && !json_is_integer(json_array_get(value, 0));
    const size_t n = several ? json_array_size(value) : 1;
    struct ask_prompt first = {0};
    if (n > SERVER_MOST_ANSWERS) return refuse(r, 400, name, "too many prompts (maximum %d)", SERVER_MOST_ANSWERS);
    bool read = read_one(several ? json_array_get(value, 0) : value, name, &first, r);
    a->prompt = first.text, a->ids = first.ids, a->n_ids = first.n_ids;
    a->others = xcalloc(n + 1, sizeof *a->others);
    for (size_t i = 1; i < n && read; i++)
        read = read_one(json_array_get(value, i), name, &a->others[a->n_others++], r);
    return read;
}

// As the field of that name in a table, which means more here than its value.
static bool read_as(const struct field *table, const json_t *value, const char *name, struct ask *a,
                    struct refusal *r) {
    json_t *object = json_pack("{s:O}", name, value);
    const bool read = fields_read(object, table, true, a, r);
    json_decref(object);
    return read;
}

static bool read_logprobs(const json_t *value, const char *name, struct ask *a, struct refusal *r) {
    static const struct field table[] = {
        {"logprobs", FIELD_INT, .low = 0, .high = SAMPLING_TOP, .place = offsetof(struct ask, top_logprobs)},
        {0},
    };
    return a->logprobs = read_as(table, value, name, a, r);
}

// With 0 an echo is all that is wanted. One token is drawn all the same, which nobody sees.
static bool read_max_tokens(const json_t *value, const char *name, struct ask *a, struct refusal *r) {
    static const struct field table[] = {
        {"max_tokens", FIELD_INT, .low = 0, .high = 16777216, .place = offsetof(struct ask, max_tokens)},
        {0},
    };
    const bool read = read_as(table, value, name, a, r);
    if (read && !a->max_tokens) a->only_echo = true, a->max_tokens = 1;
    return read;
}

const struct field openai_completions_fields[] = {
    {"max_tokens", FIELD_READ, .read = read_max_tokens},
    {.name = "", .kind = FIELD_TABLE, .table = openai_choice_fields},
    {"prompt", FIELD_READ, .read = read_prompt},
    {"echo", FIELD_FLAG, .place = offsetof(struct ask, echo)},
    {"logprobs", FIELD_READ, .read = read_logprobs},
    {"best_of", FIELD_INT, .low = 1, .high = 64, .place = offsetof(struct ask, best_of)},
    {.name = "suffix", .kind = FIELD_REFUSED},
    {0},
};

// ---- replies ----

static int characters(const char *text) {
    int n = 0;
    for (; *text; text++) n += (*text & 0xc0) != 0x80;
    return n;
}

// The likeliest tokens and this one, by their texts; null: nobody knows.
static json_t *tops_json(const json_t *token) {
    size_t i;
    json_t *other, *value = json_object_get(token, "logprob");
    if (json_is_null(value)) return json_null();
    json_t *tops = json_object();
    json_array_foreach(json_object_get(token, "top_logprobs"), i, other)
        json_object_set(tops, json_string_value(json_object_get(other, "token")), json_object_get(other, "logprob"));
    json_object_set(tops, json_string_value(json_object_get(token, "token")), value);
    return tops;
}

// From the list that chats have.
static json_t *logprobs_json(struct generated *answer) {
    size_t i;
    json_t *token;
    if (!answer->logprobs) return json_null();
    json_t *tokens = json_array(), *values = json_array(), *tops = json_array(), *offsets = json_array();
    json_array_foreach(answer->logprobs, i, token) {
        json_array_append(tokens, json_object_get(token, "token"));
        json_array_append(values, json_object_get(token, "logprob"));
        json_array_append_new(tops, tops_json(token));
        json_array_append_new(offsets, json_integer(answer->offset));
        answer->offset += characters(json_string_value(json_object_get(token, "token")));
    }
    json_decref(answer->logprobs);
    answer->logprobs = NULL;
    return json_pack("{s:o, s:o, s:o, s:o}", "tokens", tokens, "token_logprobs", values, "top_logprobs", tops,
                     "text_offset", offsets);
}

static json_t *object_json(const struct generation *g, json_t *choices) {
    return openai_object(g, "cmpl", "text_completion", choices);
}

static json_t *choice_json(struct generated *answer, int index, json_t *text) {
    return json_pack("{s:i, s:o, s:o, s:s?}", "index", index, "text", text, "logprobs", logprobs_json(answer),
                     "finish_reason", answer->ended ? openai_reason(answer) : NULL);
}

// The prompt that an answer continues, if it is wanted.
static void add_echo(const struct generation *g, int index, struct bytes *out) {
    const struct bytes *echo = &g->prompts[index / g->n_each].echo;
    bytes_add(out, echo->data, echo->size);
}

static void write_chunk(struct generation *g, int index, const char *text, size_t size) {
    struct generated *answer = &g->answers[index];
    struct bytes all = {0};
    if (!answer->any) add_echo(g, index, &all);
    bytes_add(&all, text, size);
    json_t *chunk = object_json(g, json_pack("[o]", choice_json(answer, index, reply_text(all.data, all.size))));
    if (g->with_usage) json_object_set_new(chunk, "usage", json_null());
    reply_event(g->exchange, chunk);
    bytes_free(&all);
}

static void write_piece(struct generation *g, int answer, const struct engine_event *e) {
    write_chunk(g, answer, e->text, e->size);
}

static void write_end_of_answer(struct generation *g, int answer) { write_chunk(g, answer, "", 0); }

static void write_end(struct generation *g) { openai_write_end(g, object_json(g, json_array())); }

static json_t *whole_json(const struct generation *g) {
    json_t *choices = json_array();
    for (int i = 0; i < g->n_answers; i++) {
        struct generated *answer = &g->answers[i];
        struct bytes text = {0};
        add_echo(g, i, &text);
        bytes_add(&text, answer->texts[CHANNEL_ANSWER].data, answer->texts[CHANNEL_ANSWER].size);
        json_array_append_new(choices, choice_json(answer, i, reply_text(text.data, text.size)));
        bytes_free(&text);
    }
    json_t *object = object_json(g, choices);
    json_object_set_new(object, "usage", openai_usage(g));
    return object;
}

const struct reply_form openai_completions = {.prompt = "prompt",
                                              .strict = true,
                                              .raw = true,
                                              .max_tokens = 16,
                                              .stream_type = "text/event-stream",
                                              .piece = write_piece,
                                              .ping = reply_comment,
                                              .end_answer = write_end_of_answer,
                                              .end = write_end,
                                              .whole = whole_json,
                                              .error = openai_error,
                                              .write = reply_event};
