// OpenAI's chat completions: what they are asked with, and how they are put.
#include <stdio.h>

#include "app/server/server_state.h"

// ---- fields ----

static bool read_stream_options(const json_t *value, struct ask *a, struct refusal *r) {
    static const struct field fields[] = {
        {"include_usage", FIELD_FLAG, .place = offsetof(struct ask, with_usage)},
        {.name = "include_obfuscation", .kind = FIELD_IGNORED},
        {0},
    };
    if (!json_is_object(value)) return refuse(r, 400, "stream_options", "expected an object");
    return fields_read(value, fields, true, a, r);
}

static bool read_response_format(const json_t *value, struct ask *a, struct refusal *r) {
    const char *type = json_string_value(json_object_get(value, "type"));
    (void)a;
    if (!type) return refuse(r, 400, "response_format.type", "expected a text");
    return !strcmp(type, "text") || refuse(r, 400, "response_format.type", "'%.40s' is not supported", type);
}

const struct field openai_chat_fields[] = {
    {"model", FIELD_TEXT, .place = offsetof(struct ask, model)},
    {"messages", FIELD_READ, .read = field_messages},
    {"max_tokens", FIELD_INT, .low = 1, .high = 16777216, .place = offsetof(struct ask, max_tokens)},
    {"max_completion_tokens", FIELD_INT, .low = 1, .high = 16777216, .place = offsetof(struct ask, max_tokens)},
    {"n", FIELD_INT, .low = 1, .high = 64, .place = offsetof(struct ask, n_answers)},
    {"stream", FIELD_FLAG, .place = offsetof(struct ask, stream)},
    {"stream_options", FIELD_READ, .read = read_stream_options},
    {"stop", FIELD_READ, .read = field_stops},
    {"logprobs", FIELD_FLAG, .place = offsetof(struct ask, logprobs)},
    {"top_logprobs", FIELD_INT, .low = 0, .high = SAMPLING_TOP, .place = offsetof(struct ask, top_logprobs)},
    {"reasoning_effort", FIELD_READ, .read = field_effort},
    {"response_format", FIELD_READ, .read = read_response_format},
    {.name = "", .kind = FIELD_KNOBS},
    {.name = "metadata", .kind = FIELD_IGNORED},
    {.name = "parallel_tool_calls", .kind = FIELD_IGNORED},
    {.name = "prompt_cache_key", .kind = FIELD_IGNORED},
    {.name = "prompt_cache_retention", .kind = FIELD_IGNORED},
    {.name = "safety_identifier", .kind = FIELD_IGNORED},
    {.name = "service_tier", .kind = FIELD_IGNORED},
    {.name = "store", .kind = FIELD_IGNORED},
    {.name = "user", .kind = FIELD_IGNORED},
    {.name = "audio", .kind = FIELD_REFUSED},
    {.name = "function_call", .kind = FIELD_REFUSED},
    {.name = "functions", .kind = FIELD_REFUSED},
    {.name = "logit_bias", .kind = FIELD_REFUSED},
    {.name = "prediction", .kind = FIELD_REFUSED},
    {.name = "tool_choice", .kind = FIELD_REFUSED},
    {.name = "tools", .kind = FIELD_REFUSED},
    {.name = "web_search_options", .kind = FIELD_REFUSED},
    {0},
};

// ---- replies ----

static const char *reason_name(const struct generated *answer) {
    return answer->reason == FINISH_END ? "stop" : "length";
}

static json_t *usage_json(const struct generation *g) {
    int n = 0, thinking = 0;
    for (int i = 0; i < g->n_answers; i++) n += g->answers[i].n_tokens, thinking += g->answers[i].n_thinking;
    return json_pack("{s:i, s:i, s:i, s:{s:i}, s:{s:i}}", "prompt_tokens", g->n_prompt, "completion_tokens", n,
                     "total_tokens", g->n_prompt + n, "prompt_tokens_details", "cached_tokens", g->n_reused,
                     "completion_tokens_details", "reasoning_tokens", thinking);
}

static json_t *object_json(const struct generation *g, const char *kind, json_t *choices) {
    char id[48];
    snprintf(id, sizeof id, "chatcmpl-%llx%08llx", (unsigned long long)g->server->started,
             (unsigned long long)g->request);
    return json_pack("{s:s, s:s, s:I, s:s, s:o}", "id", id, "object", kind, "created", (json_int_t)g->created, "model",
                     g->model->name, "choices", choices);
}

static json_t *logprobs_json(struct generated *answer) {
    json_t *list = answer->logprobs;
    answer->logprobs = NULL;
    return list ? json_pack("{s:o, s:n}", "content", list, "refusal") : json_null();
}

static void write_chunk(struct generation *g, int answer, json_t *delta, const char *reason) {
    json_t *choice = json_pack("{s:i, s:o, s:o, s:s?}", "index", answer, "delta", delta, "logprobs",
                               logprobs_json(&g->answers[answer]), "finish_reason", reason);
    json_t *chunk = object_json(g, "chat.completion.chunk", json_pack("[o]", choice));
    if (g->with_usage) json_object_set_new(chunk, "usage", json_null());
    reply_event(g->exchange, chunk);
}

static json_t *delta_json(const struct generation *g, int answer) {
    return g->answers[answer].any ? json_object() : json_pack("{s:s}", "role", "assistant");
}

static void write_piece(struct generation *g, int answer, const struct engine_event *e) {
    json_t *delta = delta_json(g, answer);
    const char *member = e->channel == CHANNEL_THINKING ? "reasoning_content" : "content";
    json_object_set_new(delta, member, reply_text(e->text, e->size));
    write_chunk(g, answer, delta, NULL);
}

static void write_end_of_answer(struct generation *g, int answer) {
    write_chunk(g, answer, delta_json(g, answer), reason_name(&g->answers[answer]));
}

static void write_end(struct generation *g) {
    if (g->with_usage) {
        json_t *chunk = object_json(g, "chat.completion.chunk", json_array());
        json_object_set_new(chunk, "usage", usage_json(g));
        reply_event(g->exchange, chunk);
    }
    http_write(g->exchange, "data: [DONE]\n\n", 14);
}

static json_t *choice_json(struct generated *answer, int index) {
    const struct bytes *text = &answer->texts[CHANNEL_ANSWER], *thinking = &answer->texts[CHANNEL_THINKING];
    json_t *message =
        json_pack("{s:s, s:o, s:n}", "role", "assistant", "content", reply_text(text->data, text->size), "refusal");
    if (thinking->size) json_object_set_new(message, "reasoning_content", reply_text(thinking->data, thinking->size));
    return json_pack("{s:i, s:o, s:o, s:s}", "index", index, "message", message, "logprobs", logprobs_json(answer),
                     "finish_reason", reason_name(answer));
}

static json_t *whole_json(const struct generation *g) {
    json_t *choices = json_array();
    for (int i = 0; i < g->n_answers; i++) json_array_append_new(choices, choice_json(&g->answers[i], i));
    json_t *object = object_json(g, "chat.completion", choices);
    json_object_set_new(object, "usage", usage_json(g));
    return object;
}

static json_t *error_json(const struct refusal *r) {
    return json_pack("{s:{s:s, s:s, s:s?, s:s?}}", "error", "message", r->text, "type",
                     r->status >= 500 ? "server_error" : "invalid_request_error", "param", *r->field ? r->field : NULL,
                     "code", r->code);
}

const struct reply_form openai_chat = {.stream_type = "text/event-stream",
                                       .piece = write_piece,
                                       .end_answer = write_end_of_answer,
                                       .end = write_end,
                                       .whole = whole_json,
                                       .error = error_json,
                                       .write_error = reply_event};

json_t *openai_model(const struct server_model *m) {
    return json_pack("{s:s, s:s, s:I, s:s}", "id", m->name, "object", "model", "created", (json_int_t)m->loaded,
                     "owned_by", "confab");
}
