// OpenAI's chat completions: what they are asked with, and how they are put.
#include "app/server/server_state.h"

// ---- fields ----

const struct field openai_chat_fields[] = {
    {.name = "", .kind = FIELD_TABLE, .table = openai_choice_fields},
    {.name = "", .kind = FIELD_TABLE, .table = openai_account_fields},
    {"messages", FIELD_READ, .read = field_messages},
    {"max_completion_tokens", FIELD_INT, .low = 1, .high = 16777216, .place = offsetof(struct ask, max_tokens)},
    {"logprobs", FIELD_FLAG, .place = offsetof(struct ask, logprobs)},
    {"top_logprobs", FIELD_INT, .low = 0, .high = SAMPLING_TOP, .place = offsetof(struct ask, top_logprobs)},
    {"reasoning_effort", FIELD_READ, .read = field_effort},
    {.name = "audio", .kind = FIELD_REFUSED},
    {.name = "function_call", .kind = FIELD_REFUSED},
    {.name = "functions", .kind = FIELD_REFUSED},
    {.name = "prediction", .kind = FIELD_REFUSED},
    {.name = "web_search_options", .kind = FIELD_REFUSED},
    {0},
};

// ---- replies ----

static json_t *logprobs_json(struct generated *answer) {
    json_t *list = answer->logprobs;
    answer->logprobs = NULL;
    return list ? json_pack("{s:o, s:n}", "content", list, "refusal") : json_null();
}

static json_t *chunk_json(const struct generation *g, json_t *choices) {
    return openai_object(g, "chatcmpl", "chat.completion.chunk", choices);
}

static void write_chunk(struct generation *g, int answer, json_t *delta, const char *reason) {
    json_t *choice = json_pack("{s:i, s:o, s:o, s:s?}", "index", answer, "delta", delta, "logprobs",
                               logprobs_json(&g->answers[answer]), "finish_reason", reason);
    json_t *chunk = chunk_json(g, json_pack("[o]", choice));
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
    write_chunk(g, answer, delta_json(g, answer), openai_reason(&g->answers[answer]));
}

static void write_end(struct generation *g) { openai_write_end(g, chunk_json(g, json_array())); }

static json_t *choice_json(struct generated *answer, int index) {
    const struct bytes *text = &answer->texts[CHANNEL_ANSWER], *thinking = &answer->texts[CHANNEL_THINKING];
    json_t *message =
        json_pack("{s:s, s:o, s:n}", "role", "assistant", "content", reply_text(text->data, text->size), "refusal");
    if (thinking->size) json_object_set_new(message, "reasoning_content", reply_text(thinking->data, thinking->size));
    return json_pack("{s:i, s:o, s:o, s:s}", "index", index, "message", message, "logprobs", logprobs_json(answer),
                     "finish_reason", openai_reason(answer));
}

static json_t *whole_json(const struct generation *g) {
    json_t *choices = json_array();
    for (int i = 0; i < g->n_answers; i++) json_array_append_new(choices, choice_json(&g->answers[i], i));
    json_t *object = openai_object(g, "chatcmpl", "chat.completion", choices);
    json_object_set_new(object, "usage", openai_usage(g));
    return object;
}

const struct reply_form openai_chat = {.prompt = "messages",
                                       .effort = "reasoning_effort",
                                       .strict = true,
                                       .stream_type = "text/event-stream",
                                       .piece = write_piece,
                                       .ping = reply_comment,
                                       .end_answer = write_end_of_answer,
                                       .end = write_end,
                                       .whole = whole_json,
                                       .error = openai_error,
                                       .write = reply_event};
