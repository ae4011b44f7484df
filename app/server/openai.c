// What OpenAI's APIs have in common.
#include <stdio.h>

#include "app/server/server_state.h"

// ---- fields ----

bool openai_stream_options(const json_t *value, struct ask *a, struct refusal *r) {
    static const struct field fields[] = {
        {"include_usage", FIELD_FLAG, .place = offsetof(struct ask, with_usage)},
        {.name = "include_obfuscation", .kind = FIELD_IGNORED},
        {0},
    };
    if (!json_is_object(value)) return refuse(r, 400, "stream_options", "expected an object");
    return fields_read(value, fields, true, a, r);
}

bool openai_response_format(const json_t *value, struct ask *a, struct refusal *r) {
    const char *type = json_string_value(json_object_get(value, "type"));
    (void)a;
    if (!type) return refuse(r, 400, "response_format.type", "expected a text");
    return !strcmp(type, "text") || refuse(r, 400, "response_format.type", "'%.40s' is not supported", type);
}

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
             (unsigned long long)g->request);
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
