// What OpenAI's APIs have in common.
#include <stdio.h>

#include "app/server/server_state.h"

// ---- fields ----

bool openai_stream_options(const json_t *value, const char *name, struct ask *a, struct refusal *r) {
    static const struct field fields[] = {
        {"include_usage", FIELD_FLAG, .place = offsetof(struct ask, with_usage)},
        {.name = "include_obfuscation", .kind = FIELD_IGNORED},
        {0},
    };
    return fields_read_within(value, name, fields, true, a, r);
}

static bool read_json_schema(const json_t *value, const char *name, struct ask *a, struct refusal *r);

// Of chats the schema stands in an object of its own, of responses beside the type.
static const struct field format_fields[] = {
    {"schema", FIELD_GRAMMAR, .place = GRAMMAR_SCHEMA},
    {"json_schema", FIELD_READ, .read = read_json_schema},
    {.name = "type", .kind = FIELD_IGNORED},
    {.name = "name", .kind = FIELD_IGNORED},
    {.name = "description", .kind = FIELD_IGNORED},
    {.name = "strict", .kind = FIELD_IGNORED},
    {0},
};

static bool read_json_schema(const json_t *value, const char *name, struct ask *a, struct refusal *r) {
    if (json_object_get(value, name)) return refuse(r, 400, name, "is given twice");
    return fields_read_within(value, name, format_fields, true, a, r);
}

static bool read_format(const json_t *value, struct ask *a, struct refusal *r) {
    static const struct field any[] = {{"type", FIELD_GRAMMAR, .place = GRAMMAR_JSON}, {0}};
    const char *type = json_string_value(json_object_get(value, "type"));
    if (!type) return refuse(r, 400, "type", "expected a string");
    if (!strcmp(type, "text")) return true;
    if (!strcmp(type, "json_object")) return fields_read(value, any, false, a, r);
    if (strcmp(type, "json_schema"))
        return refuse(r, 400, "type", "unknown value '%.40s' (expected text, json_object or json_schema)", type);
    return fields_read(value, format_fields, true, a, r) &&
           (a->grammar_source || refuse(r, 400, "json_schema", "has no schema"));
}

bool openai_response_format(const json_t *value, const char *name, struct ask *a, struct refusal *r) {
    return read_format(value, a, r) || refuse_within(r, name);
}

const struct field openai_fields[] = {
    {"model", FIELD_TEXT, .place = offsetof(struct ask, model)},
    {"stream", FIELD_FLAG, .place = offsetof(struct ask, stream)},
    {"stream_options", FIELD_READ, .read = openai_stream_options},
    {.name = "", .kind = FIELD_TABLE, .table = field_knobs},
    {.name = "user", .kind = FIELD_IGNORED},
    {0},
};

const struct field openai_choice_fields[] = {
    {.name = "", .kind = FIELD_TABLE, .table = openai_fields},
    {"max_tokens", FIELD_INT, .low = 1, .high = 16777216, .place = offsetof(struct ask, max_tokens)},
    {"n", FIELD_INT, .low = 1, .high = 64, .place = offsetof(struct ask, n_answers)},
    {"stop", FIELD_READ, .read = field_stops},
    {"ignore_eos", FIELD_FLAG, .place = offsetof(struct ask, ignore_end)}, // vLLM's and llama.cpp's
    {"response_format", FIELD_READ, .read = openai_response_format},
    {"guided_json", FIELD_GRAMMAR, .place = GRAMMAR_SCHEMA}, // vLLM's
    {"guided_regex", FIELD_GRAMMAR, .place = GRAMMAR_REGEX},
    {"guided_choice", FIELD_GRAMMAR, .place = GRAMMAR_CHOICE},
    {"guided_grammar", FIELD_GRAMMAR, .place = GRAMMAR_GBNF},
    {"grammar", FIELD_GRAMMAR, .place = GRAMMAR_GBNF}, // llama.cpp's
    {"json_schema", FIELD_GRAMMAR, .place = GRAMMAR_SCHEMA},
    {.name = "logit_bias", .kind = FIELD_REFUSED},
    {0},
};

const struct field openai_account_fields[] = {
    {.name = "metadata", .kind = FIELD_IGNORED},
    {.name = "parallel_tool_calls", .kind = FIELD_IGNORED},
    {.name = "prompt_cache_key", .kind = FIELD_IGNORED},
    {.name = "prompt_cache_retention", .kind = FIELD_IGNORED},
    {.name = "safety_identifier", .kind = FIELD_IGNORED},
    {.name = "service_tier", .kind = FIELD_IGNORED},
    {.name = "store", .kind = FIELD_IGNORED},
    {.name = "tool_choice", .kind = FIELD_IGNORED},
    {.name = "tools", .kind = FIELD_REFUSED},
    {0},
};

// ---- replies ----

const char *openai_reason(const struct generated *answer) { return answer->reason == FINISH_END ? "stop" : "length"; }

json_t *openai_usage(const struct generation *g) {
    int n = 0, thinking = 0;
    for (int i = 0; i < g->n_answers; i++) n += g->answers[i].n_tokens, thinking += g->answers[i].n_thinking;
    return json_pack("{s:i, s:i, s:i, s:{s:i}, s:{s:i}}", "prompt_tokens", g->n_prompt, "completion_tokens", n,
                     "total_tokens", g->n_prompt + n, "prompt_tokens_details", "cached_tokens", g->n_reused,
                     "completion_tokens_details", "reasoning_tokens", thinking);
}

json_t *openai_object(const struct generation *g, const char *prefix, const char *kind, json_t *choices) {
    char id[64];
    snprintf(id, sizeof id, "%s-%llx%08llx", prefix, (unsigned long long)g->server->started,
             (unsigned long long)g->number);
    return json_pack("{s:s, s:s, s:I, s:s, s:o}", "id", id, "object", kind, "created", (json_int_t)g->created, "model",
                     g->model->name, "choices", choices);
}

void openai_write_end(struct generation *g, json_t *last) {
    if (g->with_usage) json_object_set_new(last, "usage", openai_usage(g));
    if (g->with_usage) reply_event(g->exchange, json_incref(last));
    json_decref(last);
    http_write(g->exchange, "data: [DONE]\n\n", 14);
}

json_t *openai_error(const struct refusal *r) {
    return json_pack("{s:{s:s, s:s, s:s?, s:s?}}", "error", "message", r->text, "type",
                     r->status >= 500 ? "server_error" : "invalid_request_error", "param", *r->field ? r->field : NULL,
                     "code", r->code);
}

json_t *openai_model(const char *name, int64_t created) {
    return json_pack("{s:s, s:s, s:I, s:s}", "id", name, "object", "model", "created", (json_int_t)created, "owned_by",
                     "confab");
}
