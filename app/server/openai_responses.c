// OpenAI's responses: what they are asked with, and how they are put.
//
// A response has items: at most one of reasoning and, after it, a message. In a stream, whose events are numbered, each
// is added, grows and is done:
//
//   created ──► in_progress ──► item added ──► part added ──► deltas ──► text done ──► part done ──► item done ──► …
//     ──► completed or incomplete
#include <stdio.h>

#include "app/server/server_state.h"

// ---- fields ----

// What a model thought before is not asked again.
static bool read_input(const json_t *value, const char *name, struct ask *a, struct refusal *r) {
    size_t i;
    json_t *item, *messages = json_array();
    if (json_is_string(value)) a->prompt = json_string_value(value);
    json_array_foreach((json_t *)value, i, item) {
        const char *type = json_string_value(json_object_get(item, "type"));
        if (!type || strcmp(type, "reasoning")) json_array_append(messages, item);
        if (!type || !strcmp(type, "message") || !strcmp(type, "reasoning")) continue;
        json_decref(messages);
        return refuse(r, 400, name, "items of type '%.40s' are not supported", type);
    }
    const bool read = a->prompt || field_messages(json_is_array(value) ? messages : value, name, a, r);
    json_decref(messages);
    return read;
}

static bool read_reasoning(const json_t *value, const char *name, struct ask *a, struct refusal *r) {
    static const struct field fields[] = {
        {"effort", FIELD_READ, .read = field_effort},
        {.name = "summary", .kind = FIELD_IGNORED},
        {.name = "generate_summary", .kind = FIELD_IGNORED},
        {0},
    };
    return fields_read_within(value, name, fields, true, a, r);
}

static bool read_text(const json_t *value, const char *name, struct ask *a, struct refusal *r) {
    static const struct field fields[] = {
        {"format", FIELD_READ, .read = openai_response_format},
        {.name = "verbosity", .kind = FIELD_IGNORED},
        {0},
    };
    return fields_read_within(value, name, fields, true, a, r);
}

static bool read_truncation(const json_t *value, const char *name, struct ask *a, struct refusal *r) {
    const char *text = json_string_value(value);
    (void)a;
    return (text && !strcmp(text, "disabled")) || refuse(r, 400, name, "expected disabled");
}

const struct field openai_responses_fields[] = {
    {.name = "", .kind = FIELD_TABLE, .table = openai_fields},
    {.name = "", .kind = FIELD_TABLE, .table = openai_account_fields},
    {"input", FIELD_READ, .read = read_input},
    {"instructions", FIELD_TEXT, .place = offsetof(struct ask, system)},
    {"max_output_tokens", FIELD_INT, .low = 1, .high = 16777216, .place = offsetof(struct ask, max_tokens)},
    {"reasoning", FIELD_READ, .read = read_reasoning},
    {"text", FIELD_READ, .read = read_text},
    {"truncation", FIELD_READ, .read = read_truncation},
    {.name = "include", .kind = FIELD_IGNORED},
    {.name = "max_tool_calls", .kind = FIELD_IGNORED},
    {.name = "background", .kind = FIELD_REFUSED},
    {.name = "conversation", .kind = FIELD_REFUSED},
    {.name = "previous_response_id", .kind = FIELD_REFUSED},
    {.name = "prompt", .kind = FIELD_REFUSED},
    {.name = "top_logprobs", .kind = FIELD_REFUSED},
    {0},
};

// ---- items ----

static void item_id(const struct generation *g, enum channel channel, char out[64]) {
    snprintf(out, 64, "%s_%llx%08llx", channel == CHANNEL_ANSWER ? "msg" : "rs", (unsigned long long)g->server->started,
             (unsigned long long)g->number);
}

static json_t *part_json(enum channel channel, const struct bytes *text) {
    json_t *part = json_pack("{s:s, s:o}", "type", channel == CHANNEL_ANSWER ? "output_text" : "reasoning_text", "text",
                             reply_text(text->data, text->size));
    if (channel == CHANNEL_ANSWER) json_object_set_new(part, "annotations", json_array());
    return part;
}

// text: NULL: it has only begun.
static json_t *item_json(const struct generation *g, enum channel channel, const struct bytes *text) {
    char id[64];
    item_id(g, channel, id);
    json_t *content = text ? json_pack("[o]", part_json(channel, text)) : json_array();
    const char *status = text ? "completed" : "in_progress";
    if (channel == CHANNEL_ANSWER)
        return json_pack("{s:s, s:s, s:s, s:s, s:o}", "id", id, "type", "message", "status", status, "role",
                         "assistant", "content", content);
    return json_pack("{s:s, s:s, s:s, s:[], s:o}", "id", id, "type", "reasoning", "status", status, "summary",
                     "content", content);
}

// ---- responses ----

static json_t *usage_json(const struct generation *g) {
    const struct generated *answer = &g->answers[0];
    return json_pack("{s:i, s:{s:i}, s:i, s:{s:i}, s:i}", "input_tokens", g->n_prompt, "input_tokens_details",
                     "cached_tokens", g->n_reused, "output_tokens", answer->n_tokens, "output_tokens_details",
                     "reasoning_tokens", answer->n_thinking, "total_tokens", g->n_prompt + answer->n_tokens);
}

static json_t *output_json(const struct generation *g) {
    const struct bytes *texts = g->answers[0].texts;
    json_t *output = json_array();
    if (texts[CHANNEL_THINKING].size)
        json_array_append_new(output, item_json(g, CHANNEL_THINKING, &texts[CHANNEL_THINKING]));
    json_array_append_new(output, item_json(g, CHANNEL_ANSWER, &texts[CHANNEL_ANSWER]));
    return output;
}

static const char *status_name(const struct generated *answer) {
    if (!answer->ended) return "in_progress";
    return answer->reason == FINISH_END ? "completed" : "incomplete";
}

static json_t *response_json(const struct generation *g) {
    char id[64];
    const struct generated *answer = &g->answers[0];
    const bool cut = answer->ended && answer->reason != FINISH_END;
    snprintf(id, sizeof id, "resp_%llx%08llx", (unsigned long long)g->server->started, (unsigned long long)g->number);
    return json_pack("{s:s, s:s, s:I, s:s, s:s, s:o, s:o, s:o, s:n, s:n, s:b, s:s, s:[], s:{s:{s:s}}, s:b, s:{}}", "id",
                     id, "object", "response", "created_at", (json_int_t)g->created, "status", status_name(answer),
                     "model", g->model->name, "output", answer->ended ? output_json(g) : json_array(), "usage",
                     answer->ended ? usage_json(g) : json_null(), "incomplete_details",
                     cut ? json_pack("{s:s}", "reason", "max_output_tokens") : json_null(), "error",
                     "previous_response_id", "parallel_tool_calls", 1, "tool_choice", "auto", "tools", "text", "format",
                     "type", "text", "store", 0, "metadata");
}

// ---- streams ----

static void write_event(struct generation *g, const char *name, json_t *event) {
    http_write(g->exchange, "event: ", 7);
    http_write(g->exchange, name, strlen(name));
    http_write(g->exchange, "\n", 1);
    json_object_set_new(event, "type", json_string(name));
    json_object_set_new(event, "sequence_number", json_integer(g->n_events++));
    reply_event(g->exchange, event);
}

// Of the item that grows; a member is added, which is taken.
static void write_item_event(struct generation *g, const char *name, const char *member, json_t *value) {
    char id[64];
    const struct generated *answer = &g->answers[0];
    item_id(g, answer->channel, id);
    json_t *event = json_pack("{s:s, s:i, s:i, s:o}", "item_id", id, "output_index", answer->n_parts - 1,
                              "content_index", 0, member, value);
    write_event(g, name, event);
}

static void begin_response(struct generation *g) {
    if (g->answers[0].any) return;
    g->answers[0].any = true;
    write_event(g, "response.created", json_pack("{s:o}", "response", response_json(g)));
    write_event(g, "response.in_progress", json_pack("{s:o}", "response", response_json(g)));
}

static void write_item(struct generation *g, const char *name, const struct bytes *text) {
    const struct generated *answer = &g->answers[0];
    write_event(
        g, name,
        json_pack("{s:i, s:o}", "output_index", answer->n_parts - 1, "item", item_json(g, answer->channel, text)));
}

static void end_item(struct generation *g) {
    const struct generated *answer = &g->answers[0];
    const struct bytes *text = &answer->texts[answer->channel];
    const bool thinking = answer->channel == CHANNEL_THINKING;
    if (!answer->n_parts) return;
    write_item_event(g, thinking ? "response.reasoning_text.done" : "response.output_text.done", "text",
                     reply_text(text->data, text->size));
    write_item_event(g, "response.content_part.done", "part", part_json(answer->channel, text));
    write_item(g, "response.output_item.done", text);
}

static void begin_item(struct generation *g, enum channel channel) {
    static const struct bytes nothing = {0};
    struct generated *answer = &g->answers[0];
    if (answer->n_parts && answer->channel == channel) return;
    end_item(g);
    answer->channel = channel;
    answer->n_parts++;
    write_item(g, "response.output_item.added", NULL);
    write_item_event(g, "response.content_part.added", "part", part_json(channel, &nothing));
}

static void write_piece(struct generation *g, int answer, const struct engine_event *e) {
    const bool thinking = e->channel == CHANNEL_THINKING;
    (void)answer;
    begin_response(g);
    begin_item(g, e->channel);
    write_item_event(g, thinking ? "response.reasoning_text.delta" : "response.output_text.delta", "delta",
                     reply_text(e->text, e->size));
}

static void write_end_of_answer(struct generation *g, int answer) {
    begin_response(g);
    begin_item(g, CHANNEL_ANSWER);
    end_item(g);
    char name[32];
    snprintf(name, sizeof name, "response.%s", status_name(&g->answers[answer]));
    write_event(g, name, json_pack("{s:o}", "response", response_json(g)));
}

static void write_end(struct generation *g) { (void)g; }

static void write_error(struct exchange *x, json_t *error) {
    json_t *event = json_incref(json_object_get(error, "error"));
    json_object_set_new(event, "type", json_string("error"));
    http_write(x, "event: error\n", 13);
    reply_event(x, event);
    json_decref(error);
}

const struct reply_form openai_responses = {.prompt = "input",
                                            .effort = "reasoning.effort",
                                            .strict = true,
                                            .keeps = true,
                                            .stream_type = "text/event-stream",
                                            .piece = write_piece,
                                            .ping = reply_comment,
                                            .end_answer = write_end_of_answer,
                                            .end = write_end,
                                            .whole = response_json,
                                            .error = openai_error,
                                            .write = write_error};
