// Anthropic's messages: what they are asked with, and how they are put.
//
// A reply consists of blocks, at most one of thinking and one of text after it. In a stream each is begun, grows and
// ends:
//
//   message_start ──► block start ──► deltas ──► block stop ──► … ──► message_delta ──► message_stop
#include <stdio.h>

#include "app/server/server_state.h"

// ---- fields ----

static bool read_stops(const json_t *value, const char *name, struct ask *a, struct refusal *r) {
    return json_is_array(value) ? field_stops(value, name, a, r) : refuse(r, 400, name, "expected a list of texts");
}

static bool read_thinking(const json_t *value, const char *name, struct ask *a, struct refusal *r) {
    const char *type = json_string_value(json_object_get(value, "type"));
    const bool on = type && (!strcmp(type, "enabled") || !strcmp(type, "adaptive"));
    if (!on && (!type || strcmp(type, "disabled")))
        return refuse(r, 400, "type", "expected enabled or disabled"), refuse_within(r, name);
    a->reasoning = on ? REASONING_ON : REASONING_OFF;
    return true;
}

static bool read_output(const json_t *value, const char *name, struct ask *a, struct refusal *r) {
    static const struct field fields[] = {
        {"effort", FIELD_READ, .read = field_effort},
        {"format", FIELD_READ, .read = openai_response_format},
        {0},
    };
    return fields_read_within(value, name, fields, true, a, r);
}

const struct field anthropic_fields[] = {
    {"model", FIELD_TEXT, .place = offsetof(struct ask, model)},
    {"messages", FIELD_READ, .read = field_messages},
    {"system", FIELD_READ, .read = field_system},
    {"max_tokens", FIELD_INT, .low = 1, .high = 16777216, .place = offsetof(struct ask, max_tokens)},
    {"stop_sequences", FIELD_READ, .read = read_stops},
    {"stream", FIELD_FLAG, .place = offsetof(struct ask, stream)},
    {"thinking", FIELD_READ, .read = read_thinking},
    {"output_config", FIELD_READ, .read = read_output},
    {.name = "", .kind = FIELD_TABLE, .table = field_knobs},
    {.name = "cache_control", .kind = FIELD_IGNORED},
    {.name = "metadata", .kind = FIELD_IGNORED},
    {.name = "service_tier", .kind = FIELD_IGNORED},
    {.name = "container", .kind = FIELD_REFUSED},
    {.name = "mcp_servers", .kind = FIELD_REFUSED},
    {.name = "tool_choice", .kind = FIELD_IGNORED},
    {.name = "tools", .kind = FIELD_REFUSED},
    {0},
};

// ---- replies ----

static const char *reason_name(const struct generated *answer) {
    if (answer->stop) return "stop_sequence";
    return answer->reason == FINISH_END ? "end_turn" : "max_tokens";
}

static json_t *usage_json(const struct generation *g) {
    return json_pack("{s:i, s:i, s:i, s:i}", "input_tokens", g->n_prompt - g->n_reused, "cache_read_input_tokens",
                     g->n_reused, "cache_creation_input_tokens", 0, "output_tokens", g->answers[0].n_tokens);
}

static json_t *message_json(const struct generation *g, json_t *content) {
    char id[64];
    const struct generated *answer = &g->answers[0];
    snprintf(id, sizeof id, "msg_%llx%08llx", (unsigned long long)g->server->started, (unsigned long long)g->number);
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:s?, s:s?, s:o}", "id", id, "type", "message", "role", "assistant",
                     "model", g->model->name, "content", content, "stop_reason",
                     answer->ended ? reason_name(answer) : NULL, "stop_sequence", answer->stop, "usage", usage_json(g));
}

// Of a channel with this text, as a block.
static json_t *block_json(enum channel channel, const char *text, size_t size) {
    if (channel == CHANNEL_ANSWER) return json_pack("{s:s, s:o}", "type", "text", "text", reply_text(text, size));
    return json_pack("{s:s, s:o, s:s}", "type", "thinking", "thinking", reply_text(text, size), "signature", "");
}

static void write_event(struct generation *g, const char *name, json_t *event) {
    http_write(g->exchange, "event: ", 7);
    http_write(g->exchange, name, strlen(name));
    http_write(g->exchange, "\n", 1);
    json_object_set_new(event, "type", json_string(name));
    reply_event(g->exchange, event);
}

static void begin_message(struct generation *g) {
    if (g->answers[0].any) return;
    g->answers[0].any = true;
    write_event(g, "message_start", json_pack("{s:o}", "message", message_json(g, json_array())));
}

static void end_block(struct generation *g) {
    const int n = g->answers[0].n_parts;
    if (n) write_event(g, "content_block_stop", json_pack("{s:i}", "index", n - 1));
}

static void begin_block(struct generation *g, enum channel channel) {
    struct generated *answer = &g->answers[0];
    if (answer->n_parts && answer->channel == channel) return;
    end_block(g);
    answer->channel = channel;
    write_event(g, "content_block_start",
                json_pack("{s:i, s:o}", "index", answer->n_parts++, "content_block", block_json(channel, "", 0)));
}

static void write_piece(struct generation *g, int answer, const struct engine_event *e) {
    const bool thinking = e->channel == CHANNEL_THINKING;
    begin_message(g);
    begin_block(g, e->channel);
    json_t *delta = json_pack("{s:s, s:o}", "type", thinking ? "thinking_delta" : "text_delta",
                              thinking ? "thinking" : "text", reply_text(e->text, e->size));
    write_event(g, "content_block_delta",
                json_pack("{s:i, s:o}", "index", g->answers[answer].n_parts - 1, "delta", delta));
}

static void write_ping(struct generation *g) {
    begin_message(g);
    write_event(g, "ping", json_object());
}

static void write_end_of_answer(struct generation *g, int answer) {
    begin_message(g);
    end_block(g);
    json_t *delta = json_pack("{s:s, s:s?}", "stop_reason", reason_name(&g->answers[answer]), "stop_sequence",
                              g->answers[answer].stop);
    write_event(g, "message_delta", json_pack("{s:o, s:o}", "delta", delta, "usage", usage_json(g)));
}

static void write_end(struct generation *g) { write_event(g, "message_stop", json_object()); }

static json_t *whole_json(const struct generation *g) {
    const struct bytes *texts = g->answers[0].texts;
    json_t *content = json_array();
    if (texts[CHANNEL_THINKING].size)
        json_array_append_new(content,
                              block_json(CHANNEL_THINKING, texts[CHANNEL_THINKING].data, texts[CHANNEL_THINKING].size));
    json_array_append_new(content, block_json(CHANNEL_ANSWER, texts[CHANNEL_ANSWER].data, texts[CHANNEL_ANSWER].size));
    return message_json(g, content);
}

static json_t *error_json(const struct refusal *r) {
    static const struct {
        int status;
        const char *type;
    } types[] = {{400, "invalid_request_error"}, {401, "authentication_error"}, {403, "permission_error"},
                 {404, "not_found_error"},       {413, "request_too_large"},    {503, "overloaded_error"}};
    const char *type = r->status < 500 ? "invalid_request_error" : "api_error";
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].status == r->status) type = types[i].type;
    return json_pack("{s:s, s:{s:s, s:s}}", "type", "error", "error", "type", type, "message", r->text);
}

static void write_error(struct exchange *x, json_t *error) {
    http_write(x, "event: error\n", 13);
    reply_event(x, error);
}

const struct reply_form anthropic_messages = {.prompt = "messages",
                                              .effort = "thinking",
                                              .strict = true,
                                              .stream_type = "text/event-stream",
                                              .piece = write_piece,
                                              .ping = write_ping,
                                              .end_answer = write_end_of_answer,
                                              .end = write_end,
                                              .whole = whole_json,
                                              .error = error_json,
                                              .write = write_error};
